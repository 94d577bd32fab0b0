"""Lines that can change nothing, told by their bytes alone, so that they need not be decoded.

Only the commonest frame there is, a chunk of text in a `session/update`, in the member orders
that SDKs write. The whole line must match, so what passes is valid JSON with exactly these
members: an id, a second method or another session cannot hide in it. Anything else is decoded.
Between peers of one version such a chunk says nothing about the session's state (lifecycle §2.4).
"""

from __future__ import annotations

import re
from typing import Final

_TEXT: Final = rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_ID: Final = rb'"[^"\\\x00-\x1f]*+"'
_CONTENT: Final = (
    rb'"content":\{(?:"type":"text","text":' + _TEXT + rb'|"text":' + _TEXT + rb',"type":"text")\}'
)
_TAG: Final = rb'"sessionUpdate":"agent_(?:message|thought)_chunk"'
_MESSAGE_ID: Final = rb'"messageId":' + _ID
_UPDATE: Final = (
    rb'"update":\{(?:'
    + rb"|".join(
        (
            _TAG + rb"(?:," + _MESSAGE_ID + rb")?," + _CONTENT + rb"(?:," + _MESSAGE_ID + rb")?",
            _CONTENT + rb"(?:," + _MESSAGE_ID + rb")?," + _TAG,
        )
    )
    + rb")\}"
)
_CHUNK: Final = re.compile(
    rb'\{"jsonrpc":"2\.0","method":"session/update","params":\{"sessionId":'
    + _ID
    + rb","
    + _UPDATE
    + rb"\}\}\r?"
)


def untouched(line: bytes) -> bool:
    """Whether a line of the agent is a text chunk and nothing else, and may pass as it is."""
    if _CHUNK.fullmatch(line) is None:
        return False
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
