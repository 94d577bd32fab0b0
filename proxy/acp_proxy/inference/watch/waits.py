"""A state that does not agree with who is waited for (V05, V06), and states that are late to say so.

Source: LC-08, LC-09, LC-11. Times in seconds.
"""

from __future__ import annotations

from typing import Final

from acp_proxy.inference.watch.detector import Detector
from acp_proxy.inference.watch.record import SessionRecord, Wait
from acp_proxy.jsonrpc.message import Message

GRACE: Final = 1.0
_NOBODY: Final = "V05"
_BLOCKED: Final = "V06"


class Waits(Detector):
    """Follows the open permissions and elicitations of each session."""

    __slots__ = ()

    def reported(self, session: SessionRecord, state: str, message: Message, at: float) -> None:
        """A snapshot came; called before the record takes it over."""
        if session.nobody_frame:
            self._nobody(session, message)
        if state == "requires_action":
            session.had_wait = session.asked or self._waiting(session)
            if not session.had_wait:
                session.nobody_frame = message.frame.number if message.frame is not None else 1
                self._book.deadlines.set((_NOBODY, session.id), at + GRACE)
        session.asked = False

    def asked(self, session: SessionRecord, wait: Wait) -> None:
        """The agent asks the user."""
        session.waits[wait.key] = wait
        for waiting in (session, self._parent(session)):
            if waiting is not None:
                waiting.asked = True
                waiting.had_wait = True
                self._forget(waiting)

    def answered(self, session: SessionRecord, wait: Wait, message: Message, at: float) -> None:
        """The user has answered, or the agent was answered for the user."""
        session.waits.pop(wait.key, None)
        if wait.ended:
            number = message.frame.number if message.frame is not None else 0
            session.late_answer = (number, at)

    def look(self, session: SessionRecord, at: float) -> None:
        """Whether foreground work has come to wait for the user, or goes on again."""
        key = (_BLOCKED, session.id)
        if session.waits and self._blocked(session):
            self._book.deadlines.set(key, at + GRACE)
        else:
            self._book.deadlines.drop(key)

    def ring(self, rule: str, session: SessionRecord) -> None:
        """A second has passed."""
        if rule == _NOBODY:
            if session.nobody_frame:
                self._nobody(session, None)
        elif self._blocked(session):
            frames = [wait.frame for wait in session.waits.values()]
            text = "the user is asked and nothing moves, yet the state is running"
            self._tell("V06", session, text, session.state_frame, *frames)
            # Told once: it waits on until something changes.
            self._book.deadlines.set((_BLOCKED, session.id), float("inf"))

    def _nobody(self, session: SessionRecord, message: Message | None) -> None:
        text = "requires_action without a request to the user"
        self._tell("V05", session, text, session.nobody_frame, message)
        self._forget(session)

    def _forget(self, session: SessionRecord) -> None:
        session.nobody_frame = 0
        self._book.deadlines.drop((_NOBODY, session.id))

    def _blocked(self, session: SessionRecord) -> bool:
        if session.state != "running" or session.cancelling:
            return False
        subjects = {wait.tool_id for wait in session.waits.values() if self._foreground(session, wait)}
        return bool(subjects) and session.moving <= subjects

    def _foreground(self, session: SessionRecord, wait: Wait) -> bool:
        if wait.ended:
            return False
        tool = session.tools.get(wait.tool_id) if wait.tool_id is not None else None
        if tool is not None and tool.span != session.span:
            return False
        return not session.lists_tool(wait.tool_id)

    def _waiting(self, session: SessionRecord) -> bool:
        """Somebody is asked, here or by a child on whose behalf the parent may wait."""
        if session.waits:
            return True
        return any(child.waits for child in self._book.sessions.values() if child.parent == session.id)

    def _parent(self, session: SessionRecord) -> SessionRecord | None:
        return self._book.sessions.get(session.parent) if session.parent is not None else None
