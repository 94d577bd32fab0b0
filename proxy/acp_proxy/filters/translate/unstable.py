"""Unstable protocol items across a bridge, only with `unstable` on and where the agent offers them (bridge §3.1).

Without `unstable` these methods count as unknown: they pass as they are, and the agent answers.
"""

from __future__ import annotations

from typing import Final

from acp_proxy.filters.base import Step, ToAgent, ToClient
from acp_proxy.filters.snapshot import snapshot_params
from acp_proxy.filters.translate import session_params
from acp_proxy.filters.translate.bridge import Bridge, Call
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.inference.foreground import Change
from acp_proxy.jsonrpc.message import METHOD_NOT_FOUND, Json, Request, Response, result

# method -> where the agent's v1 capabilities mark it
MARKERS: Final[dict[str, tuple[str, ...]]] = {
    "session/fork": ("sessionCapabilities", "fork"),
    "session/archive": ("sessionCapabilities", "archive"),
    "session/unarchive": ("sessionCapabilities", "archive"),
    "session/status": ("sessionCapabilities", "status"),
    "session/set_title": ("sessionCapabilities", "title"),
    "providers/list": ("providers",),
    "providers/set": ("providers",),
    "providers/disable": ("providers",),
    "auth/status": ("auth", "status"),
}


class Unstable:
    """Passes unstable requests on to an agent that marks them as supported."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def ask(self, message: Request, params: Json, at: float) -> list[Step]:
        """Gate a request by the agent's marker and pass it on; `session/fork` opens a session like `session/new`."""
        bridge, method = self._bridge, message.method
        if not bridge.agent_has(*MARKERS[method]):
            return bridge.refuse(
                message.id, Refusal(METHOD_NOT_FOUND, f"the agent does not support {method}")
            )
        kind = "other"
        if method == "session/fork":
            directories = bridge.agent_has("sessionCapabilities", "additionalDirectories")
            translated = session_params.new_params(params, additional_directories=directories)
            if isinstance(translated, Refusal):
                return bridge.refuse(message.id, translated)
            params, kind = translated, "new"
        elif method == "session/status":
            kind = "status"
        told = bridge.sessions.get(params["sessionId"]) if kind == "status" else None
        own_id = bridge.open_call(Call(message.id, method, params, kind, told))
        return [ToAgent(Request({**message.body, "jsonrpc": "2.0", "id": own_id, "params": params}))]

    def status(self, call: Call, message: Response, at: float) -> list[Step]:
        """A v1 agent does not tell the state of an open session; one attached here has a derived one (LC-84)."""
        answer: Json = dict(message.result) if type(message.result) is dict else {}
        told = call.session
        record = self._bridge.view.get(told.id) if told is not None and told.attached else None
        if record is not None and answer.get("status") == "open" and "state" not in answer:
            snapshot: Json = snapshot_params(Change(record, record.state, record.state, resume=True))[
                "update"
            ]
            answer["state"] = {key: value for key, value in snapshot.items() if key != "sessionUpdate"}
        fitted, _ = self._bridge.fit_result("SessionStatusResponse", answer, message, at)
        return [ToClient(result(call.client_id, fitted))]
