"""A small v2 client: sends prompts, follows the session's state, and lets that state decide what to do next.

Two of its decisions need a state: it answers a permission request only once it has been told that the session
waits for the user, and it sends the next prompt only once it has been told that the session is idle. Behind a
bare v1 agent it would wait forever. Source: lifecycle §1, bridge §11 (v2 shapes).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from acp_proxy import __version__
from acp_proxy.demo.link import DemoError, Link, Message

METHOD_NOT_FOUND = -32601


class Event(NamedTuple):
    """Something worth a place in the timeline.

    `source` says whose doing it is: `agent`, `client`, or `state` for a `state_update`, whose `text` is the
    label (`idle (end_turn)`). `synthetic` is true for a state that the proxy marks as its own.
    """

    source: Literal["agent", "client", "state"]
    text: str
    synthetic: bool = False


class DemoClient:
    """Plays prompts over a link and reports each event as it comes.

    `patience` is the time in seconds that opening the session, or one turn as a whole, may take. DemoError
    when it runs out or when an answer is not what protocol v2 promises.
    """

    def __init__(
        self,
        link: Link,
        report: Callable[[Event], None],
        *,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._link = link
        self._report = report
        self._patience = patience
        self._clock = clock
        self._deadline = 0.0
        self._last_id = 0
        self._responses: dict[int, Message] = {}
        self._session_id = ""
        self._cancels = False
        self._state = "idle"
        self._states: list[str] = []
        self._unmarked: list[str] = []
        self._titles: dict[str, str] = {}
        self._echo: Message = {}
        self._permission: Message | None = None

    def open(self, cwd: str) -> None:
        """Negotiate version 2 and create a session in the absolute directory `cwd`."""
        self._deadline = self._clock() + self._patience
        offer = {
            "protocolVersion": 2,
            "info": {"name": "acp-proxy-demo", "version": __version__},
            "capabilities": {},
        }
        version = self._call("initialize", offer).get("protocolVersion")
        if version != 2:
            raise DemoError(f"initialize: expected protocolVersion 2, got {version!r}")
        self._session_id = self._call("session/new", {"cwd": cwd, "mcpServers": []}).get("sessionId", "")

    def play(self, prompt: str, *, cancel: bool = False) -> list[str]:
        """Send a prompt and follow its turn to the end; returns the labels of all states told.

        With `cancel` the turn is stopped as soon as the first chunk of the answer is there.
        """
        self._deadline = self._clock() + self._patience
        self._states = []
        self._unmarked = []
        self._titles = {}
        self._echo = {}
        self._permission = None
        self._cancels = cancel
        blocks = [{"type": "text", "text": prompt}]
        self._report(Event("client", f'prompt "{prompt}"'))
        request_id = self._request("session/prompt", {"sessionId": self._session_id, "prompt": blocks})

        # The response only says that the prompt was taken in; what ends the turn is an idle state (LC-30).
        def over() -> bool:
            return request_id in self._responses and bool(self._states) and self._state == "idle"

        self._follow(over)
        message_id = self._result(request_id, "session/prompt").get("messageId")
        if not isinstance(message_id, str):
            raise DemoError("the prompt was answered without a messageId")
        if self._echo.get("messageId") != message_id or self._echo.get("content") != blocks:
            raise DemoError("the prompt was not echoed as a user_message with its messageId")
        if self._unmarked:
            raise DemoError(f"not marked as synthetic: {', '.join(self._unmarked)}")
        return self._states

    def _request(self, method: str, params: Message) -> int:
        self._last_id += 1
        self._link.send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def _call(self, method: str, params: Message) -> Message:
        request_id = self._request(method, params)
        self._follow(lambda: request_id in self._responses)
        return self._result(request_id, method)

    def _result(self, request_id: int, method: str) -> Message:
        response = self._responses.pop(request_id)
        if "error" in response:
            raise DemoError(f"{method} was refused: {_object(response, 'error').get('message')}")
        return _object(response, "result")

    def _follow(self, over: Callable[[], bool]) -> None:
        while not over():
            message = self._link.receive(self._deadline - self._clock())
            if message is None or self._clock() > self._deadline:
                told = ", ".join(self._states) or "none"
                waiting = ", no requires_action for the open permission request" if self._permission else ""
                raise DemoError(f"not finished within {self._patience:g} s; states told: {told}{waiting}")
            self._take(message)

    def _take(self, message: Message) -> None:
        params = _object(message, "params")
        method = message.get("method")
        if method is None:
            self._take_response(message)
        elif method == "session/update":
            self._take_update(_object(params, "update"), _object(_object(params, "_meta"), "acp-proxy"))
        elif method == "session/request_permission":
            self._report(Event("agent", f'may I? "{params.get("title", "")}"'))
            self._permission = message
        elif "id" in message:
            error = {"code": METHOD_NOT_FOUND, "message": f"no method {method}"}
            self._link.send({"id": message["id"], "error": error})
        if self._permission is not None and self._state == "requires_action":
            self._allow(self._permission)
            self._permission = None

    def _take_response(self, message: Message) -> None:
        request_id = message.get("id")
        if not isinstance(request_id, int):
            raise DemoError(f"a response to no request of ours: {_object(message, 'error').get('message')}")
        self._responses[request_id] = message

    def _take_update(self, update: Message, mark: Message) -> None:
        kind = update.get("sessionUpdate")
        if kind == "state_update":
            self._take_state(update, mark.get("synthetic") is True)
        elif kind == "user_message":
            self._echo = update
        elif kind == "agent_message_chunk":
            self._report(Event("agent", f'text "{_object(update, "content").get("text", "").strip()}"'))
            if self._cancels:
                self._cancels = False
                self._report(Event("client", "session/cancel"))
                self._link.send({"method": "session/cancel", "params": {"sessionId": self._session_id}})
        elif kind == "tool_call_update":
            tool_id = update.get("toolCallId", "")
            title = self._titles.setdefault(tool_id, update.get("title") or tool_id)
            if "status" in update:
                self._report(Event("agent", f'tool "{title}" {update["status"]}'))

    def _take_state(self, update: Message, synthetic: bool) -> None:
        self._state = update.get("state", "")
        label = self._state
        if self._state == "idle":
            # A v2 client never sees the v1 response that ended the turn. This state is what became of it, so
            # the timeline can name it without having seen it.
            reason = update.get("stopReason", "no stopReason")
            label = f"idle ({reason})"
            error = _object(update, "error").get("message", "")
            ending = f"prompt failed: {error}" if reason == "error" else f"prompt answered: {reason}"
            self._report(Event("agent", ending))
        self._states.append(label)
        if not synthetic:
            self._unmarked.append(label)
        self._report(Event("state", label, synthetic))

    def _allow(self, request: Message) -> None:
        options = _object(request, "params").get("options") or []
        chosen = next((option for option in options if option.get("kind") == "allow_once"), None)
        if chosen is None:
            raise DemoError("a permission request came without an allow_once option")
        self._report(Event("client", f"user: {chosen.get('name')}"))
        outcome = {"outcome": "selected", "optionId": chosen.get("optionId")}
        self._link.send({"id": request.get("id"), "result": {"outcome": outcome}})


def _object(message: Message, key: str) -> dict[str, Any]:
    """The object under `key`; `{}` for everything else, so that a strange message is seen as an empty one."""
    value = message.get(key)
    return value if isinstance(value, dict) else {}
