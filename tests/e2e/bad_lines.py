"""What a careless peer may put on the wire instead of a message, and in which modes that is tried."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from wrapped import Json, Wrapped


class Mode(NamedTuple):
    """Who speaks what."""

    client: int
    agent: int

    def script(self, **on: Any) -> Json:
        return {"version": self.agent, "on": on}


BRIDGED = Mode(2, 1)
MODES = {"bridged": BRIDGED, "v1": Mode(1, 1), "v2": Mode(2, 2)}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


async def answers_to(run: Wrapped, *said: Any) -> list[Json]:
    """Send something, and return all answers to it: whatever comes before that of a question put after it."""
    seen = len(run.frames)
    await run.send(*said)
    token = await run.ask("_barrier", {})
    await run.answer(token)
    return [frame for frame in run.frames[seen:] if "method" not in frame and frame.get("id") != token]


def codes(answers: list[Json]) -> list[tuple[Any, int]]:
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


def call(token: Any, method: str, params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": token, "method": method, "params": params}


def prompt(token: Any, session: str = "s1", text: str = "go") -> Json:
    return call(token, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})


PARSE, INVALID = -32700, -32600
NO_MESSAGE: dict[str, tuple[bytes, set[int]]] = {
    "noise": (b"hello there\n", {PARSE}),
    "half an object": (b'{"jsonrpc":"2.0","id":1,\n', {PARSE}),
    "two objects": (b'{"jsonrpc":"2.0"}{"jsonrpc":"2.0"}\n', {PARSE}),
    "bad UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n', {PARSE}),
    "encoded surrogate": (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}\n', {PARSE}),
    "NUL": (b"\x00\n", {PARSE}),
    "number": (b"17\n", {PARSE, INVALID}),
    "string": (b'"initialize"\n', {PARSE, INVALID}),
    "null": (b"null\n", {PARSE, INVALID}),
    "empty array": (b"[]\n", {INVALID}),
    "batch": (b'[{"jsonrpc":"2.0","id":9,"method":"_barrier"}]\n', {INVALID}),
    "empty object": (b"{}\n", {INVALID}),
    "method of a wrong type": (b'{"jsonrpc":"2.0","method":5}\n', {INVALID}),
    "deep": (b'{"id":1,"method":' + b"[" * 100_000 + b"\n", {PARSE}),
    "deep and whole": (b'{"id":1,"method":"_x","params":' + b"[" * 3000 + b"]" * 3000 + b"}\n", {PARSE}),
    "bomb": (b'{"id":1,"method":"_x","params":[' + b"[]," * 300_000 + b"0]}\n", {PARSE, INVALID}),
    "endless integer": (b'{"id":1,"method":"_x","params":' + b"9" * 5000 + b"}\n", {PARSE}),
}
UNANSWERED = {
    "blank line": b"\n",
    "blanks": b"   \t \n",
    "CRLF alone": b"\r\n",
    "answer nobody asked for": b'{"jsonrpc":"2.0","id":4711,"result":{}}\n',
    "answer under a string": b'{"jsonrpc":"2.0","id":"1","result":{}}\n',
    "error with id null": b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}\n',
    "answer of neither kind": b'{"jsonrpc":"2.0","id":4712}\n',
    "answer without an id": b'{"jsonrpc":"2.0","result":{}}\n',
    "error without an id": b'{"jsonrpc":"2.0","error":{"code":1,"message":"?"}}\n',
    "unknown notification": b'{"jsonrpc":"2.0","method":"nonsense/at_all","params":{}}\n',
    "cancel of an unknown request": b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":88}}\n',
    "cancel of an unknown session": b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"?"}}\n',
}
