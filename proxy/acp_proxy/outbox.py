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
    """The queue of one leg; `put`, `flush` and `close` are synchronous, one task runs `serve`."""

    __slots__ = (
        "_closing",
        "_frames",
        "_idle",
        "_news",
        "_rest",
        "_room",
        "_transport",
        "done",
        "failed",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self.failed = False
        self.done = trio.Event()
        self._transport: Transport | None = None
        self._frames: list[bytes] = []
        self._rest = b""
        self._idle = False
        self._closing = False
        self._news = trio.Event()
        self._room = trio.Event()

    def put(self, frames: Sequence[bytes]) -> None:
        """Add frames, a line feed to follow each; ignored once closed or when the peer is gone."""
        if self._closing or self.failed:
            return
        self._frames += frames
        self.size += sum(map(len, frames))

    def flush(self) -> None:
        """Write what was put: at once as far as the system takes it, which spares two task switches."""
        if not self._frames:
            return
        if self._idle:
            assert self._transport is not None
            data = self._take()
            self._rest = data[self._transport.send_now(data) :]
            self.size = len(self._rest)
            if not self._rest:
                return
            self._idle = False
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
        self._transport = transport
        try:
            while True:
                if not self._frames and not self._rest:
                    if self._closing:
                        break
                    self._news = trio.Event()
                    # Whoever leaves something to be written clears this before the task has woken up.
                    self._idle = True
                    await self._news.wait()
                    continue
                self._idle = False
                data, self._rest = self._rest or self._take(), b""
                await transport.send_all(data)
                self.size -= len(data)
                self._room.set()
            await transport.send_eof()
        except PeerGoneError:
            self.failed = True
            self._frames.clear()
            self.size = 0
            self._room.set()
        finally:
            self._idle = False
            self.done.set()

    def _take(self) -> bytes:
        """All frames as one piece of bytes; the size counts their line feeds from here on."""
        frames, self._frames = self._frames, []
        self.size += len(frames)
        frames.append(b"")
        return b"\n".join(frames)
