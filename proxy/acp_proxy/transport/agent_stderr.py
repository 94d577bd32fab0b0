"""The agent's standard error: cut into lines, kept in part, and thinned out for whoever shows it.

An agent may write there what it likes and as much as it likes: memory is bounded, and no line costs more than
its share of a split. Nothing here reads or waits; the time comes in.
"""

from __future__ import annotations

import math
from collections import deque

LINE_BYTES = 8 * 1024
LINES_A_SECOND = 200
TAIL_LINES = 20


class StderrLines:
    """Takes chunks of standard error and gives back what may be shown of them.

    What is shown are whole lines, each ended by a line feed and at most 8 KiB without it, at most 200 in a
    second, then one line saying how many were left out. The tail holds the last 20 lines whether shown or
    not.
    """

    def __init__(self) -> None:
        self._tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._open_line = b""
        self._window_end = -math.inf
        self._shown = 0
        self._dropped = 0

    @property
    def report_due(self) -> float:
        """When `feed` must be called even if nothing came, so that a count does not wait; inf if never."""
        return self._window_end if self._dropped else math.inf

    def feed(self, chunk: bytes, now: float) -> bytes:
        """Take what was read at `now` (seconds of a monotonic clock), return what is to be shown."""
        report = self._turn_window(now)
        first, *others = chunk.split(b"\n")
        room = LINE_BYTES - len(self._open_line)
        if not others:
            self._open_line += first[:room]
            return report
        lines = [self._open_line + first[:room], *others]
        self._open_line = lines.pop()[:LINE_BYTES]
        return report + self._show(lines)

    def finish(self) -> bytes:
        """Return what is left to be shown: a last line without an end, and the count of those left out."""
        shown = self._show([self._open_line]) if self._open_line else b""
        self._open_line = b""
        return shown + self._report()

    def tail(self) -> list[str]:
        """Return the last lines, decoded with replacement; an open last line counts as one."""
        lines = [*self._tail, self._open_line] if self._open_line else [*self._tail]
        return [line.decode("utf-8", "replace").rstrip("\r") for line in lines[-TAIL_LINES:]]

    def _show(self, lines: list[bytes]) -> bytes:
        self._tail.extend(line[:LINE_BYTES] for line in lines[-TAIL_LINES:])
        passing = lines[: LINES_A_SECOND - self._shown]
        self._shown += len(passing)
        self._dropped += len(lines) - len(passing)
        return b"".join(line[:LINE_BYTES] + b"\n" for line in passing)

    def _turn_window(self, now: float) -> bytes:
        # A window begins with its first line, not with the clock's second: a burst is shown whole up to the
        # cap.
        if now < self._window_end:
            return b""
        report = self._report()
        self._window_end = now + 1.0
        self._shown = 0
        return report

    def _report(self) -> bytes:
        if not self._dropped:
            return b""
        report = b"(agent stderr: %d lines left out)\n" % self._dropped
        self._dropped = 0
        return report
