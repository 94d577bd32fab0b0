"""Stands around one filter of a plugin: whatever that does, the chain gets what a filter may say.

A failure is an exception, or an answer the chain could not carry: something that is no message, a
message that is no JSON, or one changed in place, which would leave as its original bytes and so
undo, unseen, what a redactor did. It is reported as V55, and the message passes or is refused as
the plugin declares. What a fence cannot help against is a filter that does not return.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Final

from acp_proxy import plugin
from acp_proxy.filters.base import Filter, Outcome, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    Json,
    Message,
    Request,
    Response,
    classify,
    error,
)

FAILURES: Final = 3

# The finding that tells of a failure, and the exception behind it if there is one.
Reported = Callable[[Finding, BaseException | None], None]


class Misuse(Exception):
    """A plugin did what the interface does not allow; the text never quotes a message."""


class Fence(Filter):
    """A plugin's filter as a stage of the chain."""

    def __init__(self, name: str, stage: plugin.Filter, *, refuses: bool, report: Reported) -> None:
        self._name = name
        self._stage = stage
        self._refuses = refuses
        self._report = report
        self._failures = 0
        self._out = False
        self._timed = True
        self._at = 0.0

    # ------------------------------------------------------------ messages

    def forth(self, message: Message, at: float) -> Outcome:
        """Let the filter see a message of the client."""
        if self._out:
            return message
        self._at = at
        came = _Came(message)
        try:
            return _outcome(self._stage.forth(message, at))
        except (Exception, SystemExit) as exc:
            return self._instead(came, at, "forth", "client", exc)

    def back(self, message: Travels, at: float) -> Outcome:
        """Let the filter see a message of the agent; a state change is none."""
        if self._out or not isinstance(message, Message):
            return message
        self._at = at
        came = _Came(message)
        try:
            return _outcome(self._stage.back(message, at))
        except (Exception, SystemExit) as exc:
            return self._instead(came, at, "back", "agent", exc)

    def _instead(self, came: _Came, at: float, method: str, leg: str, exc: BaseException) -> Outcome:
        """What becomes of a message that the filter failed at."""
        message = came.message()
        refuses = self._refuses or not _is_sound(message)
        params = message.body.get("params")
        session_id = params.get("sessionId") if type(params) is dict else None
        self._failed(
            exc,
            method,
            at,
            leg,
            session=session_id if type(session_id) is str else None,
            frames=(message.frame.number,) if message.frame is not None else (),
            action="refused" if refuses else "noted",
        )
        if not refuses:
            return message
        text = f"plugin {self._name!r} failed at this message"
        if type(message) is Response:
            return error(message.id, INTERNAL_ERROR, text)
        if type(message) is Request:
            refusal = error(message.id, INTERNAL_ERROR, text)
            return [ToClient(refusal) if method == "forth" else ToAgent(refusal)]
        return None

    # ------------------------------------------------------------ time, ends

    def next_deadline(self) -> float | None:
        """When the filter wants to be called; a filter that fails to say so is not asked again."""
        if self._out or not self._timed:
            return None
        try:
            return self._due()
        except (Exception, SystemExit) as exc:
            self._timed = False
            self._failed(exc, "next_deadline", self._at, "client")
            return None

    def expire(self, at: float) -> Sequence[Step]:
        """Call the filter at its time. One that is due again at the same moment would never let go."""
        if self._out or not self._timed:
            return ()
        self._at = at
        steps: Sequence[Step] = ()
        try:
            steps = _steps(self._stage.expire(at))
        except (Exception, SystemExit) as exc:
            self._failed(exc, "expire", at, "client")
        due = self.next_deadline()
        if due is not None and due <= at:
            self._timed = False
            self._failed(Misuse("it is due again at once"), "next_deadline", at, "client")
        return steps

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """Let the filter answer what it holds."""
        if self._out:
            return ()
        self._at = at
        try:
            return _steps(self._stage.agent_gone({**error_body}, at))
        except (Exception, SystemExit) as exc:
            self._failed(exc, "agent_gone", at, "client")
            return ()

    def _due(self) -> float | None:
        due: Any = self._stage.next_deadline()
        if due is None:
            return None
        if isinstance(due, bool) or not isinstance(due, (int, float)):
            raise Misuse(f"returned {_named(due)}, not a number of seconds or None")
        if math.isnan(due):
            raise Misuse("returned a time that is not a number")
        seconds = float(due)
        return None if seconds == math.inf else seconds

    # ------------------------------------------------------------ failures

    def _failed(self, exc: BaseException, method: str, at: float, leg: str, **evidence: Any) -> None:
        self._failures += 1
        text = f"plugin {self._name!r} failed in {method}: {failure_text(exc)}"
        if self._failures == FAILURES and not self._refuses:
            self._out = True
            text += f"; after {FAILURES} failures its filter is taken out"
        self._report(Finding(at, "V55", leg, text, source=f"plugins.{self._name}", **evidence), exc)


def failure_text(exc: BaseException) -> str:
    """What went wrong and where, without the exception's own text, which may quote a message."""
    if isinstance(exc, Misuse):
        return str(exc)
    place = ""
    trace = exc.__traceback__
    while trace is not None:
        place = f" at {PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(exc).__name__}{place}"


def _outcome(said: Any) -> Outcome:
    """What a filter answered, checked. Raises Misuse."""
    if said is None:
        return None
    if isinstance(said, Message):
        _sound(said)
        return said
    return _steps(said)


def _steps(said: Any) -> list[Step]:
    if type(said) not in (list, tuple):
        if hasattr(said, "close"):
            said.close()  # a coroutine nobody awaits would complain when it is collected
        raise Misuse(f"returned {_named(said)}, not a message, a list or None")
    for step in said:
        if type(step) not in (ToAgent, ToClient):
            raise Misuse(f"returned a list with {_named(step)}, not only ToAgent and ToClient")
        if not isinstance(step.message, Message):
            raise Misuse(f"says {_named(step.message)}, which is no message")
        _sound(step.message)
    return list(said)


def _sound(message: Message) -> None:
    """Raise Misuse for a message that the rest of the chain could not take."""
    body: Any = message.body
    if type(body) is not dict or type(classify(body)) is not type(message):
        raise Misuse(f"says a {type(message).__name__} whose body is none")
    if body.get("id") != getattr(message, "id", None) or body.get("method") != getattr(
        message, "method", None
    ):
        raise Misuse("changed a message in place")
    if message.frame is not None:
        if not _same(codec.decode(message.frame.raw), body):
            raise Misuse("changed a message in place, or gave a changed one the frame of another")
        return
    try:
        codec.encode(body)
    except Exception:
        raise Misuse("says a message that is not JSON") from None


def _same(one: Json, other: Json) -> bool:
    try:
        return one == other
    except RecursionError:  # the codec takes deeper nesting than Python compares
        return codec.encode(one) == codec.encode(other)


class _Came:
    """A message as it came, to go back to when a filter has failed with its hands in it.

    A frame is decoded again. Without one, only the outermost object is kept: a whole copy of every
    message was rejected as too dear, so damage further in stays, and is refused if it is no JSON.
    """

    __slots__ = ("_body", "_frame", "_message")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._frame = message.frame
        self._body = {**message.body} if message.frame is None else None

    def message(self) -> Message:
        """The message; a new one."""
        if self._frame is None:
            assert self._body is not None
            return type(self._message)(self._body)
        return classify(codec.decode(self._frame.raw), self._frame) or self._message


def _is_sound(message: Message) -> bool:
    try:
        _sound(message)
    except Misuse:
        return False
    return True


def _named(value: object) -> str:
    return f"a {type(value).__name__}"
