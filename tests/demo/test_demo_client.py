"""The v2 client against scripted messages, in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.demo.client import DemoClient, Event
from acp_proxy.demo.link import DemoError

Message = dict[str, Any]
PROMPT = [{"type": "text", "text": "hi"}]


class ScriptLink:
    """Plays messages in order. A callable in the script is a check that runs when its turn comes."""

    def __init__(self, *script: Message | Callable[[], None]) -> None:
        self.script = list(script)
        self.sent: list[Message] = []

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def receive(self, seconds: float) -> Message | None:
        while self.script:
            item = self.script.pop(0)
            if isinstance(item, dict):
                return item
            item()
        return None


def update(kind: str, **fields: Any) -> Message:
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind, **fields}}}


def state(name: str, **fields: Any) -> Message:
    message = update("state_update", state=name, **fields)
    message["params"]["_meta"] = {"acp-proxy": {"synthetic": True}}
    return message


def chunk(text: str) -> Message:
    return update("agent_message_chunk", messageId="a", content={"type": "text", "text": text})


RUNNING = state("running")
BLOCKED = state("requires_action")
IDLE = state("idle", stopReason="end_turn")
ECHO = update("user_message", messageId="u", content=PROMPT)
ACCEPTED = {"id": 1, "result": {"messageId": "u"}}
PERMISSION = {
    "id": 40,
    "method": "session/request_permission",
    "params": {
        "title": "Delete",
        "options": [
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "once", "name": "Once", "kind": "allow_once"},
        ],
    },
}
PERMISSION_ANSWER = {"id": 40, "result": {"outcome": {"outcome": "selected", "optionId": "once"}}}


def play(link: ScriptLink, *, cancel: bool = False) -> tuple[list[str], list[Event]]:
    events: list[Event] = []
    client = DemoClient(link, events.append, patience=5)
    return client.play("hi", cancel=cancel), events


def test_open_speaks_version_2() -> None:
    link = ScriptLink({"id": 1, "result": {"protocolVersion": 2}}, {"id": 2, "result": {"sessionId": "s1"}})
    client = DemoClient(link, lambda event: None, patience=5)
    client.open("/home")
    initialize, new = link.sent
    assert initialize["params"]["protocolVersion"] == 2
    assert set(initialize["params"]["info"]) == {"name", "version"}
    assert initialize["params"]["capabilities"] == {}
    assert (new["method"], new["params"]) == ("session/new", {"cwd": "/home", "mcpServers": []})
    link.script = [RUNNING, ECHO, {"id": 3, "result": {"messageId": "u"}}, IDLE]
    client.play("hi")
    assert link.sent[2]["params"] == {"sessionId": "s1", "prompt": PROMPT}


def test_open_refuses_version_1() -> None:
    client = DemoClient(
        ScriptLink({"id": 1, "result": {"protocolVersion": 1}}), lambda event: None, patience=5
    )
    with pytest.raises(DemoError, match="expected protocolVersion 2, got 1"):
        client.open("/")


def test_states_and_events_come_in_order() -> None:
    states, events = play(ScriptLink(RUNNING, ECHO, ACCEPTED, chunk("Hello. "), IDLE))
    assert states == ["running", "idle (end_turn)"]
    assert events == [
        Event("client", 'prompt "hi"'),
        Event("state", "running", True),
        Event("agent", 'text "Hello."'),
        Event("agent", "prompt answered: end_turn"),
        Event("state", "idle (end_turn)", True),
    ]


def test_an_answered_prompt_is_not_the_end() -> None:
    states, _ = play(ScriptLink(ACCEPTED, ECHO, RUNNING, chunk("x"), IDLE))
    assert states == ["running", "idle (end_turn)"]


def test_an_idle_without_the_answer_is_not_the_end() -> None:
    link = ScriptLink(RUNNING, ECHO, IDLE, ACCEPTED)
    play(link)
    assert link.script == []


def test_permission_waits_for_requires_action() -> None:
    link = ScriptLink()

    def nothing_answered() -> None:
        assert PERMISSION_ANSWER not in link.sent

    def answered() -> None:
        assert link.sent[-1] == PERMISSION_ANSWER

    tool = update("tool_call_update", toolCallId="t1", status="completed")
    link.script = [
        RUNNING,
        ECHO,
        ACCEPTED,
        PERMISSION,
        tool,
        nothing_answered,
        BLOCKED,
        answered,
        RUNNING,
        IDLE,
    ]
    states, events = play(link)
    assert states == ["running", "requires_action", "running", "idle (end_turn)"]
    asked, _, blocked, allowed = events[2:6]
    assert asked == Event("agent", 'may I? "Delete"')
    assert blocked.text == "requires_action"
    assert allowed == Event("client", "user: Once")


def test_permission_after_requires_action_is_answered_at_once() -> None:
    link = ScriptLink(RUNNING, ECHO, ACCEPTED, BLOCKED, PERMISSION, RUNNING, IDLE)
    play(link)
    assert link.sent.count(PERMISSION_ANSWER) == 1


def test_permission_without_allow_once() -> None:
    bare = {**PERMISSION, "params": {"title": "Delete", "options": []}}
    with pytest.raises(DemoError, match="allow_once"):
        play(ScriptLink(RUNNING, ECHO, ACCEPTED, bare, BLOCKED))


def test_cancel_goes_out_once_after_the_first_chunk() -> None:
    link = ScriptLink(RUNNING, ECHO, ACCEPTED, chunk("a"), chunk("b"), state("idle", stopReason="cancelled"))
    states, events = play(link, cancel=True)
    assert [message["method"] for message in link.sent] == ["session/prompt", "session/cancel"]
    assert "id" not in link.sent[1]
    assert states == ["running", "idle (cancelled)"]
    assert [event.text for event in events[2:5]] == ['text "a"', "session/cancel", 'text "b"']


def test_a_tool_keeps_the_title_it_was_announced_with() -> None:
    tools = [
        update("tool_call_update", toolCallId="t1", title="Delete", status="pending"),
        update("tool_call_update", toolCallId="t1", rawOutput={}),
        update("tool_call_update", toolCallId="t1", status="completed"),
    ]
    _, events = play(ScriptLink(RUNNING, ECHO, ACCEPTED, *tools, IDLE))
    assert [event.text for event in events[2:4]] == ['tool "Delete" pending', 'tool "Delete" completed']


def test_a_failed_turn_names_its_error() -> None:
    failed = state("idle", stopReason="error", error={"code": -32603, "message": "no model"})
    states, events = play(ScriptLink(RUNNING, ECHO, ACCEPTED, failed))
    assert states == ["running", "idle (error)"]
    assert events[-2].text == "prompt failed: no model"


def test_other_requests_are_refused_and_other_messages_ignored() -> None:
    read = {"id": "r", "method": "fs/read_text_file", "params": {}}
    note = {"method": "_vendor/news", "params": {}}
    link = ScriptLink(read, note, update("plan_update"), RUNNING, ECHO, ACCEPTED, IDLE)
    play(link)
    assert (link.sent[1]["id"], link.sent[1]["error"]["code"]) == ("r", -32601)
    assert len(link.sent) == 2


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ([RUNNING, ACCEPTED, IDLE], "not echoed"),
        ([RUNNING, update("user_message", messageId="x", content=PROMPT), ACCEPTED, IDLE], "not echoed"),
        ([RUNNING, update("user_message", messageId="u", content=[]), ACCEPTED, IDLE], "not echoed"),
        ([RUNNING, ECHO, {"id": 1, "result": {"stopReason": "end_turn"}}, IDLE], "without a messageId"),
        ([RUNNING, {"id": 1, "error": {"code": -32602, "message": "empty"}}, IDLE], "refused: empty"),
        ([{"id": None, "error": {"code": -32700, "message": "not JSON"}}], "no request of ours: not JSON"),
        ([update("state_update", state="running"), ECHO, ACCEPTED, IDLE], "not marked as synthetic: running"),
        ([], "states told: none"),
        ([RUNNING, ECHO, ACCEPTED], "within 5 s; states told: running$"),
        ([RUNNING, ECHO, ACCEPTED, PERMISSION], "running, no requires_action for the open permission"),
    ],
)
def test_what_is_missing_is_named(script: list[Message], text: str) -> None:
    with pytest.raises(DemoError, match=text):
        play(ScriptLink(*script))


def test_a_turn_that_never_ends_is_given_up() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    link = ScriptLink(RUNNING, ECHO, ACCEPTED, *[chunk("more")] * 50)
    client = DemoClient(link, lambda event: None, patience=20, clock=clock)
    with pytest.raises(DemoError, match="not finished within 20 s"):
        client.play("hi")
    assert len(link.script) > 0
