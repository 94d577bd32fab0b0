"""What waits to be written to one leg: byte-counted, written by one task in one piece.

No delay is added: whatever has come together while the last write was under way leaves with the
next one. A reader of the other leg waits while too much is here (backpressure); what is put here
never waits, so an answer or a cancel is not stuck behind a reader that pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from acp_proxy.errors import PeerGoneError
from acp_proxy.transport.base import Transport

HIGH_WATER: Final = 1 << 20


class Outbox:
    """The queue of one leg; `put` and `close` are synchronous, one task runs `serve`."""

    __slots__ = ("_closing", "_frames", "_news", "_room", "done", "failed", "size")

    def __init__(self) -> None:
        self.size = 0
        self.failed = False
        self.done = trio.Event()
        self._frames: list[bytes] = []
        self._closing = False
        self._news = trio.Event()
        self._room = trio.Event()

    def put(self, frames: Sequence[bytes]) -> None:
        """Add frames, a line feed to follow each; ignored once closed or when the peer is gone."""
        if self._closing or self.failed:
            return
        self._frames += frames
        self.size += sum(map(len, frames))
        self._news.set()

    def close(self) -> None:
        """Nothing more will be put; the peer is told once everything is written."""
        self._closing = True
        self._news.set()

    async def room(self) -> None:
        """Wait until there is not too much here."""
        while self.size > HIGH_WATER and not self.failed:
            self._room = trio.Event()
            await self._room.wait()

    async def serve(self, transport: Transport) -> None:
        """Write what is put, until closed or the peer is gone."""
        try:
            while True:
                if not self._frames:
                    if self._closing:
                        break
                    self._news = trio.Event()
                    await self._news.wait()
                    continue
                frames, self._frames = self._frames, []
                size, self.size = self.size, 0
                frames.append(b"")
                data = b"\n".join(frames)
                self.size += size
                await transport.send_all(data)
                self.size -= size
                self._room.set()
            await transport.send_eof()
        except PeerGoneError:
            self.failed = True
            self._frames.clear()
            self.size = 0
            self._room.set()
        finally:
            self.done.set()
