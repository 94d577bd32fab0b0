"""Closing, and what comes for sessions that are not open (V24, V25, V26, V44). Source: LC-50 to LC-54, LC-85."""

from __future__ import annotations

from typing import Final

from acp_proxy.inference.watch.detector import CLIENT, Detector
from acp_proxy.inference.watch.record import ATTACHED, CHILD, CLOSED, GONE, STRANGE, Call, SessionRecord
from acp_proxy.jsonrpc.message import RESOURCE_NOT_FOUND, Message, Request, Response

# What only a session of this connection can be asked; the rest may name any session there is.
_NEEDS_ATTACHMENT: Final = frozenset(
    {
        "session/prompt",
        "session/set_config_option",
        "session/set_mode",
        "tool_call/cancel",
        "terminal/cancel",
    }
)
CLOSING: Final = frozenset({"session/close", "session/archive"})


class Close(Detector):
    """Knows which sessions are attached to this connection."""

    __slots__ = ()

    def attached(self, session: SessionRecord, *, partial: bool = False) -> None:
        """Created, loaded or resumed; `partial` when what came before was not replayed."""
        session.bond = ATTACHED
        session.partial = partial

    def reopened(self, session: SessionRecord, ok: bool) -> None:
        """The answer to a resume or load."""
        if not ok and session.previous_bond in (CLOSED, GONE):
            session.bond = session.previous_bond

    def reopening(self, session: SessionRecord) -> None:
        """A resume or load was asked: what comes from now on may be its replay."""
        session.previous_bond = session.bond
        if session.bond in (CLOSED, GONE):
            session.bond = STRANGE

    def used(self, session: SessionRecord, message: Request) -> None:
        """A request of the client for a session."""
        if session.bond in (ATTACHED, CHILD) or session.resumption is not None:
            return
        if message.method in _NEEDS_ATTACHMENT:
            text = f"{message.method} for a session that is not open on this connection"
            self._tell("V44", session, text, message, leg=CLIENT)

    def silent(self, session: SessionRecord, message: Message) -> bool:
        """Traffic of the agent; answers whether the session is closed, so that it means nothing."""
        if session.bond != CLOSED:
            return False
        self._tell("V24", session, "traffic after the session was closed", message)
        return True

    def answered(self, session: SessionRecord, call: Call, message: Response) -> bool:
        """A close or archive was answered; answers whether the session is closed now."""
        if message.is_error:
            missing = message.error_code == RESOURCE_NOT_FOUND and call.method == "session/close"
            if not missing:
                return False
            if self._book.agent_version == 2:
                text = "closing an unknown session must succeed"
                self._tell("V26", session, text, call.frame, message)
        if session.state in ("running", "requires_action"):
            text = "close answered while work was open, and no idle was told"
            self._tell("V25", session, text, call.frame, message)
        session.bond = CLOSED
        return True
