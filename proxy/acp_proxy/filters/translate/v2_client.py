"""The bridge for a v2 client and a v1 agent: every message finds its translator here (direction F21).

Requests leave under ids of our own on either hop, so nothing a peer picks can collide; answers,
`$/cancel_request` and request-scoped elicitations are mapped back (LC-70).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Role, Version
from acp_proxy.filters.base import Filter, Outcome, Step, ToAgent, ToClient, Travels
from acp_proxy.filters.translate.bridge import UPDATE, Bridge, BridgeOptions, Call
from acp_proxy.filters.translate.prompts import Prompts
from acp_proxy.filters.translate.questions import Questions
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.served import Served
from acp_proxy.filters.translate.session_registry import Remembered
from acp_proxy.filters.translate.sessions import Sessions
from acp_proxy.filters.translate.told import ToldSession
from acp_proxy.filters.translate.unstable import MARKERS, Unstable
from acp_proxy.filters.translate.updates import Updates
from acp_proxy.inference.findings import FindingLog
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import Session, State
from acp_proxy.inference.watch.breach import SOURCES
from acp_proxy.inference.watch.ids import Received, session_of
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PLAIN_IDS,
    RESOURCE_NOT_FOUND,
    Json,
    Message,
    Notification,
    Request,
    Response,
    error,
    id_key,
    result,
    well_formed_error,
)

_RENAMED: Final = {"auth/login": "authenticate", "auth/logout": "logout"}
_MISSING: Final[Json] = {}

Handler = Callable[[Request, Json, float], Outcome]


class V2Client(Filter):
    """Speaks v2 to the client and v1 to the agent."""

    def __init__(
        self,
        client_params: Json,
        agent_result: Json,
        client_result: Json,
        options: BridgeOptions,
        view: Mapping[str, Session],
        findings: FindingLog,
        token: Callable[[], str],
        remembered: Remembered,
        is_up: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_up` says whether the agent takes anything now, and is not being replaced."""
        self._initialized = (client_params, client_result)
        self._spoken = False
        self._received = Received()
        bridge = self._bridge = Bridge(
            client_params, agent_result, options, view, findings, token, remembered, is_up
        )
        prompts = self._prompts = Prompts(bridge)
        served = self._served = Served(bridge, prompts)
        questions = self._questions = Questions(bridge, prompts, served)
        sessions = self._sessions = Sessions(bridge, prompts, questions, served)
        self._updates = Updates(bridge, prompts)
        self._requests: dict[str, Handler] = {
            "session/prompt": prompts.ask,
            "session/new": sessions.new,
            "session/resume": sessions.resume,
            "session/list": sessions.list_sessions,
            "session/close": sessions.close,
            "session/delete": sessions.delete,
            "session/set_config_option": sessions.set_option,
            "auth/login": self._auth,
            "auth/logout": self._auth,
            "tool_call/cancel": self._not_cancellable,
            "terminal/cancel": served.cancel,
        }
        unstable = Unstable(bridge)
        if options.unstable:
            self._requests.update(dict.fromkeys(MARKERS, unstable.ask))
        self._results: dict[str, Callable[[Call, Response, float], Sequence[Step]]] = {
            "new": sessions.opened,
            "load": sessions.opened,
            "resume": sessions.opened,
            "list": sessions.listed,
            "set": sessions.option_set,
            "status": unstable.status,
        }

    # ------------------------------------------------------------ client to agent

    def forth(self, message: Message, at: float) -> Outcome:
        """A message of the client, in v2 terms."""
        if type(message) is Request:
            return self._request(message, at)
        if type(message) is Notification:
            return self._notification(message, at)
        assert type(message) is Response
        return self._questions.answer(message, at)

    def _request(self, message: Request, at: float) -> Outcome:
        bridge, token = self._bridge, message.id
        if type(token) not in PLAIN_IDS:
            bridge.note(
                at,
                "V31",
                "client",
                "request id must be a string or an integer",
                message,
                "LC-73",
                action="refused",
            )
            return [ToClient(error(None, INVALID_REQUEST, "request id must be a string or an integer"))]
        if token in bridge.own_call_ids or self._prompts.is_held(token):
            bridge.note(
                at, "V31", "client", "request id reused in flight", message, "LC-73", action="refused"
            )
            return [ToClient(error(None, INVALID_REQUEST, "request id is already in use"))]
        self._received.add(token)
        method = message.method
        if method == "initialize":
            return self._initialize_again(message)
        self._spoken = True
        info = method_info(Version.V2, method, "request")
        if info is not None and Role.AGENT not in info.receivers:
            text = f"{method} is a request of agents"
            bridge.note(at, "V33", "client", text, message, "bridge 9", action="refused")
            return bridge.refuse(message.id, Refusal(INVALID_REQUEST, text))
        if info is None or (info.unstable and not bridge.options.unstable):
            return self._unlisted(message, at)
        checked = conform(Version.V2, info.params, message.body.get("params", _MISSING), unstable=True)
        if checked.problem is not None:
            text = f"{method}: {checked.problem}"
            empty = method == "session/prompt" and message.params.get("prompt") == []
            self._refused("V23" if empty else "V42", message, text, at)
            return bridge.refuse(message.id, Refusal(INVALID_PARAMS, text))
        params: Json = checked.value
        # Of any type where the method has no such member: then nothing has looked at it.
        session_id = params.get("sessionId")
        told = bridge.sessions.get(session_id) if type(session_id) is str else None
        if (
            told is not None
            and (told.closed or told.leaving)
            and method not in ("session/resume", "session/close", "session/delete")
        ):
            self._refused("V44", message, f"{method} for a session that is closed", at)
            missing = Refusal(RESOURCE_NOT_FOUND, "the session is closed", {"sessionId": told.id})
            return bridge.refuse(message.id, missing)
        handler = self._requests.get(method)
        if handler is None:
            return self._pass_on(message, method, params)
        return handler(message, params, at)

    def _refused(self, rule: str, message: Request, text: str, at: float) -> None:
        source = SOURCES[rule]
        session_id = session_of(message)
        self._bridge.note(at, rule, "client", text, message, source, action="refused", session=session_id)

    def _initialize_again(self, message: Request) -> Outcome:
        """A v2 client may repeat `initialize` until its first other request (LC-86)."""
        params, answer = self._initialized
        if self._spoken or message.params != params:
            return [ToClient(error(message.id, INVALID_REQUEST, "already initialized"))]
        return [ToClient(result(message.id, answer))]

    def _unlisted(self, message: Request, at: float) -> Outcome:
        """Extensions, and what neither version lists, are the agent's to answer; v1's own methods are not v2."""
        method = message.method
        if not method.startswith("_") and self._is_v1_only(method):
            return [
                ToClient(error(message.id, METHOD_NOT_FOUND, f"protocol version 2 has no method {method}"))
            ]
        params = message.body.get("params", _MISSING)
        return self._pass_on(message, method, params)

    def _is_v1_only(self, method: str) -> bool:
        return method_info(Version.V1, method) is not None and method_info(Version.V2, method) is None

    def _pass_on(self, message: Request, method: str, params: Any) -> Outcome:
        fitted = self._bridge.fit_request(method, params)
        if isinstance(fitted, Refusal):
            return self._bridge.refuse(message.id, fitted)
        params = fitted
        call = Call(message.id, message.method, params if type(params) is dict else {}, "other", None)
        body = {**message.body, "jsonrpc": "2.0", "id": self._bridge.open_call(call), "method": method}
        if params is not _MISSING:
            body["params"] = params
        return Request(body)

    def _auth(self, message: Request, params: Json, at: float) -> Outcome:
        method = message.method
        if method == "auth/logout" and not self._bridge.agent_has("auth", "logout"):
            return self._bridge.refuse(message.id, Refusal(METHOD_NOT_FOUND, "the agent offers no logout"))
        return self._pass_on(message, _RENAMED[method], params)

    def _not_cancellable(self, message: Request, params: Json, at: float) -> Sequence[Step]:
        """A v1 agent advertises nothing to cancel (LC-60)."""
        self._refused("V28", message, f"{message.method} for something that does not offer it", at)
        return self._bridge.refuse(message.id, Refusal(INVALID_PARAMS, "nothing cancellable has this id"))

    def _notification(self, message: Notification, at: float) -> Outcome:
        method = message.method
        if method == "session/cancel":
            return self._cancel(message, at)
        if method == "$/cancel_request":
            return self._cancel_request(message, at)
        return _versioned(message)

    def _cancel(self, message: Notification, at: float) -> Outcome:
        checked = conform(Version.V2, "CancelSessionNotification", message.body.get("params"), unstable=True)
        if checked.problem is not None:
            self._bridge.note(
                at,
                "V42",
                "client",
                f"session/cancel: {checked.problem}",
                message,
                "lifecycle 2.5",
                action="repaired",
            )
            return None
        told = self._bridge.sessions.get(checked.value["sessionId"])
        fitted = message
        if checked.value is not message.body.get("params"):
            fitted = Notification({**message.body, "params": checked.value})
        steps: list[Step] = [ToAgent(_versioned(fitted))]
        if told is not None:
            steps += self._prompts.flush_held(told)
            steps += self._questions.withdraw(told, everything=True)
        return steps

    def _cancel_request(self, message: Notification, at: float) -> Outcome:
        token = message.params.get("requestId")
        steps = self._prompts.withdraw(token)
        if steps is not None:
            return steps
        own_id = self._bridge.own_call_ids.get(id_key(token))
        if own_id is None:
            if token not in self._received:
                text = "cancel of a request that was never received"
                self._bridge.note(at, "V30", "client", text, message, SOURCES["V30"], action="repaired")
            return None
        call = self._bridge.calls.get(own_id)
        if call is not None and call.session is not None and call.session.turn is not None:
            turn = call.session.turn
            if turn.own_id == own_id and turn.inserted:
                return None
        return Notification(
            {**message.body, "jsonrpc": "2.0", "params": {**message.params, "requestId": own_id}}
        )

    # ------------------------------------------------------------ agent to client

    def back(self, message: Travels, at: float) -> Outcome:
        """A message of the agent in v1 terms, or a state change."""
        if type(message) is Notification:
            method = message.body["method"]
            if method == UPDATE:
                return self._updates.take(message, at)
            if method == "$/cancel_request":
                return self._questions.withdrawn_by_agent(message, at)
            return self._other_notification(message, at)
        if type(message) is Request:
            return self._questions.ask(message, at)
        if isinstance(message, Change):
            return self._change(message, at)
        assert type(message) is Response
        return self._response(message, at)

    def text_run(self, session_id: str, tag: str) -> str | None:
        """The message id for text chunks without one; None when they must be taken one by one.

        One by one: while an acknowledgement is owed, a tail settles, a replay is swallowed, or the session
        is not known.
        """
        told = self._bridge.sessions.get(session_id)
        if told is None or told.closed or told.swallowing or told.settling is not None:
            return None
        turn = told.turn
        if turn is not None and (not turn.inserted or (turn.echo is not None and turn.echo.pending)):
            return None
        if session_id not in self._bridge.view:
            return None
        return told.ids.of_chunk(tag)

    def _other_notification(self, message: Notification, at: float) -> Outcome:
        info = method_info(Version.V2, message.method, "notification")
        if info is not None and (not info.unstable or self._bridge.options.unstable):
            checked = conform(Version.V2, info.params, message.body.get("params"), unstable=True)
            if checked.problem is not None:
                self._bridge.note(
                    at,
                    "V42",
                    "agent",
                    f"{message.method}: {checked.problem}",
                    message,
                    "lifecycle 2.5",
                    action="repaired",
                )
                return None
            if checked.value is not message.body.get("params"):
                return Notification({**message.body, "jsonrpc": "2.0", "params": checked.value})
        return _versioned(message)

    def _change(self, change: Change, at: float) -> Outcome:
        told = self._bridge.session(change.session.id)
        if told.closed:
            return None
        waits = told.settling is not None
        steps = self._prompts.tell(told, change, at)
        quiet = self._bridge.options.load_settle if change.resume else 0.0
        if steps and (quiet or waits):
            self._bridge.put_off(told, steps, quiet or self._bridge.options.settle, at)
            steps = []
        if change.new is State.IDLE and not change.resume and told.turn is None:
            # Work that the agent began itself is over, and with it what it asked and its last message.
            told.ids.boundary()
            steps = [*steps, *self._questions.withdraw(told, everything=False)]
        return steps

    def _response(self, message: Response, at: float) -> Outcome:
        call = self._bridge.close_call(message.id)
        if call is None:
            self._bridge.note(
                at, "V29", "agent", "response to an id that is not open", message, "LC-70", action="repaired"
            )
            return None
        told = call.session
        if call.kind == "prompt":
            assert told is not None
            self._bridge.remembered.touched(told.id)
            steps = [
                *self._prompts.ended(call, message, at),
                *self._questions.withdraw(told, everything=False),
            ]
            if told.closing and told.turn is None:
                return [*steps, *self._sessions.finish_close(told)]
            return [*steps, *self._prompts.go_on(told, at)]
        if call.kind == "close":
            return self._sessions.closed(call, message, at)
        if message.is_error:
            if told is not None:
                told.swallowing = False
            failed = well_formed_error(message.body["error"])
            return Response({**message.body, "jsonrpc": "2.0", "id": call.client_id, "error": failed})
        finish = self._results.get(call.kind)
        if finish is not None:
            return finish(call, message, at)
        return self._plain_result(call, message, at)

    def _plain_result(self, call: Call, message: Response, at: float) -> Outcome:
        info = method_info(Version.V2, call.method, "request")
        if info is None or info.result is None:
            return Response({**message.body, "jsonrpc": "2.0", "id": call.client_id})
        given = {} if message.result is None else message.result
        answer, problem = self._bridge.fit_result(info.result, given, message, at)
        if problem is not None:
            return error(call.client_id, INTERNAL_ERROR, f"the agent's result does not fit: {problem}")
        return Response({**message.body, "jsonrpc": "2.0", "id": call.client_id, "result": answer})

    def host_said(self, message: Message) -> Sequence[Step]:
        """What came of a ToHost."""
        return self._served.heard(message)

    # ------------------------------------------------------------ time, ends

    def next_deadline(self) -> float | None:
        """The next acknowledgement, settling or close that is due."""
        return self._bridge.alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Do what is due."""
        steps: list[Step] = []
        for key in self._bridge.alarms.ring(at):
            assert isinstance(key, tuple)
            kind, session_id = key
            told = self._bridge.sessions[session_id]
            if kind == "ack" and not self._bridge.is_up():
                self._bridge.alarms.set(key, at + self._bridge.options.ack_timeout)
            elif kind == "ack":
                steps += self._prompts.insert(told)
            elif kind == "settle":
                steps += self._settled(told, at)
            else:
                steps += self._sessions.give_up_close(told, at)
        return steps

    def _settled(self, told: ToldSession, at: float) -> list[Step]:
        return [*self._bridge.release(told), *self._prompts.go_on(told, at)]

    def client_gone(self, at: float) -> Sequence[Step]:
        """Nobody will answer the open questions, and no held prompt is wanted any more."""
        steps: list[Step] = []
        for told in self._bridge.sessions.values():
            steps += [*self._prompts.flush_held(told), *self._questions.withdraw(told, everything=True)]
        return steps

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """Held prompts will never run, and nothing more will come that could be waited for."""
        steps: list[Step] = []
        self._bridge.agent_is_gone = True
        for told in self._bridge.sessions.values():
            steps += self._prompts.flush_held(told, error_body)
            steps += self._settled(told, at)
            steps += self._served.end_session(told)
        return steps

    def agent_awaited(self) -> None:
        """After `agent_gone`: a new process will take the place of the one that is gone."""
        self._bridge.agent_is_gone = False


def _versioned(message: Notification) -> Notification:
    """The message itself, or one that says `jsonrpc` where the sender forgot to."""
    if message.body.get("jsonrpc") == "2.0":
        return message
    return Notification(
        {"jsonrpc": "2.0", **{key: value for key, value in message.body.items() if key != "jsonrpc"}}
    )
