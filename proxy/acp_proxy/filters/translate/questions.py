"""Requests of a v1 agent to a v2 client, and the answers back (bridge §3.3, §7.3, §7.9, §8).

A question is answered to the agent exactly once: by the client, or by the proxy when the work it
belonged to has ended. What the client says after that goes nowhere (LC-12, RA-11).
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Role, Version
from acp_proxy.filters.base import Step, ToAgent, ToClient
from acp_proxy.filters.translate import elicitation, permissions
from acp_proxy.filters.translate.bridge import Bridge
from acp_proxy.filters.translate.prompts import Prompts
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.served import Served
from acp_proxy.filters.translate.told import ToldSession
from acp_proxy.inference.pending import Pending
from acp_proxy.inference.session import Owner
from acp_proxy.jsonrpc.message import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
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

_PERMISSION: Final = "session/request_permission"
_ELICITATION: Final = "elicitation/create"
_CANCELLED: Final[Json] = {"outcome": {"outcome": "cancelled"}}
_HOST_PREFIXES: Final = ("fs/", "terminal/")


class Question:
    """A request of the agent that the client is asked under an id of ours."""

    __slots__ = ("agent_id", "foreground", "method", "offered", "session")

    def __init__(self, agent_id: Any, method: str, session: ToldSession | None, foreground: bool) -> None:
        self.agent_id = agent_id
        self.method = method
        self.session = session
        self.foreground = foreground
        self.offered: frozenset[str] = frozenset()


class Questions:
    """The open questions of one bridge."""

    def __init__(self, bridge: Bridge, prompts: Prompts, served: Served) -> None:
        self._bridge = bridge
        self._prompts = prompts
        self._served = served
        self._open: Pending[Question] = Pending()
        self._own_ids: dict[Any, int] = {}
        self._last = 0

    # ------------------------------------------------------------ agent asks

    def ask(self, message: Request, at: float) -> list[Step]:
        """Pass a request of the agent on, translated, or answer it here."""
        method = message.method
        if self._served.serves(method):
            return self._served.ask(message, at)
        if _only_for_agents(method):
            text = f"{method} is a request of clients"
            self._bridge.note(at, "V33", "agent", text, message, "bridge 9", action="refused")
            return [ToAgent(error(message.id, INVALID_REQUEST, text))]
        session_id = message.params.get("sessionId")
        told = self._bridge.session(session_id) if type(session_id) is str else None
        if told is not None and told.closed:
            return [ToAgent(self._after_close(method, message.id, told))]
        # Whatever becomes of the request, the agent makes it because it has taken the prompt (bridge §5).
        owed = self._prompts.insert(told) if told is not None else []
        if method.startswith(_HOST_PREFIXES):
            # Nothing of the kind was advertised, and a v2 client has no such methods.
            self._bridge.note(
                at,
                "V52",
                "agent",
                f"{method} although nobody offered it",
                message,
                "bridge 8",
                action="refused",
            )
            return [*owed, ToAgent(error(message.id, METHOD_NOT_FOUND, f"{method} is not available"))]
        params, refusal = self._translated(message)
        if refusal is not None:
            self._bridge.note(
                at,
                "V42",
                "agent",
                f"{method}: {refusal.message}",
                message,
                "bridge 7",
                action="refused",
                session=told.id if told is not None else None,
            )
            if method == _PERMISSION and type(message.params.get("toolCall")) is dict and told is not None:
                return [*owed, ToAgent(result(message.id, {"outcome": {"outcome": "cancelled"}}))]
            return [*owed, ToAgent(error(message.id, refusal.code, refusal.message, refusal.data))]
        return [*owed, self._pass_on(message, params, told)]

    def _pass_on(self, message: Request, params: Any, told: ToldSession | None) -> Step:
        method = message.method
        foreground = False
        if told is not None:
            if method == _PERMISSION:
                self._open_tool(told, message.params["toolCall"])
            record = self._bridge.view.get(told.id)
            wait = record.waits.get(id_key(message.id)) if record is not None else None
            foreground = wait.owner is Owner.FOREGROUND if wait is not None else told.turn is not None
        question = Question(message.id, method, told, foreground)
        if method == _PERMISSION:
            question.offered = permissions.offered_options(params)
        self._last += 1
        own_id = self._last
        self._open.add(own_id, question)
        self._own_ids[id_key(message.id)] = own_id
        if told is not None:
            told.questions.add(own_id)
        body: Json = {**message.body, "jsonrpc": "2.0", "id": own_id}
        if params is not None:
            body["params"] = params
        return ToClient(Request(body))

    def _open_tool(self, told: ToldSession, tool_call: Json) -> None:
        """A permission's `toolCall` opens a tool that no update has named yet, and with it a new message."""
        tool_id = tool_call.get("toolCallId")
        if type(tool_id) is str and tool_id not in told.titles:
            title = tool_call.get("title")
            told.titles[tool_id] = title if type(title) is str else None
            told.ids.boundary()

    def _translated(self, message: Request) -> tuple[Any, Refusal | None]:
        method = message.method
        given = message.body.get("params")
        translated: Any = given
        if method == _PERMISSION:
            told = self._bridge.sessions.get(str(message.params.get("sessionId")))
            tool = message.params.get("toolCall")
            tool_id = tool.get("toolCallId") if type(tool) is dict else None
            stored = told.titles.get(tool_id) if told is not None and type(tool_id) is str else None
            translated = permissions.request_to_v2(
                given,
                stored_title=stored,
                cwd=told.cwd if told is not None else None,
                served_terminals=told.terminals if told is not None else frozenset(),
            )
        elif method == _ELICITATION:
            translated = elicitation.request_to_v2(given, self._bridge.client_modes())
            if type(translated) is dict and translated.get("requestId") is not None:
                translated = self._with_client_id(translated)
        if isinstance(translated, Refusal):
            return None, translated
        info = method_info(Version.V2, method, "request")
        if info is None or (info.unstable and not self._bridge.options.unstable):
            return translated, None
        checked = self._bridge.fit(info.params, translated)
        if checked.problem is not None:
            return None, Refusal(INVALID_PARAMS, checked.problem)
        return checked.value, None

    def _with_client_id(self, params: Json) -> Json | Refusal:
        """A request-scoped elicitation names a request of the client by the id on the agent's hop (LC-70)."""
        call = self._bridge.calls.get(params["requestId"])
        if call is None:
            return Refusal(INVALID_PARAMS, "requestId names no open request")
        return {**params, "requestId": call.client_id}

    # ------------------------------------------------------------ client answers

    def answer(self, message: Response, at: float) -> list[Step]:
        """Pass the client's answer on, if the agent still waits for it."""
        question = self._open.pop(message.id)
        if question is None:
            issued = type(message.id) is int and 0 < message.id <= self._last
            if not issued:
                self._bridge.note(
                    at, "V29", "client", "response to an id never asked", message, "LC-70", action="repaired"
                )
            return []
        self._forget(question, message.id)
        body = {**message.body, "jsonrpc": "2.0", "id": question.agent_id}
        if message.is_error:
            body.pop("result", None)
        if question.method == _PERMISSION:
            outcome, why = permissions.outcome_to_v1(
                None if message.is_error else message.result, question.offered
            )
            if why is not None:
                self._bridge.note(
                    at,
                    "V39",
                    "client",
                    why,
                    message,
                    "bridge 7.3",
                    action="repaired",
                    session=question.session.id if question.session is not None else None,
                )
            body.pop("error", None)
            body["result"] = self._fit_answer("RequestPermissionResponse", outcome, _CANCELLED)
        elif question.method == _ELICITATION and not message.is_error:
            given = elicitation.response_to_v1(message.result)
            body["result"] = self._fit_answer("CreateElicitationResponse", given, {"action": "cancel"})
        return [ToAgent(Response(body))]

    def _fit_answer(self, type_name: str, answer: Json, instead: Json) -> Json:
        """An answer as v1 takes it; one it cannot take becomes the one that approves nothing (bridge §0)."""
        checked = conform(Version.V1, type_name, answer)
        fitted: Json = instead if checked.problem is not None else checked.value
        return fitted

    # ------------------------------------------------------------ withdrawals

    def withdrawn_by_agent(self, message: Notification, at: float) -> list[Step]:
        """`$/cancel_request` of the agent: the client is told under our id and still answers (LC-70)."""
        own_id = self._own_ids.get(id_key(message.params.get("requestId")))
        if own_id is None:
            return self._served.withdraw(message.params.get("requestId")) or []
        if self._bridge.agent_is_gone:
            # Nobody waits for the answer any more, and the end of its turn must not withdraw it again.
            question = self._open.pop(own_id)
            if question is not None:
                self._forget(question, own_id)
        return [ToClient(Notification({**message.body, "params": {**message.params, "requestId": own_id}}))]

    def withdraw(self, told: ToldSession, *, everything: bool) -> list[Step]:
        """Answer a session's open questions `cancelled` to the agent and withdraw them at the client.

        `everything`: background ones too, as on a cancel or close; else only those of the work that ended.
        """
        steps: list[Step] = []
        for own_id in sorted(told.questions):
            question = self._open.get(own_id)
            if question is None or not (everything or question.foreground):
                continue
            if question.method not in (_PERMISSION, _ELICITATION):
                continue
            if question.method == _ELICITATION and not question.foreground:
                continue
            self._open.pop(own_id)
            self._forget(question, own_id)
            steps.append(ToAgent(self._cancelled(question.method, question.agent_id)))
            steps.append(ToClient(notification("$/cancel_request", {"requestId": own_id})))
        return steps

    def _forget(self, question: Question, own_id: int) -> None:
        key = id_key(question.agent_id)
        if self._own_ids.get(key) == own_id:
            del self._own_ids[key]
        if question.session is not None:
            question.session.questions.discard(own_id)

    def _after_close(self, method: str, agent_id: Any, told: ToldSession) -> Message:
        """What a request of a session gets that the client has closed (bridge §4)."""
        if method == _PERMISSION:
            return self._cancelled(method, agent_id)
        return error(agent_id, RESOURCE_NOT_FOUND, "the session is closed", {"sessionId": told.id})

    def _cancelled(self, method: str, agent_id: Any) -> Message:
        if method == _PERMISSION:
            return result(agent_id, {"outcome": {"outcome": "cancelled"}})
        if method == _ELICITATION:
            return result(agent_id, {"action": "cancel"})
        return error(agent_id, METHOD_NOT_FOUND, "the session is closed")


def _only_for_agents(method: str) -> bool:
    """Whether both versions know this method as one that a client sends and never receives."""
    infos = [info for version in Version if (info := method_info(version, method, "request")) is not None]
    return bool(infos) and all(Role.CLIENT not in info.receivers for info in infos)
