"""One JSON-RPC message: what arrives and what is sent are the same three classes.

A message keeps the decoded JSON object whole, so unknown members survive, and the frame it
came in, so that an untouched message can leave as its original bytes. What every stage asks for
is read from the object once: nobody changes it afterwards, but makes another message.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002
VERSION_UNSUPPORTED: Final = -32022


class Frame:
    """One received line, its bytes as they came (without the line feed), and its number.

    Numbers count from 1 over both legs in the order of arrival; findings name frames by them.
    """

    __slots__ = ("number", "raw")

    def __init__(self, raw: bytes, number: int) -> None:
        self.raw = raw
        self.number = number

    def __repr__(self) -> str:
        return f"<Frame {self.number}, {len(self.raw)} bytes>"


class Message:
    """A JSON-RPC object; `frame` is None when the proxy made it or changed it."""

    __slots__ = ("body", "frame")

    def __init__(self, body: Json, frame: Frame | None = None) -> None:
        self.body = body
        self.frame = frame

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.body!r:.80}>"


class Request(Message):
    """A call that wants exactly one response; `id` as the sender wrote it, null in v1 only (LC-73)."""

    __slots__ = ("id", "method")

    def __init__(self, body: Json, frame: Frame | None = None) -> None:
        self.body = body
        self.frame = frame
        self.id: Any = body["id"]
        self.method: str = body["method"]

    @property
    def params(self) -> Json:
        """The parameters, or an empty object when they are missing or not an object."""
        params = self.body.get("params")
        return params if type(params) is dict else {}


class Notification(Message):
    """A call that wants no response."""

    __slots__ = ("method",)

    def __init__(self, body: Json, frame: Frame | None = None) -> None:
        self.body = body
        self.frame = frame
        self.method: str = body["method"]

    @property
    def params(self) -> Json:
        """The parameters, or an empty object when they are missing or not an object."""
        params = self.body.get("params")
        return params if type(params) is dict else {}


class Response(Message):
    """The answer to a request: a result or an error; the `id` null answers nothing."""

    __slots__ = ("id", "is_error")

    def __init__(self, body: Json, frame: Frame | None = None) -> None:
        self.body = body
        self.frame = frame
        self.id: Any = body["id"]
        self.is_error = "error" in body

    @property
    def result(self) -> Any:
        """The result, None when there is none."""
        return self.body.get("result")

    @property
    def error(self) -> Json:
        """The error object; an ill-formed one reads as an empty object."""
        error = self.body.get("error")
        return error if type(error) is dict else {}

    @property
    def error_code(self) -> int | None:
        """The code of the error, None where it is no integer."""
        code = self.error.get("code")
        return code if type(code) is int else None


def classify(body: Json, frame: Frame | None = None) -> Request | Notification | Response | None:
    """Tell what a decoded object is; None when it is no JSON-RPC message at all."""
    if "method" in body:
        if type(body["method"]) is not str:
            return None
        return Request(body, frame) if "id" in body else Notification(body, frame)
    if "id" in body and ("result" in body or "error" in body):
        return Response(body, frame)
    return None


def request(id: Any, method: str, params: Json) -> Request:  # noqa: A002
    """A request of our own."""
    return Request({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification(method: str, params: Json) -> Notification:
    """A notification of our own."""
    return Notification({"jsonrpc": "2.0", "method": method, "params": params})


def result(id: Any, value: Any) -> Response:  # noqa: A002
    """An answer of our own."""
    return Response({"jsonrpc": "2.0", "id": id, "result": value})


def error(id: Any, code: int, text: str, data: Any = None) -> Response:  # noqa: A002
    """A refusal of our own."""
    body: Json = {"code": code, "message": text}
    if data is not None:
        body["data"] = data
    return Response({"jsonrpc": "2.0", "id": id, "error": body})


def well_formed_error(given: Any) -> Json:
    """A peer's error object with a number for a code and a text for a message; the rest passes as it is."""
    body: Json = given if type(given) is dict else {}
    code, text = body.get("code"), body.get("message")
    if type(code) is int and type(text) is str:
        return body
    return {
        **body,
        "code": code if type(code) is int else INTERNAL_ERROR,
        "message": text if type(text) is str else "no reason given",
    }


PLAIN_IDS: Final = frozenset({int, str})
"""The types of id that are their own `id_key`, for callers that ask with every message."""


def id_key(token: Any) -> Any:
    """A dictionary key under which 1, 1.0, true and "1" are four different ids (LC-70, LC-73)."""
    kind = type(token)
    if kind in PLAIN_IDS:
        return token
    return (kind.__name__, repr(token))
