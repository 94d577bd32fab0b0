"""A message id put into bytes is the same as one put into the body, or is not put there at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.filters.translate.chunk_frames import named
from acp_proxy.jsonrpc.message import Frame
from relay_driver import line, message, update

NAMED = {"messageId": "m-1"}


def spliced(raw: bytes) -> bytes | None:
    """What becomes of a line; None when it must be encoded anew."""
    read = json.loads(raw)["params"]["update"]
    frame = named(Frame(raw, 1), read, {**read, **NAMED})
    return frame.raw if frame is not None else None


def agrees(raw: bytes) -> bool:
    """Whether the line with the id reads as the body with the id does."""
    got = spliced(raw)
    body = json.loads(raw)
    body["params"]["update"].update(NAMED)
    return got is None or json.loads(got) == body


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hi",
        'a "quoted" \\ path\n\ttab\r',
        '{"update":{"params":[]}}',
        "größer \u2028 \U0001f600",
        "\x00\x7f",
    ],
)
@pytest.mark.parametrize("ensure_ascii", [True, False])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_text_chunk_keeps_its_bytes(text: str, ensure_ascii: bool, separators: tuple[str, str]) -> None:
    raw = json.dumps(message(text), ensure_ascii=ensure_ascii, separators=separators).encode()
    assert spliced(raw) is not None
    assert agrees(raw)


@pytest.mark.parametrize(
    "more",
    [
        '"}},"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"X',
        '"}} , \t"upd\\u0061te":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"X',
        '"}}},"p\\u0061rams":{"sessionId":"s1","update":{"sessionUpdate":"a","content":{"type":"text","text":"X',
        '"}}},"params":{"sessionId":"s1","update":{"sessionUpdate":"a","content":{"type":"text","text":"X',
        '"},"content":{"type":"text","text":"X',
        '","text":"X',
    ],
)
@pytest.mark.parametrize("text", ["", "longer than the one before"])
def test_a_member_written_twice_is_never_taken_for_the_last(more: str, text: str) -> None:
    raw = line(message("HERE")).replace(b"HERE", b"before" + more.replace("X", text).encode())
    assert agrees(raw)


@pytest.mark.parametrize(
    ("before", "twice"),
    [
        (b'"sessionId"', b'"sessionId":"other","sessionId"'),
        (b'"update":{', b'"update":{"x":1},"update":{'),
        (b'"sessionUpdate"', b'"sessionUpdate":"agent_thought_chunk","sessionUpdate"'),
        (b'"content"', b'"content":{"type":"text","text":"first"},"content"'),
        (b'"content"', b'"content":5,"content"'),
        (b'"jsonrpc"', b'"method":"x","jsonrpc"'),
    ],
)
def test_what_is_judged_is_written_once(before: bytes, twice: bytes) -> None:
    """A parser that takes the first of two members must not read another session or another kind of update."""
    raw = line(message("HERE"))
    assert before in raw
    assert spliced(raw.replace(before, twice, 1)) is None


members: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["_meta", "x", "update", "params"]), st.text()
)


@given(st.text(), members, st.booleans())
def test_whatever_else_is_there(text: str, more: dict[str, Any], ascii_: bool) -> None:
    chunk = update("agent_message_chunk", content={"type": "text", "text": text}, **more)
    assert agrees(json.dumps(chunk, ensure_ascii=ascii_, separators=(",", ":")).encode(errors="replace"))


def test_what_was_changed_is_encoded_anew() -> None:
    raw = line(message("hi"))
    read = json.loads(raw)["params"]["update"]
    frame = Frame(raw, 1)
    assert named(None, read, {**read, **NAMED}) is None
    assert named(frame, read, {**read, **NAMED, "content": {"type": "text", "text": "ho"}}) is None
    assert named(frame, read, {**read, **NAMED, "more": 1}) is None
