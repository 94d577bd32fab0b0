"""Answers the agent's requests in the client's name when the client stays silent; off by default.

Stands at the client's end. The request is withdrawn at the client, and a late answer goes nowhere. A
permission is rejected, for silence is never taken for approval, and not `cancelled`, which would make
many agents drop the whole turn (BR-33). An extension request is answered as a method nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.version import Version
from acp_proxy.filters.alarms import Alarms
from acp_proxy.filters.base import Filter, Outcome, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.jsonrpc.message import (
    METHOD_NOT_FOUND,
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
from acp_proxy.policy.late_answers import LateAnswers
from acp_proxy.policy.verdicts import rejection

_PERMISSION: Final = "session/request_permission"


class ClientPatience(Filter):
    """Waits so long, in seconds, for an answer to each kind of request; 0 = for ever.

    Sources: keys `lifecycle.permission_timeout`, `lifecycle.extension_timeout`; BR-32, BR-33, LC-12.
    """

    def __init__(
        self,
        findings: FindingLog,
        token: Callable[[], str],
        *,
        permission_timeout: float = 0.0,
        extension_timeout: float = 0.0,
    ) -> None:
        self._findings = findings
        self._late = LateAnswers(token)
        self._permission_timeout = permission_timeout
        self._extension_timeout = extension_timeout
        self._alarms = Alarms()
        self._asked: dict[Any, Request] = {}

    def back(self, message: Travels, at: float) -> Outcome:
        """Start the clock for a request; stop it for one that is withdrawn."""
        if type(message) is Request:
            message = self._late.out(message)
            timeout = self._timeout(message.method)
            if timeout:
                key = id_key(message.id)
                self._asked[key] = message
                self._alarms.set(key, at + timeout)
        elif type(message) is Notification and message.method == "$/cancel_request":
            message = self._late.withdrawn(message)
            self._alarms.drop(id_key(message.params.get("requestId")))
        return message

    def forth(self, message: Message, at: float) -> Outcome:
        """Stop the clock at an answer; drop one that came too late."""
        if type(message) is not Response:
            return message
        key = id_key(message.id)
        self._asked.pop(key, None)
        self._alarms.drop(key)
        answer = self._late.back(message)
        if answer is None:
            frames = (message.frame.number,) if message.frame is not None else ()
            text = "answer to a request that was answered in the client's name"
            self._findings.note(
                Finding(at, "V58", "client", text, frames=frames, action="repaired", source="LC-12")
            )
        return answer

    def _timeout(self, method: str) -> float:
        if method == _PERMISSION:
            return self._permission_timeout
        if self._extension_timeout and is_extension(method):
            return self._extension_timeout
        return 0.0

    def next_deadline(self) -> float | None:
        """When the oldest unanswered request runs out."""
        return self._alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Answer what has waited too long."""
        steps: list[Step] = []
        for key in self._alarms.ring(at):
            asked = self._asked.pop(key)
            self._late.expect(asked.id)
            self._note(asked, at)
            meant = self._late.meant(asked.id)
            if asked.method == _PERMISSION:
                answer = result(meant, rejection(asked.params.get("options")))
            else:
                answer = error(meant, METHOD_NOT_FOUND, f"{asked.method}: the client does not answer")
            steps.append(ToAgent(answer))
            steps.append(ToClient(notification("$/cancel_request", {"requestId": asked.id})))
        return steps

    def _note(self, asked: Request, at: float) -> None:
        session = asked.params.get("sessionId")
        self._findings.note(
            Finding(
                at,
                "V57",
                "client",
                "a permission was rejected, nobody answered it"
                if asked.method == _PERMISSION
                else "an extension request was refused, nobody answered it",
                session=session if type(session) is str else None,
                frames=(asked.frame.number,) if asked.frame is not None else (),
                action="repaired",
                source="BR-33" if asked.method == _PERMISSION else "lifecycle.extension_timeout",
            )
        )

    def client_gone(self, at: float) -> Sequence[Step]:
        """Whoever closes the client's end answers what is open."""
        for key in self._asked:
            self._alarms.drop(key)
        self._asked.clear()
        return ()

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """Nobody waits for an answer any more."""
        return self.client_gone(at)


def is_extension(method: str) -> bool:
    """Whether neither protocol version lists the method, in any direction."""
    return method_info(Version.V1, method) is None and method_info(Version.V2, method) is None
