"""Notes turns that stall or run beyond a ceiling (V46), and climbs the configured steps.

Quiet is a stall only while nothing runs and nobody is asked: an open tool call may take its time, and
a waiting person is never a stall. It stands next to the engine, between it and the translator, and
speaks to the agent in the client's name. All times in seconds, 0 = off.

Source: keys `lifecycle.stall_after`, `stall_action`, `tool_timeout`, `turn_timeout`; BR-01, BR-28.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_proxy.filters.alarms import Alarms
from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, Travels
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.session import FINAL_STATUSES, Session
from acp_proxy.jsonrpc.message import Message, Notification, Request, Response, id_key, notification

_STALL: Final = "stall"
_TURN: Final = "turn"
_TOOL: Final = "tool"
_LADDER: Final = "ladder"


class _Turn:
    """What is open in one session, as far as a stall is concerned."""

    __slots__ = ("heard", "steps", "tools", "waits")

    def __init__(self) -> None:
        self.heard = 0.0
        self.tools: set[str] = set()
        self.waits: set[Any] = set()
        self.steps: list[str] = []


class Stalls(Filter):
    """Watches every session's turn; `actions` are the steps `cancel` and `restart`, in order.

    `restart` after `cancel` waits `cancel_timeout` for the cancel to be confirmed.
    """

    def __init__(
        self,
        sessions: Mapping[str, Session],
        findings: FindingLog,
        *,
        stall_after: float = 0.0,
        turn_timeout: float = 0.0,
        tool_timeout: float = 0.0,
        cancel_timeout: float = 0.0,
        actions: Sequence[str] = (),
    ) -> None:
        self._sessions = sessions
        self._findings = findings
        self._stall_after = stall_after
        self._turn_timeout = turn_timeout
        self._tool_timeout = tool_timeout
        self._cancel_timeout = cancel_timeout
        self._actions = tuple(actions)
        self._alarms = Alarms()
        self._turns: dict[str, _Turn] = {}
        self._asked: dict[Any, str] = {}

    # ------------------------------------------------------------ what passes

    def forth(self, message: Message, at: float) -> Outcome:
        """A prompt begins a turn; an answer may let it go on."""
        if type(message) is Request and message.method == "session/prompt":
            session_id = message.params.get("sessionId")
            if type(session_id) is str:
                self._begin(session_id, at)
        elif type(message) is Response:
            session_id = self._asked.pop(id_key(message.id), None)
            if session_id is not None:
                turn = self._turn(session_id)
                turn.waits.discard(id_key(message.id))
                turn.heard = at
        return message

    def back(self, message: Travels, at: float) -> Outcome:
        """Whatever the agent says of a session is a sign of life."""
        if not isinstance(message, (Notification, Request)):
            return message
        session_id = message.params.get("sessionId")
        if type(session_id) is not str:
            return message
        turn = self._turn(session_id)
        turn.heard = at
        if type(message) is Request:
            key = id_key(message.id)
            self._asked[key] = session_id
            turn.waits.add(key)
        elif message.method == "session/update":
            self._update(session_id, turn, message.params.get("update"), at)
        return message

    def _update(self, session_id: str, turn: _Turn, update: Any, at: float) -> None:
        if type(update) is not dict:
            return
        if update.get("sessionUpdate") == "state_update":
            if update.get("state") == "running" and not self._is_timed(session_id):
                self._begin(session_id, at)
            return
        tool_id, status = update.get("toolCallId"), update.get("status")
        if type(tool_id) is not str or update.get("sessionUpdate") not in ("tool_call", "tool_call_update"):
            return
        if status in FINAL_STATUSES:
            turn.tools.discard(tool_id)
            self._alarms.drop((_TOOL, session_id, tool_id))
        elif tool_id not in turn.tools and (status is not None or update["sessionUpdate"] == "tool_call"):
            turn.tools.add(tool_id)
            if self._tool_timeout:
                self._alarms.set((_TOOL, session_id, tool_id), at + self._tool_timeout)

    def _turn(self, session_id: str) -> _Turn:
        turn = self._turns.get(session_id)
        if turn is None:
            turn = self._turns[session_id] = _Turn()
        return turn

    def _is_timed(self, session_id: str) -> bool:
        return self._alarms.is_set((_STALL, session_id)) or self._alarms.is_set((_TURN, session_id))

    def _begin(self, session_id: str, at: float) -> None:
        turn = self._turn(session_id)
        if not self._busy(session_id):
            # What an earlier turn left open is background now, and no excuse for this one.
            for tool_id in turn.tools:
                self._alarms.drop((_TOOL, session_id, tool_id))
            turn.tools.clear()
        turn.heard = at
        turn.steps = list(self._actions)
        if self._stall_after:
            self._alarms.set((_STALL, session_id), at + self._stall_after)
        if self._turn_timeout:
            self._alarms.set((_TURN, session_id), at + self._turn_timeout)

    def _busy(self, session_id: str) -> bool:
        session = self._sessions.get(session_id)
        return session is not None and session.busy

    # ------------------------------------------------------------ time

    def next_deadline(self) -> float | None:
        """When the next session is to be looked at."""
        return self._alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Look at what is due; note it, and take the first step."""
        steps: list[Step] = []
        for key in self._alarms.ring(at):
            assert isinstance(key, tuple)
            kind, session_id = key[0], key[1]
            turn = self._turn(session_id)
            if not self._busy(session_id):
                continue
            if kind == _LADDER:
                steps += self._climb(session_id, turn, at)
            elif kind == _STALL:
                steps += self._quiet(session_id, turn, at)
            elif kind == _TURN:
                text = f"turn still open after {self._turn_timeout:g} s"
                steps += self._breach(session_id, turn, text, at)
            elif key[2] in turn.tools and not turn.waits:
                text = f"a tool call still open after {self._tool_timeout:g} s"
                steps += self._breach(session_id, turn, text, at)
            elif key[2] in turn.tools:
                self._alarms.set(key, at + self._tool_timeout)
        return steps

    def _quiet(self, session_id: str, turn: _Turn, at: float) -> list[Step]:
        key = (_STALL, session_id)
        if turn.tools or turn.waits:
            self._alarms.set(key, at + self._stall_after)
            return []
        due = turn.heard + self._stall_after
        if due > at:
            self._alarms.set(key, due)
            return []
        return self._breach(session_id, turn, f"nothing heard for {self._stall_after:g} s in an open turn", at)

    def _breach(self, session_id: str, turn: _Turn, text: str, at: float) -> list[Step]:
        action = "repaired" if turn.steps else "noted"
        finding = Finding(at, "V46", "agent", text, session=session_id, action=action, source="lifecycle 2.5")
        self._findings.note(finding)
        return self._climb(session_id, turn, at)

    def _climb(self, session_id: str, turn: _Turn, at: float) -> list[Step]:
        """Take the next step; one that waits for the step before is put off."""
        if not turn.steps:
            return []
        step = turn.steps.pop(0)
        if step == "restart":
            turn.steps.clear()
            return [RestartAgent()]
        if turn.steps:
            self._alarms.set((_LADDER, session_id), at + self._cancel_timeout)
        return [ToAgent(notification("session/cancel", {"sessionId": session_id}))]
