"""What the tests with real peers look for is found where it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from wire_log import (
    Frame,
    acknowledgement_errors,
    overlapping_prompts,
    raw_frames,
    read_wire,
    schema_errors,
    story,
)

from acp_proxy.acp.version import Role, Version

CONTENT = [{"type": "text", "text": "hello"}]


def frame(toward: Role, **members: Any) -> Frame:
    message = {"jsonrpc": "2.0", **members}
    return Frame(toward, json.dumps(message).encode() + b"\n", message)


def update(**members: Any) -> Frame:
    return frame(Role.CLIENT, method="session/update", params={"sessionId": "s", "update": members})


def state(name: str, **members: Any) -> Frame:
    return update(sessionUpdate="state_update", state=name, **members)


PROMPT = frame(Role.AGENT, id=1, method="session/prompt", params={"sessionId": "s", "prompt": CONTENT})
ECHO = update(sessionUpdate="user_message", messageId="m1", content=CONTENT)
ANSWER = frame(Role.CLIENT, id=1, result={"messageId": "m1"})
CHUNK = update(sessionUpdate="agent_message_chunk", messageId="m2", content=CONTENT[0])
IDLE = state("idle", stopReason="end_turn")


def test_story_of_an_ordinary_turn() -> None:
    wire = [PROMPT, state("running"), ECHO, ANSWER, CHUNK, IDLE]
    assert acknowledgement_errors(wire) == []
    assert schema_errors(wire, Version.V2, Role.CLIENT, unstable=True) == []
    assert story(wire) == [
        "running",
        "user_message",
        "session/prompt",
        "agent_message_chunk",
        "idle end_turn",
    ]


@pytest.mark.parametrize(
    ("wire", "complaint"),
    [
        ([PROMPT, state("running"), ECHO, CHUNK, ANSWER], "before the acknowledgement"),
        ([PROMPT, state("running"), ANSWER, ECHO], "acknowledged before its echo"),
        ([PROMPT, ECHO, ANSWER, state("running")], "acknowledged while idle"),
        ([PROMPT, state("running"), ECHO, ECHO, ANSWER, ECHO, IDLE], "the echo of no prompt"),
        ([PROMPT, state("running"), update(**{**ECHO.update, "content": []}), ANSWER], "says something else"),
    ],
)
def test_wrong_acknowledgement_is_found(wire: list[Frame], complaint: str) -> None:
    assert complaint in " ".join(acknowledgement_errors(wire))


@pytest.mark.peers
@pytest.mark.parametrize(
    "wrong",
    [
        state("running", background=5, stopReason=7).message | {"params": {"update": {}}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "y"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"messageId": "m"}, "error": None},
        {"jsonrpc": "2.0", "id": 2, "result": {"messageId": "m"}},
        {"jsonrpc": "2.0", "method": "session/prompt", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": {"sessionId": "s"}},
    ],
)
def test_message_against_the_schema_is_found(wrong: dict[str, Any]) -> None:
    wire = [PROMPT, Frame(Role.CLIENT, json.dumps(wrong).encode(), wrong)]
    assert len(schema_errors(wire, Version.V2, Role.CLIENT, unstable=True)) == 1


def test_prompt_before_the_last_ones_answer_is_found() -> None:
    second = frame(Role.AGENT, id=2, method="session/prompt", params={"sessionId": "s", "prompt": CONTENT})
    assert overlapping_prompts([PROMPT, second, ANSWER]) == [2]
    assert overlapping_prompts([PROMPT, ANSWER, second]) == []


def test_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b'> {"id":1}\r\n< {"id" : 1}\n')
    wire = read_wire(log)
    assert raw_frames(wire, Role.AGENT) == [b'{"id":1}\r\n']
    assert raw_frames(wire, Role.CLIENT) == [b'{"id" : 1}\n']
