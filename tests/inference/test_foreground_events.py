"""Every row of the lifecycle's event table (§2.3) that the engine decides."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.inference.session import Owner, Phase
from lifecycle_wire import Wire, begun, words

# ---------------------------------------------------------------- prompts


def test_the_first_prompt_begins_an_epoch_and_forgets_a_cancel() -> None:
    wire = begun()
    assert wire.session().epoch == 1
    wire.cancel()
    assert wire.session().cancelled
    wire.result(stop="cancelled")
    wire.prompt(8)
    assert (wire.session().epoch, wire.session().cancelled) == (2, False)


def test_a_further_prompt_changes_nothing_by_itself() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.cancel()
    assert wire.prompt(8) == []
    assert (wire.state(), wire.session().epoch, wire.session().cancelled) == ("requires_action", 1, True)


def test_only_the_last_result_ends_the_foreground() -> None:
    wire = begun()
    wire.prompt(8)
    wire.prompt(9)
    assert wire.fail(8) == []
    assert wire.result(7) == []
    assert wire.result(9, "refusal") == ["idle(refusal)"]


def test_a_result_that_answers_no_open_prompt_means_nothing() -> None:
    wire = begun()
    assert wire.result(99) == []
    assert wire.result("7") == []
    assert wire.result(7.0) == []
    assert wire.result(7) == ["idle(end_turn)"]
    assert wire.result(7) == []


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        ("end_turn", "idle(end_turn)"),
        ("max_turn_requests", "idle(max_turn_requests)"),
        ("_vendor", "idle(_vendor)"),
        ("whatever", "idle(whatever)"),
        ("endTurn", "idle(end_turn)"),
        ("Max-Tokens", "idle(max_tokens)"),
        (None, "idle"),
        (5, "idle"),
    ],
)
def test_the_stop_reason_is_the_result_s(stop: Any, told: str) -> None:
    assert begun().result(stop=stop) == [told]


@pytest.mark.parametrize("result", [None, {}, [], "done"])
def test_a_result_without_a_stop_reason_is_an_end_without_one(result: Any) -> None:
    assert begun().agent(id=7, result=result) == ["idle"]


def test_the_end_drops_foreground_waits_and_leaves_open_tools_to_the_background() -> None:
    wire = begun()
    wire.tool("open", "in_progress", new=True)
    wire.tool("done", "completed", new=True)
    wire.permission(1, "open")
    assert wire.result() == ["idle(end_turn)"]
    session = wire.session()
    assert (dict(session.waits), session.foreground_waits) == ({}, 0)
    assert session.tools["open"].owner is Owner.BACKGROUND
    assert wire.answer(1) == []
    wire.prompt(8)
    assert wire.permission(2, "other") == ["requires_action"]


def test_an_error_ends_the_turn_as_an_error() -> None:
    wire = begun()
    assert wire.fail(code=-32000) == ["idle(error)"]
    ending = wire.changes[-1].ending
    assert ending is not None
    assert ending.error == {"code": -32000, "message": "no"}


def test_an_error_of_a_cancelled_turn_is_a_cancellation() -> None:
    wire = begun()
    wire.cancel()
    assert wire.fail() == ["idle(cancelled)"]
    assert begun().fail(code=-32800) == ["idle(cancelled)"]


def test_an_ill_formed_error_is_still_an_error() -> None:
    assert begun().agent(id=7, error="quota") == ["idle(error)"]


# ---------------------------------------------------------------- tools


def test_tools_belong_to_the_turn_they_appear_in() -> None:
    wire = Wire()
    wire.tool("before", "in_progress", new=True)
    wire.prompt()
    wire.tool("new", "pending", new=True)
    wire.tool("unknown", "in_progress")
    owners = {name: tool.owner for name, tool in wire.session().tools.items()}
    assert owners == {
        "before": Owner.BACKGROUND,
        "new": Owner.FOREGROUND,
        "unknown": Owner.FOREGROUND,
    }
    wire.tool("before", "in_progress")
    assert wire.session().tools["before"].owner is Owner.BACKGROUND
    wire.tool("before", "in_progress", new=True)
    assert wire.session().tools["before"].owner is Owner.FOREGROUND


def test_a_finished_tool_that_opens_again_in_a_later_turn_is_left_to_the_background_too() -> None:
    wire = begun()
    wire.tool("t1", "completed", new=True)
    wire.result()
    wire.prompt(8)
    assert wire.permission(1, "t1", "pending") == ["requires_action"]
    wire.result(8)
    wire.prompt(9)
    assert wire.session().tools["t1"].owner is Owner.BACKGROUND
    assert wire.permission(2, "t1") == []


@pytest.mark.parametrize(
    "status", ["completed", "failed", "cancelled", "Completed", "pending", "paused_", "x"]
)
def test_only_in_progress_moves(status: str) -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.permission(1, "t2")
    assert wire.tool("t1", status) == ["requires_action"]
    assert wire.tool("t1", "InProgress") == ["running"]


@pytest.mark.parametrize("status", [None, 5, ["in_progress"]])
def test_an_update_without_a_readable_status_leaves_it_as_it_was(status: Any) -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.tool("t1", status)
    assert wire.session().tools["t1"].status == "in_progress"
    assert wire.permission(1, "t2") == []


def test_a_tool_announced_without_a_status_is_pending() -> None:
    wire = begun()
    wire.tool("t1", new=True)
    wire.tool("t2")
    assert [tool.status for tool in wire.session().tools.values()] == ["pending", "pending"]


@pytest.mark.parametrize("tool_id", [None, 5, {}])
def test_an_update_that_names_no_tool_means_nothing(tool_id: Any) -> None:
    wire = begun()
    assert wire.update("tool_call", toolCallId=tool_id, status="in_progress") == []
    assert wire.session().tools == {}


# ---------------------------------------------------------------- waits and helpers


def test_a_permission_s_tool_call_counts_as_an_update() -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    assert wire.permission(1, "t2", "in_progress") == []
    assert wire.session().tools["t2"].status == "in_progress"
    assert wire.permission(2, "t1", "pending") == ["requires_action"]
    assert wire.session().tools["t1"].status == "pending"


def test_the_subject_of_a_wait_does_not_move() -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.tool("t2", "in_progress", new=True)
    assert wire.permission(1, "t1") == []
    assert wire.permission(2, "t2") == ["requires_action"]
    assert wire.answer(1) == ["running"]


def test_waits_are_told_apart_by_request_id_alone() -> None:
    wire = begun()
    wire.permission(1, "confirmation")
    wire.permission("1", "confirmation")
    assert wire.answer(1) == []
    assert wire.answer("1") == ["running"]


def test_a_request_id_used_twice_in_flight_is_one_wait() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.permission(1, "t1")
    assert wire.answer(1) == ["running"]


@pytest.mark.parametrize("tool", ["background", "history"])
def test_a_permission_for_other_work_than_the_turn_s_waits_in_the_background(tool: str) -> None:
    wire = Wire()
    wire.tool("background", "in_progress", new=True)
    wire.ask(3, "session/load")
    wire.tool("history", "in_progress", new=True)
    wire.done(3)
    wire.prompt()
    assert wire.permission(1, tool) == []
    assert wire.session().waits[1].owner is Owner.BACKGROUND
    assert wire.answer(1) == []


def test_a_permission_without_foreground_work_changes_nothing() -> None:
    wire = Wire()
    assert wire.permission(1, "t1") == []
    assert wire.prompt() == ["running"]
    assert wire.answer(1) == []


@pytest.mark.parametrize("answer", [{"result": {"action": "accept"}}, {"error": {"code": -32601}}])
def test_an_elicitation_of_the_session_is_a_wait(answer: dict[str, Any]) -> None:
    wire = begun()
    assert wire.elicit(1, sessionId="s") == ["requires_action"]
    assert wire.client(id=1, **answer) == ["running"]


def test_an_elicitation_may_name_its_tool() -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.tool("t2", "in_progress", new=True)
    assert wire.elicit(1, sessionId="s", toolCallId="t1") == []
    assert wire.tool("t2", "completed") == ["requires_action"]


def test_an_elicitation_of_a_request_touches_no_state() -> None:
    wire = begun()
    assert wire.elicit(1, requestId=7) == []
    assert wire.elicit(2, requestId=7, sessionId="s") == []
    assert wire.client(id=1, result={"action": "accept"}) == []
    assert wire.state() == "running"


def test_a_wait_the_agent_itself_cancels_ends_with_its_answer() -> None:
    """The withdrawal must still be answered (LC-70), and until then the request is open."""
    wire = begun()
    wire.permission(1, "t1")
    assert wire.agent(method="$/cancel_request", params={"requestId": 1}) == []
    assert wire.answer(1, "cancelled") == ["running"]


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/wait_for_exit"])
def test_machine_work_is_progress(method: str) -> None:
    wire = begun()
    wire.permission(1, "t1")
    assert wire.helper(2, method) == ["running"]
    assert wire.helped(2) == ["requires_action"]


@pytest.mark.parametrize("method", ["mcp/message", "_vendor/ask", "craft/thing", "session/other"])
def test_other_requests_of_the_agent_mean_nothing(method: str) -> None:
    wire = begun()
    wire.permission(1, "t1")
    assert wire.helper(2, method) == []
    assert wire.helped(2) == []


def test_machine_work_of_an_earlier_turn_is_no_progress() -> None:
    wire = begun()
    wire.helper(1)
    wire.result()
    wire.prompt(8)
    assert wire.permission(2, "t1") == ["requires_action"]
    assert wire.helped(1) == []


# ---------------------------------------------------------------- what never changes a state


@pytest.mark.parametrize(
    "kind",
    [
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "plan",
        "usage_update",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "notice",
        "compaction_update",
        "_vendor",
        "invented",
    ],
)
def test_updates_alone_change_nothing(kind: str) -> None:
    wire = Wire()
    assert wire.update(kind) == []
    wire.prompt()
    wire.permission(1, "t1")
    assert wire.update(kind) == []
    assert wire.state() == "requires_action"


@pytest.mark.parametrize(
    "method", ["session/set_mode", "session/set_config_option", "session/list", "authenticate", "_x/y"]
)
def test_other_requests_of_the_client_change_nothing(method: str) -> None:
    wire = begun()
    assert wire.ask(3, method) == []
    assert wire.done(3, {"sessions": []}) == []
    assert wire.ask(4, method) == []
    assert wire.fail(4) == []
    assert wire.state() == "running"


# ---------------------------------------------------------------- attachment


@pytest.mark.parametrize("method", ["session/new", "session/fork"])
def test_a_new_session_is_attached_and_nothing_is_told(method: str) -> None:
    wire = begun()
    wire.ask(3, method, "s")
    assert wire.update("available_commands_update", "n") == []
    assert wire.session("n").phase is Phase.PROVISIONAL
    assert wire.done(3, {"sessionId": "n"}) == []
    assert wire.session("n").phase is Phase.ATTACHED
    assert (wire.state("n"), wire.state("s")) == ("idle", "running")


@pytest.mark.parametrize(
    "answer", [{"error": {"code": -32603}}, {"result": {}}, {"result": {"sessionId": 5}}]
)
def test_a_session_that_was_not_made_is_not_attached(answer: dict[str, Any]) -> None:
    wire = Wire()
    wire.client(id=3, method="session/new", params={"cwd": "/"})
    assert wire.agent(id=3, **answer) == []
    assert wire.engine.sessions == {}


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_loaded_session_is_told_once_before_the_result(method: str) -> None:
    wire = Wire()
    assert wire.ask(3, method) == []
    assert wire.session().phase is Phase.ATTACHED
    assert wire.chunk() == []
    assert wire.done(3) == ["told again: idle"]
    assert words(wire.changes[-1]) == "told again: idle"
    assert wire.session().replays == 0


def test_a_load_that_fails_is_not_told() -> None:
    wire = Wire()
    wire.ask(3, "session/load")
    assert wire.fail(3) == []
    wire.tool("t1", "in_progress", new=True)
    assert wire.session().tools["t1"].owner is Owner.BACKGROUND
