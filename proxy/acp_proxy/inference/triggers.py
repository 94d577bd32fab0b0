"""What a message means to the state machine; the last reader of JSON on the way there.

Tables say which method or update is which kind of trigger in each protocol version. A known
update with a broken payload means nothing here: no inference is drawn from it (lifecycle §2.5).
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import canonical, known_values
from acp_proxy.jsonrpc.message import Json


class Kind(IntEnum):
    """What happened to a session."""

    PROMPT = auto()
    PROMPT_ENDED = auto()
    CANCEL = auto()
    TOOL = auto()
    WAIT = auto()
    WAIT_ANSWERED = auto()
    HELPER = auto()
    HELPER_DONE = auto()
    REPLAY = auto()
    REPLAY_DONE = auto()
    REPLAY_FAILED = auto()
    ATTACHED = auto()
    CLOSE = auto()
    CLOSE_DONE = auto()
    CLOSE_FAILED = auto()
    OUTPUT = auto()
    UPDATE = auto()
    STATE = auto()
    END_MARK = auto()
    HINT = auto()
    QUIET = auto()
    AGENT_GONE = auto()


class ToolNews:
    """A tool call as an update or a permission names it; `status` None when it says nothing of it.

    `replayed`: what says it may belong to a replay. Updates may; a request is always live.
    """

    __slots__ = ("announced", "replayed", "status", "tool_id")

    def __init__(self, tool_id: str, status: str | None, announced: bool, replayed: bool = True) -> None:
        self.tool_id = tool_id
        self.status = status
        self.announced = announced
        self.replayed = replayed


class Ending:
    """How a prompt ended: the agent's stop reason, its usage, or the error.

    `given` is the agent's own stop reason where another is told. `hinted`: the error was not the agent's
    answer, a hint told of it.
    """

    __slots__ = ("error", "given", "hinted", "key", "stop_reason", "usage")

    def __init__(
        self,
        key: Any,
        stop_reason: str | None,
        usage: Any,
        error: Json | None,
        given: str | None = None,
        *,
        hinted: bool = False,
    ) -> None:
        self.hinted = hinted
        self.key = key
        self.stop_reason = stop_reason
        self.given = given
        self.usage = usage
        self.error = error


HINTED: Final = frozenset({"running", "requires_action", "idle", "error"})


class Hint:
    """What an agent says of its state beside the protocol (RA-25).

    `mark` as in `inference.end_markers`; `state` is one of HINTED; `error` the text for the state `error`.
    """

    __slots__ = ("error", "mark", "state")

    def __init__(self, mark: str, state: str, error: str | None = None) -> None:
        self.mark = mark
        self.state = state
        self.error = error


_REPLAY: Final = (Kind.REPLAY, Kind.REPLAY_DONE, Kind.REPLAY_FAILED)
_CLOSE: Final = (Kind.CLOSE, Kind.CLOSE_DONE, Kind.CLOSE_FAILED)

# method -> (kind of the request, kind of a result, kind of an error); None: means nothing
CLIENT_REQUESTS: Final[dict[str, tuple[Kind | None, Kind | None, Kind | None]]] = {
    "session/prompt": (Kind.PROMPT, Kind.PROMPT_ENDED, Kind.PROMPT_ENDED),
    "session/load": _REPLAY,
    "session/resume": _REPLAY,
    "session/close": _CLOSE,
    "session/delete": _CLOSE,
    "session/archive": _CLOSE,
    "session/new": (None, Kind.ATTACHED, None),
    "session/fork": (None, Kind.ATTACHED, None),
}

WAIT_METHODS: Final = frozenset({"session/request_permission", "elicitation/create"})
HELPER_PREFIXES: Final = ("fs/", "terminal/")

UPDATES: Final[dict[Version, dict[str, Kind]]] = {
    Version.V1: {
        "agent_message_chunk": Kind.OUTPUT,
        "agent_thought_chunk": Kind.OUTPUT,
        "plan": Kind.OUTPUT,
        "plan_update": Kind.OUTPUT,
        "tool_call": Kind.TOOL,
        "tool_call_update": Kind.TOOL,
        "state_update": Kind.STATE,
    },
    Version.V2: {
        "agent_message_chunk": Kind.OUTPUT,
        "agent_message": Kind.OUTPUT,
        "agent_thought_chunk": Kind.OUTPUT,
        "agent_thought": Kind.OUTPUT,
        "plan_update": Kind.OUTPUT,
        "tool_call_update": Kind.TOOL,
        "tool_call_content_chunk": Kind.OUTPUT,
        "state_update": Kind.STATE,
    },
}

_STATUSES: Final = known_values(Version.V2, "ToolCallStatus")
_STOP_REASONS: Final = known_values(Version.V2, "IdleStateUpdate")


def tool_news(body: Json, announced: bool, synonyms: bool = False) -> ToolNews | None:
    """Read a tool call body; None when it does not say which tool call it is about."""
    tool_id = body.get("toolCallId")
    if type(tool_id) is not str:
        return None
    status = body.get("status")
    if type(status) is not str:
        status = None
    elif status not in _STATUSES:
        status = canonical(Version.V2, "ToolCallStatus", status, synonyms=synonyms)
    return ToolNews(tool_id, status, announced)


def prompt_ending(key: Any, body: Json, synonyms: bool = False) -> Ending:
    """Read a v1 prompt response; a result without a stop reason simply reports none (LC-03)."""
    if "error" in body:
        error = body["error"]
        return Ending(key, None, None, error if type(error) is dict else {})
    result = body["result"]
    if type(result) is not dict:
        return Ending(key, None, None, None)
    stop = result.get("stopReason")
    if type(stop) is not str:
        return Ending(key, None, result.get("usage"), None)
    read = (
        stop if stop in _STOP_REASONS else canonical(Version.V2, "IdleStateUpdate", stop, synonyms=synonyms)
    )
    return Ending(key, read, result.get("usage"), None, None if read == stop else stop)


def ends_by_mark(markers: tuple[str, ...], params: Json, method: str) -> bool:
    """Whether a configured vendor mark stands in this notification (`inference.end_markers`)."""
    return any(is_marked(marker, params, method) for marker in markers)


def is_marked(marker: str, params: Json, method: str) -> bool:
    """Whether a vendor mark stands in a notification.

    A marker is a notification method, or a path below the notification's `_meta` or its update's
    `_meta` such as `_meta.endOfTurn=true`; without a value any value but false and null counts, and a list
    counts for each of its items.
    """
    if not marker.startswith("_meta."):
        return marker == method
    path, _, wanted = marker.partition("=")
    steps = path.split(".")
    update = params.get("update")
    for holder in (params, update):
        value: Any = holder
        for step in steps:
            value = value.get(step) if type(value) is dict else None
            if value is None:
                break
        if value is None:
            continue
        if not wanted:
            if value is not False:
                return True
        elif any(_written(item) == wanted for item in (value if type(value) is list else (value,))):
            return True
    return False


def _written(value: Any) -> str:
    """A value as a marker writes it."""
    return ("true" if value else "false") if type(value) is bool else str(value)
