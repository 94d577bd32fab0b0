"""A second opinion: the lifecycle's record and events (§2.2, §2.3) written down again from the text.

Nothing here is imported from the code under test. It is slow and plain on purpose: sets are walked
anew each time, and what is told is said in words. `other` is any owner that is not the foreground;
the text treats background and history alike wherever a state is derived.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

FINAL = ("completed", "failed", "cancelled")


@dataclass
class ModelTool:
    """A tool call: last status, whether it is foreground work, and of which epoch."""

    status: str
    foreground: bool
    epoch: int


@dataclass
class ModelWait:
    """A question to a person: about which tool, and whether the foreground waits for it."""

    tool: str | None
    foreground: bool


@dataclass
class ModelSession:
    """The record of one session."""

    phase: str = "provisional"
    prompts: set[Hashable] = field(default_factory=set)
    cancelled: bool = False
    tools: dict[str, ModelTool] = field(default_factory=dict)
    waits: dict[Hashable, ModelWait] = field(default_factory=dict)
    helpers: dict[Hashable, int] = field(default_factory=dict)
    replays: set[Hashable] = field(default_factory=set)
    epoch: int = 0
    state: str = "idle"
    native: bool = False

    @property
    def open(self) -> bool:
        """Whether foreground work is going on."""
        return bool(self.prompts)

    def derived(self) -> str:
        """The state that follows from the record."""
        if not self.open:
            return "idle"
        waiting = any(wait.foreground for wait in self.waits.values())
        subjects = {wait.tool for wait in self.waits.values()}
        moving = any(
            tool.foreground
            and tool.status == "in_progress"
            and tool.epoch == self.epoch
            and name not in subjects
            for name, tool in self.tools.items()
        ) or any(epoch == self.epoch for epoch in self.helpers.values())
        state = "requires_action" if waiting and not moving else "running"
        if self.cancelled and self.state == "requires_action" and state == "running":
            return "requires_action"
        return state

    # Each event returns what is told, in words.

    def _settle(self) -> list[str]:
        before, self.state = self.state, self.derived()
        return [self.state] if self.state != before and not self.native else []

    def _end(self, how: str) -> list[str]:
        self.cancelled = False
        for tool in self.tools.values():
            if tool.status not in FINAL:
                tool.foreground = False
        self.waits = {key: wait for key, wait in self.waits.items() if not wait.foreground}
        before, self.state = self.state, "idle"
        return [f"idle({how})"] if before != "idle" and not self.native else []

    # ------------------------------------------------------------ prompts

    def prompt(self, key: Hashable) -> list[str]:
        """The client's prompt goes to the agent."""
        if self.phase == "closed":
            return []
        if not self.prompts:
            self.epoch += 1
            self.cancelled = False
        self.prompts.add(key)
        return self._settle()

    def prompt_result(self, key: Hashable, stop: str) -> list[str]:
        """The agent's answer; the last one ends the foreground."""
        if key not in self.prompts:
            return []
        self.prompts.remove(key)
        if self.prompts:
            return self._settle()
        said_otherwise = self.cancelled and stop != "cancelled"
        return self._end(f"{stop}, after cancel" if said_otherwise else stop)

    def prompt_error(self, key: Hashable, code: int) -> list[str]:
        """The agent's error; `cancelled` where a cancel is open or the code says so."""
        if key not in self.prompts:
            return []
        self.prompts.remove(key)
        if self.prompts:
            return self._settle()
        return self._end("cancelled" if self.cancelled or code == -32800 else "error")

    # ------------------------------------------------------------ the agent's work

    def tool(self, name: str, status: str | None, *, announced: bool) -> list[str]:
        """`tool_call` (announced) or `tool_call_update`."""
        if self.phase == "closed":
            return []
        self._tool(name, status, announced=announced, replayed=bool(self.replays))
        return self._settle()

    def _tool(self, name: str, status: str | None, *, announced: bool, replayed: bool) -> None:
        known = self.tools.get(name)
        if replayed:
            live = known is not None and known.foreground and known.epoch == self.epoch and self.open
            if not live:
                old = known.status if known is not None else "pending"
                self.tools[name] = ModelTool(status or old, False, self.epoch)
        elif known is None or announced:
            self.tools[name] = ModelTool(status or "pending", self.open, self.epoch)
        elif status is not None:
            known.status = status

    def permission(self, key: Hashable, name: str, status: str | None) -> list[str]:
        """A permission request; its tool call counts as an update, and no request belongs to a replay."""
        if self.phase == "closed":
            return []
        self._tool(name, status, announced=False, replayed=False)
        return self._wait(key, name)

    def elicitation(self, key: Hashable, name: str | None) -> list[str]:
        """An elicitation of the session, perhaps about a tool."""
        return [] if self.phase == "closed" else self._wait(key, name)

    def _wait(self, key: Hashable, name: str | None) -> list[str]:
        tool = self.tools.get(name) if name is not None else None
        self.waits[key] = ModelWait(name, self.open and (tool is None or tool.foreground))
        return self._settle()

    def answered(self, key: Hashable) -> list[str]:
        """The client answers a question or serves a helper; late answers find nothing."""
        self.waits.pop(key, None)
        self.helpers.pop(key, None)
        return self._settle()

    def helper(self, key: Hashable) -> list[str]:
        """`fs/*` or `terminal/*`."""
        if self.phase == "closed":
            return []
        self.helpers[key] = self.epoch
        return self._settle()

    def report(self) -> list[str]:
        """A state of the agent's own: from now on nothing is told."""
        self.native = self.native or self.phase != "closed"
        return []

    # ------------------------------------------------------------ cancel, attachment, ends

    def cancel(self) -> list[str]:
        """`session/cancel`."""
        self.cancelled = self.cancelled or self.open
        return self._settle()

    def load(self, key: Hashable) -> list[str]:
        """`session/load` or `session/resume`."""
        self.phase = "attached"
        self.replays.add(key)
        return self._settle()

    def load_result(self, key: Hashable) -> list[str]:
        """The replay is over; the state is told again, changed or not."""
        self.replays.remove(key)
        if not self.open:
            for tool in self.tools.values():
                tool.foreground = tool.foreground and tool.status in FINAL
        self._settle()
        return [] if self.native else [f"told again: {self.state}"]

    def load_error(self, key: Hashable) -> list[str]:
        """There was no replay."""
        self.replays.remove(key)
        return self._settle()

    def close(self) -> list[str]:
        """`session/close`, `session/delete` or `session/archive`."""
        self.phase = "closing"
        return self.cancel()

    def close_result(self) -> list[str]:
        """It is closed; open foreground work has ended with it."""
        self.phase = "closed"
        if not self.open:
            return self._settle()
        self.prompts.clear()
        return self._end("cancelled")

    def close_error(self) -> list[str]:
        """It is not closed."""
        self.phase = "attached"
        return self._settle()

    def agent_gone(self) -> list[str]:
        """The agent's process has ended."""
        if not self.open:
            return []
        self.prompts.clear()
        return self._end("error")
