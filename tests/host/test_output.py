"""The last bytes of an output are cut where a character begins (schema type CreateTerminalRequest)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.host.output import OutputTail


def tail(limit: int, *pieces: bytes, complete: bool = True) -> tuple[str, bool]:
    kept = OutputTail(limit)
    for piece in pieces:
        kept.add(piece)
    return kept.text(complete=complete)


@pytest.mark.parametrize(
    ("limit", "data", "expected"),
    [
        (10, b"", ("", False)),
        (3, b"abc", ("abc", False)),
        (2, b"abc", ("bc", True)),
        (0, b"", ("", False)),
        (0, b"a", ("", True)),
        (3, "aé".encode(), ("aé", False)),
        (2, "aé".encode(), ("é", True)),
        (1, "aé".encode(), ("", True)),
        (4, "x😀".encode(), ("😀", True)),
        (3, "x😀".encode(), ("", True)),
        (5, "😀z😀".encode(), ("z😀", True)),
        (7, "😀\u20ac!".encode(), ("\u20ac!", True)),
        (3, b"\xff", ("\ufffd", False)),
        (2, b"\xff", ("", True)),
        (5, b"\xff\xff\xff", ("\ufffd", True)),
        (4, b"\x80\x80\x80\x80", ("\ufffd", True)),
    ],
)
def test_the_cut_falls_between_characters(limit: int, data: bytes, expected: tuple[str, bool]) -> None:
    assert tail(limit, data) == expected


def test_a_character_under_way_is_left_out_until_it_is_whole_or_the_output_over() -> None:
    kept = OutputTail(10)
    kept.add("aé".encode()[:2])
    assert kept.text(complete=False) == ("a", False)
    assert kept.text(complete=True) == ("a\ufffd", False)
    kept.add("é".encode()[1:])
    assert kept.text(complete=False) == ("aé", False)


@given(
    text=st.text(alphabet=st.sampled_from("aé\u20ac😀"), max_size=30),
    limit=st.integers(0, 40),
    cuts=st.lists(st.integers(0, 100), max_size=5),
)
def test_the_tail_of_a_text_is_a_suffix_as_long_as_fits(text: str, limit: int, cuts: list[int]) -> None:
    data = text.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    got, missing = tail(limit, *(data[start:end] for start, end in itertools.pairwise(places)))
    assert text.endswith(got)
    assert missing == (got != text)
    assert len(got.encode()) <= limit
    if missing:
        before = text[: len(text) - len(got)]
        assert len((before[-1] + got).encode()) > limit


@given(data=st.binary(max_size=60), limit=st.integers(0, 40), complete=st.booleans())
def test_no_bytes_make_more_than_the_limit(data: bytes, limit: int, complete: bool) -> None:
    text, _ = tail(limit, data, complete=complete)
    assert len(text.encode()) <= limit


def test_what_is_kept_does_not_grow_with_the_output() -> None:
    kept = OutputTail(1000)
    for _ in range(1000):
        kept.add(b"x" * 999)
    assert len(kept._kept) <= 3000
    assert kept.text(complete=True) == ("x" * 1000, True)
