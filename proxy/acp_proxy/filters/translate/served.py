"""`fs/*` and `terminal/*` of a v1 agent, carried out by the proxy itself behind a v2 client (bridge §8).

Nothing is done here: a request leaves as ToHost under an id of ours, and what the host says of it comes in
through `heard`. To the client the terminals are the agent's own, so they must be told to an end like any: the
host reports the exits, and where it is not waited for (a session that is closed, an agent that is gone) the
exit is told here, its status unknown.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Version
from acp_proxy.filters.base import Step, ToAgent, ToClient, ToHost
from acp_proxy.filters.translate.bridge import Bridge
from acp_proxy.filters.translate.prompts import Prompts
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.told import ToldSession
from acp_proxy.inference.pending import Pending
from acp_proxy.jsonrpc.message import (
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    RESOURCE_NOT_FOUND,
    Json,
    Message,
    Notification,
    Request,
    Response,
    error,
    id_key,
    notification,
    result,
)

_WAIT: Final = "terminal/wait_for_exit"


class Served:
    """What the host does for the sessions of one bridge."""

    def __init__(self, bridge: Bridge, prompts: Prompts) -> None:
        self._bridge = bridge
        self._prompts = prompts
        self._open: Pending[Request] = Pending()
        self._last = 0
        self._running: dict[str, ToldSession] = {}

    def serves(self, method: str) -> bool:
        """Whether the agent was offered this method."""
        return method.partition("/")[0] in self._bridge.options.serve and _params_type(method) is not None

    # ------------------------------------------------------------ from the agent

    def ask(self, message: Request, at: float) -> list[Step]:
        """Hand a request to the host; it shows that the agent has taken the prompt, like any request (§5)."""
        session_id = message.params.get("sessionId")
        told = self._bridge.sessions.get(session_id) if type(session_id) is str else None
        steps = self._prompts.insert(told) if told is not None else []
        checked = conform(Version.V1, _params_type(message.method) or "", message.body.get("params"))
        if checked.problem is not None:
            text = f"{message.method}: {checked.problem}"
            self._bridge.note(at, "V42", "agent", text, message, "bridge 8", action="refused")
            return [*steps, ToAgent(error(message.id, INVALID_PARAMS, text))]
        if told is None or not told.attached:
            missing = {"sessionId": session_id}
            return [*steps, ToAgent(error(message.id, RESOURCE_NOT_FOUND, "no such session", missing))]
        self._last += 1
        self._open.add(self._last, message)
        own = Request({"jsonrpc": "2.0", "id": self._last, "method": message.method, "params": checked.value})
        return [*steps, ToHost(own, told.cwd, told.directories)]

    def withdraw(self, agent_id: Any) -> list[Step] | None:
        """`$/cancel_request` of the agent, None when it is about nothing here.

        Only the wait for an exit can be given up; anything else is about to be answered.
        """
        for own_id, message in self._open.items():
            if id_key(message.id) == id_key(agent_id):
                if message.method != _WAIT:
                    return []
                self._open.pop(own_id)
                return [ToAgent(error(message.id, REQUEST_CANCELLED, "no longer waited for"))]
        return None

    # ------------------------------------------------------------ from the host

    def heard(self, message: Message) -> list[Step]:
        """Pass on what the host says: the answer to a request, or an update about a terminal.

        An update is no sign that the prompt was taken: the request for a terminal was one, and a terminal of
        an earlier turn knows nothing of this one.
        """
        if isinstance(message, Response):
            asked = self._open.pop(message.id)
            return [] if asked is None else [ToAgent(Response({**message.body, "id": asked.id}))]
        assert isinstance(message, Notification)
        told = self._bridge.sessions.get(message.params["sessionId"])
        update = message.params["update"]
        terminal_id = update["terminalId"]
        if "command" in update and told is not None and not told.closed:
            told.terminals.add(terminal_id)
            self._running[terminal_id] = told
        if self._running.get(terminal_id) is not told or told is None:
            return []
        if "exitStatus" in update:
            del self._running[terminal_id]
        return [ToClient(message)]

    # ------------------------------------------------------------ from the client

    def cancel(self, message: Request, params: Json, at: float) -> list[Step]:
        """`terminal/cancel`: accepted while the command runs; its exit is what confirms it (LC-60)."""
        told = self._running.get(params["terminalId"])
        if told is None or told.id != params["sessionId"]:
            refusal = Refusal(INVALID_PARAMS, "nothing cancellable has this id")
            return self._bridge.refuse(message.id, refusal)
        named = {"sessionId": told.id, "terminalId": params["terminalId"]}
        kill = notification("terminal/kill", named)
        return [ToHost(kill, told.cwd, told.directories), ToClient(result(message.id, {}))]

    # ------------------------------------------------------------ ends

    def end_session(self, told: ToldSession) -> list[Step]:
        """The session is over: its commands are killed, and told to have ended before it is (LC-50)."""
        if "terminal" not in self._bridge.options.serve:
            return []
        over = notification("session/close", {"sessionId": told.id})
        steps: list[Step] = [ToHost(over, told.cwd, told.directories)]
        for terminal_id in [name for name, owner in self._running.items() if owner is told]:
            del self._running[terminal_id]
            ended = {"sessionUpdate": "terminal_update", "terminalId": terminal_id, "exitStatus": {}}
            steps.append(self._bridge.update(told.id, {**ended, "capabilities": None}))
        return steps


def _params_type(method: str) -> str | None:
    info = method_info(Version.V1, method, "request")
    return info.params if info is not None else None
