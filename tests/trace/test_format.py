"""The recording format: what is written is read back, and damage is named by file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.trace import format as lines
from acp_proxy.trace.format import End, FindingLine, FrameLine, Header, TraceError, Truncated, read

HEADER = lines.header("0.1.0", "2026-01-01T00:00:00.000Z", ["agent", "-x"], {"bridge.mode": "off"})


def written(tmp_path: Path, *content: bytes) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(content))
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        HEADER,
        lines.frame(0.25, "client", "in", 1, b'{"id":1, "x":"\\u00e9"}\r'),
        lines.frame(0.5, "agent", "out", None, b"\xff\x00"),
        lines.finding(0.75, {"rule": "V09", "frames": [1]}),
        lines.truncated(1, "disk full"),
        lines.end(1.5, "client closed"),
    )
    records = list(read(path))
    assert records == [
        Header(1, "0.1.0", "2026-01-01T00:00:00.000Z", ("agent", "-x"), {"bridge.mode": "off"}),
        FrameLine(0.25, "client", "in", 1, frame='{"id":1, "x":"\\u00e9"}\r'),
        FrameLine(0.5, "agent", "out", None, b64="/wA="),
        FindingLine(0.75, {"rule": "V09", "frames": [1]}),
        Truncated(1.0, "disk full"),
        End(1.5, "client closed"),
    ]
    frames = [record.raw for record in records if isinstance(record, FrameLine)]
    assert frames == [b'{"id":1, "x":"\\u00e9"}\r', b"\xff\x00"]


def test_the_lines_are_what_the_format_says() -> None:
    assert json.loads(HEADER) == {
        "acp-proxy-trace": 1,
        "version": "0.1.0",
        "started": "2026-01-01T00:00:00.000Z",
        "command": ["agent", "-x"],
        "settings": {"bridge.mode": "off"},
    }
    frame = lines.frame(1 / 3, "agent", "in", 7, b'"\xe2\x80\xa8"')
    assert json.loads(frame) == {"t": 0.333333, "leg": "agent", "dir": "in", "n": 7, "frame": '"\u2028"'}


@given(raw=st.binary() | st.text().map(str.encode), t=st.floats(0, 1e9))
def test_any_frame_is_one_line_of_json_and_keeps_its_bytes(raw: bytes, t: float) -> None:
    line = lines.frame(t, "client", "in", 1, raw)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    body = json.loads(line)
    record = FrameLine(body["t"], body["leg"], body["dir"], body["n"], body.get("frame"), body.get("b64"))
    assert record.raw == raw
    assert record.t == pytest.approx(t, abs=1e-6)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"", 1, "the file is empty"),
        (b"\n", 1, "not JSON: "),
        (b"{}\n", 1, 'not an acp-proxy recording: no "acp-proxy-trace"'),
        (b"[1]\n", 1, 'not an acp-proxy recording: no "acp-proxy-trace"'),
        (b'{"acp-proxy-tr', 1, "not JSON: "),
        (b'{"acp-proxy-trace":2}\n', 1, "recording format 2 is not known here, only 1"),
        (b'{"acp-proxy-trace":1}\n', 1, "Object missing required field `version`"),
        (HEADER + b"nonsense\n", 2, "not JSON: "),
        (HEADER + b"\xff\n", 2, "not JSON: not UTF-8 at byte 0"),
        (HEADER + b"[]\n", 2, "neither frame, finding nor end"),
        (HEADER + b'{"t":1}\n', 2, "neither frame, finding nor end"),
        (HEADER + HEADER, 2, "neither frame, finding nor end"),
        (HEADER + b'{"t":"1","end":"x"}\n', 2, "Expected `float`, got `str` - at `$.t`"),
        (HEADER + b'{"t":1,"finding":1}\n', 2, "Expected `object`, got `int` - at `$.finding`"),
        (HEADER + b'{"t":1,"leg":"x","dir":"in","frame":""}\n', 2, "Invalid enum value 'x' - at `$.leg`"),
        (HEADER + b'{"t":1,"leg":"agent","dir":"in"}\n', 2, 'a frame needs either "frame" or "b64"'),
        (
            HEADER + b'{"t":1,"leg":"agent","dir":"in","frame":"","b64":""}\n',
            2,
            'a frame needs either "frame" or "b64"',
        ),
        (HEADER + b'{"t":1,"leg":"agent","dir":"in","b64":"?"}\n', 2, '"b64" is not base64'),
    ],
)
def test_damage_is_named(content: bytes, line: int, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(TraceError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}:{line}: {message}")


def test_what_stands_before_the_damage_is_read(tmp_path: Path) -> None:
    records = read(written(tmp_path, HEADER, lines.end(1, "x"), b"?\n"))
    assert isinstance(next(records), Header)
    assert next(records) == End(1.0, "x")
    with pytest.raises(TraceError, match=":3: "):
        next(records)


@pytest.mark.parametrize("cut", range(1, len(lines.frame(2, "agent", "in", 2, "é".encode())) - 1))
def test_a_line_cut_by_a_crash_reads_as_truncated(cut: int, tmp_path: Path) -> None:
    whole = lines.frame(1.5, "agent", "in", 1, b"{}")
    path = written(tmp_path, HEADER, whole, lines.frame(2, "agent", "in", 2, "é".encode())[:cut])
    assert list(read(path))[2] == Truncated(1.5, "the last line is incomplete")


def test_unknown_members_are_ignored(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, b'{"t":1,"end":"x","later":[1]}\n')
    assert list(read(path))[1] == End(1.0, "x")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        list(read(tmp_path / "missing"))
    assert str(caught.value) == f"{tmp_path / 'missing'}: cannot be read: No such file or directory"
