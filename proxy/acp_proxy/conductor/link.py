"""One stream to a conductor as two transports: its client, and the agent that is our successor.

The runner sees a client and an agent as always. The successor is no process of ours: it ends when the
conductor hangs up, and ending it is the conductor's business.
"""

from __future__ import annotations

import math

import trio

from acp_proxy.acp.version import Role
from acp_proxy.conductor.envelopes import Envelopes
from acp_proxy.jsonrpc.framing import LineSplitter, Oversize
from acp_proxy.transport.agent_command import ExitStatus
from acp_proxy.transport.agent_leg import AgentLeg
from acp_proxy.transport.base import Transport


class Side(Transport):
    """One leg of the link."""

    def __init__(self, link: Link, leg: Role) -> None:
        self._link = link
        self._leg = leg
        self._put, self._got = trio.open_memory_channel[bytes](math.inf)

    async def receive_some(self) -> bytes:
        """See `Transport.receive_some`."""
        try:
            first = await self._got.receive()
        except trio.EndOfChannel:
            return b""
        lines = [first]
        while True:
            try:
                lines.append(self._got.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                return b"\n".join([*lines, b""])

    async def send_all(self, data: bytes | memoryview) -> None:
        """See `Transport.send_all`; whole lines, as the outbox writes them where nothing can be sent at once."""
        await self._link.send(self._leg, bytes(data))

    async def send_eof(self) -> None:
        """Nothing to tell: the stream is shared, and ends with the proxy."""

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        self.end()

    def take(self, line: bytes) -> None:
        """A line has come for this leg."""
        self._put.send_nowait(line)

    def end(self) -> None:
        """Nothing more will come for this leg."""
        self._put.close()


class Successor(Side, AgentLeg):
    """The agent's leg, with what the runner asks of an agent process."""

    async def wait(self) -> ExitStatus:
        """The successor's process is not ours to see end."""
        await trio.sleep_forever()
        raise AssertionError("sleeping for ever ended")

    async def receive_rest(self) -> bytes:
        """Nothing is left behind: lines are handed over as they come."""
        return b""

    def stderr_tail(self) -> list[str]:
        """Its stderr is the conductor's."""
        return []

    def hand_over(self) -> None:
        """Nothing to hand over."""

    async def shut_down(self) -> None:
        """Ending it is the conductor's business."""

    async def terminate_now(self) -> None:
        """Ending it is the conductor's business."""

    async def kill(self) -> None:
        """Ending it is the conductor's business."""


class Link:
    """Reads the conductor's stream and deals its lines out; one task runs `serve`."""

    def __init__(self, transport: Transport, limit: int) -> None:
        self.client = Side(self, Role.CLIENT)
        self.agent = Successor(self, Role.AGENT)
        self._transport = transport
        self._limit = limit
        self._envelopes = Envelopes()
        self._writing = trio.Lock()

    async def serve(self) -> None:
        """Deal out lines until the conductor hangs up; then both legs are at their end.

        A line over the limit has no place on either leg and is left out.
        """
        splitter = LineSplitter(self._limit)
        while data := await self._transport.receive_some():
            for piece in splitter.feed(data):
                if isinstance(piece, Oversize):
                    continue
                assert isinstance(piece, bytes)
                self._deal(piece)
        rest = splitter.finish()
        if rest is not None:
            self._deal(rest)
        # The client first: it is the client's leaving that ends us, with status 0.
        self.client.end()

    def _deal(self, line: bytes) -> None:
        leg, inner = self._envelopes.apart(line)
        (self.client if leg is Role.CLIENT else self.agent).take(inner)

    async def send(self, leg: Role, data: bytes) -> None:
        """Write lines of a leg to the conductor. Raises PeerGoneError as the transport does."""
        lines = [self._envelopes.together(leg, line) for line in data.split(b"\n") if line]
        out = b"".join(line + b"\n" for line in lines if line is not None)
        async with self._writing:
            await self._transport.send_all(out)
