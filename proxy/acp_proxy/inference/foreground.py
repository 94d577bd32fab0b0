"""The state machine of a session's foreground: one table a protocol version, one mover.

Three parts. `MOVES` says what each kind of trigger does to a session in each phase; a pair that
is missing is a hole, and a hole is a finding. `DERIVED` turns three facts (is foreground work
active, does it wait for a person, does anything of it move) into a state. Natively reported
states are taken as they come. Nothing here reads JSON or knows who will be told.

Source: lifecycle §2.2, §2.3, §2.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.inference.session import FINAL_STATUSES, Owner, Phase, Session, State, Tool, Wait
from acp_proxy.inference.triggers import Ending, Hint, Kind, ToolNews
from acp_proxy.jsonrpc.message import INTERNAL_ERROR, REQUEST_CANCELLED, Json

# (foreground, waiting for a person, something moves) -> state
DERIVED: Final[dict[tuple[bool, bool, bool], State]] = {
    (False, False, False): State.IDLE,
    (False, False, True): State.IDLE,
    (False, True, False): State.IDLE,
    (False, True, True): State.IDLE,
    (True, False, False): State.RUNNING,
    (True, False, True): State.RUNNING,
    (True, True, False): State.REQUIRES_ACTION,
    (True, True, True): State.RUNNING,
}

AGENT_INITIATED_DELAY: Final = 1.0


class Rules:
    """The switches of lifecycle §2.5 that change what is inferred; times in seconds."""

    __slots__ = ("agent_initiated", "any_wait", "end_markers", "hints", "quiet_time", "synonyms")

    def __init__(
        self,
        *,
        agent_initiated: str = "ignore",
        any_wait: bool = False,
        quiet_time: float = 30.0,
        end_markers: tuple[str, ...] = (),
        synonyms: bool = False,
        hints: tuple[Hint, ...] = (),
    ) -> None:
        self.hints = hints
        self.agent_initiated = agent_initiated
        self.any_wait = any_wait
        self.quiet_time = quiet_time
        self.end_markers = end_markers
        self.synonyms = synonyms


class Change:
    """A session's state has changed, or a resume wants it told again.

    `after_cancel`: a cancel was open when the work ended. `resume`: told although unchanged (LC-14).
    """

    __slots__ = ("after_cancel", "ending", "new", "old", "resume", "session")

    def __init__(
        self,
        session: Session,
        old: State,
        new: State,
        ending: Ending | None = None,
        *,
        after_cancel: bool = False,
        resume: bool = False,
    ) -> None:
        self.session = session
        self.old = old
        self.new = new
        self.ending = ending
        self.after_cancel = after_cancel
        self.resume = resume

    def __repr__(self) -> str:
        return f"<Change {self.session.id!r} {self.old.value} to {self.new.value}>"


def derive(session: Session, rules: Rules) -> State:
    """The state that follows from the record (§2.2); while cancelling, waiting never turns into running."""
    waiting = session.foreground_waits > 0
    moving = waiting and not rules.any_wait and not session.blocked and session.progressing
    state = DERIVED[session.foreground, waiting, moving]
    if session.cancelled and session.state is State.REQUIRES_ACTION and state is State.RUNNING:
        return State.REQUIRES_ACTION
    if session.auto and not session.prompts and rules.agent_initiated == "unknown" and state is State.RUNNING:
        return State.UNKNOWN
    return state


def step(
    session: Session, version: Version, kind: Kind, detail: Any, at: float, rules: Rules
) -> Change | None:
    """Move a session by one trigger. Raises Hole when the table has no entry for it."""
    move = MOVES[version][session.phase].get(kind)
    if move is None:
        raise Hole(session, kind)
    told = move(session, detail, at, rules)
    if session.native or version is Version.V2:
        return None
    old = session.state
    new = derive(session, rules)
    if told is None:
        if new is old:
            return None
        session.state = new
        return Change(session, old, new)
    if new is old and not told.resume:
        return None
    session.state = new
    told.old, told.new = old, new
    return told


class Hole(Exception):
    """The table has no entry: the peer did what the lifecycle does not know."""

    def __init__(self, session: Session, kind: Kind) -> None:
        super().__init__(f"{kind.name.lower()} while {session.phase.name.lower()}")
        self.session = session
        self.kind = kind


# ---------------------------------------------------------------- moves


def _nothing(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.last_heard = at
    return None


def _prompt(session: Session, key: Any, at: float, rules: Rules) -> Change | None:
    if not session.prompts:
        session.epoch += 1
        session.moving.clear()
        session.cancelled = False
        session.auto = False
        session.blocked = False
        session.failure = None
    session.prompts.add(key)
    session.last_heard = at
    return None


def _prompt_ended(session: Session, ending: Ending, at: float, rules: Rules) -> Change | None:
    if ending.key not in session.prompts:
        return None
    session.prompts.discard(ending.key)
    if session.prompts:
        return None
    failure = session.failure
    if failure is not None and ending.error is None and ending.stop_reason in (None, "end_turn"):
        given = ending.given or ending.stop_reason
        ending = Ending(ending.key, None, ending.usage, failure, given, hinted=True)
    return _end(session, ending, at)


def _end(session: Session, ending: Ending | None, at: float) -> Change:
    """Foreground work is over: what it left open is background from now on (RA-02, RA-07)."""
    cancelled = session.cancelled
    session.cancelled = False
    session.auto = False
    session.blocked = False
    session.failure = None
    for tool_id in session.open_foreground:
        session.tools[tool_id].owner = Owner.BACKGROUND
    session.open_foreground.clear()
    session.moving.clear()
    for key in [key for key, wait in session.waits.items() if wait.owner is Owner.FOREGROUND]:
        del session.waits[key]
    session.foreground_waits = 0
    session.ended_at = at
    if ending is not None and ending.error is not None and ending.error.get("code") == REQUEST_CANCELLED:
        cancelled = True
    return Change(session, session.state, State.IDLE, ending, after_cancel=cancelled)


def _cancel(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.cancelled_by_close = False
    if session.foreground:
        session.cancelled = True
    return None


def _tool(session: Session, news: ToolNews, at: float, rules: Rules) -> Change | None:
    session.last_heard = at
    tool = session.tools.get(news.tool_id)
    if session.replays and news.replayed:
        if tool is not None and session.foreground and tool.owner is Owner.FOREGROUND:
            # A load in the middle of a turn repeats what is live: the turn goes on as it was (§2.5).
            return None
        status = news.status or (tool.status if tool else "pending")
        _place(session, news.tool_id, Tool(status, Owner.HISTORY, session.epoch))
        return None
    if tool is None:
        if not session.foreground and news.status not in FINAL_STATUSES:
            _maybe_begin(session, at, rules)
        _create(session, news)
    elif news.announced:
        _create(session, news)
    elif news.status is not None:
        tool.status = news.status
        _place(session, news.tool_id, tool)
    return None


def _create(session: Session, news: ToolNews) -> None:
    owner = Owner.FOREGROUND if session.foreground else Owner.BACKGROUND
    _place(session, news.tool_id, Tool(news.status or "pending", owner, session.epoch))


def _place(session: Session, tool_id: str, tool: Tool) -> None:
    """Record a tool call and keep the two sets in step with it."""
    session.tools[tool_id] = tool
    current = tool.owner is Owner.FOREGROUND and tool.epoch == session.epoch
    if current and tool.status == "in_progress":
        session.moving.add(tool_id)
    else:
        session.moving.discard(tool_id)
    if tool.owner is Owner.FOREGROUND and tool.status not in FINAL_STATUSES:
        session.open_foreground.add(tool_id)
    else:
        session.open_foreground.discard(tool_id)


def _wait(
    session: Session, detail: tuple[Any, ToolNews | None, str | None], at: float, rules: Rules
) -> Change | None:
    key, news, tool_id = detail
    if news is not None:
        _tool(session, news, at, rules)
        tool_id = news.tool_id
    elif not session.foreground and tool_id not in session.tools:
        _maybe_begin(session, at, rules)
    tool = session.tools.get(tool_id) if tool_id is not None else None
    background = not session.foreground or (tool is not None and tool.owner is not Owner.FOREGROUND)
    owner = Owner.BACKGROUND if background else Owner.FOREGROUND
    _wait_answered(session, key, at, rules)  # an id used again in flight is one wait
    session.waits[key] = Wait(tool_id, owner)
    if owner is Owner.FOREGROUND:
        session.foreground_waits += 1
    return None


def _wait_answered(session: Session, key: Any, at: float, rules: Rules) -> Change | None:
    session.last_heard = at
    wait = session.waits.pop(key, None)
    if wait is not None and wait.owner is Owner.FOREGROUND:
        session.foreground_waits -= 1
    return None


def _helper(session: Session, key: Any, at: float, rules: Rules) -> Change | None:
    session.last_heard = at
    session.helpers[key] = session.epoch
    return None


def _helper_done(session: Session, key: Any, at: float, rules: Rules) -> Change | None:
    session.last_heard = at
    session.helpers.pop(key, None)
    return None


def _replay(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.phase = Phase.ATTACHED
    session.replays += 1
    return None


def _replay_done(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.replays = max(0, session.replays - 1)
    session.phase = Phase.ATTACHED
    session.ended_at = max(session.ended_at, at)  # a replay has a tail as a turn has (RA-16)
    if not session.foreground:
        for tool in session.tools.values():
            if tool.status not in FINAL_STATUSES:
                tool.owner = Owner.HISTORY
    return Change(session, session.state, session.state, resume=True)


def _replay_failed(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.replays = max(0, session.replays - 1)
    return None


def _attached(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.phase = Phase.ATTACHED
    return None


def _close(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    if session.phase is not Phase.CLOSING:
        session.phase_before_close = session.phase
    session.phase = Phase.CLOSING
    by_close = session.foreground and not session.cancelled
    _cancel(session, detail, at, rules)
    session.cancelled_by_close = by_close
    return None


def _close_done(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.phase = Phase.CLOSED
    if not session.foreground:
        return None
    session.prompts.clear()
    session.cancelled = True
    return _end(session, None, at)


def _close_failed(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.phase = Phase.CLOSED if session.phase_before_close is Phase.CLOSED else Phase.ATTACHED
    if session.cancelled_by_close:
        session.cancelled = session.cancelled_by_close = False
    return None


def _output(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    session.last_heard = at
    if not session.foreground and not session.replays:
        _maybe_begin(session, at, rules)
    return None


def _maybe_begin(session: Session, at: float, rules: Rules) -> None:
    """Take fresh output outside a turn for work the agent began itself, where that is wanted (§2.5).

    Not within a second of a turn's end: trailing output of the turn itself is common.
    """
    if rules.agent_initiated == "ignore" or session.replays or session.cancelled:
        return
    if session.phase is Phase.CLOSING:
        return
    if at - session.ended_at < AGENT_INITIATED_DELAY:
        return
    session.auto = True
    session.epoch += 1


def _end_mark(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    if not session.auto or session.prompts:
        return None
    return _end(session, None, at)


def _quiet(session: Session, detail: Any, at: float, rules: Rules) -> Change | None:
    if not session.auto or session.prompts or session.foreground_waits or session.progressing:
        return None
    return _end(session, None, at)


def _hint(session: Session, hint: Hint, at: float, rules: Rules) -> Change | None:
    """What the agent says beside the protocol of itself (RA-25).

    It begins and ends only work without a prompt; an open prompt ends by its answer, whatever is hinted.
    What is said during a replay may be part of it.
    """
    session.last_heard = at
    if session.replays:
        return None
    if hint.state == "error":
        failure: Json = {"code": INTERNAL_ERROR, "message": hint.error or "the agent reports an error"}
        if session.auto and not session.prompts:
            return _end(session, Ending(None, None, None, failure, hinted=True), at)
        if session.prompts:
            session.failure = failure
        return None
    if hint.state == "running":
        session.failure = None
    if not session.prompts:
        if hint.state == "idle":
            return _end(session, None, at) if session.auto else None
        if not session.auto:
            _maybe_begin(session, at, rules)
    session.blocked = session.foreground and hint.state == "requires_action"
    return None


def _agent_gone(session: Session, error: Json, at: float, rules: Rules) -> Change | None:
    if not session.foreground:
        return None
    session.prompts.clear()
    session.cancelled = False
    return _end(session, Ending(None, None, None, error), at)


def _state(session: Session, value: str, at: float, rules: Rules) -> Change | None:
    """A state the agent reports itself: from now on it is believed, and nothing is synthesized (§2.1)."""
    session.native = True
    session.reported = value
    session.last_heard = at
    return None


Move = Callable[[Session, Any, float, Rules], Change | None]

_ALWAYS: Final[dict[Kind, Move]] = {
    Kind.PROMPT_ENDED: _prompt_ended,
    Kind.WAIT_ANSWERED: _wait_answered,
    Kind.HELPER_DONE: _helper_done,
    Kind.REPLAY: _replay,
    Kind.REPLAY_DONE: _replay_done,
    Kind.REPLAY_FAILED: _replay_failed,
    Kind.ATTACHED: _attached,
    Kind.CLOSE: _close,
    Kind.CLOSE_DONE: _close_done,
    Kind.CLOSE_FAILED: _close_failed,
    Kind.CANCEL: _cancel,
    Kind.QUIET: _quiet,
    Kind.HINT: _nothing,
    Kind.AGENT_GONE: _agent_gone,
}
_LIVE: Final[dict[Kind, Move]] = {
    **_ALWAYS,
    Kind.PROMPT: _prompt,
    Kind.TOOL: _tool,
    Kind.WAIT: _wait,
    Kind.HELPER: _helper,
    Kind.OUTPUT: _output,
    Kind.UPDATE: _nothing,
    Kind.STATE: _state,
    Kind.END_MARK: _end_mark,
    Kind.HINT: _hint,
}
# After a close answer the agent owes silence (LC-50): its updates and requests are holes.
_V1: Final[dict[Phase, dict[Kind, Move]]] = {
    Phase.PROVISIONAL: _LIVE,
    Phase.ATTACHED: _LIVE,
    Phase.CLOSING: _LIVE,
    Phase.CLOSED: _ALWAYS,
}
# A v2 agent tells its states itself: only attachment and what it reports are kept.
_V2_ALWAYS: Final[dict[Kind, Move]] = {
    **_ALWAYS,
    **dict.fromkeys((Kind.PROMPT_ENDED, Kind.WAIT_ANSWERED, Kind.HELPER_DONE, Kind.AGENT_GONE), _nothing),
}
_V2_LIVE: Final[dict[Kind, Move]] = {
    **_V2_ALWAYS,
    Kind.PROMPT: _nothing,
    Kind.TOOL: _nothing,
    Kind.WAIT: _nothing,
    Kind.HELPER: _nothing,
    Kind.OUTPUT: _nothing,
    Kind.UPDATE: _nothing,
    Kind.STATE: _state,
    Kind.END_MARK: _nothing,
}
_V2: Final[dict[Phase, dict[Kind, Move]]] = {
    Phase.PROVISIONAL: _V2_LIVE,
    Phase.ATTACHED: _V2_LIVE,
    Phase.CLOSING: _V2_LIVE,
    Phase.CLOSED: _V2_ALWAYS,
}
MOVES: Final[dict[Version, dict[Phase, dict[Kind, Move]]]] = {Version.V1: _V1, Version.V2: _V2}
