"""Prompts of a v2 client at a v1 agent: acknowledgement, queue, end of turn (bridge §5, §12)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role
from relay_driver import (
    EVERYTHING,
    Driver,
    answer,
    ask,
    bridged,
    call,
    echo,
    failure,
    form,
    message,
    note,
    prompt,
    story,
    text_block,
    thought,
    tool,
    tool_update,
    update,
    usage,
)

ACKNOWLEDGED = ["user_message", "answer 7"]


def prompts_at_agent(driver: Driver) -> list[str]:
    """The texts of the prompts that reached the agent."""
    return [
        body["params"]["prompt"][0]["text"]
        for body in driver.outputs.agent
        if body.get("method") == "session/prompt"
    ]


# ---------------------------------------------------------------- step 1: refused


@pytest.mark.parametrize(
    ("blocks", "agent"),
    [
        ([], {}),
        ([{"type": "hologram", "data": "x"}], EVERYTHING),
        ([{"type": "image", "data": "aGk=", "mimeType": "image/png"}], {}),
        (
            [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}],
            {"promptCapabilities": {"image": True}},
        ),
        ([{"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}], {"promptCapabilities": {}}),
        ([{"type": "image", "data": "a", "mimeType": "i/p"}], {"promptCapabilities": {"image": False}}),
    ],
)
def test_a_prompt_the_agent_cannot_take_is_refused(blocks: list[Any], agent: Any) -> None:
    driver = bridged(agent=agent)
    said = driver.client_sends(call(7, "session/prompt", {"sessionId": "s1", "prompt": blocks}))
    assert said.both == ["C error 7 -32602"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ],
)
def test_blocks_within_the_capabilities_reach_the_agent_unchanged(block: dict[str, Any]) -> None:
    driver = bridged(agent=EVERYTHING)
    params = {"sessionId": "s1", "prompt": [block], "_meta": {"traceparent": "00-1"}, "x_own": 1}
    said = driver.client_sends(call(7, "session/prompt", params))
    assert said.agent[0]["params"] == params


# ---------------------------------------------------------------- steps 3 and 4: running, then insertion


def test_dispatch_tells_running_and_acknowledges_nothing() -> None:
    driver = bridged()
    assert driver.prompt().both == ["A session/prompt #2", "C running"]
    assert driver.said[-1].client[0]["params"]["_meta"] == {"acp-proxy": {"synthetic": True}}


EVIDENCE = {
    "message": (message("a"), "agent_message_chunk"),
    "thought": (thought("a"), "agent_thought_chunk"),
    "tool": (tool("k", "pending"), "tool_call_update"),
    "tool update": (tool_update("k", "pending"), "tool_call_update"),
    "plan": (
        update("plan", entries=[{"content": "c", "priority": "low", "status": "pending"}]),
        "plan_update",
    ),
}


@pytest.mark.parametrize("kind", EVIDENCE)
def test_output_of_the_turn_is_preceded_by_echo_and_answer(kind: str) -> None:
    driver = bridged()
    driver.prompt()
    trigger, told = EVIDENCE[kind]
    said = driver.agent_sends(trigger)
    assert story(said.client) == [*ACKNOWLEDGED, told]
    first = said.client[0]["params"]["update"]
    assert first["content"] == [text_block("go")]
    assert said.client[1]["result"] == {"messageId": first["messageId"]}
    assert story(driver.agent_sends(trigger).client) == [told]


@pytest.mark.parametrize(
    "before",
    [
        update("available_commands_update", availableCommands=[{"name": "x", "description": "d"}]),
        update("session_info_update", title="t"),
        usage(),
        update("notice", severity="info", title="n"),
        update("compaction_update", compactionId="c", status="in_progress"),
        update("_vendor", any="thing"),
        note("_x/updated", {"sessionId": "s1"}),
    ],
)
def test_what_is_not_output_of_the_turn_is_no_evidence(before: dict[str, Any]) -> None:
    driver = bridged()
    driver.prompt()
    assert len(driver.agent_sends(before).client) == 1
    assert story(driver.agent_sends(message()).client) == [*ACKNOWLEDGED, "agent_message_chunk"]


@pytest.mark.parametrize("request_", [ask(90), form(91), call(92, "_x/ask", {"sessionId": "s1"})])
def test_a_request_of_the_agent_for_the_session_is_evidence(request_: dict[str, Any]) -> None:
    driver = bridged(client={"elicitation": {"form": {}}})
    driver.prompt()
    told = story(driver.agent_sends(request_).client)
    assert told[:3] == [*ACKNOWLEDGED, f"{request_['method']} #1"]


@pytest.mark.parametrize(
    "request_",
    [
        call(92, "fs/read_text_file", {"sessionId": "s1", "path": "/p/a"}),
        ask(90, options=[]),
    ],
    ids=["nobody offered it", "nothing to choose"],
)
def test_a_request_that_is_refused_here_is_evidence_as_well(request_: dict[str, Any]) -> None:
    driver = bridged()
    driver.prompt()
    assert story(driver.agent_sends(request_).client)[:2] == ACKNOWLEDGED


def test_a_request_without_this_session_is_no_evidence() -> None:
    driver = bridged()
    driver.prompt()
    assert story(driver.agent_sends(call(92, "_x/ask", {})).client) == ["_x/ask #1"]


def test_output_of_another_session_is_no_evidence() -> None:
    driver = bridged()
    driver.prompt()
    other = note("session/update", {"sessionId": "s2", "update": message()["params"]["update"]})
    assert story(driver.agent_sends(other).client) == ["agent_message_chunk"]


def test_silence_is_evidence_after_the_acknowledgement_timeout() -> None:
    driver = bridged()
    driver.prompt()
    assert driver.advance(0.99).lines == []
    assert story(driver.advance(0.02).client) == ACKNOWLEDGED
    assert driver.advance(100).lines == []


def test_the_timeout_counts_from_each_dispatch_and_can_be_off() -> None:
    driver = bridged(ack_timeout=0.0)
    driver.prompt()
    assert driver.advance(1000).lines == []
    slow = bridged(ack_timeout=5.0)
    slow.prompt()
    assert slow.advance(4.9).lines == []
    assert story(slow.advance(0.2).client) == ACKNOWLEDGED


def test_a_success_without_output_inserts_before_it_ends() -> None:
    driver = bridged()
    driver.prompt()
    assert story(driver.ends().client) == [*ACKNOWLEDGED, "idle end_turn"]
    assert driver.advance(10).lines == []


# ---------------------------------------------------------------- step 5: errors


def test_an_error_before_insertion_ends_the_turn_and_then_fails_the_prompt() -> None:
    driver = bridged()
    driver.prompt()
    said = driver.fails("session/prompt", -32000, "log in", {"why": "expired"})
    assert story(said.client) == ["idle error", "error 7 -32000"]
    assert said.client[0]["params"]["update"]["error"] == said.client[1]["error"]
    assert said.client[1]["error"] == {"code": -32000, "message": "log in", "data": {"why": "expired"}}
    assert driver.advance(10).lines == []


def test_an_error_after_insertion_is_told_by_the_state_alone() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    said = driver.fails("session/prompt", -32603, "quota")
    assert story(said.client) == ["idle error"]
    assert said.client[0]["params"]["update"]["error"] == {"code": -32603, "message": "quota"}


def test_a_cancelled_error_is_idle_cancelled() -> None:
    driver = bridged()
    driver.prompt()
    assert story(driver.fails("session/prompt", -32800).client) == ["idle cancelled", "error 7 -32800"]


@pytest.mark.parametrize("error", [{}, {"code": "x"}, {"message": "m"}, "boom", {"code": 400.5}])
def test_a_malformed_error_is_made_well_formed_in_both_places(error: Any) -> None:
    driver = bridged()
    driver.prompt()
    said = driver.agent_sends(
        {"jsonrpc": "2.0", "id": driver.agent_id("session/prompt"), "error": error},
    )
    assert story(said.client) == ["idle error", "error 7 -32603"]
    told = said.client[0]["params"]["update"]["error"]
    assert type(told["code"]) is int
    assert type(told["message"]) is str


# ---------------------------------------------------------------- step 6: the end


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("end_turn", "idle end_turn"),
        ("max_tokens", "idle max_tokens"),
        ("max_turn_requests", "idle max_turn_requests"),
        ("refusal", "idle refusal"),
        ("cancelled", "idle cancelled"),
        ("endTurn", "idle end_turn"),
        ("MAX_TOKENS", "idle max_tokens"),
        ("something_new", "idle something_new"),
        ("_vendor", "idle _vendor"),
        ("", "idle "),
    ],
)
def test_stop_reasons(reason: str, told: str) -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    said = driver.agent_sends(answer(driver.agent_id("session/prompt"), {"stopReason": reason}))
    assert story(said.client) == [told]


@pytest.mark.parametrize("result", [None, {}, {"stopReason": None}, {"stopReason": 7}, [], "done"])
def test_a_result_without_a_reason_reports_none(result: Any) -> None:
    driver = bridged()
    driver.prompt()
    assert story(driver.answers("session/prompt", result).client) == [*ACKNOWLEDGED, "idle"]


def test_usage_is_told_as_the_agent_gave_it() -> None:
    driver = bridged()
    driver.prompt()
    counts = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2, "x_own": 1}
    idle = driver.ends(usage=counts).client[-1]["params"]["update"]
    assert idle["usage"] == counts


def test_a_settle_time_puts_the_idle_behind_the_tail() -> None:
    driver = bridged(settle=0.5)
    driver.prompt()
    assert story(driver.ends().client) == ACKNOWLEDGED
    told = []
    for _ in range(20):
        told += story(driver.advance(0.3).client)
        told += story(driver.agent_sends(message("tail")).client)
    assert told.count("idle end_turn") == 1
    assert told.index("idle end_turn") < 10, "the delay is bounded"


def test_a_failure_does_not_settle() -> None:
    driver = bridged(settle=5.0)
    driver.prompt()
    assert story(driver.fails("session/prompt", -32603).client) == ["idle error", "error 7 -32603"]


def test_a_request_that_cannot_be_encoded_does_not_leave_the_session_running() -> None:
    driver = bridged()
    raw = (
        b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s1",'
        b'"prompt":[{"type":"text","text":"go"}],"_meta":{"n":1e400}}}'
    )
    said = driver.lines(Role.CLIENT, raw)
    states = [word for word in story(said.client) if word.split()[0] in ("running", "idle")]
    assert [w for w in story(said.client) if w.startswith("error 7")], "the prompt is answered"
    assert not states or states[-1].startswith("idle")
    assert story(driver.prompt(8).client) == ["running"]


def test_an_answered_prompt_is_not_answered_again() -> None:
    driver = bridged()
    driver.prompt()
    own = driver.agent_id("session/prompt")
    driver.ends()
    said = driver.agent_sends(answer(own, {"stopReason": "end_turn"}), failure(own, -32603))
    assert said.lines == []
    assert said.rules == ["V29", "V29"]


def test_an_agent_that_echoes_before_anything_else_is_believed() -> None:
    driver = bridged()
    driver.prompt()
    said = driver.agent_sends(echo("go", messageId="m9"))
    assert story(said.client) == ["user_message_chunk", "answer 7"]
    assert said.client[1]["result"] == {"messageId": "m9"}


def test_the_first_prompt_of_a_session_unknown_here_is_the_agents_to_judge() -> None:
    driver = bridged(session=False)
    assert driver.client_sends(prompt(7, session="elsewhere")).agent[0]["method"] == "session/prompt"
    assert story(driver.fails("session/prompt", -32002).client) == ["idle error", "error 7 -32002"]
