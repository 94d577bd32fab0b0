"""State snapshots for a v1 client that asked for them (lifecycle §2.1).

A v1 client's update stream is a closed union, so nothing is ever injected into it: the snapshot
goes out as the extension notification `_acp-proxy/state_update` with the same parameters, and
only to a client whose `clientCapabilities._meta["acp-proxy"].stateUpdates` is true.
"""

from __future__ import annotations

from acp_proxy.filters.base import Filter, Outcome, Travels
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import State
from acp_proxy.jsonrpc.message import Json, notification, well_formed_error

EXTENSION_METHOD = "_acp-proxy/state_update"


def snapshot_params(change: Change, *, original_stop: str | None = None) -> Json:
    """The `session/update` parameters that tell a change: `{sessionId, update, _meta}`.

    `original_stop` is the stop reason the agent gave where `cancelled` is told (V12); it, or another
    spelling of what is told, is kept under `_meta["acp-proxy"].orig`. Source: schema type StateUpdate,
    LC-03, LC-18, LC-19.
    """
    update: Json = {"sessionUpdate": "state_update", "state": change.new.value}
    marks: Json = {"synthetic": True}
    ending = change.ending
    if change.new is State.IDLE and not change.resume:
        if ending is not None and ending.error is not None and not change.after_cancel:
            update["stopReason"] = "error"
            update["error"] = well_formed_error(ending.error)
        else:
            stop = ending.stop_reason if ending is not None else None
            if stop is None and change.after_cancel:
                stop = "cancelled"
            if stop is not None:
                update["stopReason"] = stop
            if ending is not None and type(ending.usage) is dict:
                update["usage"] = ending.usage
    if original_stop is not None:
        update["stopReason"] = "cancelled"
    given = ending.given if ending is not None and ending.given is not None else original_stop
    if given is not None:
        marks["orig"] = {"stopReason": given}
    return {"sessionId": change.session.id, "update": update, "_meta": {"acp-proxy": marks}}


class Snapshot(Filter):
    """Turns state changes into extension notifications, or lets them end here."""

    def __init__(self) -> None:
        self.wanted = False

    def back(self, message: Travels, at: float) -> Outcome:
        """Tell a change to a client that asked; everything else goes on."""
        if not isinstance(message, Change):
            return message
        return notification(EXTENSION_METHOD, snapshot_params(message)) if self.wanted else None
