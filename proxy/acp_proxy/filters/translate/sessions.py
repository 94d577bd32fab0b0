"""Requests of a v2 client about sessions, and a v1 agent's answers (bridge §3.1, §4, §7.6)."""

from __future__ import annotations

from acp_proxy.filters.base import Step, ToAgent, ToClient
from acp_proxy.filters.translate import config_options, session_params
from acp_proxy.filters.translate.bridge import Bridge, Call
from acp_proxy.filters.translate.meta import marked
from acp_proxy.filters.translate.prompts import Prompts
from acp_proxy.filters.translate.questions import Questions
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.served import Served
from acp_proxy.filters.translate.told import ToldSession
from acp_proxy.filters.translate.updates import is_timestamp
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import Session, State
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    Json,
    Request,
    Response,
    error,
    notification,
    result,
    well_formed_error,
)


class Sessions:
    """Opens, resumes, lists and closes sessions of one bridge."""

    def __init__(self, bridge: Bridge, prompts: Prompts, questions: Questions, served: Served) -> None:
        self._bridge = bridge
        self._prompts = prompts
        self._questions = questions
        self._served = served

    # ------------------------------------------------------------ new, resume

    def new(self, message: Request, params: Json, at: float) -> list[Step]:
        """`session/new`."""
        translated = self._opening(params)
        if isinstance(translated, Refusal):
            return self._bridge.refuse(message.id, translated)
        return self._call(message, "session/new", translated, "new", None)

    def resume(self, message: Request, params: Json, at: float) -> list[Step]:
        """`session/resume`, onto what the agent has of `session/load` and `session/resume` (§4)."""
        bridge = self._bridge
        session_id = params["sessionId"]
        cursor = params.get("replayFrom")
        translated = self._opening(params)
        if isinstance(translated, Refusal):
            return bridge.refuse(message.id, translated)
        open_here = bridge.sessions.get(session_id)
        if open_here is not None and open_here.closing:
            # The end of its turn is still awaited, and must not end what would be opened here.
            return bridge.refuse(message.id, _missing(session_id))
        if cursor is not None:
            if type(cursor) is not dict or cursor.get("type") != "start":
                return bridge.refuse(
                    message.id, Refusal(INVALID_PARAMS, "replayFrom: only start is supported")
                )
            if not bridge.agent_has("loadSession"):
                return bridge.refuse(message.id, Refusal(INVALID_PARAMS, "the agent cannot replay a session"))
            return self._load(message, translated, swallow=False)
        if bridge.agent_has("sessionCapabilities", "resume"):
            told = bridge.attach(session_id, params, from_start=False)
            told.ids.boundary()
            return self._call(message, "session/resume", translated, "resume", told)
        if bridge.agent_has("loadSession"):
            return self._load(message, translated, swallow=True)
        if open_here is None or open_here.closed or not open_here.attached:
            return bridge.refuse(message.id, _missing(session_id))
        return self._resumed_here(message, open_here, at)

    def _load(self, message: Request, params: Json, *, swallow: bool) -> list[Step]:
        told = self._bridge.attach(params["sessionId"], params, from_start=True)
        told.ids.restart()
        told.titles.clear()
        told.swallowing = swallow
        return self._call(message, "session/load", params, "load", told)

    def _resumed_here(self, message: Request, told: ToldSession, at: float) -> list[Step]:
        """The agent can neither load nor resume, but the session never left: the answer is the proxy's."""
        record = self._bridge.view.get(told.id) or Session(told.id)
        change = Change(record, record.state, record.state, resume=True)
        options = told.config.full()
        answer: Json = {} if options is None else {"configOptions": options}
        return [*self._prompts.tell(told, change, at), ToClient(result(message.id, answer))]

    def opened(self, call: Call, message: Response, at: float) -> list[Step]:
        """The answer to `session/new`, `session/load` or `session/resume`."""
        told = call.session
        given: Json = message.result if type(message.result) is dict else {}
        if call.kind == "new":
            session_id = given.get("sessionId")
            if type(session_id) is not str:
                self._bridge.note(
                    at,
                    "V42",
                    "agent",
                    "session/new result without sessionId",
                    message,
                    "schema NewSessionResponse",
                )
                return [
                    ToClient(
                        error(
                            call.client_id, INTERNAL_ERROR, "the agent's session/new result has no sessionId"
                        )
                    )
                ]
            told = self._bridge.attach(session_id, call.params, from_start=True)
        assert told is not None
        told.config.learn(given)
        told.ids.boundary()
        answer = {key: value for key, value in given.items() if key not in ("modes", "configOptions")}
        options = told.config.full()
        if options is not None and (
            given.get("configOptions") is not None or given.get("modes") is not None or call.kind != "new"
        ):
            answer["configOptions"] = options
        if given.get("modes") is not None:
            answer = marked(answer, "dropped", {"modes": given["modes"]})
        type_name = "NewSessionResponse" if call.kind == "new" else "ResumeSessionResponse"
        answer, problem = self._bridge.fit_result(type_name, answer, message, at)
        if problem is not None:
            return [
                ToClient(error(call.client_id, INTERNAL_ERROR, f"the agent's result does not fit: {problem}"))
            ]
        cwd = call.params.get("cwd")
        if type(cwd) is str:
            remembered = self._bridge.remembered
            remember = remembered.created if call.kind == "new" else remembered.opened
            remember(told.id, cwd, call.params.get("additionalDirectories"))
        answered = ToClient(result(call.client_id, answer))
        if told.settling is not None and call.kind != "new":
            told.settling.steps.append(answered)
            return []
        told.swallowing = False
        return [answered]

    def _opening(self, params: Json) -> Json | Refusal:
        if self._bridge.options.drop_sse and type(params.get("mcpServers")) is list:
            servers = [s for s in params["mcpServers"] if not (type(s) is dict and s.get("type") == "sse")]
            params = {**params, "mcpServers": servers}
        directories = self._bridge.agent_has("sessionCapabilities", "additionalDirectories")
        return session_params.new_params(params, additional_directories=directories)

    # ------------------------------------------------------------ list, close, delete

    def list_sessions(self, message: Request, params: Json, at: float) -> list[Step]:
        """`session/list`; without the agent's help, the sessions that are remembered (§4)."""
        if self._bridge.agent_has("sessionCapabilities", "list"):
            return self._call(message, "session/list", params, "list", None)
        entries = self._bridge.remembered.listed(params.get("cwd"))
        return [ToClient(result(message.id, {"sessions": entries}))]

    def listed(self, call: Call, message: Response, at: float) -> list[Step]:
        """The agent's list; null counts as empty."""
        given: Json = message.result if type(message.result) is dict else {"sessions": []}
        entries = given.get("sessions")
        if type(entries) is list and any(
            type(entry) is dict and not is_timestamp(entry.get("updatedAt")) for entry in entries
        ):
            self._bridge.note(at, "V54", "agent", "updatedAt is no RFC 3339 time", message, "bridge 9")
        answer, problem = self._bridge.fit_result("ListSessionsResponse", given, message, at)
        if problem is not None:
            return [
                ToClient(error(call.client_id, INTERNAL_ERROR, f"the agent's result does not fit: {problem}"))
            ]
        return [ToClient(result(call.client_id, answer))]

    def close(self, message: Request, params: Json, at: float) -> list[Step]:
        """`session/close`; without the agent's help, a cancel and silence from then on."""
        bridge = self._bridge
        session_id = params["sessionId"]
        told = bridge.sessions.get(session_id)
        if bridge.agent_has("sessionCapabilities", "close"):
            before: list[Step] = []
            if told is not None:
                before = bridge.release(told)
                told.leaving = True
                before += [*self._questions.withdraw(told, everything=True), *self._prompts.flush_held(told)]
            return [
                *before,
                *self._call(message, "session/close", params, "close", told or bridge.session(session_id)),
            ]
        if told is None or told.closed:
            return [ToClient(result(message.id, {}))]
        told.closing.append(message.id)
        if told.leaving:
            return []
        told.leaving = True
        steps = [*bridge.release(told), *self._prompts.flush_held(told)]
        if told.turn is None:
            return [*self._questions.withdraw(told, everything=True), *steps, *self.finish_close(told)]
        patience = bridge.options.cancel_timeout or bridge.options.close_timeout
        if patience:
            bridge.alarms.set(("close", told.id), at + patience)
        steps.append(ToAgent(notification("session/cancel", {"sessionId": told.id})))
        return [*steps, *self._questions.withdraw(told, everything=True)]

    def finish_close(self, told: ToldSession) -> list[Step]:
        """An emulated close is done: nothing more of this session reaches the client (LC-50)."""
        steps = self._bridge.release(told)
        waiting, told.closing = told.closing, []
        told.leaving = False
        told.closed = True
        told.attached = False
        self._bridge.remembered.closed(told.id)
        self._bridge.alarms.drop(("close", told.id))
        steps += self._served.end_session(told)
        return [*steps, *(ToClient(result(client_id, {})) for client_id in waiting)]

    def give_up_close(self, told: ToldSession, at: float) -> list[Step]:
        """The agent does not end the turn of a session that is being closed: it ends without it."""
        owed = self._prompts.abandon(told)
        record = self._bridge.view.get(told.id) or Session(told.id)
        change = Change(record, record.state, State.IDLE, after_cancel=True)
        return [*self._prompts.tell(told, change, at), *owed, *self.finish_close(told)]

    def closed(self, call: Call, message: Response, at: float) -> list[Step]:
        """The answer to `session/close` or `session/delete`; a session the agent does not know is closed (LC-52)."""
        if message.is_error and message.error_code != RESOURCE_NOT_FOUND:
            failed = {**message.body, "id": call.client_id, "error": well_formed_error(message.body["error"])}
            if call.session is not None:
                call.session.leaving = False
            return [ToClient(Response(failed))]
        steps: list[Step] = []
        told = call.outlived
        if told is not None:
            # An answer that waits for a quiet tail is owed before this one.
            steps += [*self._bridge.release(told), *self._questions.withdraw(told, everything=True)]
            steps += [*self._prompts.abandon(told), *self._served.end_session(told)]
            told.closed = True
            told.attached = False
        if call.session is not None:
            call.session.leaving = False
        if call.method == "session/delete":
            self._bridge.remembered.deleted(call.params["sessionId"])
        elif told is not None or call.session is None:
            self._bridge.remembered.closed(call.params["sessionId"])
        answer = message.result if type(message.result) is dict else {}
        type_name = "DeleteSessionResponse" if call.method == "session/delete" else "CloseSessionResponse"
        fitted, problem = self._bridge.fit_result(type_name, answer, message, at)
        return [*steps, ToClient(result(call.client_id, {} if problem is not None else fitted))]

    def delete(self, message: Request, params: Json, at: float) -> list[Step]:
        """`session/delete`, only where the agent can (LC-53)."""
        if not self._bridge.agent_has("sessionCapabilities", "delete"):
            return self._bridge.refuse(
                message.id, Refusal(METHOD_NOT_FOUND, "the agent cannot delete sessions")
            )
        return self._call(
            message, "session/delete", params, "close", self._bridge.sessions.get(params["sessionId"])
        )

    # ------------------------------------------------------------ config options

    def set_option(self, message: Request, params: Json, at: float) -> list[Step]:
        """`session/set_config_option`; the made-up mode option is a `session/set_mode` for the agent."""
        told = self._bridge.sessions.get(params["sessionId"])
        if told is None or told.config.full() is None:
            return self._bridge.refuse(
                message.id, Refusal(INVALID_PARAMS, "the session has no config options")
            )
        translated = config_options.set_request(params)
        if isinstance(translated, Refusal):
            return self._bridge.refuse(message.id, translated)
        if told.config.is_made_up(params.get("configId")):
            return self._call(
                message, "session/set_mode", config_options.mode_request(params), "set", told, params
            )
        return self._call(message, "session/set_config_option", translated, "set", told, params)

    def option_set(self, call: Call, message: Response, at: float) -> list[Step]:
        """The answer always carries the full list, whatever the agent gave."""
        told = call.session
        assert told is not None
        given: Json = message.result if type(message.result) is dict else {}
        if type(given.get("configOptions")) is list:
            told.config.learn(given)
        else:
            told.config.set_value(call.params.get("configId"), call.params.get("value"))
        answer = {**given, "configOptions": told.config.full() or []}
        fitted, problem = self._bridge.fit_result("SetSessionConfigOptionResponse", answer, message, at)
        if problem is not None:
            return [
                ToClient(error(call.client_id, INTERNAL_ERROR, f"the agent's result does not fit: {problem}"))
            ]
        return [ToClient(result(call.client_id, fitted))]

    def _call(
        self,
        message: Request,
        method: str,
        params: Json,
        kind: str,
        told: ToldSession | None,
        asked: Json | None = None,
    ) -> list[Step]:
        fitted = self._bridge.fit_request(method, params)
        if isinstance(fitted, Refusal):
            return self._bridge.refuse(message.id, fitted)
        params = fitted
        own_id = self._bridge.open_call(Call(message.id, message.method, asked or params, kind, told))
        body = {**message.body, "jsonrpc": "2.0", "id": own_id, "method": method, "params": params}
        return [ToAgent(Request(body))]


def _missing(session_id: str) -> Refusal:
    return Refusal(RESOURCE_NOT_FOUND, "no such session", {"sessionId": session_id})
