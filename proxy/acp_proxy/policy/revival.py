"""Brings a restarted agent to where the old one stood; stands nearest the agent.

The recorded `initialize` is said again and each session taken up, both unseen by the client. What the
client says meanwhile waits, or fails clearly when that takes too long. An answer to what only the old
process had asked reaches nobody: the ids of the new one begin anew, and a yes must not hit another question.

Source: keys `agent.restart`, `restart_limit`, `restart_window`, `restart_delay`; BR-05, BR-06.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    RESOURCE_NOT_FOUND,
    Json,
    Message,
    Notification,
    Request,
    Response,
    error,
    id_key,
    request,
    result,
)
from acp_proxy.policy.breaker import Breaker
from acp_proxy.policy.late_answers import LateAnswers
from acp_proxy.policy.native_end import idle_update
from acp_proxy.policy.reattach import Attached, notice, same_version, settings_after, way_back

PATIENCE: Final = 30.0

_TITLE: Final = "The agent was restarted"
_LOST: Final = "The agent was restarted and no longer knows this session"
_KEEPS: Final = "What it was doing has ended. The session goes on with what the agent had saved of it."
_LOST_WHY: Final = "Open a new session to go on."
_ATTACHING_METHODS: Final = frozenset({"session/load", "session/resume"})


class Stage(Enum):
    """How far the agent is."""

    UP = auto()
    ABSENT = auto()
    GREETING = auto()
    ATTACHING = auto()


class Revival(Filter):
    """Holds what the client says while the agent is replaced; `when`: `never`, `idle` or `always`.

    At most `max_held` messages wait, none longer than `PATIENCE` seconds.
    """

    def __init__(
        self,
        engine: Engine,
        findings: FindingLog,
        token: Callable[[], str],
        breaker: Breaker,
        *,
        when: str,
        max_held: int,
    ) -> None:
        self.stage = Stage.UP
        self._engine = engine
        self._findings = findings
        self._token = token
        self._breaker = breaker
        self._when = when
        self._max_held = max_held
        self._known = Attached()
        self._late = LateAnswers(token)
        self._asked: dict[Any, Any] = {}
        self._held: deque[tuple[float, Request | Notification]] = deque()
        self._lost: set[str] = set()
        self._greeting_id: str | None = None
        self._attaching: dict[str, str] = {}
        self._ours: set[str] = set()
        self._due: float | None = None

    @property
    def up(self) -> bool:
        """Whether the agent stands where the client thinks it does."""
        return self.stage is Stage.UP

    @property
    def absent(self) -> bool:
        """Whether a new process is awaited."""
        return self.stage is Stage.ABSENT

    # ------------------------------------------------------------ whether

    def delay_after_end(self, at: float) -> float | None:
        """The agent has ended by itself: the wait before it is started anew, None if that is not to be."""
        if self._known.result is None or self._when == "never":
            return None
        if self._when == "idle" and self.stage is Stage.UP and self._working():
            return None
        return self.delay(at)

    def delay(self, at: float) -> float | None:
        """The wait before another start, in seconds; None when there were too many."""
        delay = None if self._known.result is None else self._breaker.start(at)
        text = "the agent is restarted" if delay is not None else "the agent was restarted too often"
        self._findings.note(
            Finding(at, "V59", "agent", text, action="repaired" if delay is not None else "noted")
        )
        return delay

    def _working(self) -> bool:
        prompts = (call.method == "session/prompt" for _, call in self._engine.from_client.items())
        return any(True for _ in self._engine.busy_sessions()) or any(prompts)

    # ------------------------------------------------------------ client to agent

    def forth(self, message: Message, at: float) -> Outcome:
        """Let pass what this agent process is meant to have."""
        if type(message) is Response:
            return self._answer(message)
        assert isinstance(message, (Request, Notification))
        if self.stage is not Stage.UP:
            return self._hold(message, at)
        session_id = message.params.get("sessionId")
        if type(session_id) is str and session_id in self._lost:
            return self._for_lost(message, session_id)
        if type(message) is Request:
            self._known.sent(message)
        return message

    def _answer(self, message: Response) -> Outcome:
        answer = self._late.back(message)
        if answer is not None:
            self._asked.pop(id_key(message.id), None)
        return answer

    def _for_lost(self, message: Request | Notification, session_id: str) -> Outcome:
        if type(message) is not Request:
            return None
        if message.method in _ATTACHING_METHODS:
            self._known.sent(message)
            return message
        if message.method == "session/close":
            self._lost.discard(session_id)
            return [ToClient(result(message.id, {}))]  # closing what is not open succeeds (LC-52)
        text = "the agent was restarted and no longer knows this session"
        return [ToClient(error(message.id, RESOURCE_NOT_FOUND, text, {"sessionId": session_id}))]

    def _hold(self, message: Request | Notification, at: float) -> Outcome:
        if message.method == "session/cancel":
            return self._withdraw(
                lambda held: (
                    held.method == "session/prompt"
                    and held.params.get("sessionId") == message.params.get("sessionId")
                )
            )
        if message.method == "$/cancel_request":
            token = id_key(message.params.get("requestId"))
            return self._withdraw(lambda held: id_key(held.id) == token)
        if len(self._held) >= self._max_held:
            return self._unavailable(message)
        self._held.append((at, message))
        return None

    def _withdraw(self, meant: Callable[[Request], bool]) -> Sequence[Step]:
        steps: list[Step] = []
        for entry in list(self._held):
            held = entry[1]
            if type(held) is not Request or not meant(held):
                continue
            self._held.remove(entry)
            if held.method == "session/prompt" and self._engine.version is Version.V1:
                steps.append(ToClient(result(held.id, {"stopReason": "cancelled"})))
            else:
                steps.append(ToClient(error(held.id, REQUEST_CANCELLED, "cancelled")))
        return steps

    def _unavailable(self, message: Request | Notification) -> list[Step]:
        if type(message) is not Request:
            return []
        return [ToClient(error(message.id, INTERNAL_ERROR, "the agent is being restarted"))]

    # ------------------------------------------------------------ agent to client

    def back(self, message: Travels, at: float) -> Outcome:
        """Keep to ourselves what only we asked for."""
        if type(message) is Request:
            message = self._late.out(message)
            self._asked[id_key(message.id)] = message.id
        elif type(message) is Notification:
            if message.body["method"] == "$/cancel_request":
                return self._late.withdrawn(message)
            if self._attaching and message.params.get("sessionId") in self._attaching.values():
                return None  # its history, and a state that the client knows
        elif type(message) is Response:
            if type(message.id) is str and message.id in self._ours:
                self._ours.discard(message.id)
                return self._ours_answered(message, at)
            self._known.answered(message)
            if self._lost:
                self._lost.difference_update(self._known.sessions)
        return message

    def _ours_answered(self, message: Response, at: float) -> Sequence[Step]:
        if message.id == self._greeting_id:
            self._greeting_id = None
            return self._greeted(message, at)
        session_id = self._attaching.pop(message.id, None)
        if session_id is None:
            return ()  # too late
        steps: list[Step] = []
        if message.is_error:
            steps += self._lose(session_id)
        else:
            given = message.result if type(message.result) is dict else {}
            steps += map(ToClient, settings_after(session_id, given))
            steps += self._tell(session_id, "warning", _TITLE, _KEEPS)
        return [*steps, *self._ready(at)] if not self._attaching else steps

    # ------------------------------------------------------------ the way back

    def started(self, at: float) -> Sequence[Step]:
        """The new process runs: greet it as the client did."""
        known = self._known.greeting
        if self.stage is not Stage.ABSENT or known is None:
            return ()
        self.stage = Stage.GREETING
        self._greeting_id = self._own_id()
        self._due = at + PATIENCE
        return [ToAgent(Request({**known.body, "id": self._greeting_id}))]

    def _own_id(self) -> str:
        own = f"acp-proxy-{self._token()}"
        self._ours.add(own)
        return own

    def _greeted(self, message: Response, at: float) -> Sequence[Step]:
        before = self._known.result
        now = message.result if type(message.result) is dict else {}
        assert before is not None
        if message.is_error or not same_version(before, now):
            return self._give_up()
        method = way_back(self._engine.version, now)
        steps: list[Step] = []
        for session_id, params in list(self._known.sessions.items()):
            if method is None:
                steps += self._lose(session_id)
                continue
            own = self._own_id()
            self._attaching[own] = session_id
            steps.append(ToAgent(request(own, method, {**params, "sessionId": session_id})))
        self.stage = Stage.ATTACHING
        self._due = at + PATIENCE
        return [*steps, *self._ready(at)] if not self._attaching else steps

    def _give_up(self) -> Sequence[Step]:
        """This process is of no use; perhaps the next is, unless there were too many."""
        self._due = None
        return [*self._fail_held(), RestartAgent()]

    def _lose(self, session_id: str) -> list[Step]:
        self._known.sessions.pop(session_id, None)
        self._lost.add(session_id)
        return self._tell(session_id, "error", _LOST, _LOST_WHY)

    def _tell(self, session_id: str, severity: str, title: str, text: str) -> list[Step]:
        if not self._known.tells_notices(self._engine.version):
            return []
        return [ToClient(notice(session_id, severity, title, text))]

    def _ready(self, at: float) -> list[Step]:
        """All is as it was: pass on what has waited."""
        self.stage = Stage.UP
        self._due = None
        steps: list[Step] = []
        held, self._held = self._held, deque()
        for _, message in held:
            outcome = self.forth(message, at)
            if outcome is message:
                steps.append(ToAgent(message))
            elif outcome is not None:
                assert not isinstance(outcome, Travels)
                steps += outcome
        return steps

    def _fail_held(self) -> list[Step]:
        steps = [step for _, message in self._held for step in self._unavailable(message)]
        self._held.clear()
        return steps

    # ------------------------------------------------------------ time, ends

    def next_deadline(self) -> float | None:
        """When the oldest held message, or the new process, has taken too long."""
        held = self._held[0][0] + PATIENCE if self._held else None
        if held is None or self._due is None:
            return self._due if held is None else held
        return min(held, self._due)

    def expire(self, at: float) -> Sequence[Step]:
        """Fail what has waited too long; go on without the sessions that did not come back."""
        steps: list[Step] = []
        while self._held and self._held[0][0] + PATIENCE <= at:
            steps += self._unavailable(self._held.popleft()[1])
        if self._due is None or self._due > at:
            return steps
        if self.stage is Stage.GREETING:
            return [*steps, *self._give_up()]
        for session_id in self._attaching.values():
            steps += self._lose(session_id)
        self._attaching.clear()
        return [*steps, *self._ready(at)]

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """End what the agent itself reported as running; whoever stands before us has failed the requests."""
        self.stage = Stage.ABSENT
        self._due = None
        self._greeting_id = None
        self._attaching.clear()
        self._ours.clear()
        self._held.clear()
        self._known.forget_open()
        for token in self._asked.values():
            self._late.expect(token)
        self._asked.clear()
        failed = {"stopReason": "error", "error": error_body}
        return [
            ToClient(idle_update(session.id, failed))
            for session in self._engine.busy_sessions()
            if session.native
        ]
