"""Standard streams of every type: the contract in-process, `open_stdio` in processes of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import socket
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from transport_contract import OpenTransport, Peer, check_transport

from acp_proxy.transport import stdio
from acp_proxy.transport.base import StreamTransport, Transport

# Echoes, with strays by every way there is to standard output, and notes to standard error.
ECHOING_PROXY = """
import os, subprocess, sys, trio
from acp_proxy.transport.stdio import open_stdio

async def main():
    if not sys.stdout.isatty():
        print("early stray")
    client = open_stdio()
    print("stray by print")
    os.write(1, b"stray by descriptor\\n")
    child = "import sys; print('stray of a child'); sys.stdin.read()"
    subprocess.run([sys.executable, "-S", "-E", "-c", child])
    while data := await client.receive_some():
        sys.stderr.write("note\\n" * int(os.environ.get("NOTES", "1")))
        await client.send_all(data)
    await client.aclose()

trio.run(main)
"""

# Reads without ever getting anything, and must end nevertheless.
WAITING_PROXY = """
import sys, trio
from acp_proxy.transport.stdio import open_stdio

async def main():
    client = open_stdio()
    with trio.move_on_after(0.1):
        await client.receive_some()
    await client.aclose()
    sys.stderr.write("ended\\n")

trio.run(main)
"""

STRAYS = "early stray\nstray by print\nstray by descriptor\nstray of a child\n"


def environment(**more: str) -> dict[str, str]:
    """Ours, but with a standard output that keeps what is printed, as it is for users."""
    return {name: value for name, value in {**os.environ, **more}.items() if name != "PYTHONUNBUFFERED"}


@contextmanager
def running_proxy(code: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A proxy that does not outlive a test that failed."""
    with subprocess.Popen([sys.executable, "-c", code], **{"env": environment(), **options}) as proxy:
        try:
            yield proxy
        finally:
            proxy.kill()


def run_proxy(code: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code], timeout=30, check=True, env=environment(), **options)


def pipes() -> tuple[int, int]:
    return os.pipe()


def sockets() -> tuple[int, int]:
    reader, writer = socket.socketpair()
    return reader.detach(), writer.detach()


def opener(channel: Callable[[], tuple[int, int]]) -> OpenTransport:
    """Transports whose two directions are each such a channel, given as its reading and its writing end."""

    @asynccontextmanager
    async def open_transport(peer: Peer) -> AsyncIterator[Transport]:
        stdin, peer_writes = channel()
        peer_reads, stdout = channel()
        transport = stdio.over_descriptors(stdin, stdout)
        reader, writer = trio.lowlevel.FdStream(peer_reads), trio.lowlevel.FdStream(peer_writes)

        async def echo() -> None:
            async for data in reader:
                await writer.send_all(data)
            await writer.aclose()

        if peer == "gone":
            await reader.aclose()
            await writer.aclose()
        async with trio.open_nursery() as nursery:
            if peer == "echo":
                nursery.start_soon(echo)
            yield transport
            nursery.cancel_scope.cancel()
        await transport.aclose()
        await reader.aclose()
        await writer.aclose()

    return open_transport


@pytest.mark.parametrize("channel", [pipes, sockets])
async def test_the_contract_over_descriptors_that_can_be_polled(
    channel: Callable[[], tuple[int, int]],
) -> None:
    await check_transport(opener(channel))


async def test_the_contract_over_descriptors_that_need_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_pollable", lambda fd: False)
    await check_transport(opener(pipes))


async def test_threads_serve_descriptors_that_somebody_made_non_blocking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def non_blocking_pipes() -> tuple[int, int]:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        return reader, writer

    monkeypatch.setattr(stdio, "_pollable", lambda fd: False)
    await check_transport(opener(non_blocking_pipes))


async def test_the_number_of_a_descriptor_left_to_a_thread_is_not_given_to_another_file() -> None:
    reader, writer = os.pipe()
    transport = StreamTransport(stdio._ThreadedWriter(writer), stdio._ThreadedReader(os.dup(reader)))
    with trio.move_on_after(0.05) as scope:
        await transport.send_all(bytes(2**20))
    assert scope.cancelled_caught
    await transport.aclose()
    later = os.open(os.devnull, os.O_RDONLY)
    assert later != writer
    assert os.fstat(writer).st_rdev == os.fstat(later).st_rdev
    os.close(later)
    os.close(reader)  # ends the thread


async def test_a_writing_side_is_blocking_again_when_closed() -> None:
    reader, writer = os.pipe()
    shared = os.dup(writer)
    transport = stdio.over_descriptors(os.dup(reader), writer)
    assert not os.get_blocking(shared)
    await transport.aclose()
    assert os.get_blocking(shared)
    os.close(shared)
    os.close(reader)


async def test_a_reading_side_is_never_made_non_blocking() -> None:
    reader, writer = os.pipe()
    shared = os.dup(reader)
    transport = stdio.over_descriptors(reader, os.open(os.devnull, os.O_WRONLY))
    assert os.get_blocking(shared)
    os.write(writer, b"x")
    assert await transport.receive_some() == b"x"
    await transport.aclose()
    os.close(shared)
    os.close(writer)


def test_pipes_carry_the_protocol_and_nothing_else() -> None:
    done = run_proxy(ECHOING_PROXY, input=b"frame\n" * 100_000, capture_output=True)
    assert done.stdout == b"frame\n" * 100_000
    assert done.stderr.decode().replace("note\n", "") == STRAYS


def test_regular_files(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "in").write_bytes(content)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        run_proxy(ECHOING_PROXY, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL)
    assert (tmp_path / "out").read_bytes() == content


def test_the_null_device() -> None:
    done = run_proxy(
        ECHOING_PROXY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert done.stderr.decode().count("stray") == 4


def test_sockets_as_node_gives_them() -> None:
    ours, theirs = zip(*(socket.socketpair() for _ in range(2)), strict=True)
    with running_proxy(ECHOING_PROXY, stdin=theirs[0], stdout=theirs[1], stderr=subprocess.DEVNULL) as proxy:
        ours[0].sendall(b"frame\n")
        assert ours[1].recv(100) == b"frame\n"
        ours[0].shutdown(socket.SHUT_WR)
        assert proxy.wait(30) == 0
    assert os.get_blocking(theirs[1].fileno())
    for end in (*ours, *theirs):
        end.close()


def unread_in(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_one_pipe_for_output_and_diagnostics_stays_blocking() -> None:
    reader, writer = os.pipe()
    with running_proxy(
        ECHOING_PROXY, stdin=subprocess.PIPE, stdout=writer, stderr=writer, env=environment(NOTES="20000")
    ) as proxy:
        assert proxy.stdin is not None
        proxy.stdin.write(b"frame\n")
        proxy.stdin.close()
        # The notes are more than the pipe holds: a write that does not wait must fail.
        while unread_in(reader) < 32_000:
            time.sleep(0.01)
        blocking = os.get_blocking(writer)
        os.close(writer)
        with open(reader, "rb") as output:
            text = output.read()
        assert proxy.wait(30) == 0
    assert blocking
    assert text.count(b"note\n") == 20000
    assert text.count(b"frame\n") == 1
    assert b"Error" not in text


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal's far and near end, without echo and without changes to what is written."""
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    yield master, slave
    os.close(master)
    os.close(slave)


def test_a_terminal_is_served_and_left_as_it_was(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    with running_proxy(ECHOING_PROXY, stdin=slave, stdout=slave, stderr=subprocess.PIPE) as proxy:
        os.write(master, b"frame\n")
        assert os.read(master, 100) == b"frame\n"
        assert os.get_blocking(slave)
        os.write(master, b"\x04")  # the end, as typed
        assert proxy.wait(30) == 0
    assert os.get_blocking(slave)


@pytest.mark.parametrize("kind", ["terminal", "pipe"])
def test_waiting_for_input_does_not_hold_up_the_end(kind: str, terminal: tuple[int, int]) -> None:
    reader, writer = os.pipe()
    stdin = terminal[1] if kind == "terminal" else reader
    done = run_proxy(WAITING_PROXY, stdin=stdin, capture_output=True)
    assert done.stderr == b"ended\n"
    os.close(reader)
    os.close(writer)


def test_streams_closed_at_the_start_are_at_their_end() -> None:
    launcher = "import os, sys; os.close(0); os.close(1); os.execv(sys.executable, sys.argv[1:])"
    code = """
import trio
from acp_proxy.errors import PeerGoneError
from acp_proxy.transport.stdio import open_stdio

async def main():
    client = open_stdio()
    assert await client.receive_some() == b""
    try:
        await client.send_all(b"x")
    except PeerGoneError:
        await trio.sleep(0.01)  # trio's own descriptors, which took the free numbers, still work
        await client.aclose()
        import sys
        sys.stderr.write("gone")

trio.run(main)
"""
    done = subprocess.run(
        [sys.executable, "-c", launcher, sys.executable, "-c", code], capture_output=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, b"gone")


def test_a_client_that_does_not_read_any_more_is_gone() -> None:
    code = """
import sys, trio
from acp_proxy.errors import PeerGoneError
from acp_proxy.transport.stdio import open_stdio

async def main():
    client = open_stdio()
    await client.receive_some()
    try:
        await client.send_all(b"x")
    except PeerGoneError as error:
        sys.stderr.write(str(error))
    await client.aclose()

trio.run(main)
"""
    with running_proxy(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        assert proxy.stderr is not None
        proxy.stdout.close()
        proxy.stdin.write(b"x")
        proxy.stdin.close()
        assert b"Broken pipe" in proxy.stderr.read()
        assert proxy.wait(30) == 0
