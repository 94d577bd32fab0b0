"""A v1 agent and its client as words: what they say, and what the engine makes of it.

Every step returns the state changes it caused: `running`, `idle(end_turn)`, `idle` for an end without
a stop reason, `idle(end_turn, after cancel)` where a cancel was open and the agent says something
else, `told again: idle` for a snapshot that a resume asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acp_proxy.acp.version import Role, Version
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog
from acp_proxy.inference.foreground import Change, Rules
from acp_proxy.inference.session import Session, State
from acp_proxy.jsonrpc.message import Frame, classify


def words(change: Change) -> str:
    """A change as the texts above say it."""
    if change.resume:
        return f"told again: {change.new.value}"
    if change.new is not State.IDLE:
        return str(change.new.value)
    ending = change.ending
    if ending is not None and ending.error is not None and not change.after_cancel:
        return "idle(error)"
    stop = ending.stop_reason if ending is not None else None
    if change.after_cancel:
        return "idle(cancelled)" if stop in (None, "cancelled") else f"idle({stop}, after cancel)"
    return "idle" if stop is None else f"idle({stop})"


class Wire:
    """One engine between one client and one agent."""

    def __init__(self, version: Version = Version.V1, **rules: Any) -> None:
        self.findings = FindingLog()
        self.engine = Engine(Rules(**rules), self.findings)
        self.engine.speak(version)
        self.now = 0.0
        self.frames = 0
        self.changes: list[Change] = []

    def session(self, session_id: str = "s") -> Session:
        """The record of a session that must exist."""
        return self.engine.sessions[session_id]

    def state(self, session_id: str = "s") -> str:
        """The inferred state of a session."""
        return self.session(session_id).state.value

    def rules_broken(self) -> list[str]:
        """The findings since the last look, by rule."""
        return [finding.rule for finding in self.findings.take()]

    def client(self, **body: Any) -> list[str]:
        """Let the client say something."""
        return self._say(Role.CLIENT, body)

    def agent(self, **body: Any) -> list[str]:
        """Let the agent say something."""
        return self._say(Role.AGENT, body)

    def _say(self, sender: Role, body: dict[str, Any]) -> list[str]:
        self.frames += 1
        message = classify({"jsonrpc": "2.0", **body}, Frame(b"", self.frames))
        assert message is not None
        return self._told(self.engine.observe(message, sender, self.now))

    def _told(self, changes: Sequence[Change]) -> list[str]:
        self.changes += changes
        return [words(change) for change in changes]

    # ------------------------------------------------------------ the client

    def ask(self, token: Any, method: str, session_id: str = "s", **params: Any) -> list[str]:
        """A request of the client about a session."""
        return self.client(id=token, method=method, params={"sessionId": session_id, **params})

    def prompt(self, token: Any = 7, session_id: str = "s") -> list[str]:
        """`session/prompt`."""
        return self.ask(token, "session/prompt", session_id, prompt=[])

    def cancel(self, session_id: str = "s") -> list[str]:
        """`session/cancel`."""
        return self.client(method="session/cancel", params={"sessionId": session_id})

    def answer(self, token: Any, outcome: str = "selected") -> list[str]:
        """The client's answer to a permission request."""
        return self.client(id=token, result={"outcome": {"outcome": outcome, "optionId": "ok"}})

    # ------------------------------------------------------------ the agent

    def result(self, token: Any = 7, stop: Any = "end_turn", **more: Any) -> list[str]:
        """The agent's answer to a prompt."""
        return self.agent(id=token, result={"stopReason": stop, **more})

    def done(self, token: Any, result: Any = None) -> list[str]:
        """The agent's answer to any other request, by default an empty object."""
        return self.agent(id=token, result={} if result is None else result)

    def fail(self, token: Any = 7, code: int = -32603) -> list[str]:
        """The agent's error answer."""
        return self.agent(id=token, error={"code": code, "message": "no"})

    def update(self, kind: str, session_id: str = "s", **body: Any) -> list[str]:
        """A `session/update`."""
        return self.agent(
            method="session/update",
            params={"sessionId": session_id, "update": {"sessionUpdate": kind, **body}},
        )

    def chunk(self, session_id: str = "s") -> list[str]:
        """A piece of the agent's message."""
        return self.update("agent_message_chunk", session_id, content={"type": "text", "text": "x"})

    def tool(
        self, tool_id: str, status: Any = None, *, new: bool = False, session_id: str = "s"
    ) -> list[str]:
        """A `tool_call_update`, or `tool_call` if `new`; without a status when None."""
        kind = "tool_call" if new else "tool_call_update"
        return self.update(
            kind, session_id, toolCallId=tool_id, **({} if status is None else {"status": status})
        )

    def permission(self, token: Any, tool_id: str, status: Any = None, session_id: str = "s") -> list[str]:
        """A permission request."""
        call = {"toolCallId": tool_id, **({} if status is None else {"status": status})}
        params = {"sessionId": session_id, "toolCall": call, "options": []}
        return self.agent(id=token, method="session/request_permission", params=params)

    def elicit(self, token: Any, **params: Any) -> list[str]:
        """An elicitation."""
        return self.agent(id=token, method="elicitation/create", params={"mode": "form", **params})

    def helper(self, token: Any, method: str = "fs/read_text_file", session_id: str = "s") -> list[str]:
        """A request the client serves without its user."""
        return self.agent(id=token, method=method, params={"sessionId": session_id})

    def helped(self, token: Any) -> list[str]:
        """The client's answer to it."""
        return self.client(id=token, result={})

    def gone(self) -> list[str]:
        """The agent's process ends."""
        return self._told(self.engine.agent_gone({"code": -32603, "message": "ended"}, self.now))

    def quiet(self, seconds: float) -> list[str]:
        """Time passes; the engine is woken when it asked for it."""
        end = self.now + seconds
        told: list[str] = []
        for _ in range(1000):
            due = self.engine.quiet_at()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            told += self._told(self.engine.fall_quiet(self.now))
        else:
            raise AssertionError("the engine asks to be woken for ever")
        self.now = end
        return told


def begun(**rules: Any) -> Wire:
    """A wire with prompt 7 of session `s` open."""
    wire = Wire(**rules)
    assert wire.prompt() == ["running"]
    return wire
