"""Deadlines by key: the first one set holds, and the next is always known."""

from __future__ import annotations

from acp_proxy.inference.watch.deadlines import Deadlines


def test_the_next_deadline_is_the_earliest() -> None:
    due = Deadlines()
    assert due.earliest is None
    due.set(("V05", "a"), 3.0)
    due.set(("V06", "b"), 2.0)
    assert due.earliest == 2.0
    due.drop(("V06", "b"))
    due.drop(("V06", "b"))
    assert due.earliest == 3.0


def test_waiting_does_not_start_anew() -> None:
    due = Deadlines()
    due.set(("V06", "a"), 2.0)
    due.set(("V06", "a"), 9.0)
    assert due.earliest == 2.0


def test_what_is_due_rings_once_earliest_first() -> None:
    due = Deadlines()
    for name, at in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("z", 9.0), ("never", float("inf"))):
        due.set(("V05", name), at)
    assert due.ring(3.0) == [("V05", "a"), ("V05", "b"), ("V05", "c")]
    assert due.ring(3.0) == []
    assert due.earliest == 9.0
    assert due.ring(9.0) == [("V05", "z")]
    assert due.earliest is None, "what never comes is waited for by nobody"
    assert due.all() == [("V05", "never")]
