"""What a translator returns when the other protocol version has no words for a message.

A value, not an exception: it is the peer that asked for something, and the adapter decides how to answer
(an error response, a `cancelled` outcome, a dropped notification). Source: bridge §0 (schema gap), §9
(errors).
"""

from __future__ import annotations

from typing import Any

INVALID_PARAMS = -32602


class Refusal:
    """Why a message cannot be said in the other version: a JSON-RPC error code, a text and optional data.

    The text names fields and types only, never the content of a message: it ends up in findings and logs.
    """

    __slots__ = ("code", "data", "message")

    def __init__(self, code: int, message: str, data: object | None = None) -> None:
        self.code = code
        self.message = message
        self.data = data

    def error(self) -> dict[str, Any]:
        """Give the JSON-RPC error object `{code, message, data?}` that refuses a request."""
        if self.data is None:
            return {"code": self.code, "message": self.message}
        return {"code": self.code, "message": self.message, "data": self.data}

    def __repr__(self) -> str:
        return f"Refusal({self.code}, {self.message!r}, {self.data!r})"
