"""Puts a message id into the bytes of a text chunk, which spares encoding a long text anew.

Only where that says the same to every parser as encoding would: an agent may write a member twice, and
then the one that is found first need not be the one that was read (RFC 8259 §4).
"""

from __future__ import annotations

import re
from typing import Final

from acp_proxy.jsonrpc.message import Frame, Json

_HEAD: Final = re.compile(
    rb'\{"jsonrpc": ?"2\.0", ?"method": ?"session/update", ?"params": ?\{"sessionId": ?"[^"\\]*", ?"update": ?\{'
    rb'(?="sessionUpdate": ?"[a-z_]*", ?"content": ?\{"t(?:ype": ?"text", ?"text|ext)": ?")'
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
    # What stands before the text is fixed to the letter, and behind the text's own object there must be nothing.
    if _FOLLOWED.search(raw, raw.find(b"}", cut)) is not None:
        return None
    return Frame(
        b'%b"messageId":"%b",%b' % (raw[:cut], translated["messageId"].encode(), raw[cut:]), frame.number
    )
