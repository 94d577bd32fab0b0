"""What becomes of a prompt while a turn runs, between peers of one protocol version.

The bridge holds prompts for reasons of its own; here it is the operator's choice. Stands in the place of
the translator that such a pair does not need.

Source: key `prompts.busy`; RA-04, LC-33, LC-40, LC-42.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.filters.base import Filter, Outcome, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.triggers import WAIT_METHODS
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    Json,
    Message,
    Notification,
    Request,
    Response,
    error,
    id_key,
    notification,
    result,
)
from acp_proxy.policy.late_answers import LateAnswers

_ENDS_ALL: Final = frozenset({"session/close", "session/delete", "session/archive"})


class _Turn:
    """The prompts of one session: at the agent, and held here."""

    __slots__ = ("asked", "began", "held", "idle", "open", "steered")

    def __init__(self) -> None:
        self.open: set[Any] = set()
        self.held: deque[Request] = deque()
        self.asked: dict[Any, Request] = {}
        self.steered = False
        # The last prompt of a v2 agent: whether work was reported since it was sent, and its end.
        self.began = False
        self.idle = True


class BusyPrompts(Filter):
    """Queues, refuses, or makes way for a prompt; `mode` is `queue`, `reject` or `steer`."""

    def __init__(self, mode: str, engine: Engine, token: Callable[[], str], max_held: int) -> None:
        self._mode = mode
        self._engine = engine
        self._max_held = max_held
        self._turns: dict[str, _Turn] = {}
        self._session_of: dict[Any, str] = {}
        self._asked_in: dict[Any, str] = {}
        self._late = LateAnswers(token)

    # ------------------------------------------------------------ client to agent

    def forth(self, message: Message, at: float) -> Outcome:
        """Take prompts, and what withdraws them."""
        if type(message) is Response:
            return self._answer(message)
        assert isinstance(message, (Request, Notification))
        if type(message) is Notification and message.method == "$/cancel_request":
            return self._withdrawn(message)
        session_id = message.params.get("sessionId")
        if type(session_id) is not str:
            return message
        if type(message) is Request and message.method == "session/prompt":
            return self._prompt(message, session_id)
        if message.method == "session/cancel" or message.method in _ENDS_ALL:
            return [*self._flush(session_id, REQUEST_CANCELLED, "cancelled"), ToAgent(message)]
        return message

    def _prompt(self, message: Request, session_id: str) -> Outcome:
        turn = self._turns.get(session_id)
        if turn is None:
            turn = self._turns[session_id] = _Turn()
        if not turn.held and not self._busy(session_id, turn):
            self._sent(message, session_id, turn)
            return message
        if self._mode == "reject":
            text = "a turn is running in this session"
            return [ToClient(error(message.id, INVALID_REQUEST, text, {"sessionId": session_id}))]
        if len(turn.held) >= self._max_held:
            text = "too many prompts wait in this session"
            return [ToClient(error(message.id, INTERNAL_ERROR, text))]
        turn.held.append(message)
        return self._make_way(session_id, turn) if self._mode == "steer" else None

    def _make_way(self, session_id: str, turn: _Turn) -> list[Step]:
        """Cancel the turn once; the client did not ask for that, so its open questions are ended for it."""
        if turn.steered:
            return []
        turn.steered = True
        steps: list[Step] = [ToAgent(notification("session/cancel", {"sessionId": session_id}))]
        if self._engine.version is Version.V1:
            for key, asked in turn.asked.items():
                self._asked_in.pop(key, None)
                self._late.expect(asked.id)
                steps.append(ToAgent(result(self._late.meant(asked.id), _no_answer(asked.method))))
                steps.append(ToClient(notification("$/cancel_request", {"requestId": asked.id})))
            turn.asked.clear()
        return steps

    def _sent(self, message: Request, session_id: str, turn: _Turn) -> None:
        turn.open.add(id_key(message.id))
        turn.began = turn.idle = turn.steered = False
        self._session_of[id_key(message.id)] = session_id

    def _busy(self, session_id: str, turn: _Turn) -> bool:
        """Whether a turn is open: a prompt not answered, in v2 not taken or its work not ended."""
        if turn.open:
            return True
        session = self._engine.sessions.get(session_id)
        if session is None:
            return False
        return session.busy or (session.native and not turn.idle)

    def _withdrawn(self, message: Notification) -> Outcome:
        """A held prompt is answered here (LC-71)."""
        token = id_key(message.params.get("requestId"))
        for turn in self._turns.values():
            for held in turn.held:
                if id_key(held.id) == token:
                    turn.held.remove(held)
                    return [ToClient(error(held.id, REQUEST_CANCELLED, "prompt withdrawn"))]
        return message

    def _flush(self, session_id: str, code: int, text: str) -> list[Step]:
        turn = self._turns.get(session_id)
        if turn is None:
            return []
        steps: list[Step] = [ToClient(error(held.id, code, text)) for held in turn.held]
        turn.held.clear()
        return steps

    def _answer(self, message: Response) -> Outcome:
        key = id_key(message.id)
        session_id = self._asked_in.pop(key, None)
        if session_id is not None:
            self._turns[session_id].asked.pop(key, None)
        return self._late.back(message)

    # ------------------------------------------------------------ agent to client

    def back(self, message: Travels, at: float) -> Outcome:
        """Send the next prompt behind the end of the turn."""
        if type(message) is Response:
            session_id = self._session_of.pop(id_key(message.id), None)
            if session_id is not None:
                turn = self._turns[session_id]
                turn.open.discard(id_key(message.id))
                if message.is_error and not turn.began:
                    turn.idle = True  # not taken, and no work to end (LC-32)
                return self._next(message, session_id, turn)
        elif type(message) is Request:
            message = self._late.out(message)
            self._ask(message)
        elif type(message) is not Notification:
            return message
        elif message.body["method"] == "$/cancel_request":
            return self._late.withdrawn(message)
        elif message.body["method"] == "session/update":
            update, session_id = message.params.get("update"), message.params.get("sessionId")
            if type(update) is dict and update.get("sessionUpdate") == "state_update":
                found = self._turns.get(session_id) if type(session_id) is str else None
                if found is not None and type(session_id) is str:
                    return self._state(message, session_id, found, update.get("state"))
        return message

    def _ask(self, message: Request) -> None:
        session_id = message.params.get("sessionId")
        turn = self._turns.get(session_id) if type(session_id) is str else None
        if turn is not None and message.method in WAIT_METHODS:
            turn.asked[id_key(message.id)] = message
            self._asked_in[id_key(message.id)] = str(session_id)

    def _state(self, message: Notification, session_id: str, turn: _Turn, state: Any) -> Outcome:
        if state != "idle":
            turn.began = True
            turn.idle = False
            return message
        # An idle before work began is that of an earlier turn, unless the prompt was taken already.
        if turn.began or not turn.open:
            turn.idle = True
        return self._next(message, session_id, turn)

    def _next(self, message: Message, session_id: str, turn: _Turn) -> Outcome:
        if not turn.held or self._busy(session_id, turn):
            return message
        following = turn.held.popleft()
        self._sent(following, session_id, turn)
        return [ToClient(message), ToAgent(following)]

    # ------------------------------------------------------------ ends

    def client_gone(self, at: float) -> Sequence[Step]:
        """Nothing more is sent for a client that has left."""
        for turn in self._turns.values():
            turn.held.clear()
        return ()

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """What is held will never run at this agent."""
        steps: list[Step] = []
        for session_id in self._turns:
            steps += self._flush(session_id, error_body["code"], error_body["message"])
        self._turns.clear()
        self._session_of.clear()
        self._asked_in.clear()
        return steps


def _no_answer(method: str) -> Json:
    if method == "elicitation/create":
        return {"action": "cancel"}
    return {"outcome": {"outcome": "cancelled"}}
