"""Hands every message to the detectors it concerns and collects the breaches they tell.

It stands nearest the agent and reads the agent's dialect, both ways, with time. `form` judges a message
by itself, `take` as the next step of a conversation: between the two a repair may change it. Which
rules mean anything follows from the two protocol versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from acp_proxy.acp.version import Role, Version
from acp_proxy.inference.pending import Pending
from acp_proxy.inference.watch.breach import Breach, frame_number
from acp_proxy.inference.watch.close import CLOSING
from acp_proxy.inference.watch.detectors import Detectors
from acp_proxy.inference.watch.ids import Received
from acp_proxy.inference.watch.permissions import consents, offered
from acp_proxy.inference.watch.record import (
    CHILD,
    GONE,
    STRANGE,
    Ask,
    Book,
    Call,
    SessionRecord,
    ToolRecord,
    Wait,
)
from acp_proxy.inference.watch.updates import Updates
from acp_proxy.jsonrpc.message import (
    RESOURCE_NOT_FOUND,
    Json,
    Message,
    Notification,
    Request,
    Response,
    id_key,
)

_NONE: Final[tuple[Breach, ...]] = ()
_WAITING: Final = frozenset({"session/request_permission", "elicitation/create"})
_OPENING: Final = frozenset({"session/new", "session/fork"})
_RESUMING: Final = frozenset({"session/resume", "session/load"})


class Watch:
    """One connection under watch. `answer_grace` in seconds (V40)."""

    def __init__(self, answer_grace: float = 1.0) -> None:
        self.book = book = Book()
        self._found: list[Breach] = []
        self._on = Detectors(book, self._found.append, answer_grace)
        self._updates = Updates(book, self._on)
        self._calls: Pending[Call] = Pending()
        self._asks: Pending[Ask] = Pending()
        self._received = {Role.CLIENT: Received(), Role.AGENT: Received()}
        self._is_v2 = False

    def speak(self, client_version: int, agent_version: int, *, bridged: bool) -> None:
        """The versions are settled."""
        book = self.book
        book.client_version, book.agent_version = client_version, Version(agent_version)
        book.bridged = bridged
        self._is_v2 = agent_version == 2

    # ------------------------------------------------------------ what passes

    def form(self, message: Message, sender: Role) -> tuple[Sequence[Breach], bool]:
        """Judge a message by itself: the breaches, and whether it may be believed (a malformed one is not)."""
        book, kind = self.book, type(message)
        if book.bridged and sender is Role.CLIENT:
            return _NONE, True  # ours, in form and id
        if kind is Request:
            assert type(message) is Request
            pending: Pending[Any] = self._calls if sender is Role.CLIENT else self._asks
            self._on.ids.request(message, sender, message.id in pending)
            self._received[sender].add(message.id)
        elif kind is Notification and message.body["method"] != "session/update":
            assert type(message) is Notification
            self._on.ids.notification(message, sender)
        sound = True
        if book.agent_version is not None and not book.bridged:
            if kind is Response:
                assert type(message) is Response
                answered = (self._calls if sender is Role.AGENT else self._asks).get(message.id)
                if answered is not None:
                    self._on.values.result(answered.method, answered.session_id, message, sender)
            else:
                assert isinstance(message, (Request, Notification))
                sound = self._on.values.call(message, sender)
        return self._told() if self._found else _NONE, sound

    def take(self, message: Message, sender: Role, at: float, sound: bool = True) -> Sequence[Breach]:
        """Take a message as the next step. What is not `sound` is counted by its id alone."""
        if type(message) is Notification:
            if sender is Role.AGENT:
                if message.body["method"] == "session/update":
                    if sound:
                        self._updates.take(message, at)
                else:
                    self._notification(message, sender)
            else:
                self._client_notification(message, at, sound)
        elif type(message) is Request:
            self._request(message, sender, at, sound)
        elif type(message) is Response:
            if sender is Role.AGENT:
                self._agent_response(message, at)
            else:
                self._client_response(message, at)
        return self._told() if self._found else _NONE

    def steady(self, session_id: str) -> SessionRecord | None:
        """The session's record when more text of it could neither be a breach nor change anything here."""
        session = self.book.sessions.get(session_id)
        return session if session is not None and session.steady else None

    def is_child(self, session_id: str) -> bool:
        """Whether a session is a subagent's, which only its own capabilities allow to change (LC-82)."""
        session = self.book.sessions.get(session_id)
        return session is not None and session.bond == CHILD

    def undo(self, message: Request, sender: Role) -> None:
        """A request that was taken is answered here, so the one it was meant for never will."""
        if sender is Role.AGENT:
            ask = self._asks.pop(message.id)
            if ask is not None and ask.wait is not None:
                self.book.session(ask.wait.session_id).waits.pop(ask.wait.key, None)
            return
        call = self._calls.pop(message.id)
        if call is None:
            return
        self.book.attaching -= call.method in _OPENING
        if call.session_id is None:
            return
        session = self.book.session(call.session_id)
        session.prompts.pop(id_key(message.id), None)
        if call.method in CLOSING:
            session.cancelling = False
        if call.method in _RESUMING:
            session.resumption = None
            self._on.close.reopened(session, False)

    def expire(self, at: float) -> Sequence[Breach]:
        """Look again where it is time."""
        for key in self.book.deadlines.ring(at):
            self._ring(key)
        return self._told()

    def open_closes(self, session_id: str) -> list[Any]:
        """The keys of the requests under way that close a session."""
        return [
            id_key(token)
            for token, call in self._calls.items()
            if call.session_id == session_id and call.method in CLOSING
        ]

    def ended(self, session_id: str, message: Message, at: float) -> Sequence[Breach]:
        """The end of a turn was told in the agent's name: what follows from an idle follows from this."""
        session = self.book.session(session_id)
        self._on.prompts.idle(session, session.cancelling, message, at)
        session.begin_span()
        return self._told()

    def client_gone(self) -> Sequence[Breach]:
        """The client has left: what it or the agent still owed it will not come."""
        for key in self.book.deadlines.all():
            if key[0] in ("V20", "V27", "V40"):
                self.book.deadlines.drop(key)
                self._ring(key)
        return self._told()

    def _told(self) -> Sequence[Breach]:
        found = tuple(self._found)
        self._found.clear()
        return found

    def _ring(self, key: tuple[str, ...]) -> None:
        rule = key[0]
        session = self.book.session(key[1])
        if rule == "V02":
            self._on.turns.unended(session)
        elif rule == "V40":
            self._on.permissions.left_open(session)
        elif rule in ("V05", "V06"):
            self._on.waits.ring(rule, session)
        else:
            self._on.prompts.ring(rule, session, key[2])

    # ------------------------------------------------------------ the agent's other messages

    def _notification(self, message: Notification, sender: Role) -> None:
        if message.body["method"] == "$/cancel_request":
            self._on.ids.cancel_request(message, sender, self._received[sender])

    def _request(self, message: Request, sender: Role, at: float, sound: bool) -> None:
        params = message.params
        session_id = params.get("sessionId")
        session = self.book.session(session_id) if type(session_id) is str else None
        if sender is Role.CLIENT:
            if session is None and self.book.bridged and message.method not in _OPENING:
                return  # its answer is of no interest, and its id is ours
            call = Call(
                message.method, session.id if session is not None else None, params, frame_number(message)
            )
            self._calls.add(message.id, call)
            if message.method in _OPENING:
                self.book.attaching += 1
            elif sound and session is not None:
                self._client_request(session, message, at)
        else:
            ask = Ask(
                message.method, session.id if session is not None else None, None, frame_number(message)
            )
            self._asks.add(message.id, ask)
            if sound and session is not None:
                self._agent_request(session, ask, message, at)
        if session is not None:
            self._updates.settle(session, at)

    def _agent_request(self, session: SessionRecord, ask: Ask, message: Request, at: float) -> None:
        if self._on.close.silent(session, message):
            return
        if self._is_v2 and session.bond == STRANGE:
            self._on.children.heard(session, None, message)
        if message.method not in _WAITING or "requestId" in message.params:
            return
        tool_call = _subject(message.params)
        tool_id = tool_call.get("toolCallId")
        if type(tool_id) is not str:
            tool_id = None
        elif tool_id not in session.tools:
            session.tools[tool_id] = ToolRecord(session.span)
            self._updates.news(session, tool_id, session.tools[tool_id], tool_call)
        wait = Wait(
            id_key(message.id), message.id, message.method, session.id, tool_id, frame_number(message)
        )
        wait.options = offered(message)
        ask.wait = wait
        self._on.waits.asked(session, wait)

    def _agent_response(self, message: Response, at: float) -> None:
        call = self._calls.pop(message.id)
        if call is None:
            if not self.book.bridged:
                self._on.ids.stray_response(message, Role.AGENT)
            return
        method = call.method
        if method in _OPENING:
            self.book.attaching -= 1
            opened = message.result.get("sessionId") if type(message.result) is dict else None
            if type(opened) is str:
                self._on.close.attached(self.book.session(opened))
                self._updates.settle(self.book.session(opened), at)
            return
        if call.session_id is None:
            return
        session = self.book.session(call.session_id)
        if method == "session/prompt":
            if self._is_v2:
                self._on.prompts.answered(session, call, message, at)
            else:
                self._on.turns.answered(session, message, at)
        elif method in _RESUMING:
            self._resumed(session, message)
        elif method in CLOSING:
            self._closed(session, call, message, at)
        elif method == "session/delete" and not message.is_error:
            session.bond = GONE
        self._updates.settle(session, at)

    def _resumed(self, session: SessionRecord, message: Response) -> None:
        resumption = session.resumption
        replayed = resumption is not None and (resumption.asked or resumption.unasked)
        was_attached = session.previous_bond not in (STRANGE, GONE)
        self._on.resume.answered(session, message)
        if message.is_error:
            self._on.close.reopened(session, False)
        else:
            self._on.close.attached(session, partial=session.partial or not (replayed or was_attached))

    def _closed(self, session: SessionRecord, call: Call, message: Response, at: float) -> None:
        cancelling = session.cancelling
        missing = message.error_code == RESOURCE_NOT_FOUND
        if self._is_v2 and session.busy and (missing or not message.is_error):
            self._on.prompts.idle(session, True, message, at)
        if not self._on.close.answered(session, call, message):
            return
        if session.busy:
            session.cancelling = cancelling
            self._on.states.left_open(session, message)
        if self._is_v2:
            self._on.prompts.closed(session, at)
        session.state = None
        session.begin_span()

    # ------------------------------------------------------------ the client's messages

    def _client_request(self, session: SessionRecord, message: Request, at: float) -> None:
        method = message.method
        if session.bond == CHILD:
            self._on.children.changed(session, message)
        else:
            self._on.close.used(session, message)
        if method == "session/prompt":
            self._on.permissions.left_open(session, message)
            if self._is_v2:
                self._on.prompts.asked(session, message)
            else:
                self._on.turns.asked(session, message)
        elif method in _RESUMING:
            self._on.close.reopening(session)
            self._on.resume.asked(session, message)
        elif method in CLOSING:
            self._cancelled(session, message, at)
        elif method in ("tool_call/cancel", "terminal/cancel") and self._is_v2:
            session.declined = True
            if session.bond != STRANGE:
                self._on.cancellable.asked(session, message)

    def _client_notification(self, message: Notification, at: float, sound: bool) -> None:
        method = message.method
        if method == "$/cancel_request":
            if not self.book.bridged:
                self._on.ids.cancel_request(message, Role.CLIENT, self._received[Role.CLIENT])
            call = self._calls.get(message.params.get("requestId"))
            if call is not None and call.session_id is not None:
                self.book.session(call.session_id).declined = True
            return
        if method != "session/cancel" or not sound:
            return
        session_id = message.params.get("sessionId")
        if type(session_id) is not str:
            return
        session = self.book.session(session_id)
        if session.bond == CHILD:
            self._on.children.changed(session, message)
        self._cancelled(session, message, at)
        self._on.permissions.cancelled(session, message, at)
        self._updates.settle(session, at)

    def _cancelled(self, session: SessionRecord, message: Message, at: float) -> None:
        if self._is_v2:
            self._on.prompts.cancelled(session, message)
        else:
            self._on.turns.cancelled(session, message)

    def _client_response(self, message: Response, at: float) -> None:
        ask = self._asks.pop(message.id)
        if ask is None:
            self._on.ids.stray_response(message, Role.CLIENT)
            return
        wait = ask.wait
        if wait is None:
            return
        session = self.book.session(wait.session_id)
        self._on.permissions.answered(wait, message)
        if not wait.ended and not consents(wait, message):
            session.declined = True
        self._on.waits.answered(session, wait, message, at)
        self._updates.settle(session, at)


def _subject(params: Json) -> Json:
    """The tool call a question is about: v1 names it directly, v2 as the subject, elicitations by its id."""
    tool_call = params.get("toolCall")
    if type(tool_call) is dict:
        return tool_call
    subject = params.get("subject")
    if type(subject) is dict:
        tool_call = subject.get("toolCall")
        return tool_call if type(tool_call) is dict else subject
    return params
