"""Each ambiguity of the lifecycle that the engine decides (§2.5), by default and by option."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.inference.session import Owner
from lifecycle_wire import Wire, begun

# ---------------------------------------------------------------- defaults


def test_updates_out_of_turn_are_no_foreground() -> None:
    wire = Wire()
    assert wire.chunk() == []
    assert wire.tool("t1", "in_progress", new=True) == []
    assert wire.permission(1, "t2") == []
    assert wire.helper(2) == []
    assert (wire.state(), wire.session().auto) == ("idle", False)
    assert wire.engine.quiet_at() is None


def test_tail_updates_after_a_result_do_not_flip() -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.result()
    assert wire.chunk() == []
    assert wire.tool("t1", "completed") == []
    assert wire.state() == "idle"


def test_a_finished_output_without_an_answer_stays_running() -> None:
    wire = begun()
    wire.chunk()
    wire.update("usage_update", used=9, size=99)
    assert wire.quiet(10_000) == []
    assert wire.state() == "running"


def test_text_during_a_wait_is_no_progress() -> None:
    wire = begun()
    wire.permission(1, "t1")
    assert wire.chunk() == []
    assert wire.update("plan", entries=[]) == []
    assert wire.state() == "requires_action"


def test_stale_tools_of_an_earlier_turn_hide_no_wait() -> None:
    wire = begun()
    wire.tool("old", "in_progress", new=True)
    wire.result()
    wire.prompt(8)
    assert wire.tool("old", "in_progress") == []
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.tool("old", "in_progress") == []


def test_a_tool_that_ended_in_an_earlier_turn_does_not_move_by_an_update() -> None:
    wire = begun()
    wire.tool("old", "completed", new=True)
    wire.result()
    wire.prompt(8)
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.tool("old", "in_progress") == []


def test_a_tool_in_progress_all_along_moves_once_nothing_waits_for_it() -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.permission(1, "t1")
    wire.permission(2, "t2")
    assert wire.answer(1) == ["running"]


def test_answering_a_url_elicitation_ends_its_wait() -> None:
    wire = begun()
    assert wire.elicit(1, sessionId="s", elicitationId="e", url="https://x") == ["requires_action"]
    assert wire.client(id=1, result={"action": "accept"}) == ["running"]
    assert wire.agent(method="elicitation/complete", params={"elicitationId": "e"}) == []


def test_a_permission_of_a_child_session_waits_there_alone() -> None:
    wire = begun()
    assert wire.permission(1, "t1", session_id="child") == []
    assert (wire.state(), wire.state("child")) == ("running", "idle")


def test_an_unknown_tool_status_is_neither_final_nor_progress() -> None:
    wire = begun()
    wire.tool("t1", "warming_up", new=True)
    assert wire.permission(1, "t2") == ["requires_action"]
    wire.result()
    assert wire.session().tools["t1"].owner is Owner.BACKGROUND


def test_a_late_answer_for_ended_work_means_nothing() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.result()
    wire.prompt(8)
    wire.permission(2, "t2")
    assert wire.answer(1) == []
    assert wire.state() == "requires_action"


def test_updates_after_a_cancel_are_still_the_turn_s() -> None:
    wire = begun()
    wire.cancel()
    wire.tool("t1", "in_progress", new=True)
    assert wire.session().tools["t1"].owner is Owner.FOREGROUND


def test_a_list_tells_nothing_of_a_session() -> None:
    wire = begun()
    wire.client(id=3, method="session/list", params={})
    assert wire.done(3, {"sessions": [{"sessionId": "other"}]}) == []
    assert list(wire.engine.sessions) == ["s"]


# ---------------------------------------------------------------- load and resume


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_replay_is_never_foreground(method: str) -> None:
    wire = Wire(agent_initiated="infer")
    wire.now = 100.0
    wire.ask(3, method)
    assert wire.chunk() == []
    assert wire.update("user_message_chunk") == []
    assert wire.update("plan", entries=[]) == []
    assert wire.tool("t9", "in_progress", new=True) == []
    assert wire.done(3) == ["told again: idle"]
    assert wire.session().tools["t9"].owner is Owner.HISTORY
    wire.prompt()
    assert wire.permission(1, "t9") == []
    assert wire.tool("t9", "in_progress") == []
    assert wire.permission(2, "t1") == ["requires_action"]


def test_open_tools_become_history_with_the_load_s_result() -> None:
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.result()
    wire.ask(3, "session/load")
    assert wire.session().tools["t1"].owner is Owner.BACKGROUND
    wire.done(3)
    assert wire.session().tools["t1"].owner is Owner.HISTORY


@pytest.mark.parametrize("waits", [False, True])
def test_a_load_in_mid_turn_tells_the_derived_state(waits: bool) -> None:
    wire = begun()
    if waits:
        wire.permission(1, "t1")
    wire.ask(3, "session/load")
    wire.chunk()
    assert wire.done(3) == ["told again: requires_action" if waits else "told again: running"]
    assert wire.result() == ["idle(end_turn)"]


def test_a_load_in_mid_turn_leaves_the_turn_s_tools_alone() -> None:
    """The aggregate is unchanged: what is replayed of a running tool does not make it history."""
    wire = begun()
    wire.tool("t1", "in_progress", new=True)
    wire.permission(1, "t2")
    wire.ask(3, "session/load")
    assert wire.tool("t1", "in_progress", new=True) == []
    assert wire.done(3) == ["told again: running"]
    assert wire.tool("t1", "completed") == ["requires_action"]


def test_a_permission_during_a_load_in_mid_turn_is_the_turn_s() -> None:
    wire = begun()
    wire.tool("t1", "pending", new=True)
    wire.ask(3, "session/load")
    assert wire.permission(1, "t1") == ["requires_action"]


def test_two_loads_at_once_are_two_replays() -> None:
    wire = Wire()
    wire.ask(3, "session/load")
    wire.ask(4, "session/load")
    assert wire.done(3) == ["told again: idle"]
    wire.tool("t1", "in_progress", new=True)
    assert wire.session().tools["t1"].owner is Owner.HISTORY
    assert wire.done(4) == ["told again: idle"]
    wire.tool("t2", "in_progress", new=True)
    assert wire.session().tools["t2"].owner is Owner.BACKGROUND


# ---------------------------------------------------------------- work the agent begins itself


def alone(option: str = "infer", **rules: Any) -> Wire:
    """A wire whose session `s` has ended a turn at 100 s; the agent may begin work by itself."""
    wire = Wire(agent_initiated=option, **rules)
    wire.now = 100.0
    wire.prompt()
    wire.tool("known", "in_progress", new=True)
    wire.result()
    return wire


@pytest.mark.parametrize(
    "kind", ["agent_message_chunk", "agent_thought_chunk", "plan", "plan_update", "tool_call"]
)
def test_fresh_output_begins_work(kind: str) -> None:
    wire = alone()
    wire.now += 1.0
    assert wire.update(kind, toolCallId="new", status="pending") == ["running"]
    assert wire.session().busy


def test_a_request_nobody_asked_for_begins_work() -> None:
    wire = alone()
    wire.now += 1.0
    assert wire.permission(1, "new") == ["requires_action"]
    assert wire.answer(1) == ["running"]
    other = alone()
    other.now += 1.0
    assert other.elicit(1, sessionId="s") == ["requires_action"]


def test_trailing_output_within_a_second_begins_nothing() -> None:
    wire = alone()
    wire.now += 0.999
    assert wire.chunk() == []
    assert wire.permission(1, "new") == []
    wire.now += 0.001
    assert wire.chunk() == ["running"]


def test_a_session_that_never_had_a_turn_may_begin_at_once() -> None:
    assert Wire(agent_initiated="infer").chunk() == ["running"]


@pytest.mark.parametrize(
    "kind", ["usage_update", "session_info_update", "user_message_chunk", "available_commands_update"]
)
def test_other_updates_begin_nothing(kind: str) -> None:
    wire = alone()
    wire.now += 50.0
    assert wire.update(kind) == []


def test_known_tools_begin_nothing() -> None:
    wire = alone()
    wire.now += 50.0
    assert wire.tool("known", "in_progress") == []
    assert wire.tool("known", "in_progress", new=True) == []
    assert wire.permission(1, "known") == []
    assert wire.elicit(2, sessionId="s", toolCallId="known") == []
    assert wire.helper(3) == []


def test_a_new_tool_that_is_already_final_begins_nothing() -> None:
    wire = alone()
    wire.now += 50.0
    assert wire.tool("new", "completed", new=True) == []


def test_quiet_ends_it_without_a_stop_reason() -> None:
    wire = alone()
    wire.now += 1.0
    wire.chunk()
    assert wire.quiet(20.0) == []
    wire.chunk()
    assert wire.quiet(29.9) == []
    assert wire.quiet(0.1) == ["idle"]
    assert wire.now == pytest.approx(151.0)
    assert wire.engine.quiet_at() is None


@pytest.mark.parametrize("hold", ["tool", "helper", "wait"])
def test_it_never_falls_quiet_while_something_waits_or_moves(hold: str) -> None:
    wire = alone(quiet_time=5.0)
    wire.now += 1.0
    wire.chunk()
    if hold == "tool":
        wire.tool("t1", "in_progress", new=True)
    elif hold == "helper":
        wire.helper(1)
    else:
        wire.permission(1, "t1")
    assert wire.quiet(1000.0) == []
    assert wire.session().busy


@pytest.mark.parametrize("hold", ["helper", "wait"])
def test_quiet_counts_from_the_moment_nothing_waits_or_moves(hold: str) -> None:
    wire = alone(quiet_time=30.0)
    wire.now += 1.0
    wire.chunk()
    if hold == "helper":
        wire.helper(1)
    else:
        wire.permission(1, "t1")
    wire.quiet(29.0)
    wire.client(id=1, result={})
    assert wire.quiet(29.9) == []
    assert wire.quiet(0.1) == ["idle"]


@pytest.mark.parametrize(
    ("markers", "said"),
    [
        (("_session/turn_ended",), {"method": "_session/turn_ended", "params": {"sessionId": "s"}}),
        (("other", "_meta.endOfTurn"), {"_meta": {"endOfTurn": True}}),
        (("_meta.endOfTurn=true",), {"_meta": {"endOfTurn": True}}),
        (("_meta.vendor.state=idle",), {"_meta": {"vendor": {"state": "idle"}}}),
    ],
)
def test_a_configured_mark_ends_it(markers: tuple[str, ...], said: dict[str, Any]) -> None:
    wire = alone(end_markers=markers)
    wire.now += 1.0
    wire.chunk()
    if "method" in said:
        assert wire.agent(**said) == ["idle"]
    else:
        assert wire.update("usage_update", **said) == ["idle"]


def test_a_mark_ends_no_prompted_turn() -> None:
    wire = alone(end_markers=("_meta.endOfTurn=true",))
    wire.now += 1.0
    wire.prompt(8)
    assert wire.update("usage_update", _meta={"endOfTurn": True}) == []
    assert wire.result(8) == ["idle(end_turn)"]


def test_a_prompt_takes_over_what_the_agent_began() -> None:
    wire = alone()
    wire.now += 1.0
    wire.chunk()
    assert wire.prompt(8) == []
    assert wire.quiet(1000.0) == []
    assert wire.result(8) == ["idle(end_turn)"]


def test_tools_of_the_work_before_the_prompt_are_of_an_earlier_epoch() -> None:
    wire = alone()
    wire.now += 1.0
    wire.tool("t1", "in_progress", new=True)
    wire.prompt(8)
    assert wire.permission(1, "t2") == ["requires_action"]


def test_a_cancel_of_such_work_ends_it_as_cancelled() -> None:
    wire = alone()
    wire.now += 1.0
    wire.chunk()
    wire.cancel()
    assert wire.quiet(30.0) == ["idle(cancelled)"]


def test_the_agent_s_end_ends_it_as_an_error() -> None:
    wire = alone()
    wire.now += 1.0
    wire.chunk()
    assert wire.gone() == ["idle(error)"]


def test_unknown_is_told_instead_of_running() -> None:
    wire = alone("unknown")
    wire.now += 1.0
    assert wire.chunk() == ["unknown"]
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.answer(1) == ["unknown"]
    assert wire.prompt(8) == ["running"]
    assert wire.result(8) == ["idle(end_turn)"]
