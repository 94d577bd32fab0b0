"""The last bytes of a command's output, as text (bridge §8, schema type TerminalOutputResponse)."""

from __future__ import annotations

import codecs

_decoder = codecs.getincrementaldecoder("utf-8")


class OutputTail:
    """Keeps the last `limit` bytes of what is added."""

    __slots__ = ("_kept", "_limit", "_total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """The command has put this out."""
        self._total += len(data)
        self._kept += data
        # Cut seldom: each time costs the copying of all that is kept.
        if len(self._kept) > 2 * self._limit:
            del self._kept[: len(self._kept) - self._limit]

    def text(self, *, complete: bool) -> tuple[str, bool]:
        """What is kept, begun with a whole character, and whether anything before it is missing.

        As UTF-8 the text is never longer than the limit. A character whose end may still come is left out
        while the output is not `complete`; bytes that are no UTF-8 become U+FFFD.
        """
        raw = self._kept[max(len(self._kept) - self._limit, 0) :]
        missing = self._total > len(raw)
        if missing:
            raw = raw[_first_whole(raw) :]
        text = _decoder("replace").decode(bytes(raw), complete)
        encoded = text.encode()
        if len(encoded) > self._limit:  # U+FFFD is three bytes where there was one
            encoded = encoded[len(encoded) - self._limit :]
            return encoded[_first_whole(encoded) :].decode(), True
        return text, missing


def _first_whole(data: bytes | bytearray) -> int:
    """Where the first character begins that is not cut off; at most three bytes are the rest of one."""
    for index, byte in enumerate(data[:4]):
        if byte & 0xC0 != 0x80:
            return index
    return 0 if len(data) > 3 else len(data)
