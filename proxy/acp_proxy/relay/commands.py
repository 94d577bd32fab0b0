"""The only way out of the relay: what is to be done, in this order."""

from __future__ import annotations

from acp_proxy.acp.version import Role
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc.message import Message


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
    """End the agent and start it anew; what follows goes to the new one."""

    __slots__ = ()


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
    """A session's inferred state changed; states and stop reason as they stand on the wire."""

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


Command = SendFrames | CloseLeg | RestartLeg | SetDeadline | Divert | Emit
