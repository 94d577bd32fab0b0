"""One session as the wire has told it so far: what the derivation of its state reads (lifecycle §2.2)."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, Final


class Phase(IntEnum):
    """How far a session is attached to this connection; an integer, for it is looked up per message."""

    PROVISIONAL = 0
    ATTACHED = 1
    CLOSING = 2
    CLOSED = 3


class State(Enum):
    """The standard foreground states; a native agent may report others, which are kept as text."""

    IDLE = "idle"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    UNKNOWN = "unknown"


class Owner(Enum):
    """Whose work a tool call or a wait belongs to."""

    FOREGROUND = "foreground"
    BACKGROUND = "background"
    HISTORY = "history"


FINAL_STATUSES: Final = frozenset({"completed", "failed", "cancelled"})


class Tool:
    """A tool call's last status, its owner, and the turn (epoch) it was first seen in."""

    __slots__ = ("epoch", "owner", "status")

    def __init__(self, status: str, owner: Owner, epoch: int) -> None:
        self.status = status
        self.owner = owner
        self.epoch = epoch


class Wait:
    """A permission or session elicitation that a person has yet to answer."""

    __slots__ = ("owner", "tool_id")

    def __init__(self, tool_id: str | None, owner: Owner) -> None:
        self.tool_id = tool_id
        self.owner = owner


class Session:
    """The record of one session; only `foreground` writes to it.

    `moving` and `open_foreground` repeat what could be found by walking `tools`: with ten
    thousand open tool calls a walk for each message would make the cost quadratic.
    """

    __slots__ = (
        "auto",
        "blocked",
        "cancelled",
        "cancelled_by_close",
        "ended_at",
        "epoch",
        "failure",
        "foreground_waits",
        "helpers",
        "id",
        "last_heard",
        "moving",
        "native",
        "open_foreground",
        "phase",
        "phase_before_close",
        "prompts",
        "replays",
        "reported",
        "state",
        "tools",
        "waits",
    )

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.phase = Phase.PROVISIONAL
        self.phase_before_close = Phase.PROVISIONAL
        self.prompts: set[Any] = set()
        self.auto = False
        self.blocked = False
        self.failure: dict[str, Any] | None = None
        self.cancelled = False
        self.cancelled_by_close = False
        self.tools: dict[str, Tool] = {}
        self.moving: set[str] = set()
        self.open_foreground: set[str] = set()
        self.waits: dict[Any, Wait] = {}
        self.foreground_waits = 0
        self.helpers: dict[Any, int] = {}
        self.replays = 0
        self.epoch = 0
        self.state = State.IDLE
        self.native = False
        self.reported: str | None = None
        self.ended_at = float("-inf")
        self.last_heard = float("-inf")

    def __repr__(self) -> str:
        return f"<Session {self.id!r} {self.phase.name} {self.state.value}>"

    @property
    def foreground(self) -> bool:
        """Whether the agent is at work for the user: a prompt is open, or work it began itself."""
        return bool(self.prompts) or self.auto

    @property
    def busy(self) -> bool:
        """Whether foreground work is active, by inference or as the agent itself reports."""
        if self.native:
            return self.reported not in (None, "idle")
        return self.foreground

    @property
    def progressing(self) -> bool:
        """Whether something of this turn moves although a person is being asked (LC-09)."""
        if self.moving:
            subjects = {wait.tool_id for wait in self.waits.values()}
            if len(self.moving) > len(subjects) or not self.moving <= subjects:
                return True
        return any(epoch == self.epoch for epoch in self.helpers.values())
