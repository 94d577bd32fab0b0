"""Swallows a cancel that finds nothing to cancel: some agents apply it to the next prompt (RA-14)."""

from __future__ import annotations

from acp_proxy.filters.base import Filter, Outcome
from acp_proxy.inference.engine import Engine
from acp_proxy.jsonrpc.message import Message, Notification


class IdleCancel(Filter):
    """Key `prompts.idle_cancel` = `swallow`; stands next to the engine, which knows what is open."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def forth(self, message: Message, at: float) -> Outcome:
        """Let a cancel pass only if work, or a prompt not yet taken, is there for it (LC-40)."""
        if type(message) is not Notification or message.method != "session/cancel":
            return message
        session_id = message.params.get("sessionId")
        if type(session_id) is not str:
            return message
        session = self._engine.sessions.get(session_id)
        if session is not None and session.busy:
            return message
        prompts = (
            call.session_id for _, call in self._engine.from_client.items() if call.method == "session/prompt"
        )
        return message if session_id in prompts else None
