"""Shared by all tests: a deadline on every one of them."""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Iterator

import pytest

DEADLINE_SECONDS = 60.0
SLOW_DEADLINE_SECONDS = 300.0


class DeadlineError(BaseException):
    """A test outlived its deadline; BaseException, so that code under test cannot swallow it."""


@pytest.fixture(autouse=True)
def _deadline(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that takes too long instead of hanging the run."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seconds = SLOW_DEADLINE_SECONDS if request.node.get_closest_marker("slow") else DEADLINE_SECONDS

    def expire(signum: int, frame: object) -> None:
        faulthandler.dump_traceback()
        raise DeadlineError(f"test took longer than {seconds:.0f} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
