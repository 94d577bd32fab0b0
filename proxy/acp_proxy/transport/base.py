"""The contract of a byte stream to a peer, and the edge where trio's errors become ours.

A transport knows bytes only: where a message begins and ends is `jsonrpc.framing`'s business. Above this
module no trio error is ever seen: a peer that goes away is the end of the stream when reading, and
`PeerGoneError` when writing.
"""

from __future__ import annotations

import abc
import contextlib
import os
from collections.abc import Generator
from contextlib import contextmanager

import trio

from acp_proxy.errors import PeerGoneError

# A pipe holds 64 KiB by default and a socket a few hundred: one read takes all there is, so that hundreds of
# lines cost one wake-up.
RECEIVE_BYTES = 256 * 1024
# A read of less has most likely emptied the pipe.
SMALL_READ = 32 * 1024

OUR_SIDE_CLOSED = "our side of the stream is closed"


@contextmanager
def peer_errors() -> Generator[None]:
    """Turn the ways in which trio and the system report a broken stream into `PeerGoneError`.

    `trio.BusyResourceError` passes: two tasks in one direction are a mistake of ours, not of the peer.
    """
    try:
        yield
    except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
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
    async def send_all(self, data: bytes) -> None:
        """Write all of `data`, waiting as long as the peer does not read.

        Cancelling is terminal: how much was written is unknown, so every later call raises.

        Raises:
            PeerGoneError: the peer does not read any more, our side was closed (also by `send_eof` or
                `aclose` while we wait), or an earlier call was cancelled.
        """

    def send_now(self, data: bytes) -> int:
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
        self._sender = sender
        self._receiver = receiver
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
        try:
            with peer_errors():
                data = await self._next_after_a_wait() if self._emptied else None
                if data is None:
                    data = bytes(await self._receiver.receive_some(RECEIVE_BYTES))
        except PeerGoneError:
            data = b""
        self._at_end = not data
        self._emptied = len(data) < SMALL_READ
        return data

    async def _next_after_a_wait(self) -> bytes | None:
        """What comes next, when the last read took all there was; None when it is to be read the usual way.

        Waiting first spares a read that finds nothing, and reading right after it a turn of the scheduler.
        """
        if not isinstance(self._receiver, trio.lowlevel.FdStream):
            return None
        await trio.lowlevel.wait_readable(self._receiver.fileno())
        with contextlib.suppress(OSError):
            return os.read(self._receiver.fileno(), RECEIVE_BYTES)
        return None

    async def send_all(self, data: bytes) -> None:
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

    def send_now(self, data: bytes) -> int:
        """See `Transport.send_now`."""
        if self._cut is not None or not isinstance(self._sender, trio.lowlevel.FdStream):
            return 0
        with contextlib.suppress(OSError):
            return os.write(self._sender.fileno(), data)
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
