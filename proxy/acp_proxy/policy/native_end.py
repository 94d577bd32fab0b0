"""Tells in an agent's name that its work has ended, where the agent reports its states itself.

Source: LC-12, LC-20, lifecycle §2.1; schema type StateUpdate.
"""

from __future__ import annotations

from typing import Any

from acp_proxy.jsonrpc.message import Json, Notification, notification

UPDATE = "session/update"


def idle_update(session_id: str, ending: Json, background: Any = None) -> Notification:
    """An idle snapshot of ours, marked as such; `ending` holds `stopReason` and, for `error`, the `error`.

    `background` is repeated once the agent has reported one: to leave it out would unreport it (LC-20).
    """
    update: Json = {"sessionUpdate": "state_update", "state": "idle", **ending}
    if background is not None:
        update["background"] = background
    marks = {"acp-proxy": {"synthetic": True}}
    return notification(UPDATE, {"sessionId": session_id, "update": update, "_meta": marks})


class NativeStates:
    """Which sessions had their end told by us, and what the agent last reported as background."""

    __slots__ = ("_background", "_ended")

    def __init__(self) -> None:
        self._background: dict[str, Any] = {}
        self._ended: dict[str, bool] = {}

    def end(self, session_id: str, ending: Json) -> Notification:
        """Tell the end; the agent's own comes late from now on."""
        self._ended[session_id] = False
        return idle_update(session_id, ending, self._background.get(session_id))

    def inserted(self, session_id: str) -> None:
        """The agent has taken another prompt: a later idle may be that one's end."""
        if session_id in self._ended:
            self._ended[session_id] = True

    def is_late_end(self, session_id: str, update: Json) -> bool:
        """Take note of the agent's own report; whether it is the end that was told already.

        An agent that has taken another prompt meanwhile need not say `running` again, so only `cancelled`
        then speaks of the work before.
        """
        if type(update.get("background")) is list:
            self._background[session_id] = update["background"]
        if session_id not in self._ended:
            return False
        taken = self._ended.pop(session_id)
        return update.get("state") == "idle" and (not taken or update.get("stopReason") == "cancelled")

    def clear(self) -> None:
        """Another agent process reports for itself."""
        self._background.clear()
        self._ended.clear()
