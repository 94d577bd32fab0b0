"""Answers in a peer's name when it stays silent beyond a configured time; all off by default.

Time comes in with the messages. A waiting person is never a stall, and silence is never taken
for approval (lifecycle §2.5, BR-33, BR-37).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_proxy.filters.alarms import Alarms
from acp_proxy.filters.base import Filter, Outcome, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.session import Session
from acp_proxy.jsonrpc.message import (
    Json,
    Message,
    Notification,
    Request,
    Response,
    id_key,
    notification,
    result,
)

_REJECTING: Final = ("reject_once", "reject_always")


def rejection(options: Any) -> Json:
    """The outcome that rejects: an offered reject option, else `cancelled`; never an allow option."""
    offered = [option for option in options if type(option) is dict] if type(options) is list else []
    for kind in _REJECTING:
        for option in offered:
            if option.get("kind") == kind and type(option.get("optionId")) is str:
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return {"outcome": {"outcome": "cancelled"}}


class PermissionPatience(Filter):
    """Rejects a permission the client leaves unanswered; stands at the client's end.

    `lifecycle.permission_timeout`, seconds. The request is withdrawn at the client, and its late
    answer goes nowhere.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._alarms = Alarms()
        self._asked: dict[Any, Request] = {}
        self._answered: set[Any] = set()

    def back(self, message: Travels, at: float) -> Outcome:
        """Start the clock for a permission; stop it for one that is withdrawn."""
        if type(message) is Request and message.method == "session/request_permission":
            key = id_key(message.id)
            self._asked[key] = message
            self._answered.discard(key)
            self._alarms.set(key, at + self._timeout)
        elif type(message) is Notification and message.method == "$/cancel_request":
            self._alarms.drop(id_key(message.params.get("requestId")))
        return message

    def forth(self, message: Message, at: float) -> Outcome:
        """Stop the clock at an answer; drop one that came too late."""
        if type(message) is Response:
            key = id_key(message.id)
            if key in self._answered:
                self._answered.discard(key)
                return None
            self._asked.pop(key, None)
            self._alarms.drop(key)
        return message

    def next_deadline(self) -> float | None:
        """When the oldest unanswered permission runs out."""
        return self._alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Reject what has waited too long."""
        steps: list[Step] = []
        for key in self._alarms.ring(at):
            asked = self._asked.pop(key)
            self._answered.add(key)
            steps.append(ToAgent(result(asked.id, rejection(asked.params.get("options")))))
            steps.append(ToClient(notification("$/cancel_request", {"requestId": asked.id})))
        return steps


class CancelPatience(Filter):
    """Ends a cancelled turn that the agent leaves open; stands at the agent's end.

    `lifecycle.cancel_timeout`, seconds. The answer is made in the agent's name, so the engine and
    the client are told in the ordinary way; the agent's own late answer is dropped (LC-12).
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._alarms = Alarms()
        self._open: dict[str, dict[Any, Any]] = {}
        self._session_of: dict[Any, str] = {}
        self._answered: set[Any] = set()

    def forth(self, message: Message, at: float) -> Outcome:
        """Note open prompts; start the clock at a cancel."""
        if type(message) is Request and message.method == "session/prompt":
            session_id = message.params.get("sessionId")
            if type(session_id) is str:
                key = id_key(message.id)
                self._open.setdefault(session_id, {})[key] = message.id
                self._session_of[key] = session_id
                self._answered.discard(key)
        elif type(message) is Notification and message.method == "session/cancel":
            session_id = message.params.get("sessionId")
            if type(session_id) is str and self._open.get(session_id):
                self._alarms.set(session_id, at + self._timeout)
        return message

    def back(self, message: Travels, at: float) -> Outcome:
        """Stop the clock when the turn ends; drop an answer that was already given."""
        if type(message) is Response:
            key = id_key(message.id)
            if key in self._answered:
                self._answered.discard(key)
                return None
            self._forget(key)
        return message

    def next_deadline(self) -> float | None:
        """When the oldest unconfirmed cancel runs out."""
        return self._alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Answer the prompts of sessions whose cancel was not confirmed."""
        steps: list[Step] = []
        for session_id in self._alarms.ring(at):
            for key, token in list(self._open.get(str(session_id), {}).items()):
                self._forget(key)
                self._answered.add(key)
                steps.append(ToClient(result(token, {"stopReason": "cancelled"})))
        return steps

    def _forget(self, key: Any) -> None:
        session_id = self._session_of.pop(key, None)
        if session_id is None:
            return
        turns = self._open[session_id]
        turns.pop(key, None)
        if not turns:
            del self._open[session_id]
            self._alarms.drop(session_id)


class Stalls(Filter):
    """Notes foreground work that went quiet or took too long (V46); it ends nothing.

    `lifecycle.stall_after` and `lifecycle.turn_timeout`, seconds, 0 = off.
    """

    def __init__(
        self, stall_after: float, turn_timeout: float, sessions: Mapping[str, Session], findings: FindingLog
    ) -> None:
        self._stall_after = stall_after
        self._turn_timeout = turn_timeout
        self._sessions = sessions
        self._findings = findings
        self._alarms = Alarms()

    def forth(self, message: Message, at: float) -> Outcome:
        """Start both clocks with a prompt."""
        if type(message) is Request and message.method == "session/prompt":
            session_id = message.params.get("sessionId")
            if type(session_id) is str:
                if self._stall_after:
                    self._alarms.set(("stall", session_id), at + self._stall_after)
                if self._turn_timeout:
                    self._alarms.set(("turn", session_id), at + self._turn_timeout)
        return message

    def next_deadline(self) -> float | None:
        """When the next session is to be looked at."""
        return self._alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Look at the sessions whose time has come."""
        for key in self._alarms.ring(at):
            assert isinstance(key, tuple)
            kind, session_id = key
            session = self._sessions.get(session_id)
            if session is None or not session.busy:
                continue
            if kind == "turn":
                self._note(at, session_id, f"turn still open after {self._turn_timeout:g} s")
            elif session.waits or session.open_foreground or session.helpers:
                self._alarms.set(key, at + self._stall_after)
            elif at - session.last_heard >= self._stall_after:
                self._note(at, session_id, f"nothing heard for {self._stall_after:g} s in an open turn")
            else:
                self._alarms.set(key, session.last_heard + self._stall_after)
        return ()

    def _note(self, at: float, session_id: str, text: str) -> None:
        self._findings.note(Finding(at, "V46", "agent", text, session=session_id, source="lifecycle 2.5"))
