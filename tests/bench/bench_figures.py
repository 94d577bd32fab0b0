"""The figures and their floors: what is promised of the proxy, in one table.

Volumes differ between the full and the short form, floors do not. Transparent figures have a v1 client,
bridged ones a v2 client in front of the same v1 agent; the baseline always carries v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench_measures import (
    Measure,
    cost_of_sessions,
    cost_of_tool_calls,
    cost_of_updates,
    enforcing,
    growth,
    headroom,
    rate,
    round_trip,
    start_up,
)

MODES = {"transparent": 1, "bridged": 2}
RATE_FLOORS = {"transparent": 0.8, "bridged": 0.25}


@dataclass(frozen=True)
class Figure:
    """One promise. `bound` is the least ratio, the most if `at_most`; None for a figure that only informs."""

    name: str
    unit: str
    bound: float | None
    at_most: bool
    measure: Measure

    def met(self, ratio: float, slack: float = 1.0) -> bool:
        """Whether a ratio keeps the promise; slack 2 lets it miss by half."""
        if self.bound is None:
            return True
        return ratio <= self.bound * slack if self.at_most else ratio >= self.bound / slack

    @property
    def floor(self) -> str:
        if self.bound is None:
            return "-"
        return f"{'<=' if self.at_most else '>='} {self.bound:g}"


@dataclass(frozen=True)
class Volumes:
    """How much each measure carries: counts of messages, requests, runs, tool calls, sessions."""

    updates: int
    large: int
    huge: int
    trips: int
    growth: int
    starts: int
    linear: int
    tool_calls: int
    sessions: int


FULL = Volumes(200_000, 1500, 24, 2000, 1_000_000, 5, 20_000, 1000, 100)
SHORT = Volumes(100_000, 400, 8, 300, 100_000, 3, 4000, 200, 20)


def figures(volumes: Volumes) -> Iterator[Figure]:
    """Every figure at these volumes, in the order they are reported."""
    times = 10
    for mode, version in MODES.items():
        per_baseline = "rate / baseline's"
        small = f"chunks:{volumes.updates}:250"
        yield Figure(
            f"updates-250B-{mode}",
            per_baseline,
            RATE_FLOORS[mode],
            False,
            rate(small, volumes.updates, version),
        )
        large = f"chunks:{volumes.large}:65536"
        yield Figure(f"updates-64KiB-{mode}", per_baseline, 0.5, False, rate(large, volumes.large, version))
        huge = f"chunks:{volumes.huge}:4194304"
        yield Figure(f"updates-4MiB-{mode}", per_baseline, 0.5, False, rate(huge, volumes.huge, version))
        mixed = rate(f"mixed:{volumes.updates}", volumes.updates, version)
        yield Figure(f"mixed-{mode}", per_baseline, None, False, mixed)
        few = volumes.updates // 4
        dearer = enforcing(f"mixed:{few}", few, version)
        yield Figure(f"enforce-mixed-{mode}", "enforce / observe", 1.6, True, dearer)
        dearer = enforcing(f"chunks:{few}:250", few, version)
        yield Figure(f"enforce-text-{mode}", "enforce / observe", 1.6, True, dearer)
        yield Figure(
            f"round-trip-{mode}", "median / baseline's", 2.0, True, round_trip(volumes.trips, version)
        )
        yield Figure(f"start-up-{mode}", "added / imports", 1.6, True, start_up(volumes.starts, version))
        yield Figure(f"memory-{mode}", "MiB in 900,000 updates", 20.0, True, growth(volumes.growth, version))
        per_message = f"cost at {times}x / at 1x"
        updates = cost_of_updates(volumes.linear, times, version)
        yield Figure(f"linear-updates-{mode}", per_message, 2.0, True, updates)
        calls = cost_of_tool_calls(volumes.tool_calls, times, version)
        yield Figure(f"linear-tool-calls-{mode}", per_message, 2.0, True, calls)
        sessions = cost_of_sessions(volumes.sessions, times, version)
        yield Figure(f"linear-sessions-{mode}", per_message, 2.0, True, sessions)
    bare = headroom(f"chunks:{volumes.updates}:250", volumes.updates)
    yield Figure("headroom-of-the-harness", "bare / baseline's", None, False, bare)
