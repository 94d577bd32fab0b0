"""When a detector wants to look again: few deadlines by key, and the next of them at no cost."""

from __future__ import annotations

from typing import Final

_NEVER: Final = float("inf")

Key = tuple[str, ...]


class Deadlines:
    """Deadlines by key; setting a key again leaves its first deadline, for waiting does not start anew.

    The next one is asked for with every message and changes rarely, so it is kept, not looked for.
    """

    __slots__ = ("_due", "earliest")

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self.earliest: float | None = None

    def set(self, key: Key, at: float) -> None:
        """Look at `key` then, unless it already waits."""
        if key not in self._due:
            self._due[key] = at
            if at < (_NEVER if self.earliest is None else self.earliest):
                self.earliest = at

    def drop(self, key: Key) -> None:
        """Do not look at `key`; unknown keys are fine."""
        if self._due and self._due.pop(key, None) is not None:
            self._look()

    def ring(self, at: float) -> list[Key]:
        """The keys whose time has come, earliest first; they are dropped."""
        keys = sorted((key for key, due in self._due.items() if due <= at), key=lambda key: self._due[key])
        for key in keys:
            del self._due[key]
        self._look()
        return keys

    def all(self) -> list[Key]:
        """Every key that waits, whatever its time."""
        return list(self._due)

    def _look(self) -> None:
        earliest = min(self._due.values(), default=_NEVER)
        self.earliest = None if earliest == _NEVER else earliest
