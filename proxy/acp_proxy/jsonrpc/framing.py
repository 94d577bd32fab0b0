"""Cuts a byte stream into lines at 0x0A alone, whatever the chunks it comes in.

U+2028, form feeds and lone carriage returns stand inside JSON or beside it and cut nothing.
A line over the limit is reported once, as soon as it is known to be too long, with its first
bytes; the stream goes on at the next line feed.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD_BYTES = 4096
RUN_LINE_BYTES = 2048
"""Longer lines are not offered for recognition: a parser reads them faster than a pattern does."""


class Oversize:
    """A line longer than the limit: its beginning only, the rest was skipped."""

    __slots__ = ("head",)

    def __init__(self, head: bytes) -> None:
        self.head = head


class Run:
    """Neighboring lines, line feeds included, that somebody recognized together without cutting them."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def lines(self) -> list[bytes]:
        """The lines one by one, without their line feeds."""
        lines = self.data.split(b"\n")
        lines.pop()
        return lines


Piece = bytes | Run | Oversize
Recognize = Callable[[bytes, int], int]


class LineSplitter:
    """Keeps every byte between line feeds; blank lines are skipped, carriage returns kept."""

    def __init__(self, limit: int) -> None:
        """`limit` is the longest accepted line in bytes, the line feed not counted."""
        self._limit = limit
        self._pending = bytearray()
        self._skipping = False

    def feed(self, data: bytes, recognize: Recognize | None = None) -> list[Piece]:
        """Take the next bytes of the stream; return the lines that end in them.

        `recognize(data, start)` may name the end of whole lines that stand together from `start` on;
        they come back as one Run. It is asked wherever a line begins in `data`, and about a line that came in
        pieces once it is whole.
        """
        pieces: list[Piece] = []
        start, last = 0, len(data) - 1
        if (
            0 <= last <= RUN_LINE_BYTES
            and data.find(b"\n") == last
            and not self._pending
            and not self._skipping
        ):
            # One small line and nothing else: what comes when the peers wait for each other.
            if recognize is not None and last <= self._limit and recognize(data, 0) > last:
                pieces.append(Run(data))
            else:
                self._add(data[:last], pieces)
            return pieces
        if self._pending or self._skipping:
            cut = data.find(b"\n")
            if cut < 0:
                self._keep(data, pieces)
                return pieces
            self._keep(data[:cut], pieces)
            if self._skipping:
                self._skipping = False
            else:
                self._finish(bytes(self._pending), recognize, pieces)
            self._pending.clear()
            start = cut + 1
        if recognize is None or len(data) > self._limit:
            self._cut(data, start, pieces)
        else:
            self._cut_runs(data, start, recognize, pieces)
        return pieces

    def finish(self) -> bytes | None:
        """The stream has ended: the unfinished last line, if there is one."""
        rest = bytes(self._pending)
        self._pending.clear()
        self._skipping = False
        return rest if rest.strip() else None

    def _cut(self, data: bytes, start: int, pieces: list[Piece]) -> None:
        complete = data[start:].split(b"\n") if start else data.split(b"\n")
        rest = complete.pop()
        for line in complete:
            self._add(line, pieces)
        if rest:
            self._keep(rest, pieces)

    def _cut_runs(self, data: bytes, start: int, recognize: Recognize, pieces: list[Piece]) -> None:
        size = len(data)
        while start < size:
            # Looked for first: the beginning of a long line would be read in vain.
            cut = data.find(b"\n", start)
            if cut < 0:
                self._keep(data[start:] if start else data, pieces)
                return
            end = recognize(data, start) if cut - start <= RUN_LINE_BYTES else start
            if end > start:
                pieces.append(Run(data[start:end]))
                start = end
            else:
                self._add(data[start:cut], pieces)
                start = cut + 1

    def _finish(self, line: bytes, recognize: Recognize | None, pieces: list[Piece]) -> None:
        """Add a line that came in several pieces."""
        if recognize is not None and len(line) <= min(RUN_LINE_BYTES, self._limit):
            whole = line + b"\n"
            if recognize(whole, 0) == len(whole):
                pieces.append(Run(whole))
                return
        self._add(line, pieces)

    def _add(self, line: bytes, pieces: list[Piece]) -> None:
        if len(line) > self._limit:
            pieces.append(Oversize(line[:HEAD_BYTES]))
        elif line not in (b"", b"\r"):
            pieces.append(line)

    def _keep(self, piece: bytes, pieces: list[Piece]) -> None:
        """Hold a piece of an unfinished line, or give the line up when it is too long."""
        if self._skipping:
            return
        self._pending += piece
        if len(self._pending) > self._limit:
            self._skipping = True
            pieces.append(Oversize(bytes(self._pending[:HEAD_BYTES])))
            self._pending.clear()
