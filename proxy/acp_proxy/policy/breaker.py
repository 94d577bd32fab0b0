"""How soon an agent may be started again, and when not any more.

The wait doubles with every start in the window, so an agent that dies at once does not keep the machine
busy; chance spreads it, so that many proxies whose agents died together do not start them together.

Source: keys `agent.restart_limit`, `restart_window`, `restart_delay`; BR-06.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

LONGEST_DELAY: Final = 30.0


class Breaker:
    """Allows `limit` starts in `window` seconds; `delay` is the first wait in seconds.

    `chance` gives numbers from 0 up to 1. A wait lies between half and all of what the doubling allows.
    """

    __slots__ = ("_chance", "_delay", "_limit", "_starts", "_window")

    def __init__(self, limit: int, window: float, delay: float, chance: Callable[[], float]) -> None:
        self._limit = limit
        self._window = window
        self._delay = delay
        self._chance = chance
        self._starts: deque[float] = deque()

    def start(self, at: float) -> float | None:
        """Count one more start and return the wait before it, in seconds; None when there were too many."""
        while self._starts and at - self._starts[0] >= self._window:
            self._starts.popleft()
        count = len(self._starts)
        if count >= self._limit:
            return None
        self._starts.append(at)
        most = min(LONGEST_DELAY, self._delay * 2.0 ** min(count, 64))
        return most * (0.5 + self._chance() / 2)
