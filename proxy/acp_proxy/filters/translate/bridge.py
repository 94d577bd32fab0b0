"""What the parts of a v2-client bridge share: the ids of both hops, the sessions, what the agent can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.shapes import Conformed, conform
from acp_proxy.acp.version import Version
from acp_proxy.filters.alarms import Alarms
from acp_proxy.filters.base import Step, ToClient
from acp_proxy.filters.translate.message_ids import FROM_THE_START
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.session_registry import Remembered
from acp_proxy.filters.translate.told import Settling, ToldSession
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.pending import Pending
from acp_proxy.inference.session import Session
from acp_proxy.jsonrpc.message import INVALID_PARAMS, Json, Message, error, notification

UPDATE: Final = "session/update"


class BridgeOptions(Protocol):
    """The settings a bridge reads; times in seconds, 0 = off (design of the command line)."""

    ack_timeout: float
    close_timeout: float
    settle: float
    load_settle: float
    max_held: int
    queue_boundary: str
    drop_sse: bool
    serve: tuple[str, ...]
    synonyms: bool
    cancel_timeout: float
    unstable: bool


class Call:
    """A client request that was passed on under an id of ours."""

    __slots__ = ("client_id", "kind", "method", "opening", "params", "session")

    def __init__(
        self, client_id: Any, method: str, params: Json, kind: str, session: ToldSession | None
    ) -> None:
        self.client_id = client_id
        self.method = method
        self.params = params
        self.kind = kind
        self.session = session
        self.opening = session.openings if session is not None else 0

    @property
    def outlived(self) -> ToldSession | None:
        """The session, unless the client has opened it anew since it asked."""
        told = self.session
        return told if told is not None and told.openings == self.opening else None


class Bridge:
    """Shared state of one bridged pair; one queue per direction follows from handling one message at a time."""

    def __init__(
        self,
        client_params: Json,
        agent_result: Json,
        options: BridgeOptions,
        view: Mapping[str, Session],
        findings: FindingLog,
        token: Callable[[], str],
        remembered: Remembered,
        is_up: Callable[[], bool],
    ) -> None:
        self.options = options
        self.is_up = is_up
        self.view = view
        self.alarms = Alarms()
        self.sessions: dict[str, ToldSession] = {}
        self.calls: Pending[Call] = Pending()
        # By the client's id: in v2 that is a string or an integer (LC-73), and so its own key.
        self.own_call_ids: dict[Any, int] = {}
        self._findings = findings
        self._token = token
        self.agent_is_gone = False
        self._last_call = 0
        self._capabilities = _object(agent_result.get("agentCapabilities"))
        self._client_capabilities = _object(client_params.get("capabilities"))
        self.remembered = remembered
        name = _object(agent_result.get("agentInfo")).get("name")
        lasting = self.agent_has("loadSession") or self.agent_has("sessionCapabilities", "resume")
        remembered.begin(name if type(name) is str else "", lasting=lasting)

    # ------------------------------------------------------------ who can what

    def agent_has(self, *path: str) -> bool:
        """Whether the agent advertises a capability: true or an object at this path of `agentCapabilities`."""
        value: Any = self._capabilities
        for name in path:
            value = value.get(name) if type(value) is dict else None
        return value is not None and value is not False

    def client_modes(self) -> list[str]:
        """The elicitation modes the client advertises."""
        given = _object(self._client_capabilities.get("elicitation"))
        return [mode for mode, marker in given.items() if marker is not None and mode != "_meta"]

    # ------------------------------------------------------------ sessions and ids

    def session(self, session_id: str) -> ToldSession:
        """What the client knows of a session; at first sight it is taken up midway, with a random epoch."""
        told = self.sessions.get(session_id)
        if told is None:
            told = self.sessions[session_id] = ToldSession(session_id, self._token())
        return told

    def attach(self, session_id: str, opening: Json, *, from_start: bool) -> ToldSession:
        """A session was created, loaded or resumed for this client; `opening` are the params it was asked with."""
        told = self.sessions.get(session_id)
        if told is None or told.closed:
            told = ToldSession(session_id, FROM_THE_START if from_start else self._token())
            self.sessions[session_id] = told
        told.attached = True
        told.openings += 1
        told.open_in(opening.get("cwd"), opening.get("additionalDirectories"))
        return told

    def open_call(self, call: Call) -> int:
        """Give a request for the agent an id of our own."""
        own_id = self._last_call = self._last_call + 1
        self.calls.add(own_id, call)
        self.own_call_ids[call.client_id] = own_id
        return own_id

    def close_call(self, own_id: Any) -> Call | None:
        """The agent has answered; None when nothing of ours is open under that id."""
        call = self.calls.pop(own_id)
        if call is not None and self.own_call_ids.get(call.client_id) == own_id:
            del self.own_call_ids[call.client_id]
        return call

    # ------------------------------------------------------------ what waits

    def put_off(self, told: ToldSession, steps: list[Step], quiet: float, at: float) -> None:
        """Let steps wait for a quiet tail; behind what waits already, so that nothing overtakes."""
        if told.settling is None:
            told.settling = Settling(steps, quiet, at)
        else:
            told.settling.steps += steps
            told.settling.quiet = max(told.settling.quiet, quiet)
        self.alarms.set(("settle", told.id), at + quiet)

    def release(self, told: ToldSession) -> list[Step]:
        """What waited, now."""
        self.alarms.drop(("settle", told.id))
        settling, told.settling = told.settling, None
        if settling is None:
            return []
        told.swallowing = False
        return settling.steps

    # ------------------------------------------------------------ what is said

    def refuse(self, client_id: Any, refusal: Refusal) -> list[Step]:
        """Answer a request of the client with an error of ours."""
        return [ToClient(error(client_id, refusal.code, refusal.message, refusal.data))]

    def update(self, session_id: str, update: Json) -> Step:
        """An update said in the agent's name."""
        return ToClient(notification(UPDATE, {"sessionId": session_id, "update": update}))

    def fit(self, type_name: str, value: object) -> Conformed:
        """Make what is meant for the client fit its v2 type, spellings repaired as configured (bridge §10)."""
        return conform(Version.V2, type_name, value, synonyms=self.options.synonyms)

    def fit_request(self, method: str, params: Any) -> Any | Refusal:
        """Make params fit what v1 has under this method; what v1 closed and v2 left open is left out (§10)."""
        info = method_info(Version.V1, method, "request")
        if info is None or (info.unstable and not self.options.unstable):
            return params
        checked = conform(Version.V1, info.params, params)
        if checked.problem is not None:
            return Refusal(INVALID_PARAMS, f"{method}: {checked.problem}")
        return checked.value

    def fit_result(self, type_name: str, value: Json, message: Message, at: float) -> tuple[Json, str | None]:
        """Make a result fit its v2 type; the second value says why it cannot."""
        checked = self.fit(type_name, value)
        if checked.problem is not None:
            self.note(at, "V42", "agent", f"result: {checked.problem}", message, f"schema {type_name}")
            return value, checked.problem
        fitted: Json = checked.value
        return fitted, None

    def note(
        self,
        at: float,
        rule: str,
        leg: str,
        text: str,
        message: Message | None,
        source: str,
        *,
        action: str = "noted",
        session: str | None = None,
    ) -> None:
        """Write a finding; a bridged session's repairs are always made."""
        frames = (message.frame.number,) if message is not None and message.frame is not None else ()
        self._findings.note(
            Finding(at, rule, leg, text, session=session, frames=frames, action=action, source=source)
        )


def _object(value: Any) -> Json:
    return value if type(value) is dict else {}
