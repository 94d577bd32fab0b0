"""What a repair puts on the wire, rule by rule (lifecycle §3, last column).

A repair is told the breach and the passage of the message that shows it, and answers the action the
finding gets. It decides nothing: whether a rule is repaired at all is the filter's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from acp_proxy.acp.version import Role, Version
from acp_proxy.acp.vocabulary import canonical
from acp_proxy.filters.base import Step, ToAgent, ToClient
from acp_proxy.filters.passage import Passage
from acp_proxy.filters.repair_ids import MessageIds, RequestIds, renamed_update
from acp_proxy.filters.translate.meta import marked
from acp_proxy.inference.watch.breach import Breach
from acp_proxy.inference.watch.record import CLOSED, Book, PromptRecord
from acp_proxy.jsonrpc.message import (
    INVALID_PARAMS,
    INVALID_REQUEST,
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

NOTED: Final = "noted"
REPAIRED: Final = "repaired"
REFUSED: Final = "refused"

Repair = Callable[[Passage, Breach], str]


class Repairs:
    """The repairs of one connection and what they must remember."""

    def __init__(self, book: Book, token: Callable[[], str], *, close_tools: bool, synonyms: bool) -> None:
        self._book = book
        self._token = token
        self._close_tools = close_tools
        self._synonyms = synonyms
        self.message_ids = MessageIds()
        self.request_ids = RequestIds()
        self.answered: dict[Role, set[Any]] = {Role.CLIENT: set(), Role.AGENT: set()}
        self.table: dict[str, Repair] = {
            "V01": self._running_before,
            "V02": self._idle_before_answer,
            "V04": self._stop_reason,
            "V07": self._running_before,
            "V09": self._current_state,
            "V10": self._state_again,
            "V12": self._stop_reason,
            "V19": self._message_id,
            "V20": self._echo,
            "V21": self._failure_as_idle,
            "V22": self._drop_message,
            "V24": self._drop,
            "V25": self._idle_before_close,
            "V26": self._success,
            "V27": self._answer_held,
            "V28": self._invalid_params,
            "V29": self._drop,
            "V30": self._drop,
            "V31": self._request_id,
            "V33": self._out_of_place,
            "V34": self._respell,
            "V35": self._generic_busy,
            "V38": self._invalid_params,
            "V39": self._cancelled_outcome,
            "V40": self._answer_permission,
            "V41": self._close_left_open,
            "V42": self._malformed,
            "V43": self._drop,
        }

    @property
    def any(self) -> bool:
        """Whether an earlier repair has to be kept up."""
        answered = self.answered
        return bool(
            answered[Role.CLIENT] or answered[Role.AGENT] or self.message_ids.any or self.request_ids.any
        )

    # ------------------------------------------------------------ snapshots

    def snapshot(self, session_id: str, state: str, **more: Any) -> Step:
        """A state told in the agent's name. Background work is listed as the agent last listed it (LC-20)."""
        update: Json = {"sessionUpdate": "state_update", "state": state, **more}
        session = self._book.sessions.get(session_id)
        if session is not None and session.background is not None:
            update["background"] = session.background
        return self._update(session_id, update)

    def _update(self, session_id: str, update: Json) -> Step:
        params = {"sessionId": session_id, "update": update, "_meta": {"acp-proxy": {"synthetic": True}}}
        return ToClient(notification("session/update", params))

    def _running_before(self, passage: Passage, breach: Breach) -> str:
        passage.before.append(self.snapshot(_session(breach), "running"))
        return REPAIRED

    def _generic_busy(self, passage: Passage, breach: Breach) -> str:
        """Output follows the standard state; an extension state is followed by it, and stays the richer word."""
        step = self.snapshot(_session(breach), "running")
        update = _update_of(passage.message)
        (passage.after if update.get("sessionUpdate") == "state_update" else passage.before).append(step)
        return REPAIRED

    def _idle_before_answer(self, passage: Passage, breach: Breach) -> str:
        stop, usage = breach.detail
        more = {"stopReason": stop} if stop is not None else {}
        if type(usage) is dict:
            more["usage"] = usage
        passage.before.append(self.snapshot(_session(breach), "idle", **more))
        return REPAIRED

    def _idle_before_close(self, passage: Passage, breach: Breach) -> str:
        passage.before.append(self.snapshot(_session(breach), "idle", stopReason="cancelled"))
        return REPAIRED

    def _current_state(self, passage: Passage, breach: Breach) -> str:
        session = self._book.sessions[_session(breach)]
        passage.before.append(self.snapshot(session.id, session.state or session.inferred or "idle"))
        return REPAIRED

    def _state_again(self, passage: Passage, breach: Breach) -> str:
        passage.before.append(self._update(_session(breach), breach.detail))
        return REPAIRED

    def _stop_reason(self, passage: Passage, breach: Breach) -> str:
        """Write the stop reason that the cancel calls for, and keep the agent's own (LC-17)."""
        stop, message = breach.detail, passage.message
        if stop.wanted is None or message is None:
            return NOTED
        if type(message) is Notification:
            update = dict(message.params["update"])
            original = {
                key: update.pop(key) for key in ("stopReason", "error") if update.get(key) is not None
            }
            update["stopReason"] = stop.wanted
            params = {**message.params, "update": update}
            if original:
                params = marked(params, "orig", original)
            passage.message = Notification({**message.body, "params": params})
        elif type(message) is Response:
            answer: Json = {**message.result} if type(message.result) is dict else {}
            original = {"error": message.error} if message.is_error else {"stopReason": stop.given}
            answer["stopReason"] = stop.wanted
            body = {key: value for key, value in message.body.items() if key != "error"}
            passage.message = Response({**body, "result": marked(answer, "orig", original)})
        return REPAIRED

    # ------------------------------------------------------------ prompts

    def _message_id(self, passage: Passage, breach: Breach) -> str:
        unnamed, message, session_id = breach.detail, passage.message, _session(breach)
        if type(message) is not Response:
            return NOTED
        if unnamed.echo_id is not None:
            message_id = self.message_ids.told(session_id, unnamed.echo_id)
        else:
            message_id = self._token()
            if self._is_closed(session_id):  # then nobody is told anything any more (LC-50)
                self.message_ids.awaits(session_id, message_id, unnamed.prompt.blocks)
            else:
                self._make_echo(passage, session_id, message_id, unnamed.prompt)
        answer = message.result if type(message.result) is dict else {}
        passage.message = Response({**message.body, "result": {**answer, "messageId": message_id}})
        return REPAIRED

    def _echo(self, passage: Passage, breach: Breach) -> str:
        session_id, detail, message = _session(breach), breach.detail, passage.message
        if isinstance(detail, PromptRecord):
            message_id = self.message_ids.told(session_id, detail.result_id or self._token())
            if message is None and self._is_closed(session_id):
                self.message_ids.awaits(session_id, message_id, detail.blocks)
                return NOTED
            self._make_echo(passage, session_id, message_id, detail)
            return REPAIRED
        told = self.message_ids.rename(session_id, detail.wrong, detail.right)
        if type(message) is Response:
            answer = {**message.result, "messageId": told}
            original = {"messageId": detail.wrong}
            passage.message = Response({**message.body, "result": marked(answer, "orig", original)})
        elif type(message) is Notification:
            passage.message = renamed_update(message, told)
        return REPAIRED

    def _make_echo(self, passage: Passage, session_id: str, message_id: str, prompt: PromptRecord) -> None:
        """Echo a prompt in the agent's name."""
        self.message_ids.made(session_id, message_id, prompt.blocks)
        echo = {"sessionUpdate": "user_message", "messageId": message_id, "content": list(prompt.blocks)}
        passage.before.append(self._update(session_id, echo))

    def _is_closed(self, session_id: str) -> bool:
        return self._book.sessions[session_id].bond == CLOSED

    def _failure_as_idle(self, passage: Passage, breach: Breach) -> str:
        """The message is in, so the failure is told as the end of the work (LC-32, LC-71)."""
        refused, message, session_id = breach.detail, passage.message, _session(breach)
        if type(message) is not Response:
            return NOTED
        failure = message.error
        if failure.get("code") != REQUEST_CANCELLED and not refused.told and not self._is_closed(session_id):
            ending: Json = {"stopReason": "error", "error": failure}
            if refused.cancelled:
                ending = {"stopReason": "cancelled"}
            passage.before.append(self.snapshot(session_id, "idle", **ending))
        message_id = self.message_ids.told(session_id, refused.prompt.echo_id or self._token())
        body = {key: value for key, value in message.body.items() if key != "error"}
        answer = marked({"messageId": message_id}, "orig", {"error": failure})
        passage.message = Response({**body, "result": answer})
        return REPAIRED

    def _drop_message(self, passage: Passage, breach: Breach) -> str:
        self.message_ids.drop(_session(breach), breach.detail)
        passage.drop()
        return REPAIRED

    def _answer_held(self, passage: Passage, breach: Breach) -> str:
        """A prompt that never got in is cancelled; one whose echo is there got in (LC-51)."""
        prompt = breach.detail
        if prompt.echo_id is not None:
            message_id = self.message_ids.told(_session(breach), prompt.echo_id)
            answer = result(prompt.token, {"messageId": message_id})
        else:
            answer = error(prompt.token, REQUEST_CANCELLED, "cancelled before it was taken", {"rule": "V27"})
        passage.before.append(ToClient(answer))
        self.answered[Role.CLIENT].add(prompt.key)
        return REPAIRED

    # ------------------------------------------------------------ drops and refusals

    def _drop(self, passage: Passage, breach: Breach) -> str:
        message = passage.message
        passage.drop()
        if type(message) is Request:
            passage.refused = True
            passage.answer(closed_answer(message))
        return REPAIRED

    def _success(self, passage: Passage, breach: Breach) -> str:
        message = passage.message
        if type(message) is not Response:
            return NOTED
        body = {key: value for key, value in message.body.items() if key != "error"}
        passage.message = Response({**body, "result": marked({}, "orig", {"error": message.error})})
        return REPAIRED

    def _invalid_params(self, passage: Passage, breach: Breach) -> str:
        if type(passage.message) is not Request:
            return NOTED
        passage.refuse(INVALID_PARAMS, breach.text, breach.rule)
        return REFUSED

    def _malformed(self, passage: Passage, breach: Breach) -> str:
        """A request is refused; a notification passes as it is, for nobody draws conclusions from it (§2.5)."""
        return self._invalid_params(passage, breach)

    def _request_id(self, passage: Passage, breach: Breach) -> str:
        message = passage.message
        if type(message) is not Request:
            return NOTED
        if breach.detail == "reused":
            passage.message = self.request_ids.replace(message, passage.sender)
            return REPAIRED
        refuse_id(passage, breach)
        return REFUSED

    def _out_of_place(self, passage: Passage, breach: Breach) -> str:
        if type(passage.message) is Request:
            passage.refuse(breach.detail or INVALID_REQUEST, breach.text, breach.rule)
            return REFUSED
        passage.drop()
        return REPAIRED

    # ------------------------------------------------------------ values

    def _respell(self, passage: Passage, breach: Breach) -> str:
        """A spelling that means a listed value becomes that value; any other stays (bridge §10)."""
        message, minted = passage.message, breach.detail
        if message is None:
            return NOTED
        version = self._book.agent_version or Version.V1
        holder = message.body[minted.holder]
        original: Json = {}
        for one in minted.values:
            meant = canonical(version, one.type_name, one.value, synonyms=self._synonyms)
            if meant != one.value:
                holder = _with(holder, one.path, meant)
                original["/".join(map(str, one.path))] = one.value
        if not original:
            return NOTED
        body = {**message.body, minted.holder: marked(holder, "orig", original)}
        passage.message = type(message)(body)
        return REPAIRED

    # ------------------------------------------------------------ people

    def _cancelled_outcome(self, passage: Passage, breach: Breach) -> str:
        message = passage.message
        if type(message) is not Response:
            return NOTED
        passage.message = Response({**message.body, "result": {"outcome": {"outcome": "cancelled"}}})
        return REPAIRED

    def _answer_permission(self, passage: Passage, breach: Breach) -> str:
        wait = breach.detail
        passage.before.append(ToAgent(result(wait.token, {"outcome": {"outcome": "cancelled"}})))
        self.answered[Role.AGENT].add(wait.key)
        return REPAIRED

    def _close_left_open(self, passage: Passage, breach: Breach) -> str:
        """Opt-in: LC-45 leaves the marking to the client. Version 1 has no cancelled tool call."""
        if not self._close_tools:
            return NOTED
        status = "failed" if self._book.client_version == 1 else "cancelled"
        for tool_id in breach.detail:
            update = {"sessionUpdate": "tool_call_update", "toolCallId": tool_id, "status": status}
            passage.before.append(self._update(_session(breach), update))
            self._book.sessions[_session(breach)].tools[tool_id].status = status
        return REPAIRED

    # ------------------------------------------------------------ afterwards

    def is_late(self, message: Message, sender: Role) -> bool:
        """Whether a response comes after one that was given in its sender's name."""
        if type(message) is not Response:
            return False
        answered = self.answered[sender.other]
        key = id_key(message.id)
        if key not in answered:
            return False
        answered.discard(key)
        return True


def refuse_id(passage: Passage, breach: Breach) -> None:
    """An id that cannot be answered is answered with null."""
    passage.answer(error(None, INVALID_REQUEST, breach.text, {"rule": breach.rule}))
    passage.drop()
    passage.refused = True


def closed_answer(message: Request) -> Response:
    """What a request of the agent for a closed session is answered in the client's name."""
    if message.method == "session/request_permission":
        return result(message.id, {"outcome": {"outcome": "cancelled"}})
    if message.method == "elicitation/create":
        return result(message.id, {"action": "cancel"})
    session_id = message.params.get("sessionId")
    return error(message.id, RESOURCE_NOT_FOUND, "the session is closed", {"sessionId": session_id})


def _session(breach: Breach) -> str:
    assert breach.session is not None
    return breach.session


def _update_of(message: Message | None) -> Json:
    update = message.params.get("update") if type(message) is Notification else None
    return update if type(update) is dict else {}


def _with(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy of JSON data with another value at a path, sharing all that is not on it."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    copy[first] = _with(copy[first], rest, new)
    return copy
