"""Many deadlines, one next: a heap whose entries may be put off or dropped by key."""

from __future__ import annotations

import heapq
from collections.abc import Hashable


class Alarms:
    """Deadlines by key; setting a key again replaces its deadline."""

    __slots__ = ("_due", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Hashable]] = []
        self._due: dict[Hashable, tuple[float, int]] = {}
        self._order = 0

    def set(self, key: Hashable, at: float) -> None:
        """Ring for `key` at that time instead of any earlier setting."""
        self._order += 1
        self._due[key] = (at, self._order)
        heapq.heappush(self._heap, (at, self._order, key))

    def drop(self, key: Hashable) -> None:
        """Do not ring for `key`; unknown keys are fine."""
        self._due.pop(key, None)

    def is_set(self, key: Hashable) -> bool:
        """Whether a time is set for `key`."""
        return key in self._due

    def next(self) -> float | None:
        """The earliest time set."""
        heap = self._heap
        while heap:
            at, order, key = heap[0]
            if self._due.get(key) == (at, order):
                return at
            heapq.heappop(heap)
        return None

    def ring(self, at: float) -> list[Hashable]:
        """The keys whose time has come, earliest first; they are dropped."""
        keys: list[Hashable] = []
        while True:
            due = self.next()
            if due is None or due > at:
                return keys
            _, _, key = heapq.heappop(self._heap)
            del self._due[key]
            keys.append(key)
