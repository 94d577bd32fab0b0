"""Recordings and captures as one stream of frames, and files that are neither."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.trace import format as lines
from acp_proxy.trace.format import TraceError
from acp_proxy.trace.traffic import Over, Said, Traffic, traffic

HEADER = lines.header("0", "2026-01-01T00:00:00.000Z", ["agent"], {})


def read(data: bytes) -> list[Traffic]:
    return list(traffic(io.BytesIO(data), "f"))


def shown(items: list[Traffic]) -> list[tuple[Any, ...]]:
    return [
        (item.at, item.leg, item.sender, item.raw, item.number) if isinstance(item, Said) else (item.at,)
        for item in items
    ]


def captured(*bodies: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(body).encode() + b"\n" for body in bodies)


def test_a_recording_tells_each_leg_with_both_senders() -> None:
    data = (
        HEADER
        + lines.frame(0.1, "client", "in", 1, b'{"a":1}')
        + lines.frame(0.1, "agent", "out", None, b"\xff")
        + lines.finding(0.2, {"rule": "V01"})
        + lines.frame(0.3, "agent", "in", 2, b"2")
        + lines.frame(0.3, "client", "out", 2, b"2")
        + lines.end(0.4, "exit status 0")
    )
    assert shown(read(data)) == [
        (0.1, Role.CLIENT, Role.CLIENT, b'{"a":1}', 1),
        (0.1, Role.AGENT, Role.CLIENT, b"\xff", None),
        (0.3, Role.AGENT, Role.AGENT, b"2", 2),
        (0.3, Role.CLIENT, Role.AGENT, b"2", 2),
        (0.4,),
    ]


def test_a_recording_that_was_cut_short_has_no_end() -> None:
    data = HEADER + lines.frame(0.1, "client", "in", 1, b"1") + lines.truncated(0.2, "disk full")
    assert [type(item) for item in read(data)] == [Said]


def test_a_capture_counts_its_frames_over_both_directions() -> None:
    data = captured(
        {"t": 0, "dir": "note", "line": "begin"},
        {"t": 1, "dir": "c2a", "line": "{}"},
        {"t": 2, "dir": "stderr", "line": "hm"},
        {"t": 3, "dir": "a2c", "line": "é\ud800", "more": 1},
        {"t": 4.5, "dir": "exit", "line": 0},
    )
    assert shown(read(b"\xef\xbb\xbf" + data + b"\n")) == [
        (1, None, Role.CLIENT, b"{}", 1),
        (3, None, Role.AGENT, b"\xc3\xa9\xed\xa0\x80", 2),
        (4.5,),
    ]


@pytest.mark.parametrize("start", [HEADER, captured({"t": 0, "dir": "note", "line": ""})])
def test_a_last_line_that_was_cut_off_is_the_end(start: bytes) -> None:
    assert read(start + b'{"t": 1, "leg') == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f:1: the file is empty"),
        (b"nothing\n", "f:1: not JSON: "),
        (b"[unstable]", "f:1: not JSON: "),
        (b"\x00\xff", "f:1: not JSON: not UTF-8 at byte 1"),
        (b"[]\n", 'f:1: neither a recording nor a capture: no "dir"'),
        (b'{"t":0,"rule":"V01"}\n', 'f:1: neither a recording nor a capture: no "dir"'),
        (b'{"acp-proxy-trace": 9}\n', "f:1: recording format 9 is not known here, only 1"),
        (HEADER + b'{"t":0,"leg":"client"}\n', "f:2: Object missing required field `dir`"),
        (captured({"t": 0, "dir": "note"}) + b"{\n{}\n", "f:2: not JSON: "),
        (captured({"t": "0", "dir": "c2a", "line": ""}), 'f:1: "t" is no number'),
        (captured({"t": True, "dir": "c2a", "line": ""}), 'f:1: "t" is no number'),
        (captured({"t": 0, "dir": "c2a", "line": {}}), 'f:1: "line" is no text'),
    ],
)
def test_what_cannot_be_used_is_named_by_file_and_line(data: bytes, said: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(data)
    assert str(caught.value).startswith(said)


def test_a_file_that_fails_while_it_is_read_is_named() -> None:
    class Broken(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(TraceError, match=r"^f: cannot be read: Input/output error$"):
        list(traffic(Broken(), "f"))


def test_lines_no_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acp_proxy.trace.traffic.LINE_BYTES", 64)
    with pytest.raises(TraceError, match=r"^f:2: the line is longer than 64 bytes$"):
        read(captured({"t": 0, "dir": "note", "line": ""}) + b" " * 100)


def test_frames_come_as_they_are_read() -> None:
    stream = traffic(io.BytesIO(captured({"t": 0, "dir": "c2a", "line": "1"}) + b"damage\n"), "f")
    assert isinstance(next(stream), Said)
    with pytest.raises(TraceError):
        next(stream)


def test_over_has_its_time() -> None:
    [item] = read(captured({"t": 7, "dir": "exit"}))
    assert isinstance(item, Over)
    assert item.at == 7
