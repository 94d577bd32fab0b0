"""Makes messages of received lines, and answers for what is none.

The peer's garbage is never ours to fail on: noise of the agent is shown to people, whatever looks like a
request gets its answer, and what looks like an answer gets none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

from acp_proxy.acp.version import Role
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.framing import Oversize
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Frame,
    Json,
    Message,
    classify,
    error,
)

_HEAD_ID: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\\x00-\x1f])*")\s*,\s*"(method|result|error)"'
)


_NOTHING: Final = object()


class Note(Protocol):
    """Writes a finding; `ruled`: only where the settings do not turn its rule off."""

    def __call__(
        self,
        at: float,
        rule: str,
        leg: Role,
        text: str,
        frame: Frame | None,
        source: str,
        action: str = "noted",
        *,
        ruled: bool = False,
    ) -> None: ...


class Intake:
    """The way in of a relay: `walk` takes a message of a leg on, `answer` sends one back to it."""

    def __init__(
        self,
        batches: str,
        *,
        walk: Callable[[Role, Message, float], None],
        answer: Callable[[Role, Message, float], None],
        note: Note,
        report: Callable[[float, Role, str, Frame, Message | None], None] | None,
        divert: Callable[[bytes], None],
    ) -> None:
        """`batches` is `reject` or `split`; `divert` shows bytes of the agent that are no protocol.

        `report` is told of every frame, None when nobody wants to know.
        """
        self._batches = batches
        self._walk = walk
        self._answer = answer
        self._note = note
        self._report = report
        self._divert = divert

    def line(self, leg: Role, raw: bytes, number: int, at: float) -> None:
        """Decode a line and walk what it holds through the chain."""
        frame = Frame(raw, number)
        try:
            body = codec.decode(raw)
        except codec.DecodeError as exc:
            body = self._decode_again(leg, frame, str(exc), at)
            if body is _NOTHING:
                return
        message = classify(body, frame) if type(body) is dict else None
        if self._report is not None:
            self._report(at, leg, "in", frame, message)
        if message is not None:
            self._walk(leg, message, at)
        elif type(body) is dict:
            self._no_message(leg, frame, body, at)
        elif type(body) is list:
            self._batch(leg, frame, body, at)
        else:
            self._no_json(leg, frame, "neither an object nor an array", at)

    def _decode_again(self, leg: Role, frame: Frame, why: str, at: float) -> object:
        """What stands behind a byte order mark; _NOTHING for a blank line, and for what is no JSON."""
        unmarked = codec.strip_bom(frame.raw)
        if unmarked is not frame.raw:
            frame.raw = unmarked
            self._note(at, "V49", leg, "byte order mark before a frame", frame, "bridge 0", "repaired")
            try:
                body: object = codec.decode(unmarked)
            except codec.DecodeError as exc:
                why = str(exc)
            else:
                return body
        if frame.raw.strip():
            if self._report is not None:
                self._report(at, leg, "in", frame, None)
            self._no_json(leg, frame, why, at)
        return _NOTHING

    def _no_json(self, leg: Role, frame: Frame, why: str, at: float) -> None:
        self._note(
            at, "V45", leg, f"line is no JSON object: {why}", frame, "bridge 0", "repaired", ruled=True
        )
        if leg is Role.AGENT:
            self._divert(frame.raw)
        else:
            self._answer(leg, error(None, PARSE_ERROR, f"line is no JSON object: {why}"), at)

    def _no_message(self, leg: Role, frame: Frame, body: Json, at: float) -> None:
        """A JSON object that is no JSON-RPC message; what looks like an answer is never answered."""
        if leg is Role.AGENT and "method" not in body:
            self._note(
                at,
                "V45",
                leg,
                "JSON object is no JSON-RPC message",
                frame,
                "bridge 0",
                "repaired",
                ruled=True,
            )
            self._divert(frame.raw)
            return
        self._note(
            at,
            "V31",
            leg,
            "JSON object is no JSON-RPC message",
            frame,
            "JSON-RPC 2.0 §4",
            "refused",
            ruled=True,
        )
        if "method" in body or body.keys().isdisjoint(("id", "result", "error")):
            token = body.get("id")
            known = token if type(token) in (int, str) else None
            self._answer(leg, error(known, INVALID_REQUEST, "not a JSON-RPC request"), at)

    def _batch(self, leg: Role, frame: Frame, items: list[object], at: float) -> None:
        if self._batches == "split" and items:
            self._note(at, "V32", leg, "batch taken apart", frame, "lifecycle 2.5", "repaired")
            for item in items:
                message = classify(item) if isinstance(item, dict) else None
                if message is None:
                    self._answer(leg, error(None, INVALID_REQUEST, "batch item is no JSON-RPC message"), at)
                else:
                    self._walk(leg, message, at)
            return
        self._note(at, "V32", leg, "batches are not supported", frame, "lifecycle 2.5", "refused", ruled=True)
        self._answer(leg, error(None, INVALID_REQUEST, "batches are not supported"), at)

    def oversize(self, leg: Role, line: Oversize, number: int, at: float) -> None:
        """Skip a line that is too long, but never leave the request it belongs to without an answer."""
        frame = Frame(line.head, number)
        if self._report is not None:
            self._report(at, leg, "in", frame, None)
        self._note(
            at, "V48", leg, "line over the size limit skipped", frame, "limits.message_bytes", "refused"
        )
        found = _HEAD_ID.match(line.head)
        if found is None:
            if leg is Role.CLIENT and b'"method"' in line.head:
                # Its id, if it has one, stands behind what was skipped.
                self._answer(
                    leg,
                    error(None, INVALID_REQUEST, "message is larger than limits.message_bytes allows"),
                    at,
                )
            return
        token = codec.decode(found[1])
        refusal = error(token, INVALID_REQUEST, "message is larger than limits.message_bytes allows")
        if found[2] == b"method":
            self._answer(leg, refusal, at)
        elif leg is Role.AGENT:
            failed = error(
                token, INTERNAL_ERROR, "the agent's answer is larger than limits.message_bytes allows"
            )
            self._walk(leg, failed, at)
        else:
            failed = error(
                token, INTERNAL_ERROR, "the client's answer is larger than limits.message_bytes allows"
            )
            self._walk(leg, failed, at)
