"""Puts a message id into the bytes of a text chunk, which spares encoding a long text anew.

Only where that is provably the same as encoding: an agent may write a member twice, and then the last
one counts (RFC 8259 §4), so the place that is found first need not be the one that was read.
"""

from __future__ import annotations

import re
from typing import Final

from acp_proxy.jsonrpc.message import Frame, Json

_HEAD: Final = re.compile(
    rb'\{"jsonrpc": ?"2\.0", ?"method": ?"session/update", ?"params": ?\{"sessionId": ?"[^"\\]*", ?"update": ?\{'
)
# A member behind something in braces. Inside a string its quote would be escaped.
_FOLLOWED: Final = re.compile(rb'\}[ \t\r\n]*,[ \t\r\n]*"')


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
    if not _is_last(raw, cut) and not _are_unique(raw):
        return None
    return Frame(
        b'%b"messageId":"%b",%b' % (raw[:cut], translated["messageId"].encode(), raw[cut:]), frame.number
    )


def _is_last(raw: bytes, cut: int) -> bool:
    """Whether no member can follow the update, nor its parameters: it would stand behind a closing brace."""
    brace = raw.find(b"}", cut)
    return _FOLLOWED.search(raw, brace) is None


def _are_unique(raw: bytes) -> bool:
    """Whether both members around the update occur once: inside a string their quotes were escaped.

    A name may itself be written with escapes, and `\\u00` begins every escape of an ASCII letter.
    """
    return raw.count(b'"update"') == 1 and raw.count(b'"params"') == 1 and b"\\u00" not in raw
