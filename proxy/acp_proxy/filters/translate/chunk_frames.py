"""Puts a message id into the bytes of a text chunk, which spares encoding a long text anew.

Only where that is provably the same as encoding: an agent may write a member twice, and then the last
one counts (RFC 8259 §4), so the place that is found first need not be the one that was read.
"""

from __future__ import annotations

import re
from typing import Any, Final

from acp_proxy.jsonrpc.message import Frame, Json

_HEAD: Final = re.compile(
    rb'\{"jsonrpc": ?"2\.0", ?"method": ?"session/update", ?"params": ?\{"sessionId": ?"[^"\\]*", ?"update": ?\{'
)
_TEXT: Final = re.compile(
    rb'"sessionUpdate": ?"[a-z_]*", ?"content": ?\{"type": ?"text", ?"text": ?"',
)
_TAIL: Final = b'"}}}}'
_TWO_BYTES: Final = ("\n", '"', "\\", "\t", "\r")


def named(frame: Frame | None, update: Json, translated: Json) -> Frame | None:
    """The frame of a chunk with the message id of `translated` in it, when nothing else was changed."""
    if frame is None or len(translated) != len(update) + 1 or translated["content"] is not update["content"]:
        return None
    if translated["sessionUpdate"] is not update["sessionUpdate"]:
        return None
    raw = frame.raw
    head = _HEAD.match(raw)
    if head is None:
        return None
    cut = head.end()
    if not _is_one_text(raw, cut, update["content"]) and not _are_unique(raw):
        return None
    return Frame(
        b'%b"messageId":"%b",%b' % (raw[:cut], translated["messageId"].encode(), raw[cut:]), frame.number
    )


def _is_one_text(raw: bytes, cut: int, content: Any) -> bool:
    """Whether all between the head and the closing braces is the text that was read.

    A text takes at least so many bytes as it has ASCII characters, and one more for each that JSON must
    escape. Whoever wrote it with just as many bytes as there are left no room for anything else.
    """
    text = content.get("text") if type(content) is dict else None
    if type(text) is not str or not text.isascii() or not raw.endswith(_TAIL):
        return False
    start = _TEXT.match(raw, cut)
    if start is None:
        return False
    least = len(text) + sum(map(text.count, _TWO_BYTES))
    return len(raw) - len(_TAIL) - start.end() == least


def _are_unique(raw: bytes) -> bool:
    """Whether both members around the update occur once: inside a string their quotes were escaped."""
    return raw.count(b'"update"') == 1 and raw.count(b'"params"') == 1
