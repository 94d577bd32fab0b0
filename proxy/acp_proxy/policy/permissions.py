"""Answers permission requests by rule, before anybody is asked; stands at the agent's end.

There the request never becomes a wait: the client is not asked, and no state says it must act.
`allow_once` picks only an option of exactly that kind, otherwise the client decides; `reject` picks
an offered reject option, else answers `cancelled`. Every decision is a finding with its rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.filters.base import Filter, Outcome, ToAgent, Travels
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.pending import Pending
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request, Response, result
from acp_proxy.policy.permission_rules import Rule, first_fit, read_request
from acp_proxy.policy.verdicts import approval, rejection

_PERMISSION = "session/request_permission"
_OPENING = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_WORDS = ("kind", "title", "rawInput")
_REMEMBERED = (*_WORDS, "locations", "content")


class Permissions(Filter):
    """Decides by the first rule that fits; without one the request goes on to the client."""

    def __init__(self, rules: Sequence[Rule], findings: FindingLog) -> None:
        self._rules = rules
        self._findings = findings
        self._opening: Pending[tuple[str | None, str | None]] = Pending()
        self._cwd: dict[str, str] = {}
        self._tools: dict[tuple[str, str], Json] = {}

    def forth(self, message: Message, at: float) -> Outcome:
        """Learn which folder a session works in."""
        if type(message) is Request and message.method in _OPENING:
            cwd, session_id = message.params.get("cwd"), message.params.get("sessionId")
            known = session_id if type(session_id) is str else None
            self._opening.add(message.id, (known, cwd if type(cwd) is str else None))
        return message

    def back(self, message: Travels, at: float) -> Outcome:
        """Decide a permission request; learn what tool calls are from everything else."""
        if type(message) is Request:
            return self._decide(message, at) if message.method == _PERMISSION else message
        if type(message) is Notification:
            self._learn(message)
        elif type(message) is Response:
            self._opened(message)
        return message

    def _decide(self, message: Request, at: float) -> Outcome:
        params = message.params
        session_id = params.get("sessionId")
        session = session_id if type(session_id) is str else ""
        asked = read_request(params, self._known(session, params), self._cwd.get(session))
        rule = first_fit(self._rules, asked)
        if rule is None or rule.decision == "ask":
            return message
        if rule.decision == "reject":
            answer = rejection(params.get("options"))
        else:
            allowed = approval(params.get("options"))
            if allowed is None:
                return message
            answer = allowed
        frames = (message.frame.number,) if message.frame is not None else ()
        text = f"permission decided by rule {rule.number}: {rule.decision}"
        self._findings.note(
            Finding(
                at, "V56", "agent", text, session=session or None, frames=frames, source="permissions.rules"
            )
        )
        return [ToAgent(result(message.id, answer))]

    def _known(self, session: str, params: Json) -> Json:
        subject = params.get("subject")
        given = params.get("toolCall", subject.get("toolCall") if type(subject) is dict else None)
        tool_id = given.get("toolCallId") if type(given) is dict else None
        return self._tools.get((session, tool_id), {}) if type(tool_id) is str else {}

    def _learn(self, message: Notification) -> None:
        update = message.params.get("update")
        if message.method != "session/update" or type(update) is not dict:
            return
        session, tool_id = message.params.get("sessionId"), update.get("toolCallId")
        if type(session) is not str or type(tool_id) is not str:
            return
        if update.get("status") in ("completed", "failed", "cancelled"):
            self._tools.pop((session, tool_id), None)
            return
        tool = self._tools.setdefault((session, tool_id), {})
        if update.get("sessionUpdate") == "tool_call_content_chunk":
            kept = tool.get("content")
            tool["content"] = [*(kept if type(kept) is list else []), update.get("content")]
            return
        for key in _REMEMBERED:
            if update.get(key) is not None:
                tool[key] = update[key]
            elif key in update and key in _WORDS:
                # In v2 null takes it back, in v1 it says nothing. A rule fits less without it, and less
                # without a path: so a word is forgotten, and lists, which rules must cover whole, are not.
                tool.pop(key, None)

    def _opened(self, message: Response) -> None:
        opening = self._opening.pop(message.id)
        if opening is None or message.is_error or opening[1] is None:
            return
        given = message.result.get("sessionId") if type(message.result) is dict else None
        session = given if type(given) is str else opening[0]
        if session is not None:
            self._cwd[session] = opening[1]
