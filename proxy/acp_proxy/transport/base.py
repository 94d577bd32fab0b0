"""The contract of a byte stream to a peer, and the edge where trio's errors become ours.

A transport knows bytes only: where a message begins and ends is `jsonrpc.framing`'s business. Above this
module no trio error is ever seen: a peer that goes away is the end of the stream when reading, and
`PeerGoneError` when writing.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

import trio

from acp_proxy.errors import PeerGoneError

# A pipe holds 64 KiB by default and a socket a few hundred: one read takes all there is, so that hundreds of
# lines cost one wake-up.
RECEIVE_BYTES = 256 * 1024
# A read of less has most likely emptied the pipe, and the next asks for less: what a read may return is set
# aside before it, and above the allocator's 128 KiB that is a system call and page faults each time.
SMALL_READ = 32 * 1024
FIRST_BYTES = 64 * 1024

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)

OUR_SIDE_CLOSED = "our side of the stream is closed"


@contextmanager
def peer_errors() -> Generator[None]:
    """Turn the ways in which trio and the system report a broken stream into `PeerGoneError`.

    `trio.BusyResourceError` passes: two tasks in one direction are a mistake of ours, not of the peer.
    """
    try:
        yield
    except _BROKEN as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise PeerGoneError(f"the peer is gone: {cause}" if str(cause) else "the peer is gone") from error


class Transport(abc.ABC):
    """A byte stream to one peer, in both directions.

    One task may read while another writes; two tasks in the same direction are an error of the caller
    (`trio.BusyResourceError`). Every method is a trio checkpoint unless it says otherwise.
    """

    @abc.abstractmethod
    async def receive_some(self) -> bytes:
        """Return the next bytes from the peer, as many as are at hand (at most 1 MiB).

        `b""` is the end of the stream, and stays so: the peer closed its side, the stream broke, or
        `aclose` was called, also while we wait. Cancelled, it loses no bytes.

        Raises nothing of its own; a broken stream is an end like any other.
        """

    @abc.abstractmethod
    async def send_all(self, data: bytes | memoryview) -> None:
        """Write all of `data`, waiting as long as the peer does not read.

        Cancelling is terminal: how much was written is unknown, so every later call raises.

        Raises:
            PeerGoneError: the peer does not read any more, our side was closed (also by `send_eof` or
                `aclose` while we wait), or an earlier call was cancelled.
        """

    def send_now(self, data: bytes | memoryview) -> int:
        """Write what the system takes of `data` at once, and return how many bytes that was.

        Not a checkpoint; for a caller that has no `send_all` under way. 0 when nothing could be written
        without waiting, also when the peer is gone: `send_all` tells.
        """
        return 0

    @abc.abstractmethod
    async def send_eof(self) -> None:
        """Close our writing side, so that the peer reads an end; reading goes on.

        Harmless when called again, when the peer is gone and after `aclose`. Cancelled, the side is closed
        nevertheless. Raises nothing of its own.
        """

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close both directions and release what they hold.

        Harmless when called again. Cancelled, everything is closed nevertheless, without more courtesy to the
        peer than a subclass promises. Raises nothing of its own.
        """


class StreamTransport(Transport):
    """A transport made of a trio stream for each direction.

    Both streams belong to it from then on. It adds what the contract asks beyond trio: an end that is a
    value, sends that are over once cancelled, and one error.
    """

    def __init__(self, sender: trio.abc.SendStream, receiver: trio.abc.ReceiveStream) -> None:
        """A receiver with a `fileno()` is one whose descriptor trio can wait for, and gives -1 once closed."""
        self._sender = sender
        self._receiver = receiver
        self._fileno: Callable[[], int] | None = getattr(receiver, "fileno", None)
        self._cut: str | None = None  # why nothing can be written any more
        self._at_end = False
        self._emptied = False

    def __repr__(self) -> str:
        writing = "closed to writing" if self._cut is not None else "open to writing"
        return f"<{type(self).__name__} {writing}, {'at its end' if self._at_end else 'open to reading'}>"

    async def receive_some(self) -> bytes:
        """See `Transport.receive_some`."""
        if self._at_end:
            await trio.lowlevel.checkpoint()
            return b""
        data: bytes | None = None
        try:
            if self._emptied and self._fileno is not None:
                # Waiting first spares a read that finds nothing, and reading right after it a turn of the
                # scheduler.
                await trio.lowlevel.wait_readable(self._fileno())
                try:
                    data = os.read(self._fileno(), FIRST_BYTES)
                except OSError:
                    data = None  # somebody was faster, or the stream is to say what is wrong
            if data is None:
                most = FIRST_BYTES if self._emptied else RECEIVE_BYTES
                data = bytes(await self._receiver.receive_some(most))
        except _BROKEN:
            data = b""
        self._at_end = not data
        self._emptied = len(data) < SMALL_READ
        return data

    async def send_all(self, data: bytes | memoryview) -> None:
        """See `Transport.send_all`."""
        if self._cut is not None:
            await trio.lowlevel.checkpoint()
            raise PeerGoneError(self._cut)
        try:
            with peer_errors():
                await self._sender.send_all(data)
        except trio.BusyResourceError:
            raise
        except PeerGoneError as error:
            self._cut = self._cut or str(error)
            raise
        except BaseException:
            self._cut = "an earlier write was broken off"
            raise

    def send_now(self, data: bytes | memoryview) -> int:
        """See `Transport.send_now`."""
        if self._cut is not None or type(self._sender) is not trio.lowlevel.FdStream:
            return 0
        try:
            return os.write(self._sender.fileno(), data)
        except OSError:
            return 0

    async def send_eof(self) -> None:
        """See `Transport.send_eof`."""
        self._cut = self._cut or OUR_SIDE_CLOSED
        await self._sender.aclose()

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        self._cut = self._cut or OUR_SIDE_CLOSED
        self._at_end = True
        try:
            await self._sender.aclose()
        finally:
            await self._receiver.aclose()
