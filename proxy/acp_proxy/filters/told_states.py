"""Reports every state as it passes on its way to the client, inferred or the agent's own.

It stands on the client's side of the translator, where each pairing has its states in one of two
forms: a `state_update` in the client's dialect, or, between peers of one version, the bare change
that Snapshot turns into an extension or lets end. So a state the bridge puts off or leaves out is
reported when and if the client is told of it. The engine's end of the chain was rejected for this:
it knows neither. Only a relay that reports has this stage at all.

Source: lifecycle §2.1; LC-13, LC-15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from acp_proxy.filters.base import Filter, Outcome, Travels
from acp_proxy.filters.snapshot import snapshot_params
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import State
from acp_proxy.jsonrpc.message import Json, Notification

# at, session id, old state, new state, stop reason
Tell = Callable[[float, str, str, str, str | None], None]

_UPDATE: Final = "session/update"


class ToldStates(Filter):
    """Tells of each state that passes; changes nothing. A session nobody spoke of was idle (LC-13)."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._states: dict[str, str] = {}

    def back(self, message: Travels, at: float) -> Outcome:
        """Look for a state in what goes to the client."""
        if type(message) is Notification:
            if message.body["method"] == _UPDATE:
                self._read(message.params, at)
        elif isinstance(message, Change):
            self._read(snapshot_params(message), at)
        return message

    def _read(self, params: Json, at: float) -> None:
        update: Any = params.get("update")
        session_id = params.get("sessionId")
        if type(update) is not dict or type(session_id) is not str:
            return
        state = update.get("state")
        if update.get("sessionUpdate") != "state_update" or type(state) is not str:
            return
        stop = update.get("stopReason")
        old = self._states.get(session_id, State.IDLE.value)
        self._states[session_id] = state
        self._tell(at, session_id, old, state, stop if type(stop) is str else None)
