"""The client on our own standard input and output.

Three things make standard streams unlike other pipes. They may be anything: pipe, socket, terminal, regular
file, null device; epoll takes only the first two for certain, so the rest is served by worker threads. Their
open file description may be shared, with our standard error or with the shell that started us, and O_NONBLOCK
is a property of the description: it is set only on a writing side that standard error does not share, never
for reading, and never on a terminal. And anybody may write to descriptor 1: it is taken away first.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock

import trio

from acp_proxy.transport.base import StreamTransport, Transport

STDIN, STDOUT, STDERR = 0, 1, 2


def open_stdio() -> Transport:
    """Take over the process's standard input and output and return them as a transport.

    To be called once, before anything else may use them. Afterwards descriptor 0 is the null device and
    descriptor 1 a second standard error, `sys.stdout` included: a stray `print`, a library or a child process
    can neither eat the protocol nor spoil it. A stream that was closed when we were started is at its end.

    Where both are the same socket (as under inetd), the peer sees our end at `aclose`, not at `send_eof`.
    """
    # One that was closed at the start is not touched: its number may be trio's or a log file's by now. The
    # null device opened for reading is at its end at once, and cannot be written.
    nothing = partial(os.open, os.devnull, os.O_RDONLY)
    stdin = nothing() if sys.__stdin__ is None else _take(STDIN, os.O_RDONLY, None)
    errors = None if sys.__stderr__ is None else STDERR
    stdout = nothing() if sys.__stdout__ is None else _take(STDOUT, os.O_WRONLY, errors)
    if sys.stdout is not None and sys.stdout is not sys.stderr:
        # What was printed before the protocol began goes where all other text goes.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
    sys.stdout = sys.stderr
    return over_descriptors(stdin, stdout)


def over_descriptors(stdin: int, stdout: int) -> Transport:
    """Return a transport over two descriptors, which it owns from then on.

    Either may be a file of any type; blocking and non-blocking descriptions are both served.
    """
    reader = _PolledReader(stdin) if _pollable(stdin) else _ThreadedReader(stdin)
    # FdStream remembers whether the description was blocking, and restores it when closed or collected.
    writer = (
        trio.lowlevel.FdStream(stdout)
        if sys.platform != "win32" and _pollable(stdout) and not _same_description(stdout, STDERR)
        else _ThreadedWriter(stdout)
    )
    return StreamTransport(writer, reader)


def _take(standard: int, mode: int, stands_in: int | None) -> int:
    """Move a standard descriptor out of everybody's reach and return where it is now.

    `stands_in` replaces it, the null device if None.
    """
    taken = os.dup(standard)
    null = os.open(os.devnull, mode)
    os.dup2(null if stands_in is None else stands_in, standard)
    os.close(null)
    return taken


def _pollable(fd: int) -> bool:
    """Whether trio can wait for this descriptor on every system we know.

    Terminals could be polled on Linux; they are left to threads, since a person types slowly and their
    description always belongs to the shell as well.
    """
    mode = os.fstat(fd).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _same_description(one: int, other: int) -> bool:
    """Whether two descriptors are copies of each other, so that O_NONBLOCK on one is set on both.

    Found by trying: comparing device and inode would call the two ends of a pipe the same, and kcmp(2) is
    not everywhere allowed.
    """
    try:
        before = os.get_blocking(one)
        if os.get_blocking(other) != before:
            return False
        os.set_blocking(one, not before)
        try:
            return os.get_blocking(other) != before
        finally:
            os.set_blocking(one, before)
    except OSError:
        return False


class _PolledReader(trio.abc.ReceiveStream):
    """Reads a descriptor when the system says it is readable, blocking or not.

    FdStream would read first and wait then, for which it needs O_NONBLOCK; asking first costs the same and
    leaves a description alone that is not ours only.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """The descriptor, -1 once closed."""
        return self._fd

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what is there, `b""` at the end; OSError when the stream broke or was closed."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            with contextlib.suppress(BlockingIOError):
                return os.read(self._fd, max_bytes or 65536)

    async def aclose(self) -> None:
        """Close the descriptor and wake the reader."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            trio.lowlevel.notify_closing(fd)
            os.close(fd)
        await trio.lowlevel.checkpoint()


class _Threaded:
    """A descriptor used by worker threads that may be left behind in a system call.

    A thread cannot be stopped, so its descriptor's number must not fall to another file while it may still be
    used: then the null device takes its place instead of a close.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._closed = False
        self._call: trio.CancelScope | None = None
        self._left_behind = False

    async def aclose(self) -> None:
        """Close the descriptor, or make it harmless, and wake who waits for it."""
        if not self._closed:
            self._closed = True
            if self._call is not None:
                self._left_behind = True
                self._call.cancel()
            if self._left_behind:
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, self._fd, inheritable=False)
                os.close(null)
            else:
                os.close(self._fd)
        await trio.lowlevel.checkpoint()

    async def _in_thread(self, call: Callable[[], None]) -> None:
        self._check_open()
        if self._call is not None:
            raise trio.BusyResourceError("another task uses this descriptor")
        with trio.CancelScope() as self._call:
            try:
                await trio.to_thread.run_sync(call, abandon_on_cancel=True)
            except trio.Cancelled:
                self._left_behind = True
                raise
            finally:
                self._call = None
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("the descriptor was closed")


class _ThreadedReader(_Threaded, trio.abc.ReceiveStream):
    """Reads any descriptor in a worker thread; what one left behind reads later, the next call returns."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._kept: deque[bytes] = deque()
        self._turn = Lock()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what is there, `b""` at the end; OSError when the descriptor cannot be read."""
        await self._in_thread(partial(self._read, max_bytes or 65536))
        return self._kept.popleft()

    def _read(self, max_bytes: int) -> None:
        with self._turn:
            while not self._kept and not self._closed:
                try:
                    self._kept.append(os.read(self._fd, max_bytes))
                except BlockingIOError:
                    _block_until(self._fd, select.POLLIN)


class _ThreadedWriter(_Threaded, trio.abc.SendStream):
    """Writes any descriptor in a worker thread."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`; OSError when the descriptor cannot be written."""
        await self._in_thread(partial(self._write, bytes(data)))

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once: a thread may wait without anybody's harm."""
        self._check_open()
        await trio.lowlevel.checkpoint()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._closed:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                _block_until(self._fd, select.POLLOUT)


def _block_until(fd: int, event: int) -> None:
    """Wait in this thread for a descriptor which somebody else has made non-blocking."""
    poll = select.poll()
    poll.register(fd, event)
    poll.poll()
