"""What the detectors remember of each session and each open request; plain records, no judgment.

A session's record follows what should be true after a breach, not what a peer wrongly said: output
without `running` makes it running, so one mistake is not found again with every message that follows.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.inference.session import FINAL_STATUSES
from acp_proxy.inference.watch.deadlines import Deadlines
from acp_proxy.jsonrpc.message import Json

# How a session is tied to this connection.
STRANGE: Final = 0  # the agent spoke of it, nobody opened it
ATTACHED: Final = 1
CLOSED: Final = 2  # closed or archived: the agent owes silence (LC-50)
GONE: Final = 3  # deleted: what follows is up to the agent (LC-53)
CHILD: Final = 4  # a subagent that its parent has named

STANDARD_STATES: Final = frozenset({"idle", "running", "requires_action", "unknown"})
_REMEMBERED: Final = 8


class PromptRecord:
    """A prompt from its request until answer and echo are both there."""

    __slots__ = (
        "answered",
        "blocks",
        "busy",
        "cancelled",
        "doubted",
        "echo_frame",
        "echo_id",
        "echoed",
        "frame",
        "key",
        "result_id",
        "token",
    )

    def __init__(self, key: Any, token: Any, blocks: Any, busy: bool, frame: int) -> None:
        self.key = key
        self.token = token
        self.blocks: list[Any] = blocks if type(blocks) is list else []
        self.busy = busy
        self.frame = frame
        self.answered = False
        self.result_id: str | None = None
        self.echoed = False
        self.echo_id: str | None = None
        self.echo_frame = 0
        self.cancelled = False
        self.doubted = False


class Wait:
    """A permission or session elicitation that the client has yet to answer."""

    __slots__ = ("cancelled", "ended", "frame", "key", "method", "options", "session_id", "token", "tool_id")

    def __init__(
        self, key: Any, token: Any, method: str, session_id: str, tool_id: str | None, frame: int
    ) -> None:
        self.key = key
        self.token = token
        self.method = method
        self.session_id = session_id
        self.tool_id = tool_id
        self.frame = frame
        self.options: dict[str, Any] = {}
        self.ended = False
        self.cancelled = False


class ToolRecord:
    """A tool call: status, the span of foreground work it belongs to, and whether it offers `cancel`.

    One that only a permission has named is not `announced`: the agent may never have begun it.
    """

    __slots__ = ("announced", "cancellable", "span", "status", "terminals")

    def __init__(self, span: int) -> None:
        self.status = "pending"
        self.span = span
        self.announced = False
        self.cancellable = False
        self.terminals: frozenset[str] = frozenset()

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.status in FINAL_STATUSES


class TerminalRecord:
    """A terminal of a v2 agent: whether its process has ended and whether it offers `cancel`."""

    __slots__ = ("cancellable", "exited")

    def __init__(self) -> None:
        self.exited = False
        self.cancellable = False


class Resumption:
    """An open `session/resume` or `session/load`: what has come before its answer (LC-14)."""

    __slots__ = ("asked", "frame", "live", "replayed", "replayed_after", "replaying", "reported", "unasked")

    def __init__(self, asked: bool, live: bool, frame: int) -> None:
        self.asked = asked
        self.live = live
        self.frame = frame
        self.reported: Json | None = None
        self.replayed_after = 0
        self.replayed = False
        self.replaying = False
        self.unasked = False

    def told(self, update: Json, *, live: bool) -> None:
        """A snapshot, and whether content that follows it can be anything but replay."""
        self.reported = update
        self.replayed_after = 0
        self.live = live


class SessionRecord:
    """One session as both peers have told it so far."""

    __slots__ = (
        "after_cancel",
        "announced_late",
        "asked",
        "background",
        "bond",
        "cancel_frame",
        "cancelled_span",
        "cancelling",
        "child_cancel",
        "claimed",
        "covered",
        "declined",
        "extension",
        "extension_fresh",
        "had_wait",
        "heard_at",
        "id",
        "idle_cancel",
        "idle_frame",
        "inferred",
        "inserted",
        "insertion_frame",
        "late_answer",
        "listed_wrong",
        "messages",
        "moving",
        "nobody_frame",
        "old_messages",
        "output",
        "parent",
        "partial",
        "previous_bond",
        "prompted",
        "prompts",
        "rejected",
        "resumption",
        "span",
        "standard",
        "state",
        "state_frame",
        "stateless",
        "steady",
        "stop",
        "terminals",
        "tools",
        "trickled",
        "unclaimed",
        "unended",
        "usage",
        "user_ids",
        "waits",
    )

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.bond = STRANGE
        self.previous_bond = STRANGE
        self.parent: str | None = None
        self.child_cancel = False
        self.announced_late = False
        self.partial = False
        # states
        self.state: str | None = None
        self.state_frame = 0
        self.stop: str | None = None
        self.usage: Any = None
        self.span = 1
        self.output = False
        self.prompted = False
        self.inserted = False
        self.insertion_frame = 0
        self.stateless = False
        self.inferred: str | None = None
        self.steady = False
        self.standard = False
        self.extension = 0
        self.extension_fresh = False
        self.heard_at = float("-inf")
        self.messages: set[str] = set()
        self.old_messages: set[str] = set()
        self.idle_frame = 0
        self.unended: tuple[str | None, Any, int] | None = None
        # cancel
        self.cancelling = False
        self.cancel_frame = 0
        self.covered: set[Any] = set()
        self.idle_cancel = 0
        self.cancelled_span = 0
        self.trickled = False
        self.after_cancel = False
        # people
        self.waits: dict[Any, Wait] = {}
        self.asked = False
        self.had_wait = False
        self.nobody_frame = 0
        self.declined = False
        self.late_answer: tuple[int, float] | None = None
        # prompts
        self.prompts: dict[Any, PromptRecord] = {}
        self.rejected: deque[list[Any]] = deque(maxlen=_REMEMBERED)
        self.unclaimed: dict[str, int] = {}
        self.user_ids: set[str] = set()
        self.claimed: set[str] = set()
        # work
        self.tools: dict[str, ToolRecord] = {}
        self.moving: set[str] = set()
        self.terminals: dict[str, TerminalRecord] = {}
        self.background: list[Any] | None = None
        self.listed_wrong: set[Any] = set()
        self.resumption: Resumption | None = None

    @property
    def busy(self) -> bool:
        """Whether the agent has said that foreground work goes on; `unknown` confirms nothing (LC-22)."""
        return self.state is not None and self.state != "idle" and self.state != "unknown"

    @property
    def open_tools(self) -> list[str]:
        """The tool calls of the current span that have not ended and are not listed as background."""
        return [
            tool_id
            for tool_id, tool in self.tools.items()
            if tool.announced and tool.span == self.span and not tool.final and not self.lists_tool(tool_id)
        ]

    def lists_tool(self, tool_id: str | None) -> bool:
        """Whether the last snapshot lists this tool call as background work."""
        return any(
            type(item) is dict and item.get("toolCallId") == tool_id is not None
            for item in self.background or ()
        )

    def begin_span(self) -> None:
        """Foreground work is over; what comes belongs to the next."""
        self.span += 1
        self.output = False
        self.prompted = False
        self.inserted = False
        self.insertion_frame = 0
        self.declined = False
        self.cancelling = False
        self.covered.clear()
        self.moving.clear()
        self.old_messages = self.messages
        self.messages = set()
        self.had_wait = False
        for wait in self.waits.values():
            wait.ended = True


class Call:
    """A request of the client that the agent has not answered."""

    __slots__ = ("frame", "method", "params", "session_id")

    def __init__(self, method: str, session_id: str | None, params: Json, frame: int) -> None:
        self.method = method
        self.session_id = session_id
        self.params = params
        self.frame = frame


class Ask:
    """A request of the agent that the client has not answered."""

    __slots__ = ("frame", "method", "session_id", "wait")

    def __init__(self, method: str, session_id: str | None, wait: Wait | None, frame: int) -> None:
        self.method = method
        self.session_id = session_id
        self.wait = wait
        self.frame = frame


class Book:
    """What all detectors read: who speaks which version, the sessions, the deadlines.

    The versions are None until `initialize` has settled them. `bridged`: a translator stands on the client's
    side, so what comes from there is ours, in the agent's dialect.
    """

    __slots__ = ("agent_version", "attaching", "bridged", "client_version", "deadlines", "sessions")

    def __init__(self) -> None:
        self.client_version: int | None = None
        self.agent_version: Version | None = None
        self.bridged = False
        self.sessions: dict[str, SessionRecord] = {}
        self.attaching = 0
        self.deadlines = Deadlines()

    def session(self, session_id: str) -> SessionRecord:
        """The record of a session, made at first sight."""
        record = self.sessions.get(session_id)
        if record is None:
            record = self.sessions[session_id] = SessionRecord(session_id)
        return record

    @property
    def native(self) -> bool:
        """Whether state snapshots mean anything on this connection: one peer at least speaks v2."""
        return self.agent_version == 2 or self.client_version == 2
