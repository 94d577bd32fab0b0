"""Diagnostics on stderr that can neither hold up the traffic nor harm the terminal.

A line is put on a bounded queue and written by a thread: whoever reads our stderr may be slow, gone
or a terminal somebody paused. When the queue is full the line is dropped and counted. `logging` is
not used: it costs several milliseconds of start-up, and its handlers write where they are called.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from typing import Final, Literal

Level = Literal["debug", "info", "warning", "error"]

QUEUE_BYTES: Final = 1 << 20
_RANK: Final[dict[str, int]] = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_RETRY_SECONDS: Final = 0.01

# Whole sequences first, so that their parameters do not stay behind as litter: CSI; then OSC, DCS, SOS,
# PM and APC up to their terminator. The string part stops at any other introducer, which keeps a
# flood of unterminated ones linear.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
)
_BLANK: Final = re.compile("[\t\n\v\f\r\u0085\u2028\u2029]+")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BARE: Final = re.compile(r"[^\s\"=]+")


def printable(text: str) -> str:
    """The text on one line without what a terminal would act upon.

    Goes: escape sequences, C0 and C1 controls, bidirectional controls, lone surrogates. Line
    breaks and tabs become a space.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", _BLANK.sub(" ", _SEQUENCE.sub("", text)))


def utc(wall: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC with milliseconds."""
    millis = round(wall * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(millis // 1000))}.{millis % 1000:03d}Z"


class Log:
    """Leveled diagnostics in text or JSON lines; no call blocks, none raises.

    Text reads `TIME acp-proxy LEVEL: EVENT KEY=VALUE …` and is stripped by `printable`. JSON lines
    hold `time`, `level`, `event` and the fields, in ASCII, so that nothing in them is active.
    """

    def __init__(
        self,
        level: Level = "warning",
        form: Literal["text", "json"] = "text",
        *,
        fd: int = 2,
        wall: Callable[[], float] = time.time,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        """`wall` tells seconds since the epoch; no thread is started before the first line."""
        self.dropped = 0
        self._least = _RANK[level]
        self._json = form == "json"
        self._fd = fd
        self._wall = wall
        self._limit = queue_bytes
        self._terminal = os.isatty(fd)
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._lines: list[bytes] = []
        self._waiting = 0
        self._told_dropped = 0
        self._thread: threading.Thread | None = None
        self._closing = False
        self._broken = False

    def debug(self, event: str, /, **fields: object) -> None:
        """Note what only a developer of the proxy wants to see."""
        self._note("debug", event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Note what an operator may want to see."""
        self._note("info", event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Note what is not as it should be while traffic goes on."""
        self._note("warning", event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Note what failed."""
        self._note("error", event, fields)

    def passthrough(self, data: bytes) -> None:
        """Pass on what the agent wrote to its stderr, at any level.

        The bytes are left alone when stderr is a file or a pipe; a terminal gets them stripped. In
        JSON form each line becomes the `text` of an `agent stderr` event, so that the stream stays JSON.
        """
        if self._json or self._terminal:
            lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
            if self._json:
                data = b"".join(self._rendered("info", "agent stderr", {"text": line}) for line in lines)
            else:
                data = "".join(f"{printable(line)}\n" for line in lines).encode()
        elif not data.endswith(b"\n"):
            data += b"\n"
        self._put(data)

    def close(self, timeout: float) -> None:
        """Give the queue up to `timeout` seconds to empty; later lines are discarded. Harmless twice."""
        with self._lock:
            self._closing = True
        self._ready.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _note(self, level: Level, event: str, fields: dict[str, object]) -> None:
        if _RANK[level] < self._least:
            return
        try:
            line = self._rendered(level, event, fields)
        except Exception as exc:  # a field's own __str__ may fail, and a diagnostic must not
            line = self._rendered(level, event, {"unprintable": type(exc).__name__})
        self._put(line)

    def _rendered(self, level: Level, event: str, fields: dict[str, object]) -> bytes:
        if self._json:
            import json  # most runs log text, or nothing

            record = fields | {"time": utc(self._wall()), "level": level, "event": event}
            return json.dumps(record, default=str, allow_nan=False).encode() + b"\n"
        shown = "".join(f" {key}={_shown(value)}" for key, value in fields.items())
        return f"{utc(self._wall())} acp-proxy {level}: {printable(event)}{shown}\n".encode()

    def _put(self, data: bytes) -> None:
        with self._lock:
            if self._closing or self._broken:
                return
            if self._waiting + len(data) > self._limit:
                self.dropped += 1
            else:
                self._lines.append(data)
                self._waiting += len(data)
            if self._thread is None and not self._started():
                return
        self._ready.set()

    def _started(self) -> bool:
        thread = threading.Thread(target=self._serve, name="acp-proxy diagnostics", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is ending
            self._broken = True
            return False
        self._thread = thread
        return True

    def _serve(self) -> None:
        """The thread: write what waits until closed and empty."""
        while True:
            self._ready.wait()
            with self._lock:
                self._ready.clear()
                lines, self._lines = self._lines, []
                missing = self.dropped - self._told_dropped
                self._told_dropped = self.dropped
                closing = self._closing
            if missing:
                lines.append(self._rendered("warning", "diagnostics dropped", {"lines": missing}))
            data = b"".join(lines)
            self._write(data)
            with self._lock:
                self._waiting = sum(map(len, self._lines))
            if closing:
                return

    def _write(self, data: bytes) -> None:
        while data and not self._broken:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # stderr may share its description with somebody who made it so
                time.sleep(_RETRY_SECONDS)
            except OSError:
                self._broken = True


def _shown(value: object) -> str:
    """A field's value as one word, quoted where it would not be."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_shown, value))
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = printable(str(value))
    return text if _BARE.fullmatch(text) else '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
