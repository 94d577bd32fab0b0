"""The only way out of the relay: what is to be done, in this order."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.acp.version import Role
from acp_proxy.filters.translate.session_registry import SessionRecord
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc.message import Message, Notification, Request


class SendFrames:
    """Write these lines to a leg, a line feed after each."""

    __slots__ = ("frames", "leg")

    def __init__(self, leg: Role, frames: list[bytes]) -> None:
        self.leg = leg
        self.frames = frames


class CloseLeg:
    """Tell this leg that nothing more will be sent to it."""

    __slots__ = ("leg",)

    def __init__(self, leg: Role) -> None:
        self.leg = leg


class RestartLeg:
    """End the agent, if it still runs, and start it anew after `delay` seconds; what follows goes to the new one.

    AgentRestarted says that it runs, LegClosed that it could not be started.
    """

    __slots__ = ("delay",)

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay


class SetDeadline:
    """Send DeadlinePassed at this time; None when nothing is due any more."""

    __slots__ = ("at",)

    def __init__(self, at: float | None) -> None:
        self.at = at


class Divert:
    """Show these bytes of the agent's stdout on stderr: they are no protocol."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


class FrameReport:
    """A frame that came in or went out; `message` is None for what is no JSON-RPC message."""

    __slots__ = ("at", "direction", "leg", "message", "number", "raw")

    def __init__(
        self, at: float, leg: Role, direction: str, raw: bytes, number: int | None, message: Message | None
    ) -> None:
        self.at = at
        self.leg = leg
        self.direction = direction
        self.raw = raw
        self.number = number
        self.message = message


class StateReport:
    """A state of a session on its way to the client, inferred or the agent's own.

    States and stop reason as they stand on the wire; `old` is `idle` for a session nobody spoke of.
    A state told again has `old` and `new` the same, and counts as no new end of work (LC-15).
    """

    __slots__ = ("at", "new", "old", "session_id", "stop_reason")

    def __init__(self, at: float, session_id: str, old: str, new: str, stop_reason: str | None) -> None:
        self.at = at
        self.session_id = session_id
        self.old = old
        self.new = new
        self.stop_reason = stop_reason


Report = FrameReport | StateReport | Finding


class Emit:
    """Tell the recorder and the observers."""

    __slots__ = ("report",)

    def __init__(self, report: Report) -> None:
        self.report = report


class Remember:
    """Keep this record of a session for later runs, in the place of an older one."""

    __slots__ = ("record",)

    def __init__(self, record: SessionRecord) -> None:
        self.record = record


class Forget:
    """Drop the record of a session; the key is that of `Remember`: the agent's name and the session id."""

    __slots__ = ("agent", "session_id")

    def __init__(self, agent: str, session_id: str) -> None:
        self.agent = agent
        self.session_id = session_id


class Serve:
    """Do this on the proxy's own machine, and send HostSaid for all that comes of it; see `filters.base.ToHost`."""

    __slots__ = ("cwd", "directories", "message")

    def __init__(self, message: Request | Notification, cwd: str | None, directories: Sequence[str]) -> None:
        self.message = message
        self.cwd = cwd
        self.directories = directories


Command = SendFrames | CloseLeg | RestartLeg | SetDeadline | Divert | Emit | Remember | Forget | Serve
