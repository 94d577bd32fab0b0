"""What is accepted, what is refused, and what leaves again: one row for each finding about the parser."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.codec import MAX_STRUCTURE, DecodeError, EncodeError, decode, encode

BIG = 10**30 + 7

ACCEPTED = [
    pytest.param(b"18446744073709551616", 1 << 64, id="integer beyond 64 bits"),
    pytest.param(b"-170141183460469231731687303715884105729", -(1 << 127) - 1, id="integer beyond 128 bits"),
    pytest.param(str(BIG).encode(), BIG, id="integer of thirty digits"),
    pytest.param(b"0.1", 0.1, id="0.1"),
    pytest.param(b"1.0", 1.0, id="1.0"),
    pytest.param(b"0.30000000000000004", 0.30000000000000004, id="seventeen digits"),
    pytest.param(b"1e2", 100.0, id="exponent"),
    pytest.param(b"-0", 0, id="minus zero"),
    pytest.param(rb'"\ud800"', "\ud800", id="lone high surrogate escape"),
    pytest.param(rb'"\udc00x"', "\udc00x", id="lone low surrogate escape"),
    pytest.param(rb'"\ud83d\ude00"', "\U0001f600", id="surrogate pair"),
    pytest.param('"\u2028\x85\xe9"'.encode(), "\u2028\x85\xe9", id="separators and letters as they are"),
    pytest.param(b'{"a":1,"a":2}', {"a": 2}, id="duplicate key, the last wins"),
    pytest.param(b'{"":{"":[]}}', {"": {"": []}}, id="empty names"),
    pytest.param(b' \t{"a" : 1}\r', {"a": 1}, id="white space around"),
    pytest.param(b"null", None, id="null"),
    pytest.param(b"[true,false]", [True, False], id="booleans"),
    pytest.param(b'"raw\ttab\x01"', "raw\ttab\x01", id="raw control characters"),
    pytest.param(b"[-]", [0], id="a lone minus, leniently"),
    pytest.param(b"[01]", [1], id="a leading zero, leniently"),
    pytest.param(b"[1.]", [1.0], id="no digits after the point, leniently"),
    pytest.param(b"[" * 1000 + b"]" * 1000, ..., id="a thousand levels"),
]

REFUSED = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"   ", id="blanks"),
    pytest.param(b"9" * 5000, id="more than 4300 digits"),
    pytest.param(b'"\xed\xa0\x80"', id="encoded surrogate"),
    pytest.param(b'"\xff"', id="no UTF-8"),
    pytest.param(b'"\xc3', id="cut inside a character"),
    pytest.param(b'"\xc0\x80"', id="overlong NUL"),
    pytest.param(b'"\xf4\x90\x80\x80"', id="beyond U+10FFFF"),
    pytest.param(b'"a\x00b"', id="raw NUL in a string"),
    pytest.param(b'{"a":1} x', id="trailing garbage"),
    pytest.param(b'{"a":1}\x00', id="trailing NUL"),
    pytest.param(b'{"a":1}{"a":2}', id="two texts"),
    pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
    pytest.param(b"[" * 1100 + b"]" * 1100, id="nested beyond 1024"),
    pytest.param(b"[" * 1_000_000, id="a million levels"),
    pytest.param(b'{"a":', id="cut short"),
    pytest.param(b"{'a':1}", id="single quotes"),
    pytest.param(b"[1,]", id="trailing comma"),
    pytest.param(b"// x", id="comment"),
    pytest.param(b"hello", id="a word"),
]


@pytest.mark.parametrize(("raw", "value"), ACCEPTED)
def test_accepted_exactly(raw: bytes, value: Any) -> None:
    decoded = decode(raw)
    if value is not ...:
        assert (decoded, type(decoded)) == (value, type(value))


@pytest.mark.parametrize("raw", REFUSED)
def test_refused_as_a_value_error_that_quotes_nothing(raw: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(raw)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 200


def test_zero_keeps_its_sign_when_it_is_a_fraction() -> None:
    assert math.copysign(1.0, decode(b"-0.0")) == -1.0


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"NaN", b"Infinity"])
def test_a_number_json_cannot_carry_shows_when_it_is_to_leave(number: bytes) -> None:
    value = decode(b'{"n":' + number + b"}")
    assert not math.isfinite(value["n"])
    with pytest.raises(EncodeError):
        encode(value)


def test_infinity_beside_a_lone_surrogate_is_still_an_encode_error() -> None:
    with pytest.raises(EncodeError):
        encode(["\ud800", math.inf])


# ---------------------------------------------------------------- out


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        ({"a": [1, 2.5, None, True], "b": {}}, b'{"a":[1,2.5,null,true],"b":{}}'),
        ({"path": "/a/b"}, b'{"path":"/a/b"}'),
        ("\xe9\u2028\U0001f600", '"\xe9\u2028\U0001f600"'.encode()),
        (BIG, str(BIG).encode()),
        (-(1 << 200), str(-(1 << 200)).encode()),
        (100.0, b"100.0"),
        ('\x00\x1f\x7f\n"\\', b'"\\u0000\\u001f\x7f\\n\\"\\\\"'),
        ("<script>&", b'"<script>&"'),
    ],
)
def test_leaves_plainly(value: Any, raw: bytes) -> None:
    assert encode(value) == raw


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800", "\xe9\ud83d"])
def test_a_lone_surrogate_leaves_as_its_escape_and_comes_back(text: str) -> None:
    raw = encode({"t": text})
    raw.decode("ascii")
    assert decode(raw) == {"t": text}


@pytest.mark.parametrize("value", [b"bytes", bytearray(b"x")])
def test_bytes_are_our_mistake(value: Any) -> None:
    with pytest.raises((TypeError, EncodeError)):
        encode({"a": value})


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_what_leaves_comes_back_and_stands_on_one_line(value: Any) -> None:
    raw = encode(value)
    assert b"\n" not in raw
    assert b"\r" not in raw
    assert decode(raw) == value
    assert json.loads(raw) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(raw: bytes) -> None:
    try:
        decode(raw)
    except DecodeError:
        return
    raw.decode()


# ---------------------------------------------------------------- byte order marks


@pytest.mark.parametrize(
    ("raw", "stripped"),
    [
        (b"\xef\xbb\xbf{}", b"{}"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", b"\xef\xbb\xbf{}"),
        (b"{}", b"{}"),
        (b"\xef\xbb", b"\xef\xbb"),
        (b"", b""),
    ],
)
def test_one_mark_is_stripped(raw: bytes, stripped: bytes) -> None:
    assert codec.strip_bom(raw) == stripped


# ---------------------------------------------------------------- bombs


def refuse_quickly(raw: bytes, seconds: float) -> None:
    """Fail when refusing takes longer, on a machine that may be slow and shared."""
    started = time.perf_counter()
    with pytest.raises(DecodeError, match="brackets and commas"):
        decode(raw)
    assert time.perf_counter() - started < seconds


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"[[", b'"",', b'{"":', b","])
def test_a_structure_bomb_is_refused_quickly(unit: bytes) -> None:
    refuse_quickly(b"[" + unit * ((1 << 24) // len(unit)), 3.0)


def test_the_limit_is_exact_and_strings_do_not_count() -> None:
    commas = MAX_STRUCTURE - 1
    assert len(decode(b"[" + b"0," * commas + b"0]")) == MAX_STRUCTURE
    refuse_quickly(b"[" + b"0," * (commas + 1) + b"0]", 3.0)
    inside = b'"' + b",[{" * 100_000 + b'"'
    assert decode(b"[" + inside + b",0" * commas + b"]")[0] == ",[{" * 100_000


@pytest.mark.parametrize(
    "text",
    [b",", b"[{", rb"\",", rb"\\", b"\xe2\x82\xac,", b"a,b\\n"],
    ids=["commas", "brackets", "escaped quotes", "backslashes", "characters", "lines"],
)
def test_a_string_full_of_what_looks_like_structure_is_accepted(text: bytes) -> None:
    raw = b'{"t":"' + text * 300_000 + b'","u":1}'
    assert decode(raw)["u"] == 1


def test_a_long_text_costs_no_multiple_of_its_size() -> None:
    raw = b'{"t":"' + b"some words, and more\\n" * 200_001 + b'"}'
    tracemalloc.start()
    try:
        decode(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(raw)


@pytest.mark.parametrize("tail", [b"", b"\\"], ids=["", "and ends in a backslash"])
@pytest.mark.parametrize("unit", [rb"\",", rb"\"", rb"\\,\""])
def test_a_string_that_never_ends_is_refused_in_time(unit: bytes, tail: bytes) -> None:
    """The time must grow with the size alone, not with its square."""

    def cost(count: int) -> float:
        raw = b"," * (MAX_STRUCTURE + 1) + b'"' + unit * count + tail
        started = time.perf_counter()
        with pytest.raises(DecodeError):
            decode(raw)
        return time.perf_counter() - started

    small, large = min(cost(1000) for _ in range(3)), cost(8_000)
    assert large < 0.1 + 24 * small
