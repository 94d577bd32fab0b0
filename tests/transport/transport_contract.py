"""The contract test that every transport must pass, in terms of `Transport` alone.

`check_transport` gets a function that opens a transport to a peer of a given kind, as an async context
manager that also ends the peer:

- `echo` writes back what it reads, and closes when it reads the end;
- `deaf` never reads, and stays;
- `gone` has closed both sides, or does so at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal

import pytest
import trio
import trio.testing

from acp_proxy.errors import PeerGoneError
from acp_proxy.transport.base import Transport

Peer = Literal["echo", "deaf", "gone"]
OpenTransport = Callable[[Peer], AbstractAsyncContextManager[Transport]]

# More than any pipe or socket holds, so that it cannot be sent to a peer that does not read.
BULK = bytes(range(256)) * (16 * 1024)


async def check_transport(open_transport: OpenTransport) -> None:
    """Hold a transport to every sentence of the contract; a new transport is opened for each."""
    for peer, check in _CHECKS:
        async with open_transport(peer) as transport:
            await check(transport)


async def _receive_exactly(transport: Transport, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = await transport.receive_some()
        assert chunk, f"ended after {len(data)} of {size} bytes"
        assert len(chunk) <= 1024 * 1024
        data += chunk
    return data


async def _bytes_come_through_unchanged(transport: Transport) -> None:
    for message in (b"x", b"\n", bytes(range(256)), b"", b"after nothing"):
        await transport.send_all(message)
        assert await _receive_exactly(transport, len(message)) == message


async def _both_directions_at_once(transport: Transport) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send_all, BULK)
        assert await _receive_exactly(transport, len(BULK)) == BULK


async def _end_is_sent_once_and_reading_goes_on(transport: Transport) -> None:
    await transport.send_all(b"last words")
    await transport.send_eof()
    await transport.send_eof()
    assert await _receive_exactly(transport, 10) == b"last words"
    assert await transport.receive_some() == b""
    assert await transport.receive_some() == b""
    with pytest.raises(PeerGoneError):
        await transport.send_all(b"more")
    with pytest.raises(PeerGoneError):
        await transport.send_all(b"")


async def _closed_is_closed(transport: Transport) -> None:
    await transport.aclose()
    await transport.aclose()
    await transport.send_eof()
    assert await transport.receive_some() == b""
    with pytest.raises(PeerGoneError):
        await transport.send_all(b"x")


async def _closing_wakes_the_reader(transport: Transport) -> None:
    received: list[bytes] = []

    async def read() -> None:
        received.append(await transport.receive_some())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await transport.aclose()
    assert received == [b""]


async def _closing_wakes_the_writer(transport: Transport) -> None:
    async def write() -> None:
        with pytest.raises(PeerGoneError):
            await transport.send_all(BULK)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await transport.aclose()


async def _closing_is_done_although_cancelled(transport: Transport) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await transport.aclose()
    assert await transport.receive_some() == b""
    with pytest.raises(PeerGoneError):
        await transport.send_all(b"x")


async def _a_cancelled_receive_loses_nothing(transport: Transport) -> None:
    for number in range(10):
        with trio.move_on_after(0.01) as scope:
            await transport.receive_some()
        assert scope.cancelled_caught
        message = b"message %d" % number
        await transport.send_all(message)
        received = b""
        for delay in (0, 0.001, 0.002):
            with trio.move_on_after(delay):
                received += await transport.receive_some()
        received += await _receive_exactly(transport, len(message) - len(received))
        assert received == message


async def _a_cancelled_send_is_the_last(transport: Transport) -> None:
    with trio.move_on_after(0.1) as scope:
        await transport.send_all(BULK)
    assert scope.cancelled_caught
    with pytest.raises(PeerGoneError):
        await transport.send_all(b"x")


async def _a_second_writer_is_our_mistake(transport: Transport) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send_all, BULK)
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.BusyResourceError):
            await transport.send_all(b"x")
        nursery.cancel_scope.cancel()


async def _a_second_reader_is_our_mistake(transport: Transport) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.receive_some)
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.BusyResourceError):
            await transport.receive_some()
        nursery.cancel_scope.cancel()


async def _a_gone_peer_is_an_end_and_an_error(transport: Transport) -> None:
    assert await transport.receive_some() == b""
    with pytest.raises(PeerGoneError):
        await transport.send_all(BULK)
    with pytest.raises(PeerGoneError):
        await transport.send_all(b"x")
    await transport.send_eof()


_CHECKS: list[tuple[Peer, Callable[[Transport], Awaitable[None]]]] = [
    ("echo", _bytes_come_through_unchanged),
    ("echo", _both_directions_at_once),
    ("echo", _end_is_sent_once_and_reading_goes_on),
    ("echo", _closed_is_closed),
    ("echo", _closing_wakes_the_reader),
    ("deaf", _closing_wakes_the_writer),
    ("echo", _closing_is_done_although_cancelled),
    ("echo", _a_cancelled_receive_loses_nothing),
    ("deaf", _a_cancelled_send_is_the_last),
    ("deaf", _a_second_writer_is_our_mistake),
    ("echo", _a_second_reader_is_our_mistake),
    ("gone", _a_gone_peer_is_an_end_and_an_error),
]
