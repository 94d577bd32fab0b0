"""The pipe to the wrapped agent: a child process that speaks one JSON object per line."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO, Any, Protocol

from acp_proxy.errors import AcpProxyError

Message = dict[str, Any]

STDERR_LINES = 5
EXIT_SECONDS = 2.0


class DemoError(AcpProxyError):
    """The demo cannot go on; the text says what was expected and did not happen."""


class Link(Protocol):
    """How the client reaches its agent."""

    def send(self, message: Message) -> None:
        """Send one JSON-RPC message. DemoError when the other end is gone."""
        ...

    def receive(self, seconds: float) -> Message | None:
        """Wait for the next message; None after so many seconds of silence, DemoError at the end."""
        ...


class ChildLink:
    """A `Link` to a child process started from `command`; DemoError if it cannot be started.

    Its stderr is kept back, so that the timeline stays readable, and quoted only if the child ends early.
    """

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as failure:
            raise DemoError(f"cannot start {command[0]}: {failure.strerror}") from failure
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._last_words: deque[str] = deque(maxlen=STDERR_LINES)
        # Threads and not select(): a buffered line reader must not be mixed with readiness of its descriptor.
        self._readers = (
            threading.Thread(target=self._read_stdout, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        )
        for reader in self._readers:
            reader.start()

    def _read_stdout(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._last_words.append(line.decode(errors="replace").rstrip())

    def send(self, message: Message) -> None:
        """Write one line; `jsonrpc` is added."""
        try:
            self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError as failure:
            raise self._ended() from failure

    def receive(self, seconds: float) -> Message | None:
        """Wait for one line; a line that is no JSON object raises DemoError, quoted."""
        try:
            line = self._lines.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None
        if line is None:
            raise self._ended()
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise DemoError(f"the proxy wrote something that is no JSON object: {line[:60]!r}")
        return message

    def close(self, seconds: float) -> int | None:
        """Close the child's stdin and return its exit status; None if it had to be killed after `seconds`."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        status: int | None
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            status = None
        for reader in self._readers:
            reader.join(EXIT_SECONDS)
        return status

    def last_words(self) -> str:
        """What the child wrote to stderr last, at most five lines; empty if nothing."""
        return "\n".join(list(self._last_words))

    def _ended(self) -> DemoError:
        try:
            status = str(self._process.wait(EXIT_SECONDS))
        except subprocess.TimeoutExpired:
            status = "none yet"
        self._readers[1].join(EXIT_SECONDS)
        return DemoError(f"the proxy closed its output (exit status {status})")
