"""Reads `initialize` both ways, then puts the right translator, or none, in its own place.

Until the answer is there nobody knows which dialects the legs speak. A v2 client's offer goes to
the agent in both shapes at once: a v2 agent finds its fields, and a v1 agent, which ignores
fields it does not know, finds its own instead of assuming that the client can do nothing.

Source: bridge §1, §2, §12; LC-86.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Version
from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, ToClient, Travels
from acp_proxy.filters.snapshot import Snapshot
from acp_proxy.filters.translate.initialize import (
    UNKNOWN_INFO,
    is_v2_shape,
    offer_both,
    offer_v1,
    read_version,
    result_to_v2,
)
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.jsonrpc.message import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    VERSION_UNSUPPORTED,
    Json,
    Message,
    Request,
    Response,
    error,
    request,
    result,
)
from acp_proxy.relay.options import RelayOptions

_OFFER_REFUSED: Final = frozenset({INVALID_PARAMS, INVALID_REQUEST, VERSION_UNSUPPORTED})


class Agreement:
    """What `initialize` settled for a bridged pair: the client's offer and both forms of the answer."""

    __slots__ = ("agent_result", "client_params", "client_result")

    def __init__(self, client_params: Json, agent_result: Json, client_result: Json) -> None:
        self.client_params = client_params
        self.agent_result = agent_result
        self.client_result = client_result


class Negotiate(Filter):
    """Holds the translator's place until the two versions are known.

    `meet(info, version)` is called once, with what the agent says of itself (`agentInfo`, v2 `info`), before
    `settle(translator)`, with the bridge's adapter or None for equal versions.
    """

    def __init__(
        self,
        options: RelayOptions,
        engine: Engine,
        findings: FindingLog,
        snapshot: Snapshot,
        bridge: Callable[[Agreement], Filter],
        settle: Callable[[Filter | None], None],
        meet: Callable[[Json, Version], None] = lambda info, version: None,
    ) -> None:
        self._options = options
        self._engine = engine
        self._findings = findings
        self._snapshot = snapshot
        self._bridge = bridge
        self._settle = settle
        self._meet = meet
        self._asked: Request | None = None
        self._offered = 0
        self._retried = False
        self.client_version: int | None = None
        self.answered = False

    # ------------------------------------------------------------ client to agent

    def forth(self, message: Message, at: float) -> Outcome:
        """Read the client's offer; before the answer a v2 client may say nothing else (LC-86)."""
        if type(message) is Request and message.method == "initialize":
            return self._offer(message, at)
        if self._asked is not None and self._bridging and type(message) is not Response:
            self._note(
                at, "V33", "client", "message before initialize was answered", message, "LC-86", "refused"
            )
            if type(message) is Request:
                return [ToClient(error(message.id, INVALID_REQUEST, "initialize has not been answered yet"))]
            return None
        return message

    @property
    def _bridging(self) -> bool:
        return self._options.bridge == "auto" and self.client_version is not None and self.client_version >= 2

    @property
    def _is_open(self) -> bool:
        """Whether this may yet become a bridged pair."""
        return self._bridging or (self._options.bridge == "auto" and self.client_version is None)

    def _offer(self, message: Request, at: float) -> Outcome:
        params = message.params
        if "protocolVersion" not in params:
            return [ToClient(error(message.id, INVALID_PARAMS, "initialize: protocolVersion is missing"))]
        version, repaired = read_version(params["protocolVersion"])
        if version is None or version < 0:
            self._note(
                at, "V50", "client", "protocolVersion is not a number", message, "schema ProtocolVersion"
            )
            return [
                ToClient(error(message.id, INVALID_PARAMS, "initialize: protocolVersion must be a number"))
            ]
        if self._asked is not None:
            return [ToClient(error(message.id, INVALID_REQUEST, "initialize is being answered"))]
        if version >= 2 and self._options.bridge == "auto" and type(message.id) not in (int, str):
            self._note(
                at, "V31", "client", "initialize with an id that answers nothing", message, "LC-73", "refused"
            )
            return [ToClient(error(None, INVALID_REQUEST, "request id must be a string or an integer"))]
        if version >= 2 and self._options.bridge == "auto" and any(self._engine.from_client.items()):
            # What was passed on untranslated is still open, under ids that a bridge gives anew.
            self._note(at, "V33", "client", "initialize is not the first", message, "LC-86", "refused")
            return [
                ToClient(error(message.id, INVALID_REQUEST, "initialize must come before other requests"))
            ]
        self.client_version = version
        self._asked = message
        self._snapshot.wanted = version == 1 and _wants_states(params)
        if repaired:
            self._note(
                at,
                "V50",
                "client",
                "protocolVersion given as text",
                message,
                "schema ProtocolVersion",
                "repaired",
            )
            params = {**params, "protocolVersion": version}
            message = Request({**message.body, "params": params})
            self._asked = message
        if not self._bridging:
            self._offered = version
            return message
        given = {**params, "protocolVersion": 2}
        if given.get("info") is None:
            given["info"] = dict(UNKNOWN_INFO)
        checked = conform(Version.V2, "InitializeRequest", given, unstable=True)
        if checked.problem is not None:
            self._asked = None
            return [ToClient(error(message.id, INVALID_PARAMS, f"initialize: {checked.problem}"))]
        self._offered = 1 if self._options.agent_version == "1" else 2
        fitted = {**checked.value, "protocolVersion": version}
        self._asked = Request({**message.body, "params": fitted})
        return request(message.id, "initialize", self._offer_params(fitted))

    def _offer_params(self, params: Json) -> Json:
        offer = offer_v1 if self._offered == 1 else offer_both
        return offer(params, frozenset(self._options.serve), unstable=self._options.unstable)

    # ------------------------------------------------------------ agent to client

    def back(self, message: Travels, at: float) -> Outcome:
        """Read the agent's answer and settle who translates."""
        asked = self._asked
        if type(message) is Request and self._is_open:
            # Nobody can say yet in which dialect it would be read, nor whose ids are whose.
            text = f"{message.method} before initialize was answered"
            self._note(at, "V33", "agent", text, message, "LC-86", "refused")
            return [ToAgent(error(message.id, INVALID_REQUEST, "initialize has not been answered yet"))]
        if (
            asked is None
            or type(message) is not Response
            or message.id != asked.id
            or type(message.id) is not type(asked.id)
        ):
            return message
        if message.is_error:
            return self._refused(asked, message)
        answer = message.result if type(message.result) is dict else {}
        version, _ = read_version(answer.get("protocolVersion"))
        v2_shape = is_v2_shape(answer)
        info = answer.get("info" if v2_shape else "agentInfo")
        self._meet(info if type(info) is dict else {}, Version.V2 if v2_shape else Version.V1)
        if self._bridging and (version == 1 or (version == 2 and not v2_shape)):
            return self._bridge_v1(asked, answer, version, message, at)
        self._engine.speak(Version.V2 if v2_shape else Version.V1)
        self.answered = True
        self._asked = None
        self._settle(None)
        return message

    def _refused(self, asked: Request, message: Response) -> Outcome:
        if (
            self._bridging
            and self._offered == 2
            and not self._retried
            and message.error_code in _OFFER_REFUSED
        ):
            self._retried = True
            self._offered = 1
            again = request(asked.id, "initialize", self._offer_params(asked.params))
            steps: list[Step] = [RestartAgent(), ToAgent(again)]
            return steps
        self._asked = None
        return message

    def _bridge_v1(self, asked: Request, answer: Json, version: int, message: Response, at: float) -> Outcome:
        if version == 2:
            self._note(
                at, "V50", "agent", "v1 agent echoed protocolVersion 2", message, "bridge 1", "repaired"
            )
        capabilities = asked.params.get("capabilities")
        auth = capabilities.get("auth") if type(capabilities) is dict else None
        terminal = type(auth) is dict and auth.get("terminal") is not None
        told = result_to_v2(answer, client_terminal_auth=terminal, unstable=self._options.unstable)
        told = self._fitted(told, message, at)
        self._engine.speak(Version.V1)
        self.answered = True
        self._settle(self._bridge(Agreement(asked.params, answer, told)))
        return result(asked.id, told)

    def _fitted(self, told: Json, message: Response, at: float) -> Json:
        """The result as v2 takes it; a part that cannot be repaired counts as not given."""
        for part, instead in (
            (None, None),
            ("info", dict(UNKNOWN_INFO)),
            ("authMethods", []),
            ("capabilities", {}),
        ):
            if part is not None:
                told = {**told, part: instead}
            checked = conform(Version.V2, "InitializeResponse", told)
            if checked.problem is None:
                fitted: Json = checked.value
                return fitted
            text = f"initialize result: {checked.problem}"
            self._note(at, "V42", "agent", text, message, "schema InitializeResponse", "repaired")
        return {"protocolVersion": 2, "info": dict(UNKNOWN_INFO), "capabilities": {}}

    def _note(
        self, at: float, rule: str, leg: str, text: str, message: Message, source: str, action: str = "noted"
    ) -> None:
        frames = (message.frame.number,) if message.frame is not None else ()
        self._findings.note(Finding(at, rule, leg, text, frames=frames, source=source, action=action))


def _wants_states(params: Json) -> bool:
    """Whether a v1 client asked for state snapshots over the extension notification (lifecycle §2.1)."""
    holder: object = params
    for name in ("clientCapabilities", "_meta", "acp-proxy"):
        holder = holder.get(name) if isinstance(holder, dict) else None
    return isinstance(holder, dict) and holder.get("stateUpdates") is True
