"""How soon an agent is started again, and when no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.policy.breaker import LONGEST_DELAY, Breaker


def test_the_wait_doubles_with_every_start() -> None:
    breaker = Breaker(10, 60.0, 0.2, lambda: 1.0)
    assert [breaker.start(0.0) for _ in range(4)] == pytest.approx([0.2, 0.4, 0.8, 1.6])


def test_the_wait_has_an_end() -> None:
    breaker = Breaker(100, 1e9, 0.2, lambda: 1.0)
    assert [breaker.start(0.0) for _ in range(100)][-1] == LONGEST_DELAY


def test_chance_takes_off_up_to_half() -> None:
    assert Breaker(1, 60.0, 0.2, lambda: 0.0).start(0.0) == pytest.approx(0.1)


def test_too_many_in_the_window_is_no() -> None:
    breaker = Breaker(3, 60.0, 0.2, lambda: 1.0)
    assert [breaker.start(at) is not None for at in (0.0, 1.0, 2.0, 3.0, 59.0)] == [True] * 3 + [False] * 2


def test_a_quiet_window_forgives() -> None:
    breaker = Breaker(2, 60.0, 0.2, lambda: 1.0)
    breaker.start(0.0)
    breaker.start(1.0)
    assert breaker.start(60.0) == pytest.approx(0.4), "one of two is still in the window"
    assert breaker.start(200.0) == pytest.approx(0.2)


def test_without_a_delay_there_is_no_wait() -> None:
    assert Breaker(3, 60.0, 0.0, lambda: 1.0).start(0.0) == 0.0


@given(
    st.integers(1, 5),
    st.floats(1.0, 100.0),
    st.lists(st.floats(0.0, 50.0), max_size=30),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_never_more_than_the_limit_in_any_window(
    limit: int, window: float, gaps: list[float], chance: float
) -> None:
    breaker = Breaker(limit, window, 0.2, lambda: chance)
    at, starts = 0.0, []
    for gap in gaps:
        at += gap
        delay = breaker.start(at)
        if delay is not None:
            assert 0.0 < delay <= LONGEST_DELAY
            starts.append(at)
    for first in starts:
        assert sum(first <= start < first + window for start in starts) <= limit
