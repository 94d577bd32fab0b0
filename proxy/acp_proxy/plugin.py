"""All that a plugin may import. Nothing else in the package is meant for plugins.

What stands here is for good: a name is never taken away and never changes its meaning; methods that
do nothing, reports and their attributes may be added. `Plugin` is version 1 of this door and says so
in `api`. A second version would be another class beside it, so a plugin's base class tells for ever
which door it was written for.

`Filter` is not the chain's own: a plugin stands in one place, where no state change passes and
nothing restarts an agent, and its filters must outlive changes of the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

from acp_proxy.acp.version import Role
from acp_proxy.errors import ConfigError
from acp_proxy.filters.base import ToAgent, ToClient
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc.message import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    RESOURCE_NOT_FOUND,
    Frame,
    Json,
    Message,
    Notification,
    Request,
    Response,
    error,
    id_key,
    notification,
    request,
    result,
)
from acp_proxy.relay.commands import FrameReport, Report, StateReport

__all__ = [
    "API",
    "AUTH_REQUIRED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REQUEST_CANCELLED",
    "RESOURCE_NOT_FOUND",
    "ConfigError",
    "Filter",
    "Finding",
    "Frame",
    "FrameReport",
    "Json",
    "Message",
    "Notification",
    "OnFailure",
    "Outcome",
    "Plugin",
    "Report",
    "Request",
    "Response",
    "Role",
    "StateReport",
    "Step",
    "ToAgent",
    "ToClient",
    "changed",
    "error",
    "id_key",
    "notification",
    "request",
    "result",
]

API: Final = 1

Step = ToAgent | ToClient
Outcome = Message | Sequence[Step] | None
OnFailure = Literal["pass", "refuse"]

_Kind = TypeVar("_Kind", bound=Message)


def changed(message: _Kind, **members: Any) -> _Kind:
    """A message of the same kind with these members of its JSON object replaced, such as `params`.

    The message given stays as it is: it may still leave as its original bytes, and others hold it too.
    """
    return type(message)({**message.body, **members})


class Filter:
    """What a plugin does to the messages of one connection; this one does nothing.

    It is called synchronously, one message at a time, and must not wait: the traffic waits for it. It
    stands at the client's end of the chain and sees the client's dialect, also where the agent speaks
    another. It answers with the message itself, which then leaves as the bytes it came as; with
    another message, which goes on in its place; with None, which ends the message here; or with a list
    of ToAgent and ToClient, each of which goes on from here. A message is never changed in place.

    Whoever ends or holds a request owes its sender an answer. `at` is the time in seconds since the
    start; only differences of it mean anything.
    """

    def forth(self, message: Message, at: float) -> Outcome:
        """A message of the client on its way to the agent."""
        return message

    def back(self, message: Message, at: float) -> Outcome:
        """A message of the agent on its way to the client."""
        return message

    def next_deadline(self) -> float | None:
        """When `expire` is to be called, None when nothing is due."""
        return None

    def expire(self, at: float) -> Sequence[Step]:
        """The time asked for has come; the next deadline must lie later."""
        return ()

    def agent_gone(self, error: Json, at: float) -> Sequence[Step]:
        """The agent has ended; the last moment to answer what is held. `error` is what others are told."""
        return ()


class Plugin:
    """A plugin that does nothing: subclass it and override what is needed.

    One instance serves a whole run. `filters` is called once for each connection, so what belongs to a
    connection is remembered in its filters. Methods other than these are the plugin's own; a name
    with an underscore before it can never clash with one added here later.
    """

    api: ClassVar[int] = API
    """The version of this interface the class was written for; never set by a plugin."""

    name: ClassVar[str] = ""
    """What reports call it: the entry point's name, which need not be repeated here."""

    on_failure: ClassVar[OnFailure] = "pass"
    """What becomes of a message when a filter fails at it.

    "pass": it goes on unchanged, and a filter that has failed three times is taken out. "refuse": a
    request is answered -32603, a notification is dropped, an answer is replaced by an error; the filter
    stays. What must not let a message through unseen, such as a redactor, refuses.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings` is the plugin's own table of the configuration, as TOML has it.

        Raises ConfigError for a setting that is unknown or wrong; its text should start with the key.
        """
        self.settings = settings

    def filters(self) -> Sequence[Filter]:
        """The filters for one connection, the client's end first."""
        return ()

    def observe(self, report: Report) -> None:
        """Take one report: FrameReport, StateReport, Finding; ignore kinds you do not know.

        Called in a thread of its own, never twice at once. Reports are lost when observers are too slow,
        which a Finding in their place says. After the first failure it is not called again.
        """

    def close(self) -> None:
        """The run is over; called at most once, after the last report, and given little time."""
