"""Lines are cut at 0x0A alone; chunks, odd separators and giant lines change nothing about it."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.jsonrpc.framing import HEAD_BYTES, LineSplitter, Oversize, Piece, Recognize, Run

LIMIT = 8192
LINE = '{"t":"a\u2028b\u2029c\x85d\x0be\x0cf\rg \U0001f600"}'.encode()


def told(pieces: Iterable[Piece]) -> list[bytes | tuple[bytes]]:
    """Pieces as values: a line is its bytes, a line over the limit a tuple of its head."""
    values: list[bytes | tuple[bytes]] = []
    for piece in pieces:
        if isinstance(piece, Oversize):
            values.append((piece.head,))
        elif isinstance(piece, Run):
            values += piece.lines()
        else:
            values.append(piece)
    return values


def split(chunks: Iterable[bytes], limit: int = LIMIT) -> list[bytes | tuple[bytes]]:
    """All lines of a stream that comes in these chunks, its unfinished last line included."""
    splitter = LineSplitter(limit)
    values = [value for chunk in chunks for value in told(splitter.feed(chunk))]
    last = splitter.finish()
    return values if last is None else [*values, last]


def cut_at(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The data in pieces, cut at these places (those beyond its end are ignored)."""
    edges = [0, *sorted(place for place in places if place < len(data)), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


_BITS = st.sampled_from(
    [b"\n", b"\r\n", b"\r", b" ", b'{"a":1}', LINE, b"\xef\xbb\xbf", b"\x00", b"\xed\xa0\x80", b"x" * 70]
)


@given(data=st.lists(_BITS, max_size=12).map(b"".join), places=st.lists(st.integers(0, 400), max_size=8))
def test_any_chunking_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    wanted = [line for line in data.split(b"\n")[:-1] if line not in (b"", b"\r")]
    rest = data.split(b"\n")[-1]
    assert split(cut_at(data, places)) == wanted + ([rest] if rest.strip() else [])


@given(
    sizes=st.lists(st.sampled_from([1, LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT]), max_size=4),
    places=st.lists(st.integers(0, 4 * LIMIT), max_size=6),
)
def test_any_chunking_finds_the_same_lines_over_the_limit(sizes: list[int], places: list[int]) -> None:
    data = b"".join(b"%d" % (number % 10) * size + b"\n" for number, size in enumerate(sizes))
    wanted = [line if len(line) <= LIMIT else (line[:HEAD_BYTES],) for line in data.split(b"\n")[:-1]]
    assert split(cut_at(data, places)) == wanted


@given(data=st.binary(max_size=200), places=st.lists(st.integers(0, 200), max_size=5))
def test_no_byte_of_a_line_is_lost_or_added(data: bytes, places: list[int]) -> None:
    kept = [line for line in data.split(b"\n")[:-1] if line not in (b"", b"\r")]
    assert split([*cut_at(data, places), b"\nend\n"])[-1] == b"end"
    assert split(cut_at(data, places))[: len(kept)] == kept


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_separators_inside_a_line_and_split_characters_cut_nothing(size: int) -> None:
    data = LINE + b"\n" + LINE + b"\r\n"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert split(chunks) == [LINE, LINE + b"\r"]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"\n\n\n", b"\r\n\n\r\n"])
def test_blank_lines_are_skipped(blank: bytes) -> None:
    assert split([blank + b"a\n" + blank + b"b\n" + blank]) == [b"a", b"b"]


def test_a_byte_order_mark_is_kept_for_whoever_decodes() -> None:
    assert split([b"\xef", b"\xbb\xbf{}\n"]) == [b"\xef\xbb\xbf{}"]


@pytest.mark.parametrize("rest", [b"", b" ", b"\r", b" \t\r"])
def test_nothing_is_left_when_the_stream_ends_after_a_line(rest: bytes) -> None:
    splitter = LineSplitter(LIMIT)
    assert told(splitter.feed(b"a\n" + rest)) == [b"a"]
    assert splitter.finish() is None


def test_the_last_line_needs_no_line_feed_and_is_handed_out_once() -> None:
    splitter = LineSplitter(LIMIT)
    assert splitter.feed(b'{"a"') == []
    assert splitter.feed(b":1}") == []
    assert splitter.finish() == b'{"a":1}'
    assert splitter.finish() is None


@pytest.mark.parametrize("size", [1, 5, 10, 1000])
def test_the_limit_counts_the_line_without_its_line_feed(size: int) -> None:
    data = b"0123456789\n" + b"0123456789a\n" + b"b\n"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    first, second, third = split(chunks, limit=10)
    assert (first, third) == (b"0123456789", b"b")
    assert second == (b"0123456789a",)


def test_a_line_over_the_limit_is_reported_as_soon_as_it_is_known() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"abcd") == []
    assert told(splitter.feed(b"e")) == [(b"abcde",)]
    assert splitter.feed(b"still the same line") == []
    assert told(splitter.feed(b"end\nnext\n")) == [b"next"]


def test_the_stream_may_end_in_a_line_over_the_limit() -> None:
    splitter = LineSplitter(4)
    assert told(splitter.feed(b"abcdefgh")) == [(b"abcdefgh",)]
    assert splitter.finish() is None
    assert told(splitter.feed(b"new\n")) == [b"new"]


def test_a_giant_line_in_single_bytes_is_found_and_the_next_line_too() -> None:
    limit = 50_000
    splitter = LineSplitter(limit)
    values = [
        value for byte in b"x" * (4 * limit) + b'\n{"a":1}\n' for value in told(splitter.feed(bytes([byte])))
    ]
    assert values == [(b"x" * HEAD_BYTES,), b'{"a":1}']


def test_a_giant_line_is_not_kept() -> None:
    limit = 1 << 16
    splitter = LineSplitter(limit)
    chunk = b"x" * 4096
    tracemalloc.start()
    try:
        found = sum(len(splitter.feed(chunk)) for _ in range(2000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == 1
    assert peak < 4 * limit


@pytest.mark.parametrize("size", [1, 2, 3, 16])
def test_a_line_in_tiny_chunks_costs_no_multiple_of_its_size(size: int) -> None:
    limit = 1 << 18
    splitter = LineSplitter(limit)
    tracemalloc.start()
    try:
        for _ in range(limit // size):
            splitter.feed(bytes(bytearray(size)))  # a new object each time, as from a read
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * limit


def recognize_numbers(data: bytes, start: int) -> int:
    """The end of the lines from `start` on that are digits only."""
    while (cut := data.find(b"\n", start)) >= 0 and data[start:cut].isdigit():
        start = cut + 1
    return start


@given(
    lines=st.lists(st.sampled_from([b"1", b"22", b"x", b"", b"\r", b"7x"]), max_size=10),
    places=st.lists(st.integers(0, 30), max_size=4),
)
def test_recognized_lines_come_together_and_are_the_same_lines(lines: list[bytes], places: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter(LIMIT)
    pieces = [piece for chunk in cut_at(data, places) for piece in splitter.feed(chunk, recognize_numbers)]
    assert told(pieces) == [line for line in lines if line not in (b"", b"\r")]
    assert all(line.isdigit() for piece in pieces if isinstance(piece, Run) for line in piece.lines())


def test_a_run_ends_where_another_line_begins() -> None:
    splitter = LineSplitter(LIMIT)
    pieces = splitter.feed(b"1\n2\nx\n3\n4", recognize_numbers)
    assert [piece.data if isinstance(piece, Run) else piece for piece in pieces] == [b"1\n2\n", b"x", b"3\n"]
    assert splitter.finish() == b"4"


def test_data_over_the_limit_is_never_recognized_together() -> None:
    splitter = LineSplitter(4)
    pieces = splitter.feed(b"1\n2222\n33333\n", recognize_numbers)
    assert told(pieces) == [b"1", b"2222", (b"33333",)]
    assert not any(isinstance(piece, Run) for piece in pieces)


@pytest.mark.parametrize("recognize", [None, recognize_numbers])
def test_no_bytes_are_no_line(recognize: Recognize | None) -> None:
    splitter = LineSplitter(9)
    assert splitter.feed(b"", recognize) == []
    assert splitter.feed(b"1", recognize) == []
    assert splitter.feed(b"", recognize) == []
    assert [kind_and_bytes(piece) for piece in splitter.feed(b"\n", recognize)] == (
        [(bytes, b"1")] if recognize is None else [(Run, b"1\n")]
    )


def kind_and_bytes(piece: Piece) -> tuple[type, bytes]:
    if isinstance(piece, bytes):
        return bytes, piece
    return type(piece), piece.data if isinstance(piece, Run) else piece.head


def test_a_line_that_came_in_pieces_is_offered_once_it_is_whole() -> None:
    splitter = LineSplitter(100)
    pieces = [
        piece for byte in b"12\nx1\n345\n6\n" for piece in splitter.feed(bytes([byte]), recognize_numbers)
    ]
    assert [kind_and_bytes(piece) for piece in pieces] == [
        (Run, b"12\n"),
        (bytes, b"x1"),
        (Run, b"345\n"),
        (Run, b"6\n"),
    ]
