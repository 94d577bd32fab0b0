"""The only way into the relay: what happened on a leg, and when (seconds on the runner's clock)."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.acp.version import Role
from acp_proxy.jsonrpc.framing import Piece
from acp_proxy.jsonrpc.message import Message


class FramesReceived:
    """Lines and runs of lines that came in together, oldest first; answers leave as one write."""

    __slots__ = ("at", "leg", "lines")

    def __init__(self, leg: Role, lines: Sequence[Piece], at: float) -> None:
        self.leg = leg
        self.lines = lines
        self.at = at


class LegClosed:
    """Nothing more will come from this leg; `why` is fit for people, `data` for the error's `data`."""

    __slots__ = ("at", "data", "leg", "why")

    def __init__(self, leg: Role, at: float, why: str = "", data: object = None) -> None:
        self.leg = leg
        self.at = at
        self.why = why
        self.data = data


class Ending:
    """The proxy itself is told to end; `why` is fit for people."""

    __slots__ = ("at", "why")

    def __init__(self, at: float, why: str) -> None:
        self.at = at
        self.why = why


class DeadlinePassed:
    """The time asked for with SetDeadline has come."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


class HostSaid:
    """What came of a Serve: the response to its request, or a v2 `session/update` about a terminal."""

    __slots__ = ("at", "message")

    def __init__(self, message: Message, at: float) -> None:
        self.message = message
        self.at = at


class AgentRestarted:
    """A RestartLeg is done; the new agent has been sent nothing but what followed it."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


Event = FramesReceived | LegClosed | Ending | DeadlinePassed | HostSaid | AgentRestarted
