"""Message to session: finds the session a message is about and moves it; keeps the read-only view.

It stands nearest the agent and speaks the agent's dialect: it notes only what truly went out to
the agent or truly came from it. It changes no message and sends none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from acp_proxy.acp.version import Role, Version
from acp_proxy.inference import foreground, triggers
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.foreground import Change, Hole, Rules
from acp_proxy.inference.pending import Pending
from acp_proxy.inference.session import Phase, Session
from acp_proxy.inference.triggers import Kind
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request, Response, id_key

if TYPE_CHECKING:
    from acp_proxy.inference.sightings import Sightings

_NO_CHANGE: tuple[Change, ...] = ()


class ClientCall:
    """A request of the client that the agent has not answered yet."""

    __slots__ = ("at", "method", "number", "session_id")

    def __init__(self, method: str, session_id: str | None, at: float, number: int) -> None:
        self.method = method
        self.session_id = session_id
        self.at = at
        self.number = number


class AgentCall:
    """A request of the agent that the client has not answered yet."""

    __slots__ = ("done", "method", "session_id")

    def __init__(self, method: str, session_id: str | None, done: Kind | None) -> None:
        self.method = method
        self.session_id = session_id
        self.done = done


class Engine:
    """What is true now, inferred from one agent's traffic (lifecycle §2)."""

    def __init__(self, rules: Rules, findings: FindingLog) -> None:
        self.version = Version.V1
        self.rules = rules
        self.sessions: dict[str, Session] = {}
        self.from_client: Pending[ClientCall] = Pending()
        self.from_agent: Pending[AgentCall] = Pending()
        self.sightings: Sightings | None = None
        self._findings = findings
        self._updates = triggers.UPDATES[Version.V1]
        # A dictionary for its order: what ends at one moment is told in the order it began.
        self.working_alone: dict[str, None] = {}

    def speak(self, version: Version) -> None:
        """The agent's protocol version is known now."""
        self.version = version
        self._updates = triggers.UPDATES[version]

    # ------------------------------------------------------------ messages

    def observe(self, message: Message, sender: Role, at: float) -> Sequence[Change]:
        """Note a message that went to the agent or came from it; return the changes it made.

        `at` in seconds on the runner's clock.
        """
        if type(message) is Notification:
            if sender is Role.AGENT:
                return self._agent_notification(message, at)
            return self._client_notification(message, at)
        if type(message) is Request:
            if sender is Role.AGENT:
                return self._agent_request(message, at)
            return self._client_request(message, at)
        assert type(message) is Response
        if sender is Role.AGENT:
            return self._agent_response(message, at)
        return self._client_response(message, at)

    def agent_gone(self, error: Json, at: float) -> list[Change]:
        """The agent's process or connection has ended: all its foreground work ends in an error."""
        changes: list[Change] = []
        for session in list(self.sessions.values()):
            changes += self._move(session, Kind.AGENT_GONE, error, at)
        return changes

    def quiet_at(self) -> float | None:
        """When inferred agent-initiated work that falls silent now would be taken as ended."""
        heard = [self.sessions[session_id].last_heard for session_id in self.working_alone]
        return min(heard) + self.rules.quiet_time if heard else None

    def fall_quiet(self, at: float) -> list[Change]:
        """End inferred agent-initiated work that has been silent for `inference.quiet_time`."""
        changes: list[Change] = []
        for session_id in list(self.working_alone):
            session = self.sessions[session_id]
            # The same sum as in `quiet_at`: a difference may round to just below, and the timer would spin.
            if session.last_heard + self.rules.quiet_time <= at:
                changes += self._move(session, Kind.QUIET, None, at)
                session.last_heard = at
        return changes

    def session(self, session_id: str) -> Session:
        """The record of a session, made provisional at first sight."""
        session = self.sessions.get(session_id)
        if session is None:
            session = self.sessions[session_id] = Session(session_id)
        return session

    def busy_sessions(self) -> Iterator[Session]:
        """The sessions whose foreground work is active."""
        return (session for session in self.sessions.values() if session.busy)

    # ------------------------------------------------------------ one kind of message each

    def _agent_notification(self, message: Notification, at: float) -> Sequence[Change]:
        body = message.body
        params = body.get("params")
        if type(params) is not dict:
            return _NO_CHANGE
        method = body["method"]
        rules = self.rules
        changes: Sequence[Change] = _NO_CHANGE
        if self.sightings is not None:
            self.sightings.call(message, method, "notification", params, at)
        session_id = params.get("sessionId")
        marked = (
            bool(rules.end_markers)
            and rules.agent_initiated != "ignore"
            and triggers.ends_by_mark(rules.end_markers, params, method)
        )
        if method == "session/update":
            update = params.get("update")
            if type(session_id) is not str or type(update) is not dict:
                return _NO_CHANGE
            tag = update.get("sessionUpdate")
            kind = self._updates.get(tag, Kind.UPDATE) if type(tag) is str else Kind.UPDATE
            detail: Any = None
            if kind is Kind.TOOL:
                detail = triggers.tool_news(update, tag == "tool_call", rules.synonyms)
                if detail is None:
                    return _NO_CHANGE
            elif kind is Kind.STATE:
                detail = update.get("state")
                if type(detail) is not str:
                    return _NO_CHANGE
            elif tag == "subagent_update":
                self._hear_of_child(update, at)
            changes = self._move(self.session(session_id), kind, detail, at, message)
        if (marked or rules.hints) and type(session_id) is str and session_id in self.sessions:
            changes = [*changes, *self._beside(self.sessions[session_id], marked, params, method, at)]
        return changes

    def _beside(
        self, session: Session, marked: bool, params: Json, method: str, at: float
    ) -> Iterator[Change]:
        """What a notification says beside the protocol: that work has ended, or a hint at the state."""
        if session.phase is Phase.CLOSED:
            return
        if marked and session.auto:
            yield from self._move(session, Kind.END_MARK, None, at)
        for hint in self.rules.hints:
            if triggers.is_marked(hint.mark, params, method):
                yield from self._move(session, Kind.HINT, hint, at)

    def _hear_of_child(self, update: Json, at: float) -> None:
        """A parent's word on its child's state is a native report of the child (§2.1)."""
        child, state = update.get("sessionId"), update.get("state")
        if type(child) is str and type(state) is dict and type(state.get("state")) is str:
            self._move(self.session(child), Kind.STATE, state["state"], at)

    def _client_notification(self, message: Notification, at: float) -> Sequence[Change]:
        if message.method != "session/cancel":
            return _NO_CHANGE
        session_id = message.params.get("sessionId")
        if type(session_id) is not str or session_id not in self.sessions:
            return _NO_CHANGE
        return self._move(self.sessions[session_id], Kind.CANCEL, None, at, message)

    def _client_request(self, message: Request, at: float) -> Sequence[Change]:
        method = message.method
        params = message.body.get("params")
        session_id = params.get("sessionId") if type(params) is dict else None
        if type(session_id) is not str:
            session_id = None
        number = message.frame.number if message.frame else 0
        self.from_client.add(message.id, ClientCall(method, session_id, at, number))
        meaning = triggers.CLIENT_REQUESTS.get(method)
        if meaning is None or meaning[0] is None or session_id is None:
            return _NO_CHANGE
        return self._move(self.session(session_id), meaning[0], id_key(message.id), at, message)

    def _agent_request(self, message: Request, at: float) -> Sequence[Change]:
        method = message.method
        params = message.params
        session_id = params.get("sessionId")
        call = AgentCall(method, session_id if type(session_id) is str else None, None)
        self.from_agent.add(message.id, call)
        if self.sightings is not None:
            self.sightings.call(message, method, "request", params, at)
        if call.session_id is None:
            return _NO_CHANGE
        key = id_key(message.id)
        if method in triggers.WAIT_METHODS:
            if method == "elicitation/create" and "requestId" in params:
                return _NO_CHANGE
            tool_call = params.get("toolCall")
            news = None
            if type(tool_call) is dict:
                news = triggers.tool_news(tool_call, False, self.rules.synonyms)
                if news is not None:
                    news.replayed = False
            tool_id = params.get("toolCallId")
            call.done = Kind.WAIT_ANSWERED
            detail = (key, news, tool_id if type(tool_id) is str else None)
            return self._move(self.session(call.session_id), Kind.WAIT, detail, at, message)
        if method.startswith(triggers.HELPER_PREFIXES):
            call.done = Kind.HELPER_DONE
            return self._move(self.session(call.session_id), Kind.HELPER, key, at, message)
        return _NO_CHANGE

    def _agent_response(self, message: Response, at: float) -> Sequence[Change]:
        call = self.from_client.pop(message.id)
        if call is None:
            return _NO_CHANGE
        if self.sightings is not None and not message.is_error:
            self.sightings.result(message, call.method, message.body.get("result"), at)
        meaning = triggers.CLIENT_REQUESTS.get(call.method)
        if meaning is None:
            return _NO_CHANGE
        missing = message.is_error and message.error_code == -32002
        kind = meaning[2] if message.is_error and not (missing and meaning[0] is Kind.CLOSE) else meaning[1]
        session_id = call.session_id
        if meaning[1] is Kind.ATTACHED:
            session_id = message.result.get("sessionId") if type(message.result) is dict else None
        if kind is None or type(session_id) is not str:
            return _NO_CHANGE
        detail = (
            triggers.prompt_ending(id_key(message.id), message.body, self.rules.synonyms)
            if kind is Kind.PROMPT_ENDED
            else None
        )
        return self._move(self.session(session_id), kind, detail, at, message)

    def _client_response(self, message: Response, at: float) -> Sequence[Change]:
        call = self.from_agent.pop(message.id)
        if call is None or call.done is None or call.session_id is None:
            return _NO_CHANGE
        return self._move(self.session(call.session_id), call.done, id_key(message.id), at, message)

    # ------------------------------------------------------------ the mover

    def _move(
        self, session: Session, kind: Kind, detail: Any, at: float, message: Message | None = None
    ) -> Sequence[Change]:
        try:
            change = foreground.step(session, self.version, kind, detail, at, self.rules)
        except Hole as hole:
            self._note_hole(hole, message, at)
            return _NO_CHANGE
        if session.auto:
            self.working_alone[session.id] = None
        elif self.working_alone:
            self.working_alone.pop(session.id, None)
        return _NO_CHANGE if change is None else (change,)

    def _note_hole(self, hole: Hole, message: Message | None, at: float) -> None:
        by_client = hole.kind is Kind.PROMPT
        self._findings.note(
            Finding(
                at,
                "V44" if by_client else "V24",
                (Role.CLIENT if by_client else Role.AGENT).value,
                f"the lifecycle has no {hole}",
                session=hole.session.id,
                frames=(message.frame.number,) if message is not None and message.frame is not None else (),
                source="LC-85" if by_client else "LC-50",
            )
        )
