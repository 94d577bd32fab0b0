"""Who stands at a leg, and which protocol version it speaks."""

from __future__ import annotations

from enum import Enum, IntEnum


class Role(Enum):
    """The party at one end of the proxy; a leg is named after it."""

    CLIENT = "client"
    AGENT = "agent"

    # By identity, as members are compared: the hash of Enum is a Python function, and roles are keys with
    # every message.
    __hash__ = object.__hash__

    @property
    def other(self) -> Role:
        """The party at the opposite end."""
        return Role.AGENT if self is Role.CLIENT else Role.CLIENT


class Version(IntEnum):
    """Protocol versions the proxy can read."""

    V1 = 1
    V2 = 2
