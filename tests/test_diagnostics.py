"""Diagnostics: nothing active reaches a terminal, and no reader of stderr can hold up a caller."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.diagnostics import Log, printable, utc

ACTIVE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
WALL = 1_700_000_000.25
STAMP = "2023-11-14T22:13:20.250Z"


class Pipe:
    """A pipe whose far end is read on demand."""

    def __init__(self) -> None:
        self.source, self.sink = os.pipe()

    def log(self, *args: Any, **options: Any) -> Log:
        return Log(*args, fd=self.sink, wall=lambda: WALL, **options)

    def everything(self, log: Log) -> bytes:
        """Close the log, then read what it has written; for what the pipe can hold."""
        log.close(10)
        os.close(self.sink)
        self.sink = -1
        return self._rest()

    def read_while_closing(self, log: Log) -> bytes:
        """Close the log while somebody reads; for more than the pipe can hold."""
        received: list[bytes] = []
        reader = threading.Thread(target=lambda: received.append(self._rest()))
        reader.start()
        log.close(10)
        os.close(self.sink)
        self.sink = -1
        reader.join(10)
        return received[0]

    def _rest(self) -> bytes:
        data = b""
        while piece := os.read(self.source, 1 << 16):
            data += piece
        return data


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    for fd in (pipe.source, pipe.sink):
        if fd >= 0:
            os.close(fd)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é ‹› 日本", "plain é ‹› 日本"),
        ("a\nb\tc\r\nd\u2028e", "a b c d e"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[6nask", "ask"),
        ("\x9b31mred", "red"),
        ("\x1b]52;c;c2VjcmV0\x07copied", "copied"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1bPdcs\x1b\\\x1b_apc\x1b\\x", "x"),
        ("\x1b]52;c;unterminated", "]52;c;unterminated"),
        ("\x1bc\x07\x00\x7f\x85x", "c x"),
        ("user\u202etxt.exe\u2066\u200f", "usertxt.exe"),
        ("\ud800x", "x"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(alphabet=st.sampled_from("\x1b[]P;0m\\\x07\x9b\x9c\x9d\x90\u202e\u2028\n a")))
def test_nothing_active_is_printable(text: str) -> None:
    assert not ACTIVE.search(printable(text))


def test_a_flood_of_unterminated_sequences_is_no_burden() -> None:
    # Quadratic work on these would outlive the deadline of the test by far.
    assert printable("\x1b]" * 1_000_000) == "]" * 1_000_000
    assert printable("\x9d" * 2_000_000) == ""
    assert printable("\x1b[" + "0" * 2_000_000) == "[" + "0" * 2_000_000


def test_time_has_milliseconds_and_is_utc() -> None:
    assert utc(WALL) == STAMP
    assert utc(0) == "1970-01-01T00:00:00.000Z"
    assert utc(0.9996) == "1970-01-01T00:00:01.000Z"


def test_text_lines_are_filtered_by_level_and_stripped(pipe: Pipe) -> None:
    log = pipe.log("info")
    log.debug("unseen")
    log.info("agent started", pid=7, name="a b", path='c:\\"x"', empty="", none=None, list=["x", "y z"])
    log.warning("odd\x1b[2J\nline", title="\x1b]0;t\x07evil\u202e", raw=b"\xffx")
    log.error("failed")
    assert pipe.everything(log).decode().splitlines() == [
        f'{STAMP} acp-proxy info: agent started pid=7 name="a b" path="c:\\\\\\"x\\"" empty=""'
        ' none=None list=x,"y z"',
        f"{STAMP} acp-proxy warning: odd line title=evil raw=\ufffdx",
        f"{STAMP} acp-proxy error: failed",
    ]


def test_json_lines_are_ascii_and_keep_their_own_members(pipe: Pipe) -> None:
    log = pipe.log("debug", "json")
    log.debug("e\x1b\u202e", time="x", level=1, n=1, deep={"a": [None, True]}, other=pipe)
    log.error("odd", n=float("inf"))
    log.passthrough(b"one\x1b[0m\ntwo \xff\n")
    data = pipe.everything(log)
    assert not re.search(rb"[^\n -~]", data)
    first, second, *lines = map(json.loads, data.splitlines())
    assert first == {
        "time": STAMP,
        "level": "debug",
        "event": "e\x1b\u202e",
        "n": 1,
        "deep": {"a": [None, True]},
        "other": str(pipe),
    }
    assert second == {"time": STAMP, "level": "error", "event": "odd", "unprintable": "ValueError"}
    assert [(line["event"], line["text"]) for line in lines] == [
        ("agent stderr", "one\x1b[0m"),
        ("agent stderr", "two \ufffd"),
    ]


def test_the_agents_stderr_passes_a_pipe_untouched(pipe: Pipe) -> None:
    log = pipe.log("error")
    log.passthrough(b"\x1b[31mred\xff\n")
    log.passthrough(b"no line feed")
    assert pipe.everything(log) == b"\x1b[31mred\xff\nno line feed\n"


def test_the_agents_stderr_is_stripped_for_a_terminal() -> None:
    master, slave = pty.openpty()
    try:
        log = Log("error", fd=slave)
        log.passthrough(b"\x1b]52;c;eA==\x07\x1b[31mred\r\nnext \xc2\x9b6n\xff\n")
        log.close(5)
        assert os.read(master, 1000) == b"red \r\nnext \xef\xbf\xbd\r\n"  # the terminal adds the returns
    finally:
        os.close(master)
        os.close(slave)


def test_a_field_that_fails_to_print_costs_only_itself(pipe: Pipe) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    log = pipe.log()
    log.warning("event", value=Broken())
    assert pipe.everything(log).decode() == f"{STAMP} acp-proxy warning: event unprintable=RuntimeError\n"


def test_nobody_reading_costs_lines_but_no_time(pipe: Pipe) -> None:
    log = pipe.log(queue_bytes=200_000)
    line = b"x" * 999 + b"\n"
    for _ in range(1000):
        log.passthrough(line)  # the pipe holds 64 KiB: a caller that waited would never come back
    assert log.dropped >= 700
    data = pipe.read_while_closing(log)
    told = [int(found) for found in re.findall(rb"diagnostics dropped lines=(\d+)", data)]
    assert sum(told) == log.dropped
    assert data.count(line) == 1000 - log.dropped


def test_a_line_larger_than_the_queue_is_counted_too(pipe: Pipe) -> None:
    log = pipe.log(queue_bytes=10)
    log.passthrough(b"x" * 10)
    assert log.dropped == 1
    assert b"diagnostics dropped lines=1" in pipe.read_while_closing(log)


def test_a_stderr_that_does_not_block_loses_nothing(pipe: Pipe) -> None:
    flags = fcntl.fcntl(pipe.sink, fcntl.F_GETFL)
    fcntl.fcntl(pipe.sink, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    log = pipe.log()
    log.passthrough(b"y" * 500_000)
    assert pipe.read_while_closing(log) == b"y" * 500_000 + b"\n"


def test_a_stderr_that_is_gone_is_no_error(pipe: Pipe) -> None:
    os.close(pipe.source)
    pipe.source = -1
    log = pipe.log()
    for _ in range(3):
        log.error("unheard")
    log.close(5)
    log.close(5)
    closed = Log(fd=987_654)
    closed.error("unheard")
    closed.close(5)


def test_a_process_out_of_threads_goes_on_without_diagnostics(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    log = pipe.log()
    monkeypatch.setattr(threading.Thread, "start", start)
    log.error("unheard")
    log.error("unheard")
    assert pipe.everything(log) == b""


def test_a_closed_log_takes_nothing_more(pipe: Pipe) -> None:
    log = pipe.log()
    log.close(1)
    log.error("too late")
    assert pipe.everything(log) == b""


def test_close_does_not_wait_for_a_reader_longer_than_told(pipe: Pipe) -> None:
    log = pipe.log()
    log.passthrough(b"z" * 200_000)
    log.close(0.01)  # returns although most of it is stuck
    data = b""
    while not data.endswith(b"\n"):
        data += os.read(pipe.source, 1 << 16)
    assert data == b"z" * 200_000 + b"\n"


def test_no_thread_before_the_first_line(pipe: Pipe) -> None:
    before = threading.active_count()
    log = pipe.log("error")
    log.warning("filtered")
    assert threading.active_count() == before
    log.close(1)
