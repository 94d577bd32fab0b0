"""Cancel, close and the ends of the peers, as the lifecycle's event table has them (§2.3)."""

from __future__ import annotations

import pytest

from acp_proxy.inference.session import Phase
from lifecycle_wire import Wire, begun

CLOSING = ["session/close", "session/delete", "session/archive"]


def test_a_cancel_keeps_the_state_until_the_result() -> None:
    wire = begun()
    assert wire.cancel() == []
    assert wire.chunk() == []
    assert wire.tool("t1", "completed", new=True) == []
    assert wire.result(stop="cancelled") == ["idle(cancelled)"]


def test_while_cancelled_waiting_never_turns_into_running() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.permission(2, "t2")
    wire.cancel()
    assert wire.answer(1, "cancelled") == []
    assert wire.tool("t1", "in_progress") == []
    assert wire.helper(3) == []
    assert wire.answer(2, "cancelled") == []
    assert wire.state() == "requires_action"
    assert wire.result(stop="cancelled") == ["idle(cancelled)"]


def test_a_wait_that_begins_after_the_cancel_still_shows() -> None:
    wire = begun()
    wire.cancel()
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.answer(1) == []


def test_a_cancel_of_an_idle_or_unknown_session_changes_nothing() -> None:
    wire = Wire()
    assert wire.cancel() == []
    assert wire.engine.sessions == {}
    wire.chunk()
    assert wire.cancel() == []
    assert wire.prompt() == ["running"]
    assert wire.result() == ["idle(end_turn)"]


def test_a_cancel_ends_with_its_turn() -> None:
    wire = begun()
    wire.cancel()
    wire.result(stop="cancelled")
    assert not wire.session().cancelled
    wire.prompt(8)
    wire.permission(1, "t1")
    assert wire.answer(1) == ["running"]
    assert wire.result(8) == ["idle(end_turn)"]


def test_a_cancelled_turn_that_says_otherwise_is_marked() -> None:
    wire = begun()
    wire.cancel()
    assert wire.result(stop="end_turn") == ["idle(end_turn, after cancel)"]


def test_a_cancel_of_another_session_is_another_matter() -> None:
    wire = begun()
    wire.prompt(8, "other")
    wire.cancel("other")
    wire.permission(1, "t1")
    assert wire.answer(1) == ["running"]


# ---------------------------------------------------------------- close


@pytest.mark.parametrize("method", CLOSING)
def test_a_close_with_foreground_work_tells_its_end_before_the_result(method: str) -> None:
    wire = begun()
    assert wire.ask(3, method) == []
    assert wire.session().phase is Phase.CLOSING
    assert wire.done(3) == ["idle(cancelled)"]
    assert wire.session().phase is Phase.CLOSED
    assert wire.result(stop="cancelled") == []


def test_a_turn_may_end_between_close_and_its_result() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    assert wire.result(stop="cancelled") == ["idle(cancelled)"]
    assert wire.done(3) == []


def test_a_close_while_idle_tells_nothing() -> None:
    wire = begun()
    wire.result()
    wire.ask(3, "session/close")
    assert wire.done(3) == []


def test_waiting_for_a_person_never_turns_into_running_in_a_close() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.ask(3, "session/close")
    assert wire.answer(1, "cancelled") == []
    assert wire.done(3) == ["idle(cancelled)"]


def test_a_prompt_that_a_close_overtakes_is_cancelled_too() -> None:
    wire = begun()
    wire.result()
    wire.ask(3, "session/close")
    assert wire.prompt(8) == ["running"]
    assert wire.done(3) == ["idle(cancelled)"]


def test_closing_a_session_the_agent_does_not_know_is_a_success() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    assert wire.fail(3, -32002) == ["idle(cancelled)"]
    assert wire.session().phase is Phase.CLOSED


def test_a_close_that_fails_closes_nothing() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    assert wire.fail(3, -32601) == []
    assert wire.session().phase is Phase.ATTACHED
    assert wire.result(stop="cancelled") == ["idle(cancelled)"]


def test_a_close_that_fails_leaves_the_client_s_own_cancel_alone() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.ask(3, "session/close")
    wire.cancel()
    wire.fail(3, -32601)
    assert wire.answer(1, "cancelled") == []
    assert wire.fail() == ["idle(cancelled)"]


def test_a_closed_session_stays_closed_when_its_deletion_fails() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    wire.done(3)
    wire.ask(4, "session/delete")
    wire.fail(4, -32601)
    assert wire.session().phase is Phase.CLOSED
    wire.chunk()
    assert wire.rules_broken() == ["V24"]


def test_after_a_close_the_agent_s_traffic_is_a_finding_and_means_nothing() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    wire.done(3)
    assert wire.chunk() == []
    assert wire.tool("t1", "in_progress", new=True) == []
    assert wire.permission(1, "t1") == []
    assert wire.helper(2) == []
    assert wire.rules_broken() == ["V24"] * 4
    assert wire.answer(1) == []
    assert wire.helped(2) == []
    assert wire.cancel() == []
    assert wire.rules_broken() == []
    assert wire.session().tools == {}


def test_a_prompt_to_a_closed_session_is_the_client_s_fault() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    wire.done(3)
    assert wire.prompt(8) == []
    finding = wire.findings.take()[0]
    assert (finding.rule, finding.leg, finding.session, finding.source) == ("V44", "client", "s", "LC-85")
    assert finding.frames == (wire.frames,)
    assert finding.text == "the lifecycle has no prompt while closed"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_closed_session_may_come_back(method: str) -> None:
    wire = begun()
    wire.ask(3, "session/close")
    wire.done(3)
    wire.ask(4, method)
    assert wire.done(4) == ["told again: idle"]
    assert wire.prompt(8) == ["running"]
    assert wire.rules_broken() == []


# ---------------------------------------------------------------- the agent ends


def test_the_agent_s_end_is_the_error_of_every_open_turn() -> None:
    wire = begun()
    wire.prompt(8, "other")
    wire.permission(1, "t1")
    wire.chunk("idle")
    assert wire.gone() == ["idle(error)", "idle(error)"]
    assert [change.session.id for change in wire.changes[-2:]] == ["s", "other"]
    ending = wire.changes[-1].ending
    assert ending is not None
    assert ending.error == {"code": -32603, "message": "ended"}
    assert wire.gone() == []
