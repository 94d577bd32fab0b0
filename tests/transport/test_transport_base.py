"""Trio's errors become ours, and a transport made of memory streams keeps the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from transport_contract import Peer, check_transport

from acp_proxy.errors import PeerGoneError
from acp_proxy.transport.base import StreamTransport, Transport, peer_errors


@asynccontextmanager
async def memory_transport(peer: Peer) -> AsyncIterator[Transport]:
    """A transport over trio's memory streams; lockstep ones, for they make a writer wait."""
    near, far = trio.testing.lockstep_stream_pair()

    async def echo() -> None:
        async for data in far:
            await far.send_all(data)
        await far.send_eof()

    if peer == "gone":
        await far.aclose()
    async with trio.open_nursery() as nursery:
        if peer == "echo":
            nursery.start_soon(echo)
        yield StreamTransport(near.send_stream, near.receive_stream)
        nursery.cancel_scope.cancel()


async def test_the_contract_over_memory_streams() -> None:
    await check_transport(memory_transport)


@pytest.mark.parametrize(
    "foreign",
    [
        trio.BrokenResourceError(),
        trio.ClosedResourceError("closed"),
        BrokenPipeError(32, "Broken pipe"),
        OSError(5, "I/O"),
    ],
)
def test_the_edge_turns_broken_streams_into_a_gone_peer(foreign: Exception) -> None:
    with pytest.raises(PeerGoneError, match="the peer is gone") as caught, peer_errors():
        raise foreign
    assert caught.value.__cause__ is foreign


def test_the_edge_names_the_system_error_beneath_trios() -> None:
    with pytest.raises(PeerGoneError, match="No space left"), peer_errors():
        raise trio.BrokenResourceError from OSError(28, "No space left on device")


@pytest.mark.parametrize("mistake", [trio.BusyResourceError(), ValueError()])
def test_the_edge_lets_our_own_mistakes_pass(mistake: Exception) -> None:
    with pytest.raises(type(mistake)), peer_errors():
        raise mistake


async def test_repr_tells_the_state_in_words() -> None:
    near, _ = trio.testing.memory_stream_pair()
    transport = StreamTransport(near.send_stream, near.receive_stream)
    assert repr(transport) == "<StreamTransport open to writing, open to reading>"
    await transport.send_eof()
    assert repr(transport) == "<StreamTransport closed to writing, open to reading>"
    await transport.aclose()
    assert repr(transport) == "<StreamTransport closed to writing, at its end>"


async def test_why_nothing_can_be_written_is_told_again() -> None:
    near, far = trio.testing.memory_stream_pair()
    transport = StreamTransport(near.send_stream, near.receive_stream)
    await far.aclose()
    for _ in range(2):
        with pytest.raises(PeerGoneError, match="the peer is gone"):
            await transport.send_all(b"x")


class FullDisk(trio.abc.SendStream):
    """Fails once, and would then write on in the middle of a frame."""

    def __init__(self) -> None:
        self.written = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        half = len(data) if self.written else len(data) // 2
        self.written += bytes(data[:half])
        if half < len(data):
            raise OSError(28, "No space left on device")

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_nothing_follows_a_write_that_failed() -> None:
    sender = FullDisk()
    transport = StreamTransport(sender, trio.testing.MemoryReceiveStream())
    for _ in range(2):
        with pytest.raises(PeerGoneError, match="No space left"):
            await transport.send_all(b"frame\n")
    assert sender.written == b"fra"


async def test_a_write_that_was_broken_off_is_told_as_such() -> None:
    near, _ = trio.testing.lockstep_stream_pair()
    transport = StreamTransport(near.send_stream, near.receive_stream)
    with trio.move_on_after(0.01):
        await transport.send_all(b"x")
    with pytest.raises(PeerGoneError, match="an earlier write was broken off"):
        await transport.send_all(b"x")


async def test_our_own_end_is_told_as_such() -> None:
    near, _ = trio.testing.memory_stream_pair()
    transport = StreamTransport(near.send_stream, near.receive_stream)
    await transport.send_eof()
    with pytest.raises(PeerGoneError, match="our side of the stream is closed"):
        await transport.send_all(b"x")
