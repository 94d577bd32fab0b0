"""Subagent sessions: named by their parent first, changed only as they allow (V37, V38). Source: LC-80, LC-82."""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.inference.watch.detector import CLIENT, Detector
from acp_proxy.inference.watch.record import CHILD, STRANGE, SessionRecord
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request

# What may be told of a session that exists somewhere without being anybody's child.
_OF_ANY_SESSION: Final = frozenset(
    {
        "session_info_update",
        "usage_update",
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "notice",
    }
)
_CHANGES: Final = frozenset(
    {
        "session/prompt",
        "session/close",
        "session/delete",
        "session/archive",
        "session/unarchive",
        "session/set_config_option",
        "session/set_mode",
        "session/set_title",
    }
)


class Children(Detector):
    """Knows which sessions are children, and what they offer."""

    __slots__ = ()

    def named(self, parent: SessionRecord, update: Json) -> None:
        """A parent's `subagent_update`."""
        child_id = update.get("sessionId")
        if type(child_id) is not str:
            return
        child = self._book.session(child_id)
        if child.bond == STRANGE:
            child.bond = CHILD
        child.parent = parent.id
        if "capabilities" in update:
            child.child_cancel = offers_cancel(update["capabilities"])
        state = update.get("state")
        if type(state) is dict and type(state.get("state")) is str and child.state is None:
            child.state = state["state"]
            child.standard = True

    def heard(self, session: SessionRecord, tag: Any, message: Message) -> None:
        """Traffic of a session that nobody opened; while one is being opened its id is not known yet."""
        if tag in _OF_ANY_SESSION or self._book.attaching or session.resumption is not None:
            return
        again, session.announced_late = session.announced_late, True
        self._tell("V37", session, "traffic of a session that no parent has named", message, again=again)

    def changed(self, session: SessionRecord, message: Request | Notification) -> None:
        """A request or cancel of the client for a child."""
        method = message.method
        allowed = session.child_cancel if method == "session/cancel" else method not in _CHANGES
        if not allowed:
            text = f"{method} for a subagent that does not offer it"
            self._tell("V38", session, text, message, leg=CLIENT)


def offers_cancel(capabilities: Any) -> bool:
    """Whether an entity's capabilities hold `cancel`; null takes everything back."""
    return type(capabilities) is dict and capabilities.get("cancel") is not None
