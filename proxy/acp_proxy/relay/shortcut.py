"""Lines that need not be decoded, told by their bytes alone: runs of text chunks.

Only the commonest frame there is, a `session/update` with a chunk of text, in the member orders
that SDKs write. Every byte of a line must match, so what is recognized is valid JSON with exactly
these members: an id, a second method or another session cannot hide in it. Anything else is
decoded. Between peers of one version such a chunk changes nothing (lifecycle §2.4); across a
bridge it may want a message id, which is put in at one known place.
"""

from __future__ import annotations

import re
from typing import Final

# Possessive quantifiers: a failing match must not try the same bytes in another way again.
_TEXT: Final = rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_PLAIN: Final = rb'"[^"\\\x00-\x1f]*+"'


def _members(*members: bytes) -> bytes:
    """Members of an object, with the single blanks after colon and comma that some encoders write."""
    return rb"\{" + rb", ?".join(member.replace(b":", b": ?") for member in members) + rb"\}"


_CONTENT: Final = (
    rb"(?:"
    + _members(rb'"type":"text"', rb'"text":' + _TEXT)
    + rb"|"
    + _members(rb'"text":' + _TEXT, rb'"type":"text"')
    + rb")"
)
_TAG: Final = rb'"sessionUpdate": ?"agent_(?:message|thought)_chunk"'
_SAID: Final = rb'"content": ?' + _CONTENT
_NAMED: Final = rb'"messageId": ?' + _PLAIN
_HEAD: Final = (
    rb'\{"jsonrpc": ?"2\.0", ?"method": ?"session/update", ?"params": ?\{"sessionId": ?'
    + _PLAIN
    + rb', ?"update": ?\{'
)


def _line(*updates: bytes) -> bytes:
    return _HEAD + rb"(?:" + rb"|".join(updates) + rb")\}\}\}\r?"


_WITHOUT_ID: Final = (_TAG + rb", ?" + _SAID, _SAID + rb", ?" + _TAG)
_WITH_ID: Final = (
    _TAG + rb", ?" + _NAMED + rb", ?" + _SAID,
    _TAG + rb", ?" + _SAID + rb", ?" + _NAMED,
    _SAID + rb", ?" + _NAMED + rb", ?" + _TAG,
)
_CHUNKS: Final = re.compile(rb"(?:" + _line(*_WITHOUT_ID, *_WITH_ID) + rb"\n)*+")
_NAMELESS_CHUNKS: Final = re.compile(rb"(?:" + _line(*_WITHOUT_ID) + rb"\n)*+")
_NAMED_CHUNKS: Final = re.compile(rb"(?:" + _line(*_WITH_ID) + rb"\n)*+")
_MESSAGE_ID: Final = re.compile(rb'"messageId": ?("[^"]*+")')
_FIRST: Final = re.compile(
    rb'(\{"jsonrpc": ?"2\.0", ?"method": ?"session/update", ?"params": ?\{"sessionId": ?("[^"]*+"), ?"update": ?\{)'
    rb"[^\n]*?"
    rb'("sessionUpdate": ?"agent_(?:message|thought)_chunk")'
)


def end_of_chunks(data: bytes, start: int) -> int:
    """Where the text chunks that stand together from `start` on end; `start` itself when there are none."""
    found = _CHUNKS.match(data, start)
    return found.end() if found is not None else start


def end_of_named_chunks(data: bytes, start: int) -> int:
    """The same for text chunks with a message id, as v2 requires it."""
    found = _NAMED_CHUNKS.match(data, start)
    return found.end() if found is not None else start


def end_of_nameless_chunks(data: bytes, start: int) -> int:
    """The same for text chunks without a message id, which a bridge has to give one."""
    found = _NAMELESS_CHUNKS.match(data, start)
    return found.end() if found is not None else start


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8; the patterns look at single bytes only."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def whose(data: bytes) -> tuple[str, str | None] | None:
    """Session and last message id of recognized lines; None when they are of several sessions, or no UTF-8."""
    first = _FIRST.match(data)
    if first is None or not is_utf8(data):
        return None
    head, session, _ = first.groups()
    if data.count(head) != data.count(b"\n") + (not data.endswith(b"\n")):
        return None
    last = data[data.rfind(b"\n", 0, -1) + 1 :]
    message_id = _MESSAGE_ID.search(last)
    return session[1:-1].decode(), message_id[1][1:-1].decode() if message_id is not None else None


class TextRun:
    """Recognized nameless chunks of one message: same session, same type in every line."""

    __slots__ = ("_data", "_head", "count", "session", "tag")

    def __init__(self, data: bytes, head: bytes, session: bytes, tag: bytes, count: int) -> None:
        self._data = data
        self._head = head
        self.session = session
        self.tag = tag.split(b'"')[3].decode()
        self.count = count

    @staticmethod
    def read(data: bytes) -> TextRun | None:
        """Read a run of recognized lines; None when they are not all of one session and type.

        `session` is the session id as the JSON text that stands in the line. Quotes inside a JSON string
        are escaped, so neither the beginning of a line nor a member's name in quotes occurs inside one.
        """
        first = _FIRST.match(data)
        if first is None or not is_utf8(data):
            return None
        head, session, tag = first.groups()
        count = data.count(b"\n")
        if data.count(head) != count or data.count(tag) != count:
            return None
        return TextRun(data, head, session, tag, count)

    def named(self, message_id: bytes) -> bytes:
        """The lines with a message id (as JSON text) put first into each update."""
        return self._data.replace(self._head, self._head + b'"messageId":' + message_id + b",")
