"""Standard error in lines, with every cap, and no clock."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.transport.agent_stderr import LINE_BYTES, LINES_A_SECOND, StderrLines


def test_only_whole_lines_are_shown() -> None:
    lines = StderrLines()
    assert lines.feed(b"one\ntw", 0.0) == b"one\n"
    assert lines.feed(b"o", 0.0) == b""
    assert lines.feed(b"\n\nthree", 0.0) == b"two\n\n"
    assert lines.tail() == ["one", "two", "", "three"]
    assert lines.finish() == b"three\n"
    assert lines.tail() == ["one", "two", "", "three"]
    assert lines.finish() == b""


def test_long_lines_are_cut() -> None:
    lines = StderrLines()
    shown = b"".join(lines.feed(b"x" * 5000, 0.0) for _ in range(100))
    assert shown == b""
    assert lines.feed(b"\nnext\n" + b"y" * 20_000 + b"\n", 0.0) == b"\n".join(
        [b"x" * LINE_BYTES, b"next", b"y" * LINE_BYTES, b""]
    )
    assert [len(line) for line in lines.tail()] == [LINE_BYTES, 4, LINE_BYTES]


def test_the_tail_is_twenty_lines_in_any_encoding() -> None:
    lines = StderrLines()
    lines.feed(b"".join(b"line %d\r\n" % number for number in range(50)) + b"\xff\xe4", 0.0)
    assert lines.tail() == [f"line {number}" for number in range(31, 50)] + ["\ufffd\ufffd"]


def test_a_flood_is_thinned_out_and_counted_when_its_second_is_over() -> None:
    lines = StderrLines()
    assert lines.report_due == math.inf
    shown = lines.feed(b"x\n" * 1000, 10.0)
    assert shown.count(b"x\n") == LINES_A_SECOND
    assert lines.report_due == 11.0
    assert lines.feed(b"x\n" * 5, 10.9) == b""
    assert lines.feed(b"", 11.0) == b"(agent stderr: 805 lines left out)\n"
    assert lines.report_due == math.inf
    assert lines.feed(b"y\n", 11.5) == b"y\n"


def test_the_count_stands_before_what_follows() -> None:
    lines = StderrLines()
    lines.feed(b"x\n" * 201, 0.0)
    assert lines.feed(b"y\n", 5.0) == b"(agent stderr: 1 lines left out)\ny\n"


def test_the_count_is_not_lost_at_the_end() -> None:
    lines = StderrLines()
    lines.feed(b"x\n" * 201 + b"open", 0.0)
    assert lines.finish() == b"(agent stderr: 2 lines left out)\n"
    assert lines.tail()[-1] == "open"


def test_the_tail_holds_lines_that_were_not_shown() -> None:
    lines = StderrLines()
    lines.feed(b"".join(b"%d\n" % number for number in range(1000)), 0.0)
    assert lines.tail()[-1] == "999"


@given(st.lists(st.text("a\n", max_size=20).map(str.encode), max_size=30))
def test_any_chunking_shows_the_same(chunks: list[bytes]) -> None:
    whole, pieces = StderrLines(), StderrLines()
    data = b"".join(chunks)
    expected = whole.feed(data, 0.0) + whole.finish()
    assert b"".join(pieces.feed(chunk, 0.0) for chunk in chunks) + pieces.finish() == expected
    assert pieces.tail() == whole.tail()
    assert expected in (data, data + b"\n")
