"""The record of one session: what is busy, and what progresses."""

from __future__ import annotations

import pytest

from acp_proxy.inference.session import FINAL_STATUSES, Owner, Phase, Session, State, Wait


def test_a_new_session_is_idle_and_unknown() -> None:
    session = Session("s")
    assert repr(session) == "<Session 's' PROVISIONAL idle>"
    assert (session.foreground, session.busy, session.progressing) == (False, False, False)
    assert (session.native, session.reported, session.replays, session.epoch) == (False, None, 0, 0)


def test_final_statuses() -> None:
    assert sorted(FINAL_STATUSES) == ["cancelled", "completed", "failed"]


def test_phases_are_numbered_from_nothing_known_to_gone() -> None:
    assert [phase.name for phase in Phase] == ["PROVISIONAL", "ATTACHED", "CLOSING", "CLOSED"]
    assert list(Phase) == [0, 1, 2, 3]


def test_states_are_written_as_on_the_wire() -> None:
    assert [state.value for state in State] == ["idle", "running", "requires_action", "unknown"]


@pytest.mark.parametrize(("prompts", "auto"), [({1}, False), (set(), True), ({1, 2}, True)])
def test_foreground_is_a_prompt_or_work_of_the_agent_s_own(prompts: set[int], auto: bool) -> None:
    session = Session("s")
    session.prompts |= prompts
    session.auto = auto
    assert session.foreground
    assert session.busy


@pytest.mark.parametrize(
    ("reported", "busy"),
    [(None, False), ("idle", False), ("running", True), ("requires_action", True), ("_vendor", True)],
)
def test_a_native_session_is_busy_as_reported(reported: str | None, busy: bool) -> None:
    session = Session("s")
    session.prompts.add(1)
    session.native = True
    session.reported = reported
    assert session.busy is busy


def fg(tool_id: str | None) -> Wait:
    return Wait(tool_id, Owner.FOREGROUND)


@pytest.mark.parametrize(
    ("moving", "waits", "progressing"),
    [
        (set(), [], False),
        ({"a"}, [], True),
        ({"a"}, [fg("a")], False),
        ({"a"}, [fg("b")], True),
        ({"a"}, [fg(None)], True),
        ({"a", "b"}, [fg("a")], True),
        ({"a", "b"}, [fg("a"), fg("b")], False),
        ({"a"}, [fg("a"), fg("b"), fg("c")], False),
        (set(), [fg("a")], False),
    ],
)
def test_what_progresses(moving: set[str], waits: list[Wait], progressing: bool) -> None:
    session = Session("s")
    session.moving |= moving
    session.waits = dict(enumerate(waits))
    assert session.progressing is progressing


@pytest.mark.parametrize("owner", [Owner.FOREGROUND, Owner.BACKGROUND])
def test_the_subject_of_any_wait_does_not_progress(owner: Owner) -> None:
    """§2.2: `moving` leaves out the subject of a wait, whoever owns the wait."""
    session = Session("s")
    session.moving.add("a")
    session.waits[1] = Wait("a", owner)
    assert not session.progressing


@pytest.mark.parametrize(("epochs", "progressing"), [([], False), ([2], True), ([1], False), ([1, 2], True)])
def test_machine_work_progresses_in_its_own_turn(epochs: list[int], progressing: bool) -> None:
    session = Session("s")
    session.epoch = 2
    session.helpers = dict(enumerate(epochs))
    assert session.progressing is progressing
