"""Notes turns that stall or run beyond a ceiling (V46), and climbs the configured steps.

Quiet is a stall only while nothing runs and nobody is asked: an open tool call may take its time. A
waiting person is never a stall, and stops the clocks of turn and tools too: how long somebody thinks is
what `lifecycle.permission_timeout` is for. It stands next to the engine, between it and the translator,
and speaks to the agent in the client's name; so prompts that wait in the proxy are not cancelled with the
turn that stalls. All times in seconds, 0 = off.

Source: keys `lifecycle.stall_after`, `stall_action`, `tool_timeout`, `turn_timeout`; BR-01, BR-28, BR-40.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Any, Final

from acp_proxy.filters.alarms import Alarms
from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, Travels
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import FINAL_STATUSES, Session, State
from acp_proxy.inference.triggers import HELPER_PREFIXES
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request, Response, id_key, notification

# Between a cancel and the restart behind it where no `lifecycle.cancel_timeout` is set.
RESTART_GRACE: Final = 15.0

_STALL: Final = "stall"
_TURN: Final = "turn"
_TOOL: Final = "tool"
_LADDER: Final = "ladder"


class _Turn:
    """What is open in one session, as far as a stall is concerned; `left`: seconds left on stopped clocks."""

    __slots__ = (
        "climbing",
        "clocks",
        "closed_tools",
        "frame",
        "heard",
        "helpers",
        "left",
        "people",
        "prompt",
        "steps",
        "tools",
    )

    def __init__(self, steps: Sequence[str]) -> None:
        self.heard = 0.0
        self.prompt: int | None = None
        self.frame: int | None = None
        self.tools: dict[str, int | None] = {}
        self.closed_tools: set[str] = set()
        self.helpers: set[Any] = set()
        self.people: set[Any] = set()
        self.steps = list(steps)
        self.climbing = False
        self.clocks: dict[Hashable, float] = {}
        self.left: dict[Hashable, float] = {}


class Stalls(Filter):
    """Watches every session's turn; `actions` are the steps `cancel` and `restart`, in order.

    `open_requests` knows which ids of the agent wait for an answer, whoever will give it.
    `confirmed`: somebody else restarts the agent when a cancel is not confirmed in time.
    """

    def __init__(
        self,
        sessions: Mapping[str, Session],
        findings: FindingLog,
        open_requests: Container[Any],
        *,
        stall_after: float = 0.0,
        turn_timeout: float = 0.0,
        tool_timeout: float = 0.0,
        actions: Sequence[str] = (),
        confirmed: bool = False,
    ) -> None:
        self._sessions = sessions
        self._findings = findings
        self._open_requests = open_requests
        self._stall_after = stall_after
        self._turn_timeout = turn_timeout
        self._tool_timeout = tool_timeout
        self._actions = tuple(actions)
        self._confirmed = confirmed
        self._alarms = Alarms()
        self._turns: dict[str, _Turn] = {}
        self._asked: dict[Any, tuple[str, Any]] = {}

    # ------------------------------------------------------------ what passes

    def forth(self, message: Message, at: float) -> Outcome:
        """A prompt begins a turn; an answer may let it go on."""
        if type(message) is Request and message.method == "session/prompt":
            session_id = message.params.get("sessionId")
            if type(session_id) is str:
                self._begin(session_id, message, at)
        elif type(message) is Response:
            self._settled(message.id, at)
        return message

    def back(self, message: Travels, at: float) -> Outcome:
        """Whatever the agent says of a session is a sign of life."""
        if isinstance(message, Change):
            if message.new is State.IDLE and not message.resume:
                self._end(self._turn(message.session.id))
            return message
        if not isinstance(message, (Notification, Request)):
            return message
        if message.method == "$/cancel_request":
            self._settled(message.params.get("requestId"), at)
            return message
        session_id = message.params.get("sessionId")
        if type(session_id) is not str:
            return message
        turn = self._turn(session_id)
        turn.heard = at
        turn.frame = _number(message)
        if type(message) is Request:
            self._ask(session_id, turn, message, at)
        elif message.method == "session/update":
            update = message.params.get("update")
            if type(update) is dict:
                self._update(session_id, turn, update, message, at)
        return message

    def _ask(self, session_id: str, turn: _Turn, message: Request, at: float) -> None:
        key = id_key(message.id)
        self._asked[key] = (session_id, message.id)
        if message.method.startswith(HELPER_PREFIXES):
            turn.helpers.add(key)
        else:
            self._wait(turn, key, at)

    def _settled(self, token: Any, at: float) -> None:
        """A request of the agent has been answered, or withdrawn."""
        asked = self._asked.pop(id_key(token), None)
        if asked is not None:
            turn = self._turn(asked[0])
            turn.heard = at
            turn.helpers.discard(id_key(token))
            self._go_on(turn, id_key(token), at)

    def _update(self, session_id: str, turn: _Turn, update: Json, message: Message, at: float) -> None:
        tag = update.get("sessionUpdate")
        if tag == "state_update":
            self._state(session_id, turn, update.get("state"), message, at)
            return
        tool_id = update.get("toolCallId")
        if type(tool_id) is not str or tag not in ("tool_call", "tool_call_update"):
            return
        status = update.get("status")
        if type(status) is str and status in FINAL_STATUSES:
            turn.tools.pop(tool_id, None)
            turn.closed_tools.add(tool_id)
            self._stop(turn, (_TOOL, session_id, tool_id))
        elif tool_id not in turn.tools and (tag == "tool_call" or tool_id not in turn.closed_tools):
            turn.tools[tool_id] = turn.frame
            if self._tool_timeout:
                self._start(turn, (_TOOL, session_id, tool_id), at, self._tool_timeout)

    def _state(self, session_id: str, turn: _Turn, state: Any, message: Message, at: float) -> None:
        """An agent that reports its states may begin by itself, and may ask somebody without our seeing it."""
        if state == "idle":
            self._end(turn)
            return
        if state == "requires_action":
            self._wait(turn, _STALL, at)
        else:
            self._go_on(turn, _STALL, at)
        if state != "unknown" and not (turn.clocks or turn.left):
            self._begin(session_id, message, at)

    def _turn(self, session_id: str) -> _Turn:
        turn = self._turns.get(session_id)
        if turn is None:
            turn = self._turns[session_id] = _Turn(self._actions)
        return turn

    def _begin(self, session_id: str, message: Message, at: float) -> None:
        turn = self._turn(session_id)
        turn.heard = at
        turn.frame = _number(message)
        if self._busy(session_id) and (turn.clocks or turn.left):
            return  # one more prompt in the same span of work (LC-06)
        self._end(turn)
        turn.prompt = turn.frame
        turn.steps = list(self._actions)
        turn.climbing = False
        if self._stall_after:
            self._start(turn, (_STALL, session_id), at, self._stall_after)
        if self._turn_timeout:
            self._start(turn, (_TURN, session_id), at, self._turn_timeout)

    def _end(self, turn: _Turn) -> None:
        """What the turn leaves open is background now, and no excuse for the next one."""
        for key in list(turn.clocks):
            self._stop(turn, key)
        turn.left.clear()
        turn.tools.clear()
        turn.people.clear()
        turn.helpers.clear()

    def _busy(self, session_id: str) -> bool:
        session = self._sessions.get(session_id)
        return session is not None and session.busy

    # ------------------------------------------------------------ clocks

    def _start(self, turn: _Turn, key: Hashable, at: float, seconds: float, due: float | None = None) -> None:
        """Let a clock run for so long, `due` where it is known to the last digit; it always ends later than now."""
        if turn.people:
            turn.left[key] = seconds
            return
        due = max(at + seconds if due is None else due, math.nextafter(at, math.inf))
        turn.clocks[key] = due
        self._alarms.set(key, due)

    def _stop(self, turn: _Turn, key: Hashable) -> None:
        turn.left.pop(key, None)
        if turn.clocks.pop(key, None) is not None:
            self._alarms.drop(key)

    def _wait(self, turn: _Turn, key: Any, at: float) -> None:
        """Somebody is asked: all clocks stand still."""
        turn.people.add(key)
        for clock, due in turn.clocks.items():
            self._alarms.drop(clock)
            turn.left[clock] = due - at
        turn.clocks.clear()

    def _go_on(self, turn: _Turn, key: Any, at: float) -> None:
        """One is asked no more; when it was the last, the clocks go on."""
        if key not in turn.people:
            return
        turn.people.discard(key)
        if not turn.people:
            left, turn.left = turn.left, {}
            for clock, seconds in left.items():
                self._start(turn, clock, at, seconds)

    # ------------------------------------------------------------ time

    def next_deadline(self) -> float | None:
        """When the next session is to be looked at; at once where an answer has passed elsewhere."""
        return 0.0 if self._unseen() else self._alarms.next()

    def _unseen(self) -> list[Any]:
        """The requests that are open no more though no answer came by here: one was given nearer the agent (V40)."""
        return [token for _, token in self._asked.values() if token not in self._open_requests]

    def expire(self, at: float) -> Sequence[Step]:
        """Look at what is due; note it, and take the first step."""
        for token in self._unseen():
            self._settled(token, at)
        steps: list[Step] = []
        for key in self._alarms.ring(at):
            assert isinstance(key, tuple)
            kind, session_id = key[0], key[1]
            turn = self._turn(session_id)
            turn.clocks.pop(key, None)
            if not self._busy(session_id):
                continue
            if kind == _LADDER:
                steps += self._climb(session_id, turn, at)
            elif kind == _STALL:
                steps += self._quiet(session_id, turn, at)
            elif kind == _TURN:
                text = f"turn still open after {self._turn_timeout:g} s"
                steps += self._breach(session_id, turn, text, turn.prompt, at)
            else:
                text = f"a tool call still open after {self._tool_timeout:g} s"
                steps += self._breach(session_id, turn, text, turn.tools.get(key[2]), at)
        return steps

    def _quiet(self, session_id: str, turn: _Turn, at: float) -> list[Step]:
        key = (_STALL, session_id)
        if turn.tools or turn.helpers:
            self._start(turn, key, at, self._stall_after)
            return []
        # The same sum as sets the alarm: a difference may round to next to nothing, which moves no time on.
        due = turn.heard + self._stall_after
        if due > at:
            self._start(turn, key, at, due - at, due)
            return []
        text = f"nothing heard for {self._stall_after:g} s in an open turn"
        return self._breach(session_id, turn, text, turn.frame, at)

    def _breach(self, session_id: str, turn: _Turn, text: str, frame: int | None, at: float) -> list[Step]:
        frame = turn.frame if frame is None else frame
        acts = bool(turn.steps) and not turn.climbing
        self._findings.note(
            Finding(
                at,
                "V46",
                "agent",
                text,
                session=session_id,
                frames=() if frame is None else (frame,),
                action="repaired" if acts else "noted",
                source="lifecycle 2.5",
            )
        )
        return self._climb(session_id, turn, at) if acts else []

    def _climb(self, session_id: str, turn: _Turn, at: float) -> list[Step]:
        """Take the next step; one that waits for the step before is put off."""
        if not turn.steps:
            return []
        turn.climbing = True
        step = turn.steps.pop(0)
        if step == "restart":
            turn.steps.clear()
            return [RestartAgent()]
        if turn.steps and not self._confirmed:
            self._start(turn, (_LADDER, session_id), at, RESTART_GRACE)
        return [ToAgent(notification("session/cancel", {"sessionId": session_id}))]

    # ------------------------------------------------------------ ends

    def client_gone(self, at: float) -> Sequence[Step]:
        """Nobody waits for the work any more; it is cancelled already."""
        for turn in self._turns.values():
            for key in turn.clocks:
                self._alarms.drop(key)
        self._turns.clear()
        self._asked.clear()
        return ()

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """All turns are over."""
        return self.client_gone(at)


def _number(message: Message) -> int | None:
    return message.frame.number if message.frame is not None else None
