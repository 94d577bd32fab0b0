"""What is done about a breach: by mode and rule, on the wire; the originals are kept, what we say is marked."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role
from lifecycle_scripts import (
    BREACHES,
    CANCELLED,
    WAITING,
    A,
    C,
    Script,
    T,
    ask_v1,
    begun,
    child,
    close,
    heard,
    idle,
    job,
    listed,
    opened,
    play,
    question,
    replayed,
    resume,
    said,
    state,
    taken,
    terminal,
    turn,
)
from relay_driver import (
    Driver,
    Json,
    Said,
    answer,
    call,
    cancel,
    dismissed,
    failure,
    line,
    message,
    prompt,
    selected,
    story,
    text_block,
    tool,
    update,
    withdraw,
)

BEGUN = ["running", "user_message", "answer 7"]
TURN = [*BEGUN, "agent_message_chunk", "idle end_turn"]

# rule, pairing -> action, what the client gets, what the agent gets; for each rule that is repaired
ENFORCED: dict[tuple[str, str], tuple[str, list[str], list[str]]] = {
    ("V01", "22"): (
        "repaired",
        [*TURN, "user_message", "answer 8", "running", "agent_message_chunk"],
        ["session/prompt #7", "session/prompt #8"],
    ),
    ("V02", "22"): (
        "repaired",
        [*BEGUN, "agent_message_chunk", "idle end_turn", "answer 8"],
        ["session/prompt #7", "session/prompt #8"],
    ),
    ("V03", "22"): ("repaired", ["user_message", "running", "agent_message_chunk"], ["session/prompt #7"]),
    ("V07", "22"): (
        "repaired",
        [
            *BEGUN,
            "tool_call_update",
            "session/request_permission #90",
            "requires_action",
            "running",
            "tool_call_update",
        ],
        ["session/prompt #7", "answer 90"],
    ),
    ("V09", "22"): ("repaired", ["idle", "answer 3"], ["session/resume #3"]),
    ("V10", "22"): (
        "repaired",
        ["idle", "user_message", "agent_message_chunk", "idle", "answer 3"],
        ["session/resume #3"],
    ),
    ("V12", "22"): (
        "repaired",
        [*BEGUN, "agent_message_chunk", "idle cancelled"],
        ["session/prompt #7", "session/cancel"],
    ),
    ("V12", "11"): ("repaired", ["agent_message_chunk", "answer 7"], ["session/prompt #7", "session/cancel"]),
    ("V19", "22"): ("repaired", ["running", "user_message", "answer 7"], ["session/prompt #7"]),
    ("V20", "22"): (
        "repaired",
        ["running", "answer 7", "agent_message_chunk", "user_message", "idle end_turn"],
        ["session/prompt #7"],
    ),
    ("V21", "22"): ("repaired", ["running", "user_message", "idle error", "answer 7"], ["session/prompt #7"]),
    ("V22", "22"): ("repaired", ["error 7 -32603"], ["session/prompt #7"]),
    ("V24", "22"): ("repaired", [*TURN, "answer 3"], ["session/prompt #7", "session/close #3"]),
    ("V24", "11"): ("repaired", ["answer 3"], ["session/close #3"]),
    ("V25", "22"): (
        "repaired",
        [*BEGUN, "agent_message_chunk", "idle cancelled", "answer 3"],
        ["session/prompt #7", "session/close #3"],
    ),
    ("V26", "22"): ("repaired", ["answer 3"], ["session/close #3"]),
    ("V27", "22"): (
        "repaired",
        [*BEGUN, "agent_message_chunk", "idle cancelled", "error 8 -32800"],
        ["session/prompt #7", "session/prompt #8", "session/cancel"],
    ),
    ("V28", "22"): ("refused", [*BEGUN, "tool_call_update", "error 5 -32602"], ["session/prompt #7"]),
    ("V29", "22"): ("repaired", TURN, ["session/prompt #7"]),
    ("V29", "11"): ("repaired", ["agent_message_chunk", "answer 7"], ["session/prompt #7"]),
    ("V30", "22"): ("repaired", [], []),
    ("V30", "11"): ("repaired", [], []),
    ("V31", "22"): ("repaired", [], ["_x/a #7", "_x/b #acp-proxy-1"]),
    ("V31", "11"): ("repaired", ["_x/a #7", "_x/b #acp-proxy-1"], []),
    ("V33", "22"): ("refused", [], ["error 5 -32601"]),
    ("V33", "11"): ("refused", ["error 5 -32601"], []),
    ("V35", "22"): (
        "repaired",
        ["_busy", "user_message", "answer 7", "running", "agent_message_chunk", "_rest"],
        ["session/prompt #7"],
    ),
    ("V38", "22"): ("refused", [*BEGUN, "subagent_update", "error 5 -32602"], ["session/prompt #7"]),
    ("V40", "11"): (
        "repaired",
        ["session/request_permission #90"],
        ["session/prompt #7", "session/cancel", "answer 90"],
    ),
    ("V43", "22"): ("repaired", ["user_message", "agent_message_chunk"], ["session/resume #3"]),
}
# Answers or values change, the order of messages does not; and what a repair column leaves alone.
SAME_STORY = {"V32", "V39", "V45"}
NOTED_ONLY = set(BREACHES) - {rule for rule, _ in ENFORCED} - SAME_STORY

# What strict refuses: what the client gets, what the agent gets.
REFUSED: dict[tuple[str, str], tuple[list[str], list[str]]] = {
    ("V11", "22"): (["idle", "answer 3"], ["session/resume #3"]),
    ("V11", "11"): (["answer 3"], ["session/resume #3"]),
    ("V13", "22"): ([*BEGUN, "tool_call_update", "idle cancelled"], ["session/prompt #7", "session/cancel"]),
    ("V14", "22"): (TURN, ["session/prompt #7", "session/cancel"]),
    ("V15", "22"): (TURN, ["session/prompt #7"]),
    ("V23", "22"): (["error 7 -32602"], []),
    ("V28", "22"): ([*BEGUN, "tool_call_update", "error 5 -32602"], ["session/prompt #7"]),
    ("V31", "22"): (["error None -32600"], ["_x/a #7"]),
    ("V31", "11"): (["_x/a #7"], ["error None -32600"]),
    ("V33", "22"): ([], ["error 5 -32601"]),
    ("V34", "22"): (BEGUN, ["session/prompt #7"]),
    ("V34", "11"): ([], ["session/prompt #7"]),
    ("V42", "22"): (BEGUN, ["session/prompt #7"]),
    ("V42", "11"): ([], ["session/prompt #7"]),
    ("V43", "22"): (["user_message", "agent_message_chunk"], ["session/resume #3"]),
    ("V44", "22"): (["error 7 -32600"], []),
    ("V44", "11"): (["error 7 -32600"], []),
}


def enforced(script: Script, pairing: str = "22", **options: Any) -> Said:
    return play(opened(pairing, lifecycle="enforce", **options), script)


def marks(body: Json) -> Json:
    """Our own marks on a message."""
    holder = body.get("params", body.get("result"))
    found: Json = holder["_meta"]["acp-proxy"]
    return found


def action(said_by: Said, rule: str) -> str:
    return next(one.action for one in said_by.findings if one.rule == rule)


# ---------------------------------------------------------------- the tables


@pytest.mark.parametrize(("rule", "pairing"), ENFORCED)
def test_enforce_puts_it_right(rule: str, pairing: str) -> None:
    done, client, agent = ENFORCED[rule, pairing]
    got = enforced(BREACHES[rule][pairing], pairing)
    assert (action(got, rule), story(got.client), story(got.agent)) == (done, client, agent)


@pytest.mark.parametrize("rule", sorted(NOTED_ONLY))
def test_what_has_no_repair_is_noted_and_passes(rule: str) -> None:
    pairing = "22"
    script = BREACHES[rule][pairing]
    got = enforced(script, pairing)
    assert action(got, rule) == "noted"
    assert got.client == [body for who, body in script if who == "agent"]
    assert got.agent == [body for who, body in script if who == "client"]


@pytest.mark.parametrize(("rule", "pairing"), REFUSED)
def test_strict_refuses(rule: str, pairing: str) -> None:
    client, agent = REFUSED[rule, pairing]
    got = play(opened(pairing, lifecycle="strict"), BREACHES[rule][pairing])
    assert (action(got, rule), story(got.client), story(got.agent)) == ("refused", client, agent)


@pytest.mark.parametrize(
    ("rule", "pairing"),
    [case for case in ENFORCED if case not in REFUSED and case[0] not in ("V31", "V33", "V38")],
)
def test_strict_never_keeps_back_what_somebody_waits_for(rule: str, pairing: str) -> None:
    _, client, agent = ENFORCED[rule, pairing]
    got = play(opened(pairing, lifecycle="strict"), BREACHES[rule][pairing])
    assert (story(got.client), story(got.agent)) == (client, agent)


def test_a_refusal_names_the_rule() -> None:
    got = play(opened("22", lifecycle="strict"), BREACHES["V23"]["22"])
    assert got.client[0]["error"]["data"] == {"rule": "V23"}


def test_one_rule_can_be_chosen_alone() -> None:
    strict = play(opened("22", rules={"V23": "strict"}), [*BREACHES["V23"]["22"], *BREACHES["V15"]["22"]])
    assert [(one.rule, one.action) for one in strict.findings] == [("V23", "refused"), ("V15", "noted")]
    lax = enforced(
        [*turn(7), C(cancel()), *begun(8), C(cancel()), A(idle("end_turn"))], rules={"V12": "observe"}
    )
    assert (action(lax, "V12"), story(lax.client)[-1]) == ("noted", "idle end_turn")


# ---------------------------------------------------------------- snapshots


@pytest.mark.parametrize("rule", ["V01", "V02", "V07", "V09", "V10", "V25", "V35"])
def test_an_injected_snapshot_says_that_it_is_ours(rule: str) -> None:
    script = BREACHES[rule]["22"]
    given = [body for who, body in script if who == "agent"]
    ours = [body for body in enforced(script).client if body not in given and "method" in body]
    assert [marks(body) for body in ours] == [{"synthetic": True}]


def test_an_injected_snapshot_lists_background_work_as_the_agent_last_did() -> None:
    work = [listed()]
    script = [
        A(terminal("T1")),
        *turn(7, background=work),
        C(prompt(8)),
        A(heard(8)),
        A(taken(8)),
        A(said("x", "a8")),
    ]
    got = enforced(script).client
    assert got[-2]["params"]["update"] == {
        "sessionUpdate": "state_update",
        "state": "running",
        "background": work,
    }


def test_a_running_that_was_injected_is_not_injected_again() -> None:
    script = [*BREACHES["V01"]["22"], A(said("y", "a8")), A(idle()), A(idle())]
    assert story(enforced(script).client).count("running") == 2


def test_a_resume_tells_the_state_there_is() -> None:
    got = enforced([*begun(), resume(3, "s1"), A(answer(3, {})), A(said()), A(idle())])
    assert story(got.client)[3:5] == ["running", "answer 3"]


def test_the_agents_own_stop_reason_is_kept() -> None:
    failed = {"code": -32603, "message": "aborted"}
    got = enforced([*begun(), C(cancel()), A(idle("error", error=failed))]).client[-1]
    assert got["params"]["update"] == {
        "sessionUpdate": "state_update",
        "state": "idle",
        "stopReason": "cancelled",
    }
    assert marks(got) == {"orig": {"stopReason": "error", "error": failed}}


def test_a_cancelled_end_without_a_reason_is_given_one() -> None:
    got = enforced([*begun(), A(said()), C(cancel()), A(idle(None))])
    assert (story(got.client)[-1], action(got, "V04")) == ("idle cancelled", "repaired")


def test_a_v1_turn_that_fails_after_a_cancel_ends_cancelled() -> None:
    got = enforced([C(prompt(7)), A(message()), C(cancel()), A(failure(7, -32603, "aborted"))], "11")
    assert got.client[-1]["result"]["stopReason"] == "cancelled"
    assert marks(got.client[-1])["orig"]["error"]["code"] == -32603
    refused = enforced([C(prompt(7)), C(cancel()), A(failure(7, -32000))], "11")
    assert (refused.rules, story(refused.client)) == ([], ["error 7 -32000"])


def test_a_v1_client_that_asked_for_states_is_told_the_end_as_it_was_put_right() -> None:
    asking = {"clientCapabilities": {"_meta": {"acp-proxy": {"stateUpdates": True}}}}
    driver = opened("11", lifecycle="enforce", client=asking)
    got = play(driver, [C(prompt(7)), A(message()), C(cancel()), A(answer(7, {"stopReason": "end_turn"}))])
    told = [
        body["params"]["update"] for body in got.client if body.get("method") == "_acp-proxy/state_update"
    ]
    assert [one.get("stopReason") for one in told] == [None, "cancelled"]


# ---------------------------------------------------------------- an agent without states


def test_the_states_of_an_agent_that_tells_none_are_inferred() -> None:
    script = [
        C(prompt(7)),
        A(heard(7)),
        A(said()),
        A(job("t1", "pending")),
        A(question(90, "t1")),
        C(selected(90)),
        A(job("t1", "completed")),
        A(answer(7, {"messageId": "m7", "stopReason": "end_turn"})),
        C(prompt(8)),
        A(heard(8)),
        A(said("more", "a8")),
        C(cancel()),
        A(answer(8, {"messageId": "m8", "stopReason": "cancelled"})),
    ]
    got = enforced(script)
    assert got.rules == ["V03"]
    assert story(got.client) == [
        "user_message",
        "running",
        "agent_message_chunk",
        "tool_call_update",
        "session/request_permission #90",
        "requires_action",
        "running",
        "tool_call_update",
        "idle end_turn",
        "answer 7",
        "running",
        "user_message",
        "agent_message_chunk",
        "idle cancelled",
        "answer 8",
    ]


def test_inference_ends_for_good_with_the_agents_own_first_snapshot() -> None:
    script = [
        C(prompt(7)),
        A(heard(7)),
        A(said()),
        A(state("running")),
        A(answer(7, {"messageId": "m7"})),
        A(idle()),
    ]
    assert story(enforced(script).client)[1:] == [
        "running",
        "agent_message_chunk",
        "running",
        "answer 7",
        "idle end_turn",
    ]


def test_an_answer_before_any_output_acknowledges_and_the_end_stays_unseen() -> None:
    script = [C(prompt(7)), A(heard(7)), A(taken(7)), A(said()), C(prompt(8)), A(heard(8)), A(taken(8))]
    assert "idle" not in " ".join(story(enforced(script).client))


def test_a_prompt_nobody_echoed_is_echoed_before_the_inferred_end() -> None:
    got = enforced([C(prompt(7)), A(said()), A(answer(7, {"messageId": "m7", "stopReason": "end_turn"}))])
    assert story(got.client) == [
        "running",
        "agent_message_chunk",
        "user_message",
        "idle end_turn",
        "answer 7",
    ]
    assert set(got.rules) == {"V03", "V20"}


# ---------------------------------------------------------------- message ids


def echoes_of(got: Said) -> list[str]:
    return [
        body["params"]["update"]["messageId"]
        for body in got.client
        if body.get("method") == "session/update"
        and body["params"]["update"]["sessionUpdate"].startswith("user_")
    ]


def answered(got: Said, request_id: Any = 7) -> Any:
    return next(body["result"]["messageId"] for body in got.client if body.get("id") == request_id)


def test_a_missing_id_is_the_echos() -> None:
    got = enforced([C(prompt(7)), A(state("running")), A(heard(7)), A(answer(7, {"_vendor": 1}))])
    assert got.client[-1]["result"] == {"_vendor": 1, "messageId": "m7"}


def test_an_echo_that_comes_after_one_was_made_says_nothing_new() -> None:
    script = [C(prompt(7)), A(state("running")), A(answer(7, {})), A(heard(7, "own")), A(said()), A(idle())]
    got = enforced(script)
    assert echoes_of(got) == [answered(got)]
    in_chunks = [
        *script[:3],
        A(update("user_message_chunk", messageId="own", content=text_block("g"))),
        A(update("user_message_chunk", messageId="own", content=text_block("o"))),
        A(said()),
    ]
    got = enforced(in_chunks)
    assert echoes_of(got) == [answered(got)]


@pytest.mark.parametrize("answer_first", [True, False])
def test_two_ids_of_one_prompt_become_one_and_stay_one(answer_first: bool) -> None:
    pair = [A(taken(7, "m7")), A(heard(7, "other"))]
    script = [
        C(prompt(7)),
        A(state("running")),
        *(pair if answer_first else pair[::-1]),
        A(said()),
        A(idle()),
    ]
    got = enforced(script)
    assert (set(got.rules), action(got, "V20")) == ({"V20"}, "repaired")
    assert echoes_of(got) == [answered(got)]
    again = enforced(
        [*script, resume(3, "s1", replay=True), A(heard(7, "other")), A(idle(None)), A(answer(3, {}))]
    )
    assert echoes_of(again) == [answered(again)] * 2


def test_a_replay_tells_an_echo_anew_that_was_made_before() -> None:
    script = [
        *BREACHES["V20"]["22"],
        resume(3, "s1", replay=True),
        A(heard(7)),
        A(idle(None)),
        A(answer(3, {})),
    ]
    assert echoes_of(enforced(script)) == ["m7", "m7"]


def test_a_rejected_prompt_never_shows_in_whatever_pieces() -> None:
    chunk = update("user_message_chunk", messageId="m7", content=text_block("g"))
    rest = update("user_message_chunk", messageId="m7", content=text_block("o"))
    got = enforced([C(prompt(7)), A(failure(7, -32603)), A(chunk), A(rest), *turn(8)])
    assert echoes_of(got) == ["m8"]


def test_a_prompt_refused_after_its_echo_counts_as_taken() -> None:
    got = enforced(BREACHES["V21"]["22"]).client
    assert got[-2]["params"]["update"]["error"]["code"] == -32603
    assert got[-1]["result"]["messageId"] == "m7"
    assert marks(got[-1])["orig"]["error"]["code"] == -32603


def test_the_agents_late_answer_to_a_held_prompt_goes_nowhere() -> None:
    late = [*BREACHES["V27"]["22"], A(taken(8)), *turn(9)]
    assert story(enforced(late).client).count("answer 8") == 0
    assert enforced(late).rules == ["V27"]


def test_a_prompt_that_was_echoed_and_left_unanswered_at_close_was_taken() -> None:
    script = [
        C(prompt(7)),
        A(state("running")),
        A(heard(7)),
        close(),
        A(idle("cancelled")),
        A(answer(3, {})),
        T(1),
    ]
    assert enforced(script).client[-1] == answer(7, {"messageId": "m7"})


# ---------------------------------------------------------------- request ids, answers


def test_a_request_id_used_twice_gets_both_its_answers() -> None:
    script = [
        C(call(7, "_x/a", {})),
        C(call(7, "_x/b", {})),
        C(withdraw(7)),
        A(answer("acp-proxy-1", {"b": 1})),
        A(answer(7, {"a": 1})),
    ]
    got = enforced(script)
    assert got.client == [answer(7, {"b": 1}), answer(7, {"a": 1})]
    assert got.agent[-1] == withdraw("acp-proxy-1")
    assert got.rules == ["V31"]


def test_a_client_answers_a_request_of_the_agent_under_the_id_it_was_asked_with() -> None:
    script = [
        A(call(7, "_x/a", {})),
        A(call(7, "_x/b", {})),
        C(answer("acp-proxy-1", {"b": 1})),
        C(answer(7, {})),
    ]
    assert enforced(script, "11").agent == [answer(7, {"b": 1}), answer(7, {})]


@pytest.mark.parametrize("token", [None, 1.5, True, [1]])
def test_an_id_that_is_none_is_refused(token: Any) -> None:
    got = enforced([C(call(token, "_x/a", {}))])
    assert (story(got.client), got.agent, action(got, "V31")) == (["error None -32600"], [], "refused")


def test_what_no_offer_allows_never_approves() -> None:
    for chosen in (
        selected(90, "always"),
        answer(90, {"outcome": {"outcome": "Selected", "optionId": "ok"}}),
    ):
        got = enforced([*WAITING, C(chosen)])
        assert got.agent[-1] == dismissed(90)
        assert action(got, "V39") == "repaired"


def test_the_answer_given_for_a_client_is_the_only_one() -> None:
    script = [C(prompt(7)), A(ask_v1()), C(cancel()), T(0.9), C(dismissed(90)), T(5)]
    assert enforced(script, "11").rules == []
    late = [C(prompt(7)), A(ask_v1()), C(cancel()), T(1.1), C(selected(90))]
    got = enforced(late, "11")
    assert got.agent[2:] == [dismissed(90)]
    slow = play(opened("11", lifecycle="enforce", answer_grace=3.0), late)
    assert (slow.rules, slow.agent[2:]) == ([], [selected(90)])


def test_a_request_for_a_closed_session_is_answered_in_the_clients_name() -> None:
    got = enforced([close(), A(answer(3, {})), A(question()), A(call(91, "_x/ask", {"sessionId": "s1"}))])
    assert got.agent[1] == dismissed(90)
    assert got.agent[2]["error"]["code"] == -32002
    assert story(got.client) == ["answer 3"]


def test_closing_what_is_unknown_succeeds() -> None:
    got = enforced(BREACHES["V26"]["22"]).client[-1]
    assert {key: value for key, value in got["result"].items() if key != "_meta"} == {}
    assert marks(got)["orig"]["error"]["code"] == -32002


# ---------------------------------------------------------------- values, tools, bytes


def test_a_spelling_that_means_a_listed_value_becomes_it() -> None:
    got = enforced([*begun(), A(job("t1", "inProgress", kind="bash"))])
    told = got.client[-1]["params"]
    assert (told["update"]["status"], told["update"]["kind"]) == ("in_progress", "bash")
    assert marks(got.client[-1]) == {"orig": {"update/status": "inProgress"}}
    assert action(got, "V34") == "repaired"


def test_a_state_that_is_spelt_otherwise_is_the_state() -> None:
    got = enforced(
        [C(prompt(7)), A(state("Running")), A(heard(7)), A(taken(7)), A(said()), A(idle("endTurn"))]
    )
    assert story(got.client)[0] == "running"
    assert story(got.client)[-1] == "idle end_turn"
    assert set(got.rules) == {"V34", "V61"} or set(got.rules) == {"V34"}


def test_nothing_is_respelt_into_an_approval() -> None:
    odd = question()
    odd["params"]["options"] = [
        *odd["params"]["options"],
        {"optionId": "x", "name": "X", "kind": "allowOnce"},
    ]
    assert enforced([*begun(), A(odd)]).client[-1]["params"]["options"][-1]["kind"] == "allowOnce"


def test_a_malformed_request_is_refused_and_a_malformed_notification_passes() -> None:
    got = enforced([C(call(7, "session/prompt", {"sessionId": "s1", "prompt": "text"})), *turn(8)])
    assert (story(got.client)[0], story(got.agent)) == ("error 7 -32602", ["session/prompt #8"])
    assert action(got, "V42") == "refused"


def test_tools_left_open_are_closed_only_where_that_was_asked_for() -> None:
    script = [*begun(), A(job("t1", "in_progress")), C(cancel()), A(idle("cancelled"))]
    got = play(opened("22", close_tools=True), script)
    assert [one["params"]["update"].get("status") for one in got.client[-2:]] == ["cancelled", None]
    assert (marks(got.client[-2]), action(got, "V41")) == ({"synthetic": True}, "repaired")
    v1 = [C(prompt(7)), A(tool("t1", "in_progress")), C(cancel()), A(answer(7, {"stopReason": "cancelled"}))]
    got = play(opened("11", close_tools=True), v1)
    assert got.client[-2]["params"]["update"]["status"] == "failed", "version 1 has no cancelled tool call"


def test_what_was_judged_is_what_arrives() -> None:
    """Two members of one name: one parser takes the first, another the last."""
    raw = line(said()).replace(b'"sessionId":"s1"', b'"sessionId":"s9","sessionId":"s1"')
    driver = opened("22", lifecycle="enforce")
    play(driver, begun())
    assert driver.lines(Role.AGENT, raw).raw(Role.CLIENT) == [line(said())]
    watching = opened("22")
    play(watching, begun())
    assert watching.lines(Role.AGENT, raw).raw(Role.CLIENT) == [raw]


def test_a_finding_names_the_frames_of_what_was_rewritten() -> None:
    driver = opened("22", lifecycle="enforce")
    got = play(driver, [*begun(), C(cancel()), A(idle("end_turn"))])
    assert next(one.frames for one in got.findings if one.rule == "V12") == (9, 10)


def test_a_childs_cancel_passes_where_it_is_offered() -> None:
    offered = [*begun(), A(child(capabilities={"cancel": {}})), C(cancel("c9"))]
    assert enforced(offered).rules == []
    withheld = [*begun(), A(child()), C(cancel("c9"))]
    assert story(play(opened("22", lifecycle="strict"), withheld).agent) == ["session/prompt #7"]


@pytest.mark.parametrize("rule", sorted(BREACHES))
def test_findings_never_quote_what_was_said(rule: str) -> None:
    for pairing, script in BREACHES[rule].items():
        found = play(opened(pairing, lifecycle="enforce"), script).findings
        texts = [one.text for one in found if one.rule == rule]
        assert texts
        for text in texts:
            assert not any(
                word in text for word in ("banana", "max_tokens", "always", "Migrating", "T1", "c9")
            )


def test_after_the_client_has_left_nothing_is_a_breach_any_more() -> None:
    driver = opened("22", lifecycle="enforce")
    play(driver, [*begun(), A(said()), C(prompt(8, "later")), C(cancel()), A(idle("cancelled"))])
    assert driver.client_leaves().rules == ["V27"], "known now, for it will never be answered"
    assert driver.agent_sends(idle("end_turn"), idle("max_tokens")).findings == []


def test_an_agent_that_ends_takes_its_inferred_state_with_it() -> None:
    driver: Driver = opened("22", lifecycle="enforce")
    play(driver, [C(prompt(7)), A(heard(7)), A(said())])
    assert "idle error" in story(driver.agent_exits().client)


def test_replay_and_cancelled_words_are_kept_back_to_the_last() -> None:
    strict = opened("22", lifecycle="strict")
    assert story(play(strict, [resume(), *replayed(), A(idle(None, "s5")), A(answer(3, {}))]).client) == [
        "idle",
        "answer 3",
    ]
    tail = [*CANCELLED, A(said("a")), A(said("b")), *turn(8)]
    got = play(opened("22", lifecycle="strict"), tail)
    assert story(got.client)[4:] == [
        "idle cancelled",
        "running",
        "user_message",
        "answer 8",
        "agent_message_chunk",
        "idle end_turn",
    ]
    assert got.rules == ["V13"]
