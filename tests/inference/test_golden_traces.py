"""The golden traces of the lifecycle (§2.6): wire order in, emitted snapshots out."""

from __future__ import annotations

from lifecycle_wire import Wire


def test_plain_turn() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.chunk() == []
    assert wire.result(stop="end_turn") == ["idle(end_turn)"]


def test_tool_with_permission() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.tool("t1", "pending", new=True) == []
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.answer(1) == ["running"]
    assert wire.tool("t1", "in_progress") == []
    assert wire.tool("t1", "completed") == []
    assert wire.result() == ["idle(end_turn)"]


def test_permission_while_another_tool_moves() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.tool("t1", "in_progress", new=True) == []
    assert wire.permission(1, "t2") == []
    assert wire.tool("t1", "completed") == ["requires_action"]
    assert wire.answer(1) == ["running"]
    assert wire.result() == ["idle(end_turn)"]


def test_two_permissions_answered_one_after_the_other() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.permission(2, "t2") == []
    assert wire.answer(1) == []
    assert wire.tool("t1", "in_progress") == ["running"]
    assert wire.tool("t1", "completed") == ["requires_action"]
    assert wire.answer(2) == ["running"]
    assert wire.result() == ["idle(end_turn)"]


def test_permission_while_a_file_is_read() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.helper(1, "fs/read_text_file") == []
    assert wire.permission(2, "t1") == []
    assert wire.helped(1) == ["requires_action"]


def test_cancel_with_a_permission_open() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.cancel() == []
    assert wire.answer(1, "cancelled") == []
    assert wire.tool("t1", "failed") == []
    assert wire.result(stop="cancelled") == ["idle(cancelled)"]


def test_prompt_that_fails() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.fail(code=-32603) == ["idle(error)"]


def test_concurrent_prompts_of_a_v1_client() -> None:
    wire = Wire()
    assert wire.prompt(1) == ["running"]
    assert wire.prompt(2) == []
    assert wire.result(1) == []
    assert wire.result(2, "max_tokens") == ["idle(max_tokens)"]


def test_background_tool_and_permission_after_the_turn() -> None:
    wire = Wire()
    assert wire.prompt() == ["running"]
    assert wire.tool("t0", "in_progress", new=True) == []
    assert wire.result() == ["idle(end_turn)"]
    assert wire.tool("t0", "in_progress") == []
    assert wire.permission(1, "t0") == []
    assert wire.answer(1) == []
    assert wire.state() == "idle"


def test_load_whose_replay_has_an_open_tool() -> None:
    wire = Wire()
    assert wire.ask(3, "session/load") == []
    assert wire.tool("t9", "in_progress", new=True) == []
    assert wire.done(3) == ["told again: idle"]
    assert wire.changes[-1].ending is None
