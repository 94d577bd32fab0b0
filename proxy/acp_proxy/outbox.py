"""What waits to be written to one leg: byte-counted, written by one task in few pieces.

No delay is added: whatever has come together while the last write was under way leaves with the
next one. A reader of the other leg waits while too much is here (backpressure); what is put here
never waits, so an answer or a cancel is not stuck behind a reader that pauses.

Small frames leave together, a large one by itself: joining it with others would copy it, into
memory that the system must hand out anew each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import trio

from acp_proxy.errors import PeerGoneError
from acp_proxy.transport.base import Transport

HIGH_WATER: Final = 1 << 20
PIECE: Final = 64 * 1024
"""What a pipe holds: more in one piece would be cut by the system, and copied for nothing."""


class Outbox:
    """The queue of one leg; `put`, `flush` and `close` are synchronous, one task runs `serve`."""

    __slots__ = (
        "_closing",
        "_feed_owed",
        "_idle",
        "_news",
        "_rest",
        "_room",
        "_transport",
        "done",
        "failed",
        "size",
        "waiting",
    )

    def __init__(self) -> None:
        self.size = 0
        self.failed = False
        self.done = trio.Event()
        self._transport: Transport | None = None
        self.waiting: deque[bytes] = deque()
        self._feed_owed = False
        self._rest: bytes | memoryview = b""
        self._idle = False
        self._closing = False
        self._news = trio.Event()
        self._room = trio.lowlevel.ParkingLot()

    def put(self, frames: Sequence[bytes]) -> None:
        """Add frames, a line feed to follow each; ignored once closed or when the peer is gone."""
        if self._closing or self.failed:
            return
        self.waiting += frames
        self.size += sum(map(len, frames)) + len(frames)

    def flush(self) -> None:
        """Write what is `waiting`: at once as far as the system takes it, which spares two task switches."""
        if not self._idle:
            self._news.set()
            return
        assert self._transport is not None
        while self.waiting or self._feed_owed:
            piece = self._piece()
            sent = self._transport.send_now(piece)
            self.size -= sent
            if sent < len(piece):
                self._rest = memoryview(piece)[sent:] if sent else piece
                self._idle = False
                self._news.set()
                return

    def close(self) -> None:
        """Nothing more will be put; the peer is told once everything is written."""
        self._closing = True
        self._news.set()

    async def room(self) -> None:
        """Wait until there is not too much here; several may wait."""
        while self.size > HIGH_WATER and not self.failed:
            await self._room.park()

    async def serve(self, transport: Transport) -> None:
        """Write what is put, until closed or the peer is gone."""
        self._transport = transport
        try:
            while True:
                if not (self.waiting or self._feed_owed or self._rest):
                    if self._closing:
                        break
                    self._news = trio.Event()
                    # Whoever leaves something to be written clears this before the task has woken up.
                    self._idle = True
                    await self._news.wait()
                    continue
                self._idle = False
                data, self._rest = self._rest or self._piece(), b""
                await transport.send_all(data)
                self.size -= len(data)
                self._room.unpark_all()
            await transport.send_eof()
        except PeerGoneError:
            self.failed = True
            self.waiting.clear()
            self.size = 0
            self._room.unpark_all()
        finally:
            self._idle = False
            self.done.set()

    def _piece(self) -> bytes:
        """What is to be written next: whole frames; the line feed of a large one may stand before the next."""
        waiting = self.waiting
        frames: list[bytes] = []
        if self._feed_owed:
            frames.append(b"")
            self._feed_owed = False
        elif len(waiting[0]) >= PIECE:
            self._feed_owed = True
            return waiting.popleft()
        size = 0
        while waiting and size < PIECE and len(waiting[0]) < PIECE:
            frame = waiting.popleft()
            frames.append(frame)
            size += len(frame)
        frames.append(b"")
        return b"\n".join(frames)
