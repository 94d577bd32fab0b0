"""Observers watch from a thread of their own: they can neither hold up the traffic nor touch it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.message import Frame, Notification
from acp_proxy.plugin import FrameReport, Message, Plugin, Report, StateReport
from acp_proxy.plugin_host.observers import Observers

PATIENCE = 20.0


class Watching(Plugin):
    """Keeps what it is shown; waits at the gate first, when there is one."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        super().__init__({})
        self.seen: list[Report] = []
        self.threads: set[int] = set()
        self.closed = 0
        self.begun = threading.Event()
        self._gate = gate

    def observe(self, report: Report) -> None:
        self.threads.add(threading.get_ident())
        self.begun.set()
        if self._gate is not None:
            self._gate.wait(PATIENCE)
        self.seen.append(report)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class Failing(Watching):
    """Fails at each report, and at the end too."""

    def observe(self, report: Report) -> None:
        super().observe(report)
        raise KeyError("sesame")

    def close(self) -> None:
        super().close()
        raise SystemExit(9)


class Failures:
    """What was reported."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.causes: list[BaseException | None] = []

    def __call__(self, finding: Finding, exc: BaseException | None) -> None:
        self.found.append(finding)
        self.causes.append(exc)


def observers(*plugins: Plugin, **limits: int) -> tuple[Observers, Failures]:
    failures = Failures()
    return Observers([(f"p{n}", one) for n, one in enumerate(plugins)], failures, **limits), failures


def state(number: int) -> StateReport:
    return StateReport(float(number), "s", "idle", str(number), None)


def frame(text: str = "x", number: int | None = 4) -> FrameReport:
    body = {"jsonrpc": "2.0", "method": "m", "params": {"text": text}}
    raw = codec.encode(body)
    kept = Frame(raw, number) if number is not None else None
    return FrameReport(1.0, Role.CLIENT, "in", raw, number, Notification(body, kept))


def names(reports: list[Report]) -> list[str]:
    return [one.new if isinstance(one, StateReport) else getattr(one, "text", "frame") for one in reports]


def wait_until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_everything_is_seen_in_order_in_one_other_thread_and_then_closed() -> None:
    one, two = Watching(), Watching()
    watched, failures = observers(one, two)
    for number in range(50):
        watched.tell(state(number))
    assert watched.close(PATIENCE)
    assert names(one.seen) == names(two.seen) == [str(number) for number in range(50)]
    assert one.threads == two.threads
    assert len(one.threads) == 1
    assert threading.get_ident() not in one.threads
    assert (one.closed, two.closed) == (1, 1)
    assert failures.found == []


def test_who_does_not_observe_costs_nothing_and_is_closed_all_the_same() -> None:
    class Deaf(Plugin):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    deaf = Deaf({})
    before = threading.active_count()
    watched, _ = observers(deaf)
    assert not watched.watching
    watched.tell(state(1))
    assert threading.active_count() == before
    assert watched.close(PATIENCE)
    assert deaf.closed == 1


def test_a_slow_observer_loses_reports_and_nobody_waits_for_it() -> None:
    gate = threading.Event()
    slow = Watching(gate)
    watched, failures = observers(slow, max_reports=3)
    watched.tell(state(0))
    slow.begun.wait(PATIENCE)  # from here on the observer holds one report, and three may wait
    for number in range(1, 10):
        watched.tell(state(number))
    assert watched.missed == 6
    assert [finding.text for finding in failures.found] == [
        "observers of plugins are too slow: they miss reports from here on"
    ]
    assert failures.found[0].rule == "V55"
    gate.set()
    wait_until(lambda: len(slow.seen) == 4)
    watched.tell(state(10))
    assert watched.close(PATIENCE)
    gap = "6 reports were lost here: observers were too slow"
    assert names(slow.seen) == ["0", "1", "2", "3", gap, "10"]
    assert len(failures.found) == 1


def test_a_gap_at_the_very_end_is_told_too() -> None:
    gate = threading.Event()
    slow = Watching(gate)
    watched, _ = observers(slow, max_reports=1)
    watched.tell(state(0))
    slow.begun.wait(PATIENCE)
    for number in range(1, 4):
        watched.tell(state(number))
    threading.Timer(0.01, gate.set).start()
    assert watched.close(PATIENCE)
    assert names(slow.seen) == ["0", "1", "2 reports were lost here: observers were too slow"]


def test_waiting_frames_are_bounded_in_bytes_but_a_large_one_alone_is_seen() -> None:
    gate = threading.Event()
    slow = Watching(gate)
    watched, _ = observers(slow, max_bytes=1000)
    watched.tell(frame("a" * 5000))
    slow.begun.wait(PATIENCE)
    watched.tell(frame("b" * 5000))
    watched.tell(frame("c"))
    watched.tell(state(1))
    assert watched.missed == 2
    gate.set()
    wait_until(lambda: len(slow.seen) == 2)
    gate.clear()
    slow.begun.clear()
    watched.tell(state(2))  # after a note of the gap
    slow.begun.wait(PATIENCE)
    watched.tell(frame("d" * 400))
    watched.tell(frame("e" * 400))
    assert watched.missed == 2
    gate.set()
    assert watched.close(PATIENCE)
    assert names(slow.seen)[2:] == [
        "2 reports were lost here: observers were too slow",
        "2",
        "frame",
        "frame",
    ]


def test_a_failing_observer_is_reported_and_dropped_and_others_go_on() -> None:
    failing, well = Failing(), Watching()
    watched, failures = observers(failing, well)
    for number in range(3):
        watched.tell(state(number))
    assert watched.close(PATIENCE)
    assert names(failing.seen) == ["0"]
    assert names(well.seen) == ["0", "1", "2"]
    assert (failing.closed, well.closed) == (1, 1)
    observed, closed = failures.found
    assert observed.text.startswith("plugin 'p0' failed in observe: KeyError at test_plugin_observers.py:")
    assert observed.text.endswith("; it observes no more")
    assert closed.text.startswith("plugin 'p0' failed in close: SystemExit at ")
    assert {finding.rule for finding in failures.found} == {"V55"}
    assert (observed.at, closed.at) == (0.0, 2.0)
    assert "sesame" not in observed.text
    assert [type(exc) for exc in failures.causes] == [KeyError, SystemExit]


def test_an_observer_cannot_touch_a_message() -> None:
    class Meddling(Watching):
        def observe(self, report: Report) -> None:
            super().observe(report)
            assert isinstance(report, FrameReport)
            assert report.message is not None
            report.message.body.clear()

    meddling = Meddling()
    watched, _ = observers(meddling)
    told = frame("x")
    watched.tell(told)
    assert watched.close(PATIENCE)
    assert isinstance(told.message, Message)
    assert told.message.body["params"] == {"text": "x"}
    [seen] = meddling.seen
    assert isinstance(seen, FrameReport)
    assert (seen.at, seen.leg, seen.direction, seen.raw, seen.number) == (1.0, Role.CLIENT, "in", told.raw, 4)


@pytest.mark.parametrize("number", [4, None])
def test_an_observer_gets_the_message_of_a_frame(number: int | None) -> None:
    one = Watching()
    watched, _ = observers(one)
    watched.tell(frame("x", number))
    watched.tell(FrameReport(2.0, Role.AGENT, "in", b"no JSON", 5, None))
    assert watched.close(PATIENCE)
    first, second = one.seen
    assert isinstance(first, FrameReport)
    assert isinstance(second, FrameReport)
    assert type(first.message) is Notification
    assert first.message.params == {"text": "x"}
    assert (first.message.frame.number if first.message.frame else None) == number
    assert (second.message, second.raw) == (None, b"no JSON")


def test_closing_gives_up_on_an_observer_that_hangs() -> None:
    gate = threading.Event()
    hanging = Watching(gate)
    watched, _ = observers(hanging)
    watched.tell(state(0))
    try:
        assert not watched.close(0.05)
        watched.tell(state(1))
    finally:
        gate.set()
    wait_until(lambda: hanging.closed)
    assert names(hanging.seen) == ["0"]


def test_closing_twice_is_harmless() -> None:
    one = Watching()
    watched, _ = observers(one)
    assert watched.close(PATIENCE)
    assert watched.close(PATIENCE)
    assert one.closed == 1
