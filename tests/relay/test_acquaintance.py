"""The agent's name and version decide its profile; what it makes up is counted from then on."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.inference.triggers import Hint
from acp_proxy.policy.profiles import SETTINGS, Content
from acp_proxy.relay.options import RelayOptions
from relay_driver import (
    AGENT_INFO,
    Driver,
    answer,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    initialize_v2,
    line,
    message,
    note,
    story,
    text_block,
)

TAIL = {"sessionUpdate": "agent_message_chunk", "content": text_block("late")}


class Choice:
    """A profile for everybody; keeps who was asked for."""

    def __init__(
        self,
        settings: dict[str, Any] | None = None,
        hints: tuple[Hint, ...] = (),
        false_findings: frozenset[str] = frozenset(),
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        self._content = Content(settings or {}, hints, false_findings)

    def content(self, agent: str, version: str) -> Content | None:
        self.asked.append((agent, version))
        return self._content


def update(body: Any) -> Any:
    return note("session/update", {"sessionId": "s1", "update": body})


@pytest.mark.parametrize("opening", [bridged, both_v1, both_v2])
def test_the_choice_is_made_once_by_name_and_version(opening: Any) -> None:
    choice = Choice()
    opening(profile=choice)
    assert choice.asked == [(AGENT_INFO["name"], AGENT_INFO["version"])]


@pytest.mark.parametrize("info", [None, 1, {}, {"name": 3, "version": None}])
def test_an_agent_that_does_not_say_who_it_is_has_no_name(info: Any) -> None:
    choice = Choice()
    driver = Driver(profile=choice)
    driver.client_sends(initialize_v2(0))
    result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
    driver.agent_sends(answer(0, {**result, **({} if info is None else {"agentInfo": info})}))
    assert choice.asked == [("", "")]


def test_a_cancel_while_idle_is_swallowed_for_who_would_take_it_for_the_next_prompt() -> None:
    driver = bridged(profile=Choice({"prompts.idle_cancel": "swallow"}))
    assert driver.client_sends(cancel()).agent == []
    driver.prompt()
    assert story(driver.client_sends(cancel()).agent) == ["session/cancel"]
    plain = both_v1(profile=Choice({"prompts.idle_cancel": "swallow"}))
    assert plain.client_sends(cancel()).agent == []
    assert story(bridged(profile=Choice()).client_sends(cancel()).agent) == ["session/cancel"]


def test_a_late_replay_is_waited_for_and_is_no_work() -> None:
    settings = {"bridge.load_settle": 0.5, "inference.agent_initiated": "infer"}
    driver = bridged(agent={"loadSession": True}, session=False, profile=Choice(settings))
    load = {"sessionId": "s1", "cwd": "/p", "mcpServers": [], "replayFrom": {"type": "start"}}
    driver.client_sends(call(2, "session/resume", load))
    assert driver.answers("session/load", {}).client == []
    driver.advance(0.3)
    assert story(driver.agent_sends(update(TAIL)).client) == ["agent_message_chunk"]
    assert story(driver.advance(0.4).client) == []
    assert story(driver.advance(0.2).client) == ["idle", "answer 2"]


def test_synonyms_are_read_for_who_needs_it() -> None:
    tool = update({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "kind": "bash"})

    def kind(driver: Driver) -> Any:
        return driver.agent_sends(tool).client[-1]["params"]["update"]["kind"]

    assert kind(bridged(profile=Choice({"normalize.synonyms": True}))) == "execute"
    assert kind(bridged(profile=Choice())) == "bash"


def test_false_findings_are_not_noted_and_repairs_still_are() -> None:
    unknown = update({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "kind": "banana"})
    assert "V34" in both_v1().agent_sends(unknown).rules
    quiet = both_v1(profile=Choice(false_findings=frozenset({"V34", "V51"})))
    assert "V34" not in quiet.agent_sends(unknown).rules
    nothing = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "what"}}
    assert quiet.agent_sends(nothing).rules == ["V51"]


def test_hints_reach_the_inference_of_a_session() -> None:
    hint = Hint("_meta.failed", "error", "it broke")
    driver = bridged(profile=Choice(hints=(hint,)))
    driver.prompt(7)
    driver.agent_sends(update({"sessionUpdate": "session_info_update", "_meta": {"failed": True}}))
    # What is told of the turn comes in its order although the end is an error: nothing was refused.
    assert story(driver.ends().client) == ["user_message", "answer 7", "idle error"]


def test_a_hinted_failure_waits_for_the_tail_as_any_end_does() -> None:
    driver = bridged(profile=Choice(hints=(Hint("_meta.failed", "error"),)), settle=0.2)
    driver.prompt(7)
    driver.agent_sends(update({**TAIL, "_meta": {"failed": True}}))
    assert story(driver.ends().client) == []
    assert story(driver.advance(0.2).client) == ["idle error"]


def woken(**options: Any) -> Driver:
    """A bridged session in which the agent has begun to work by itself."""
    settings = {"inference.agent_initiated": "infer", "inference.end_markers": ("_bot/done",)}
    driver = bridged(profile=Choice(settings), **options)
    assert story(driver.agent_sends(update(TAIL)).client) == ["running", "agent_message_chunk"]
    return driver


def test_an_open_question_ends_with_the_work_it_was_asked_in() -> None:
    driver = woken()
    options = [{"optionId": "a", "name": "a", "kind": "allow_once"}]
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "t", "title": "x"}, "options": options}
    driver.agent_sends(call(40, "session/request_permission", params))
    asked = driver.client_id("session/request_permission")
    said = driver.agent_sends(note("_bot/done", {"sessionId": "s1"}))
    assert said.both == ["C _bot/done", "C idle", "A answer 40", f"C withdraw {asked}"]
    assert said.agent[0]["result"] == {"outcome": {"outcome": "cancelled"}}


def test_a_prompt_in_the_middle_is_acknowledged_and_ends_the_span() -> None:
    driver = woken()
    assert driver.prompt(7).client == []
    assert story(driver.agent_sends(update(TAIL)).client) == [
        "user_message",
        "answer 7",
        "agent_message_chunk",
    ]
    assert story(driver.ends().client) == ["idle end_turn"]


def test_each_piece_of_own_work_is_a_message_of_its_own() -> None:
    driver = woken()
    first = driver.outputs.client[-1]["params"]["update"]["messageId"]
    driver.agent_sends(note("_bot/done", {"sessionId": "s1"}))
    driver.advance(5)
    again = driver.agent_sends(update(TAIL)).client[-1]["params"]["update"]["messageId"]
    assert first != again


def test_text_in_blocks_is_looked_at_where_it_may_begin_work() -> None:
    driver = bridged(profile=Choice({"inference.agent_initiated": "infer"}))
    chunk = line(message("x")) + b"\n"
    assert driver.relay.recognize(chunk, 0) == 0
    assert bridged(profile=Choice()).relay.recognize(chunk, 0) == len(chunk)


def test_what_an_agent_makes_up_is_counted_across_the_bridge_too() -> None:
    driver = bridged()
    unknown = update({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "kind": "banana"})
    said = [driver.agent_sends(unknown) for _ in range(10)]
    counted = [finding.text for one in said for finding in one.findings if finding.rule == "V61"]
    assert counted == [
        'unknown to the protocol, seen once from agent 1: ToolKind "banana"',
        'unknown to the protocol, seen 10 times from agent 1: ToolKind "banana"',
    ]


def test_one_relay_s_profile_leaves_the_options_of_the_next_alone() -> None:
    options = RelayOptions()
    adopted = options.under(Content({"bridge.settle": 3.0, "normalize.synonyms": True}, (), frozenset()))
    assert (adopted.settle, adopted.synonyms, adopted.max_held) == (3.0, True, 32)
    assert (options.settle, options.synonyms) == (0.0, False)


def test_every_setting_of_a_profile_is_an_option() -> None:
    values = {key: object() for key in SETTINGS}
    adopted = RelayOptions().under(Content(values, (), frozenset()))
    assert {id(getattr(adopted, key.split(".")[1])) for key in SETTINGS} == set(map(id, values.values()))
