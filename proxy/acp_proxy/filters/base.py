"""A stage of the chain: what a filter is given, and what it may answer.

The chain runs from the client to the agent. A message of the client passes it `forth`, one of the
agent `back`. A filter answers with the message itself (it goes on), another message (that one
goes on), None (it ends here), or a sequence of steps. A ToAgent or ToClient goes on from this
filter's place, in the direction its name says, through all stages that follow: so whatever the
proxy itself says, it says in a peer's name and by the ordinary path. A ToHost leaves the chain.

Directions are named by the party they lead to. "Forward" and "reply" were tried and rejected:
a filter that acts on a deadline has no message to be relative to.

A state change travels back like a message, from the engine at the agent's end to whoever
writes the client's dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.inference.foreground import Change
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request

Travels = Message | Change


class ToAgent:
    """Goes on toward the agent from the place of the filter that says it."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message


class ToClient:
    """Goes on toward the client from the place of the filter that says it."""

    __slots__ = ("message",)

    def __init__(self, message: Travels) -> None:
        self.message = message


class RestartAgent:
    """End the agent and start it anew before anything else is sent to it (bridge §1, restart fallback)."""

    __slots__ = ()


class ToHost:
    """Is to be done on the proxy's own machine (bridge §8).

    A request is answered, a notification is not. `cwd` and `directories` are those of its session: where
    commands run, and what paths must lie in.
    """

    __slots__ = ("cwd", "directories", "message")

    def __init__(self, message: Request | Notification, cwd: str | None, directories: Sequence[str]) -> None:
        self.message = message
        self.cwd = cwd
        self.directories = directories


Step = ToAgent | ToClient | ToHost | RestartAgent
Outcome = Travels | Sequence[Step] | None


class Filter:
    """A stage that does nothing; override what is needed. `at` is the time in seconds, handed in."""

    def forth(self, message: Message, at: float) -> Outcome:
        """A message on its way to the agent."""
        return message

    def back(self, message: Travels, at: float) -> Outcome:
        """A message or a state change on its way to the client."""
        return message

    def next_deadline(self) -> float | None:
        """When this filter wants `expire` to be called, None when nothing is due."""
        return None

    def expire(self, at: float) -> Sequence[Step]:
        """The time asked for has come."""
        return ()

    def client_gone(self, at: float) -> Sequence[Step]:
        """The client has left; what is said to it from now on goes nowhere."""
        return ()

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """The agent has ended; called before its open requests are answered with `error_body`."""
        return ()
