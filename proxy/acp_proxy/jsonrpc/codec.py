"""The only file that touches ujson: strict enough on the way in, exact on the way out.

ujson takes bytes that no other parser takes (encoded surrogates) and a structure bomb of a few
megabytes holds the loop for seconds, so both are refused before it sees them. On the way out
its defaults escape slashes and everything beyond ASCII; ours do not.
"""

from __future__ import annotations

import re
from typing import Any, Final

import ujson

MAX_STRUCTURE: Final = 200_000
_BOM: Final = b"\xef\xbb\xbf"
# Possessive, and content with a string that never ends: no byte is looked at twice.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class DecodeError(ValueError):
    """Bytes that are no acceptable JSON text; the message says why, never what they held."""


class EncodeError(ValueError):
    """A value that JSON cannot carry, such as the infinity that `1e400` decodes to."""


def decode(raw: bytes) -> Any:
    """Decode one JSON text of any kind.

    Raises DecodeError for bytes that are not UTF-8, for a structure of more than 200 000
    brackets and commas, and for what ujson refuses.
    """
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError as exc:
            raise DecodeError(f"not UTF-8 at byte {exc.start}") from None
    if len(raw) > MAX_STRUCTURE and _structure(raw) > MAX_STRUCTURE:
        raise DecodeError(f"more than {MAX_STRUCTURE} brackets and commas")
    try:
        return ujson.loads(raw)
    except (ValueError, OverflowError, RecursionError) as exc:
        raise DecodeError(str(exc)) from None


def encode(value: Any) -> bytes:
    """Encode plain JSON data as UTF-8 bytes on one line.

    A lone surrogate cannot be UTF-8 and leaves as its escape. Raises EncodeError for infinities.
    """
    try:
        return ujson.dumps(
            value, ensure_ascii=False, escape_forward_slashes=False, allow_nan=False, reject_bytes=True
        ).encode()
    except UnicodeEncodeError:
        return ujson.dumps(value, escape_forward_slashes=False, allow_nan=False, reject_bytes=True).encode()
    except (OverflowError, ValueError) as exc:
        raise EncodeError(str(exc)) from None


def is_encodable(value: Any) -> bool:
    """Whether JSON can carry a value that was decoded."""
    try:
        encode(value)
    except EncodeError:
        return False
    return True


def strip_bom(raw: bytes) -> bytes:
    """The line without a byte order mark before it: a mark is framing, and no parser wants it."""
    return raw[3:] if raw.startswith(_BOM) else raw


def _structure(raw: bytes) -> int:
    """Count what makes a parser build things; strings are left out only when the quick count is over."""
    count = raw.count(b"[") + raw.count(b"{") + raw.count(b",")
    if count <= MAX_STRUCTURE:
        return count
    bare = _STRING.sub(b"", raw)
    return bare.count(b"[") + bare.count(b"{") + bare.count(b",")
