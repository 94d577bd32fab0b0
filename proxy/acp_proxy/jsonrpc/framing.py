"""Cuts a byte stream into lines at 0x0A alone, whatever the chunks it comes in.

U+2028, form feeds and lone carriage returns stand inside JSON or beside it and cut nothing.
A line over the limit is reported once, as soon as it is known to be too long, with its first
bytes; the stream goes on at the next line feed.
"""

from __future__ import annotations

HEAD_BYTES = 4096


class Oversize:
    """A line longer than the limit: its beginning only, the rest was skipped."""

    __slots__ = ("head",)

    def __init__(self, head: bytes) -> None:
        self.head = head


class LineSplitter:
    """Keeps every byte between line feeds; blank lines are skipped, carriage returns kept."""

    def __init__(self, limit: int) -> None:
        """`limit` is the longest accepted line in bytes, the line feed not counted."""
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """Take the next bytes of the stream; return the lines that end in them."""
        lines: list[bytes | Oversize] = []
        cut = data.find(b"\n")
        if cut < 0:
            self._keep(data, lines)
            return lines
        if self._parts or self._skipping:
            self._keep(data[:cut], lines)
            if self._skipping:
                self._skipping = False
            else:
                lines.append(b"".join(self._parts))
            self._parts.clear()
            self._size = 0
            data = data[cut + 1 :]
        complete = data.split(b"\n")
        rest = complete.pop()
        if len(data) > self._limit:
            lines.extend(
                line if len(line) <= self._limit else Oversize(line[:HEAD_BYTES]) for line in complete
            )
        else:
            lines.extend(complete)
        if rest:
            self._keep(rest, lines)
        if b"" in lines or b"\r" in lines:
            return [line for line in lines if line not in (b"", b"\r")]
        return lines

    def finish(self) -> bytes | None:
        """The stream has ended: the unfinished last line, if there is one."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._skipping = False
        return rest if rest.strip() else None

    def _keep(self, piece: bytes, lines: list[bytes | Oversize]) -> None:
        """Hold a piece of an unfinished line, or give the line up when it is too long."""
        if self._skipping:
            return
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._skipping = True
            lines.append(Oversize(b"".join(self._parts)[:HEAD_BYTES]))
            self._parts.clear()
            self._size = 0
