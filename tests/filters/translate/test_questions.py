"""Requests of a v1 agent to a v2 client, and their answers (bridge §3.3, §7.3, §7.9, §8; LC-12, LC-43)."""

from __future__ import annotations

from typing import Any

import pytest

from relay_driver import (
    OPTIONS,
    Driver,
    answer,
    ask,
    bridged,
    call,
    cancel,
    dismissed,
    failure,
    form,
    message,
    selected,
    story,
    tool,
    tool_update,
    withdraw,
)

PERMISSION = "session/request_permission"
FORMS = {"elicitation": {"form": {}}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def asked(*before: dict[str, Any], **more: Any) -> Driver:
    """An open turn in which the agent waits for the permission 90."""
    driver = bridged(client=FORMS)
    driver.prompt()
    driver.agent_sends(message(), *before, ask(90, **more))
    return driver


# ---------------------------------------------------------------- asking


def test_a_permission_is_asked_in_v2_terms_under_an_id_of_ours() -> None:
    driver = asked(tool("k", "pending", title="Edit file"), _meta={"a": 1}, x_own=2)
    request = next(body for body in driver.outputs.client if body.get("method") == PERMISSION)
    assert request["id"] == 1
    assert request["params"] == {
        "sessionId": "s1",
        "title": "Edit file",
        "subject": {"type": "tool_call", "toolCall": {"toolCallId": "k"}},
        "options": OPTIONS,
        "_meta": {"a": 1},
        "x_own": 2,
    }


def test_a_title_of_the_question_does_not_rename_the_tool() -> None:
    driver = asked(tool("k", "pending", title="Edit file"), toolCall={"toolCallId": "k", "title": "Allow?"})
    params = next(b for b in driver.outputs.client if b.get("method") == PERMISSION)["params"]
    assert params["title"] == "Allow?"
    assert "title" not in params["subject"]["toolCall"]


def test_an_unseen_tool_has_the_title_of_its_question() -> None:
    driver = asked(toolCall={"toolCallId": "new", "title": "Run it"})
    params = next(b for b in driver.outputs.client if b.get("method") == PERMISSION)["params"]
    assert (params["title"], params["subject"]["toolCall"]["title"]) == ("Run it", "Run it")
    nameless = asked(toolCall={"toolCallId": "new"})
    params = next(b for b in nameless.outputs.client if b.get("method") == PERMISSION)["params"]
    assert params["title"] == "Permission required"


def test_an_unknown_option_kind_passes() -> None:
    options = [*OPTIONS, {"optionId": "x", "name": "?", "kind": "ask_boss"}]
    driver = asked(options=options)
    params = next(b for b in driver.outputs.client if b.get("method") == PERMISSION)["params"]
    assert params["options"] == options
    assert driver.client_sends(selected(1, "x")).agent == [selected(90, "x")]


def test_no_options_is_a_cancel_at_once_and_never_asked() -> None:
    driver = asked(options=[])
    assert driver.said[-1].agent == [answer(90, CANCELLED)]
    assert PERMISSION not in "".join(story(driver.outputs.client))
    assert "V42" in driver.said[-1].rules


@pytest.mark.parametrize(
    "method",
    [
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
    ],
)
def test_host_calls_nobody_offered_are_refused(method: str) -> None:
    driver = bridged()
    said = driver.agent_sends(call("x", method, {"sessionId": "s1", "path": "/p", "terminalId": "t"}))
    assert said.both == ["A error x -32601"]
    assert said.rules == ["V52"]


# ---------------------------------------------------------------- answers


def test_state_follows_question_and_answer() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(tool("k", "pending"))
    assert driver.agent_sends(ask(90)).both == [f"C {PERMISSION} #1", "C requires_action"]
    assert driver.client_sends(selected(1)).both == ["A answer 90", "C running"]
    assert story(driver.ends().client) == ["idle end_turn"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (selected(1, "ok"), {"outcome": {"outcome": "selected", "optionId": "ok"}}),
        (selected(1, "no"), {"outcome": {"outcome": "selected", "optionId": "no"}}),
        (dismissed(1), CANCELLED),
        (selected(1, "never-offered"), CANCELLED),
        (answer(1, {"outcome": {"outcome": "selected"}}), CANCELLED),
        (answer(1, {"outcome": {"outcome": "approved", "optionId": "ok"}}), CANCELLED),
        (answer(1, {"outcome": {"outcome": "Selected", "optionId": "ok"}}), CANCELLED),
        (answer(1, {"outcome": "selected"}), CANCELLED),
        (answer(1, {}), CANCELLED),
        (answer(1, None), CANCELLED),
        (answer(1, "ok"), CANCELLED),
        (failure(1, -32603), CANCELLED),
    ],
)
def test_outcomes(given: dict[str, Any], told: Any) -> None:
    assert asked().client_sends(given).agent == [answer(90, told)]


def test_an_unoffered_option_is_a_finding() -> None:
    assert asked().client_sends(selected(1, "never-offered")).rules == ["V39"]


def test_one_of_two_answers_goes_to_its_own_question() -> None:
    driver = asked(tool("k", "pending"), tool("l", "pending"))
    driver.agent_sends(ask(91, "l"))
    assert driver.client_sends(selected(2, "no")).both == ["A answer 91"]
    assert driver.client_sends(selected(1)).both == ["A answer 90", "C running"]


@pytest.mark.parametrize("agent_id", [0, "90", "uuid-1", None, 2**53, -1])
def test_any_id_of_the_agent_comes_back_as_it_was(agent_id: Any) -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(ask(agent_id))
    assert driver.client_sends(selected(1)).agent == [selected(agent_id)]


def test_an_id_used_twice_in_flight_gets_two_answers() -> None:
    driver = asked()
    driver.agent_sends(ask(90, "l"))
    assert driver.client_sends(selected(1)).agent == [selected(90)]
    assert driver.client_sends(selected(2, "no")).agent == [selected(90, "no")]


@pytest.mark.parametrize("own_id", [2, 90, "1", True, None, 1.0])
def test_an_answer_to_nothing_goes_nowhere(own_id: Any) -> None:
    driver = asked()
    assert driver.client_sends(selected(own_id)).agent == []
    assert driver.client_sends(selected(1)).agent == [selected(90)]


def test_a_second_answer_goes_nowhere() -> None:
    driver = asked()
    driver.client_sends(selected(1, "no"))
    assert driver.client_sends(selected(1)).lines == []


def test_an_answer_keeps_what_is_unknown_here() -> None:
    driver = asked()
    result = {"outcome": {"outcome": "selected", "optionId": "ok", "x": 1}, "_meta": {"a": 1}, "y": 2}
    assert driver.client_sends(answer(1, result)).agent == [answer(90, result)]


# ---------------------------------------------------------------- withdrawals


def test_a_cancel_answers_the_agent_and_withdraws_at_the_client() -> None:
    driver = asked(tool("k", "pending"))
    driver.agent_sends(ask(91, "l"), form(92))
    assert driver.client_sends(cancel()).both == [
        "A session/cancel",
        "A answer 90",
        "C withdraw 1",
        "A answer 91",
        "C withdraw 2",
        "A answer 92",
        "C withdraw 3",
    ]
    answers = driver.said[-1].agent[1:]
    assert answers == [answer(90, CANCELLED), answer(91, CANCELLED), answer(92, {"action": "cancel"})]


def test_answers_after_a_cancel_do_not_reach_the_agent() -> None:
    driver = asked()
    driver.client_sends(cancel())
    assert driver.client_sends(selected(1)).lines == []
    assert driver.agent_sends(tool_update("k", "failed")).both == ["C tool_call_update"]
    assert story(driver.ends("cancelled").client) == ["idle cancelled"]
    assert driver.client_sends(selected(1)).lines == []


def test_a_cancel_never_turns_waiting_into_running() -> None:
    driver = asked(tool("k", "pending"))
    driver.client_sends(cancel())
    driver.agent_sends(tool("l", "in_progress"))
    told = story(driver.outputs.client)
    assert told[told.index("requires_action") :].count("running") == 0


def test_a_cancel_withdraws_background_permissions_as_well() -> None:
    driver = bridged()
    driver.agent_sends(ask(90))
    assert "requires_action" not in story(driver.outputs.client)
    assert driver.client_sends(cancel()).both == ["A session/cancel", "A answer 90", "C withdraw 1"]


def test_a_cancel_leaves_other_sessions_alone() -> None:
    driver = asked()
    driver.agent_sends(ask(91, session="s2"))
    driver.client_sends(cancel())
    assert driver.client_sends(selected(2)).agent == [selected(91)]


def test_what_a_turn_leaves_open_is_withdrawn_when_it_ends() -> None:
    driver = asked(tool("k", "pending"))
    said = driver.ends("end_turn")
    assert sorted(said.both) == ["A answer 90", "C idle end_turn", "C withdraw 1"]
    assert said.agent == [answer(90, CANCELLED)]
    assert driver.client_sends(selected(1)).lines == []


def test_what_a_turn_leaves_open_is_answered_before_the_next_prompt_goes_out() -> None:
    driver = asked(tool("k", "pending"))
    driver.prompt(8, "next")
    assert story(driver.ends().agent)[0] == "answer 90"


def test_the_end_of_a_turn_leaves_background_questions_open() -> None:
    driver = bridged()
    driver.agent_sends(tool("bg", "in_progress"), ask(90, "bg"))
    driver.prompt()
    assert driver.ends().agent == []
    assert driver.client_sends(selected(1)).agent == [selected(90)]


def test_the_agent_may_withdraw_its_question_and_still_gets_one_answer() -> None:
    driver = asked()
    assert driver.agent_sends(withdraw(90)).client == [withdraw(1)]
    assert driver.client_sends(dismissed(1)).agent == [dismissed(90)]


def test_the_agent_cannot_withdraw_what_it_never_asked() -> None:
    driver = asked()
    for wrong in (1, "90", 7, None):
        said = driver.agent_sends(withdraw(wrong))
        assert (said.lines, said.rules) == ([], ["V30"])


# ---------------------------------------------------------------- elicitation, extensions


def test_a_form_of_the_session_waits_like_a_permission() -> None:
    driver = bridged(client=FORMS)
    driver.prompt()
    driver.agent_sends(message())
    assert driver.agent_sends(form(91)).both == ["C elicitation/create #1", "C requires_action"]
    result = {"action": "accept", "content": {"name": "n"}}
    assert driver.client_sends(answer(1, result)).both == ["A answer 91", "C running"]
    assert driver.said[-1].agent == [answer(91, result)]


def test_a_form_of_a_request_names_the_clients_request() -> None:
    driver = bridged(client=FORMS)
    driver.client_sends(call("login", "auth/login", {"methodId": "m"}))
    said = driver.agent_sends(form(91, requestId=driver.agent_id("authenticate")))
    assert said.client[0]["params"]["requestId"] == "login"
    assert "requires_action" not in story(said.client)


@pytest.mark.parametrize("scope", [{"requestId": 4711}, {"requestId": "x"}])
def test_a_form_of_no_open_request_is_refused(scope: dict[str, Any]) -> None:
    driver = bridged(client=FORMS)
    assert driver.agent_sends(form(91, **scope)).both == ["A error 91 -32602"]


@pytest.mark.parametrize(
    ("client", "changes"),
    [
        ({}, {}),
        ({"elicitation": {}}, {}),
        ({"elicitation": {"url": {}}}, {}),
        (FORMS, {"mode": "url", "url": "https://e", "elicitationId": "e"}),
        (FORMS, {"requestId": 1}),
        (FORMS, {"sessionId": None}),
    ],
)
def test_forms_the_client_cannot_show_are_refused(client: Any, changes: dict[str, Any]) -> None:
    driver = bridged(client=client)
    request = form(91)
    request["params"].update(changes)
    assert driver.agent_sends(request).both == ["A error 91 -32602"]


def test_an_extension_request_passes_both_ways() -> None:
    driver = bridged()
    params = {"sessionId": "s1", "deep": {"a": [1]}, "_meta": {"t": 1}}
    said = driver.agent_sends(call("q", "_vendor/ask", params))
    assert said.client == [call(1, "_vendor/ask", params)]
    assert driver.client_sends(failure(1, -32601, "what?")).agent == [failure("q", -32601, "what?")]
    assert story(driver.agent_sends(call("r", "craft/ask", {})).client) == ["craft/ask #2"]
