"""One client talking to one relay: it drives the conversation and only counts what comes back.

The reader takes what the pipe holds, counts newlines and end marks, and decodes nothing while a clock runs:
it is never the slow end. Every wait has a deadline; leaving the `with` block reaps the relay's whole family.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from bench_processes import descendants, environment, outlived, resident_bytes

READ_BYTES = 1 << 20
STALL_SECONDS = 20.0
EXCHANGE_SECONDS = 120.0
LEAVE_SECONDS = 5.0
# In v1 it stands in the prompt's result, in v2 in the idle `state_update`: once a turn, as its last message.
TURN_END = b'"stopReason"'
RESULT = b'"result"'

Json = dict[str, object]


class BenchError(Exception):
    """No measurement could be taken: the relay died, stalled, refused, lost lines or left a process."""


@dataclass
class Tally:
    """What an exchange brought: seconds, lines, bytes; resident bytes at the mark and at the end."""

    seconds: float = 0.0
    lines: int = 0
    bytes: int = 0
    resident_at_mark: int = 0
    resident_at_end: int = 0


class Conversation:
    """A relay (or a bare agent) as a child process, spoken to as a client of the given protocol version."""

    def __init__(self, command: Sequence[str], version: int) -> None:
        self._version = version
        self._numbers = 0
        self._last = b""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the conversation
        self.started = time.perf_counter()
        try:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=self._stderr, bufsize=0, env=environment()
            )
        except OSError:
            self._stderr.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._sink, self._source = self._stdin.fileno(), self._stdout.fileno()
        os.set_blocking(self._sink, False)
        self._readable = select.poll()
        self._readable.register(self._source, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(self._source, select.POLLIN)
        self._writable.register(self._sink, select.POLLOUT)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        family = descendants(self._process.pid)
        try:
            self._stdin.close()
            if kind is None:
                self._leave()
        finally:
            self._process.kill()
            self._process.wait()
            left = outlived(family, LEAVE_SECONDS if kind is None else 0.0)
            self._stdout.close()
            self._stderr.close()
        if kind is None and left:
            raise BenchError(f"left {len(left)} processes behind")

    def _leave(self) -> None:
        """Read to the end: a relay may have more to say, and would otherwise block on it."""
        deadline = time.monotonic() + LEAVE_SECONDS
        while time.monotonic() < deadline:
            if self._readable.poll(100) and not os.read(self._source, READ_BYTES):
                break
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._error(f"still running {LEAVE_SECONDS:.0f} s after its client left") from None

    def _error(self, text: str) -> BenchError:
        self._stderr.seek(0)
        said = self._stderr.read()[-600:].decode(errors="replace").strip()
        return BenchError(f"{text}; last bytes {self._last[-200:]!r}; stderr: {said or 'empty'}")

    def _read(self) -> bytes:
        if not self._readable.poll(STALL_SECONDS * 1000):
            raise self._error(f"nothing came for {STALL_SECONDS:.0f} s")
        chunk = os.read(self._source, READ_BYTES)
        if not chunk:
            raise self._error("the relay closed its output")
        self._last = chunk
        return chunk

    def _write(self, pending: memoryview) -> memoryview:
        """Write what fits and return the rest: all of it if only reading is possible (both pipes full)."""
        ready = dict(self._writable.poll(STALL_SECONDS * 1000))
        if not ready:
            raise self._error(f"nothing was read for {STALL_SECONDS:.0f} s")
        if self._sink not in ready:
            return pending
        try:
            return pending[os.write(self._sink, pending) :]
        except BlockingIOError:
            return pending
        except BrokenPipeError:
            raise self._error("the relay closed its input") from None

    def exchange(self, data: bytes, end: bytes, ends: int, mark: int = 0) -> Tally:
        """Send `data`, then count until `end` was seen `ends` times and the last line is whole.

        Resident memory is taken at the first read that reaches line `mark` (0: never) and at the end.
        """
        tally, tail, seen = Tally(), b"", 0
        pending = memoryview(data)
        start = time.perf_counter()
        while seen < ends or not self._last.endswith(b"\n"):
            while pending:
                before, pending = len(pending), self._write(pending)
                if len(pending) == before:
                    break
            chunk = self._read()
            if time.perf_counter() - start > EXCHANGE_SECONDS:
                raise self._error(f"not finished after {EXCHANGE_SECONDS:.0f} s, {tally.lines} lines")
            tally.bytes += len(chunk)
            tally.lines += chunk.count(b"\n")
            joined = tail + chunk
            seen += joined.count(end)
            tail = joined[1 - len(end) :]
            if mark and not tally.resident_at_mark and tally.lines >= mark:
                tally.resident_at_mark = resident_bytes(self._process.pid)
        tally.seconds = time.perf_counter() - start
        if mark:
            tally.resident_at_end = resident_bytes(self._process.pid)
        return tally

    def line(self, method: str, params: Json) -> bytes:
        """One request as a line, with the next id."""
        self._numbers += 1
        request = {"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}
        return json.dumps(request, separators=(",", ":")).encode() + b"\n"

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result; whatever else arrives meanwhile is dropped."""
        pending, received = memoryview(self.line(method, params)), b""
        while pending:
            pending = self._write(pending)
        while True:
            received += self._read()
            *lines, received = received.split(b"\n")
            for message in map(json.loads, filter(None, lines)):
                if message.get("id") == self._numbers and "method" not in message:
                    if "result" not in message:
                        raise self._error(f"{method} was refused: {message.get('error')}")
                    return dict(message["result"])

    def initialize(self) -> None:
        """Raises BenchError when the answer speaks another version than the client asked for."""
        if self._version == 1:
            params: Json = {"protocolVersion": 1, "clientCapabilities": {}}
        else:
            params = {"protocolVersion": 2, "info": {"name": "bench", "version": "1"}, "capabilities": {}}
        answered = self.request("initialize", params).get("protocolVersion")
        if answered != self._version:
            raise BenchError(f"asked for version {self._version}, got {answered}: nothing was bridged")

    def new_session(self) -> str:
        return str(self.request("session/new", {"cwd": "/", "mcpServers": []})["sessionId"])

    def prompt(self, session: str, words: str) -> bytes:
        return self.line(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": words}]}
        )
