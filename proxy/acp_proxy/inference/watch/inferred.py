"""The states of a v2 agent that tells none, inferred as for a v1 agent (V03; lifecycle §2.1, §2.5).

Drives the same state machine. What a v2 answer to a prompt means is the one difference: with a stop
reason, or only after output, it ends the turn as in v1; otherwise it acknowledges, and the end cannot be
seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from acp_proxy.acp.version import Role, Version
from acp_proxy.inference import foreground, triggers
from acp_proxy.inference.foreground import Change, Rules
from acp_proxy.inference.session import Phase, Session
from acp_proxy.inference.triggers import Kind
from acp_proxy.jsonrpc.message import (
    RESOURCE_NOT_FOUND,
    Json,
    Message,
    Notification,
    Request,
    Response,
    id_key,
)

_QUESTIONS: Final = frozenset({"session/request_permission", "elicitation/create"})
_CLOSING: Final = frozenset({"session/close", "session/archive"})


class Inferred:
    """One session, from its first output without a state on."""

    __slots__ = ("_acknowledged", "_asked", "_closing", "_rules", "_said", "_said_before", "session")

    def __init__(self, session_id: str, rules: Rules) -> None:
        self.session = Session(session_id)
        self.session.phase = Phase.ATTACHED
        self._rules = rules
        self._acknowledged: set[Any] = set()
        self._asked: set[Any] = set()
        self._closing: set[Any] = set()
        self._said = 0
        self._said_before: dict[Any, int] = {}

    def begin(
        self, open_prompts: Iterable[Any], closing: Iterable[Any], cancelling: bool, at: float
    ) -> list[Change]:
        """Take up work in its middle: the keys of the prompts without an answer, and of the closes under way.

        With no such prompt the end of the work cannot be seen.
        """
        keys = list(open_prompts)
        changes: list[Change] = []
        if not keys:
            keys = [None]
            self._acknowledged.add(None)
        for key in keys:
            self._said_before[key] = -1
            changes += self._step(Kind.PROMPT, key, at)
        self._closing.update(closing)
        if cancelling:
            changes += self._step(Kind.CANCEL, None, at)
        return changes

    def take(self, message: Message, sender: Role, at: float) -> list[Change]:
        """The next message of this session, or an answer to a request in it; the changes it makes."""
        if type(message) is Notification:
            return self._notification(message, sender, at)
        if type(message) is Request:
            return self._request(message, sender, at)
        assert type(message) is Response
        return self._response(message, sender, at)

    def awaits(self, key: Any, sender: Role) -> bool:
        """Whether an answer with this key belongs to a request in this session."""
        if sender is Role.CLIENT:
            return key in self._asked
        return key in self._closing or key in self.session.prompts

    def gone(self, error: Json, at: float) -> list[Change]:
        """The agent has ended."""
        return self._step(Kind.AGENT_GONE, error, at)

    def _notification(self, message: Notification, sender: Role, at: float) -> list[Change]:
        if sender is Role.CLIENT:
            return self._step(Kind.CANCEL, None, at) if message.method == "session/cancel" else []
        update = message.params.get("update")
        tag = update.get("sessionUpdate") if type(update) is dict else None
        kind = triggers.UPDATES[Version.V2].get(tag) if type(tag) is str else None
        if kind not in (Kind.OUTPUT, Kind.TOOL):
            return []
        self._said += 1
        assert type(update) is dict
        news = triggers.tool_news(update, False) if kind is Kind.TOOL else None
        return [] if news is None else self._step(Kind.TOOL, news, at)

    def _request(self, message: Request, sender: Role, at: float) -> list[Change]:
        key = id_key(message.id)
        if sender is Role.CLIENT:
            if message.method == "session/prompt":
                self._said_before[key] = self._said
                return self._step(Kind.PROMPT, key, at)
            if message.method in _CLOSING:
                self._closing.add(key)
                return self._step(Kind.CLOSE, key, at)
            return []
        if message.method not in _QUESTIONS or "requestId" in message.params:
            return []
        self._asked.add(key)
        subject = message.params.get("subject")
        tool_call = subject.get("toolCall") if type(subject) is dict else None
        news = triggers.tool_news(tool_call, False) if type(tool_call) is dict else None
        return self._step(Kind.WAIT, (key, news, None), at)

    def _response(self, message: Response, sender: Role, at: float) -> list[Change]:
        key = id_key(message.id)
        if sender is Role.CLIENT:
            if key not in self._asked:
                return []
            self._asked.discard(key)
            return self._step(Kind.WAIT_ANSWERED, key, at)
        if key in self._closing:
            self._closing.discard(key)
            failed = message.is_error and message.error_code != RESOURCE_NOT_FOUND
            return self._step(Kind.CLOSE_FAILED if failed else Kind.CLOSE_DONE, None, at)
        if key not in self.session.prompts:
            return []
        if not self._ends(key, message):
            self._acknowledged.add(key)
            return []
        # Whatever was only acknowledged is over with it: no other end of that will ever come.
        for other in self._acknowledged:
            self.session.prompts.discard(other)
        self._acknowledged.clear()
        return self._step(Kind.PROMPT_ENDED, triggers.prompt_ending(key, message.body), at)

    def _ends(self, key: Any, message: Response) -> bool:
        """Whether an answer ends the turn, as in v1; one before any output acknowledges."""
        said_before = self._said_before.pop(key, self._said)
        given = message.result
        return message.is_error or said_before < self._said or (type(given) is dict and "stopReason" in given)

    def _step(self, kind: Kind, detail: Any, at: float) -> list[Change]:
        try:
            change = foreground.step(self.session, Version.V1, kind, detail, at, self._rules)
        except foreground.Hole:  # after a close: told as V24 and V44 already
            return []
        return [] if change is None else [change]
