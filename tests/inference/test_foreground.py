"""The tables themselves: no pair is forgotten, every hole is meant, and eight facts make a state."""

from __future__ import annotations

import itertools

import pytest

from acp_proxy.acp.version import Version
from acp_proxy.inference.foreground import DERIVED, MOVES, Change, Hole, Rules, derive, step
from acp_proxy.inference.session import Owner, Phase, Session, State, Wait
from acp_proxy.inference.triggers import Kind
from lifecycle_wire import Wire, begun

# What the peers owe not to do once a close has been answered (LC-50, LC-85).
HOLES = {
    (Phase.CLOSED, kind)
    for kind in (
        Kind.PROMPT,
        Kind.TOOL,
        Kind.WAIT,
        Kind.HELPER,
        Kind.OUTPUT,
        Kind.UPDATE,
        Kind.STATE,
        Kind.END_MARK,
    )
}


@pytest.mark.parametrize("version", list(Version))
def test_every_pair_is_an_entry_or_a_known_hole(version: Version) -> None:
    missing = {
        (phase, kind)
        for phase, kind in itertools.product(Phase, Kind)
        if kind not in MOVES[version].get(phase, {})
    }
    assert missing == HOLES


@pytest.mark.parametrize("version", list(Version))
def test_the_tables_name_no_phase_or_kind_beyond_the_known(version: Version) -> None:
    assert set(MOVES[version]) == set(Phase)
    assert all(set(row) <= set(Kind) for row in MOVES[version].values())


@pytest.mark.parametrize(("phase", "kind"), sorted(HOLES))
@pytest.mark.parametrize("version", list(Version))
def test_a_hole_is_raised_and_moves_nothing(version: Version, phase: Phase, kind: Kind) -> None:
    session = Session("s")
    session.phase = phase
    with pytest.raises(Hole, match=f"^{kind.name.lower()} while closed$") as caught:
        step(session, version, kind, None, 1.0, Rules())
    assert (caught.value.session, caught.value.kind) == (session, kind)
    assert repr(session) == "<Session 's' CLOSED idle>"
    assert session.last_heard == float("-inf")


def test_the_derivation_is_total() -> None:
    assert set(DERIVED) == set(itertools.product((False, True), repeat=3))


@pytest.mark.parametrize(
    ("foreground", "waiting", "moving", "state"),
    [
        (False, False, False, "idle"),
        (False, False, True, "idle"),
        (False, True, False, "idle"),
        (False, True, True, "idle"),
        (True, False, False, "running"),
        (True, False, True, "running"),
        (True, True, False, "requires_action"),
        (True, True, True, "running"),
    ],
)
def test_derivation(foreground: bool, waiting: bool, moving: bool, state: str) -> None:
    assert DERIVED[foreground, waiting, moving] is State(state)
    session = Session("s")
    if foreground:
        session.prompts.add(1)
    if waiting:
        session.waits[2] = Wait(None, Owner.FOREGROUND)
        session.foreground_waits = 1
    if moving:
        session.helpers[3] = session.epoch
    assert derive(session, Rules()) is State(state)


@pytest.mark.parametrize("moving", [False, True])
def test_derivation_of_any_wait(moving: bool) -> None:
    wire = begun(any_wait=True)
    if moving:
        wire.tool("t1", "in_progress", new=True)
        wire.helper(1)
    assert wire.permission(2, "t2") == ["requires_action"]
    assert wire.answer(2) == ["running"]


def test_a_change_says_its_session_and_both_states() -> None:
    wire = begun()
    wire.result(usage={"totalTokens": 3})
    began, ended = wire.changes
    assert repr(began) == "<Change 's' idle to running>"
    assert repr(ended) == "<Change 's' running to idle>"
    assert isinstance(ended, Change)
    assert ended.session is wire.session()
    assert ended.ending is not None
    assert ended.ending.usage == {"totalTokens": 3}
    assert (began.ending, began.after_cancel, began.resume) == (None, False, False)


# ---------------------------------------------------------------- agents that tell their state themselves


@pytest.mark.parametrize("state", ["running", "idle", "requires_action", "unknown", "_vendor", "busy"])
def test_a_v1_agent_that_reports_its_state_is_believed_from_then_on(state: str) -> None:
    wire = begun()
    assert wire.update("state_update", state=state) == []
    assert wire.session().native
    assert wire.session().reported == state
    assert wire.session().busy is (state != "idle")
    assert wire.permission(1, "t1") == []
    assert wire.answer(1) == []
    assert wire.result() == []
    assert wire.prompt(8) == []
    assert wire.fail(8) == []
    assert wire.ask(9, "session/load") == []
    assert wire.done(9) == []


def test_nativeness_belongs_to_one_session() -> None:
    wire = Wire()
    wire.update("state_update", "s1", state="idle")
    assert wire.prompt(1, "s1") == []
    assert wire.prompt(2, "s2") == ["running"]


@pytest.mark.parametrize("state", [None, 1, ["idle"], {}])
def test_a_state_without_a_name_is_no_report(state: object) -> None:
    wire = begun()
    wire.update("state_update", state=state)
    assert not wire.session().native
    assert wire.result() == ["idle(end_turn)"]


def test_nothing_is_inferred_for_a_v2_agent() -> None:
    wire = Wire(Version.V2)
    assert wire.prompt() == []
    assert wire.chunk() == []
    assert wire.permission(1, "t1") == []
    assert wire.answer(1) == []
    assert wire.helper(2) == []
    assert wire.helped(2) == []
    assert wire.done(7, {"messageId": "m"}) == []
    assert wire.ask(8, "session/resume") == []
    assert wire.done(8) == []
    assert wire.gone() == []
    assert wire.session().phase is Phase.ATTACHED
    assert not wire.session().busy


def test_a_v2_agent_is_busy_as_it_reports() -> None:
    wire = Wire(Version.V2)
    wire.update("state_update", state="running")
    assert [session.id for session in wire.engine.busy_sessions()] == ["s"]
    wire.update("state_update", state="idle")
    assert list(wire.engine.busy_sessions()) == []
