"""Judges recorded traffic by the rules of a live run, and tells the states it went through.

There is no second implementation of any rule: the frames are handed to a Relay that translates nothing
and only observes, at the times they were recorded, its deadlines in between. What the relay would send
is dropped, for what was really sent is in the file.

A recording has both legs, and each is judged by itself, as what it was: the client's leg for the faults
of the client, the agent's for those of the agent. To put what both peers sent into one conversation was
rejected: where the proxy translated, held or repaired, neither peer ever heard the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from acp_proxy.acp.version import Role, Version
from acp_proxy.inference.findings import Finding
from acp_proxy.inference.pending import Pending
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.framing import HEAD_BYTES, Oversize, Piece
from acp_proxy.jsonrpc.message import Message, Notification, Request, Response, id_key
from acp_proxy.relay.commands import Emit, FrameReport, SetDeadline, StateReport
from acp_proxy.relay.events import DeadlinePassed, Event, FramesReceived, LegClosed
from acp_proxy.relay.relay import Relay
from acp_proxy.trace.traffic import Said, Traffic

MakeRelay = Callable[[], Relay]
"""Makes a relay that translates nothing, only observes, and reports."""

_FIRST_METHOD: Final = "initialize"
_TOLD: Final = "state_update"


class StateChange:
    """A session's state as it changed, told by an agent or inferred, and what changed it.

    `frame` is the number of the frame that did, None where it was time or the end, or where the
    proxy made the frame. `leg` is the recorded one, None in a capture.
    """

    __slots__ = ("at", "cause", "frame", "inferred", "leg", "new", "old", "session", "stop_reason")

    def __init__(self, report: StateReport, leg: Role | None, inferred: bool, cause: str, frame: int) -> None:
        self.at = report.at
        self.session = report.session_id
        self.old = report.old
        self.new = report.new
        self.stop_reason = report.stop_reason
        self.leg = leg
        self.inferred = inferred
        self.cause = cause
        self.frame = frame or None


Judged = Finding | StateChange


class Conversation:
    """What one client and one agent said to each other on one connection."""

    def __init__(self, make_relay: MakeRelay, leg: Role | None, limit: int) -> None:
        """`leg` is the recorded leg; None when both peers were heard directly. `limit` in bytes a frame."""
        self.leg = leg
        self._relay = make_relay()
        self._limit = limit
        self._now = float("-inf")
        self._deadline: float | None = None
        self._asked: dict[Role, Pending[str]] = {role: Pending() for role in Role}
        self._refused: dict[Role, set[Any]] = {role: set() for role in Role}

    @property
    def version(self) -> Version:
        """The protocol version the agent speaks, v1 until it has said so."""
        return self._relay.engine.version

    def take(self, said: Said) -> Iterator[Judged]:
        """One frame more."""
        yield from self._wait(said.at)
        if self._answers_refusal(said):
            return
        self._relay.frames_received = (said.number or 0) - 1
        yield from self._handle(
            FramesReceived(said.sender, [self._piece(said)], self._now), said.sender, said.number or 0
        )

    def end(self, at: float) -> Iterator[Judged]:
        """The agent has ended, and then nobody is left to give what is still owed."""
        yield from self._wait(at)
        yield from self._handle(LegClosed(Role.AGENT, self._now, "the agent has ended"), None, 0)
        # Only now: a client that leaves first has the relay cancel what the agent does, and nobody did that here.
        yield from self._handle(LegClosed(Role.CLIENT, self._now), None, 0)

    def _wait(self, at: float) -> Iterator[Judged]:
        """Let time pass, which never goes back whatever the file says."""
        while self._deadline is not None and self._deadline <= at:
            due, self._deadline = self._deadline, None
            self._now = max(self._now, due)
            yield from self._handle(DeadlinePassed(self._now), None, 0)
        self._now = max(self._now, at)

    def _piece(self, said: Said) -> Piece:
        raw = said.raw
        if len(raw) > self._limit:
            return Oversize(raw[:HEAD_BYTES])
        if self.leg is said.sender and len(raw) == HEAD_BYTES and not _is_json(raw):
            return Oversize(raw)  # of a line over the limit a recording has no more than this
        return raw

    def _answers_refusal(self, said: Said) -> bool:
        """Whether this answers a request that the relay would not have let through.

        Only the real peer heard the request; to the relay its answer would be one to nothing.
        """
        refused = self._refused[said.sender.other]
        if not refused:
            return False
        body = _body(said.raw)
        if body is None or "method" in body or id_key(body.get("id")) not in refused:
            return False
        refused.discard(id_key(body.get("id")))
        return True

    def _handle(self, event: Event, sender: Role | None, number: int) -> Iterator[Judged]:
        cause = "the end of the agent" if isinstance(event, LegClosed) else "time"
        for command in self._relay.handle(event):
            if isinstance(command, SetDeadline):
                self._deadline = command.at
            elif isinstance(command, Emit):
                report = command.report
                if isinstance(report, FrameReport):
                    if report.direction == "out":
                        self._went_out(report, sender)
                    elif report.message is not None and sender is not None:
                        cause = self._cause(report.message, sender)
                elif isinstance(report, Finding):
                    if self.leg is None or report.leg == self.leg.value:
                        report.frames = tuple(frame for frame in report.frames if frame > 0)
                        report.action = "noted"  # whatever the relay did about it went nowhere
                        yield report
                elif report.old != report.new:
                    yield StateChange(report, self.leg, not cause.startswith(_TOLD), cause, number)

    def _went_out(self, report: FrameReport, sender: Role | None) -> None:
        """Note what the relay answers by itself to the peer that was heard."""
        if report.leg is sender and report.number is None and type(report.message) is Response:
            self._refused[report.leg].add(id_key(report.message.id))

    def _cause(self, message: Message, sender: Role) -> str:
        """What a frame is, in the protocol's words."""
        if type(message) is Request:
            self._asked[sender].add(message.id, message.method)
            self._refused[sender].discard(id_key(message.id))
            return message.method
        if type(message) is Response:
            method = self._asked[sender.other].pop(message.id)
            what = "error" if message.is_error else "answer"
            return f"{what} to {method}" if method is not None else what
        assert type(message) is Notification
        update = message.params.get("update")
        if message.method != "session/update" or type(update) is not dict:
            return message.method
        words = (update.get("sessionUpdate"), update.get("status"))
        return " ".join(word for word in words if type(word) is str)


class Check:
    """All conversations of one file, one after the other and leg by leg."""

    def __init__(self, make_relay: MakeRelay, limit: int) -> None:
        """`limit` is the longest frame in bytes, as `limits.message_bytes`."""
        self.frames = 0
        self._make_relay = make_relay
        self._limit = limit
        self._open: dict[Role | None, Conversation] = {}
        self._over: float | None = None

    def run(self, heard: Iterable[Traffic]) -> Iterator[Judged]:
        """Judge the traffic of a file; what is found comes out as soon as it is known.

        The client's leg of a recording tells states only where it speaks another version than the
        agent's: else they are the agent's leg's, told twice.
        """
        for item in heard:
            if isinstance(item, Said):
                self.frames += item.number is not None and item.leg in (None, item.sender)
                if self._begins(item):
                    yield from self._finish(item.leg, item.at)
                conversation = self._conversation(item.leg)
                yield from self._told(conversation, conversation.take(item))
            else:
                self._over = item.at
        for leg in (None, Role.CLIENT, Role.AGENT):
            if leg in self._open:
                yield from self._finish(leg, None)

    def _conversation(self, leg: Role | None) -> Conversation:
        if leg not in self._open:
            self._open[leg] = Conversation(self._make_relay, leg, self._limit)
        return self._open[leg]

    def _begins(self, said: Said) -> bool:
        """Whether this is the first frame of a new process.

        A capture has one after the other. In a recording only the agent is ever started anew, and the
        proxy then says `initialize` itself; one with a number is the client's, repeated.
        """
        if said.sender is not Role.CLIENT or b"initialize" not in said.raw:
            return False
        if said.leg is not None and (said.leg is Role.CLIENT or said.number is not None):
            return False
        if said.leg not in self._open:
            return False
        body = _body(said.raw)
        return body is not None and body.get("method") == _FIRST_METHOD

    def _finish(self, leg: Role | None, next_at: float | None) -> Iterator[Judged]:
        """A conversation is over, at the latest when the next process begins.

        Where the file just stops, what is open stays open.
        """
        conversation = self._open.pop(leg)
        over = self._over if self._over is not None else next_at
        if over is not None:
            yield from self._told(conversation, conversation.end(over))
        if next_at is not None:
            self._over = None

    def _told(self, conversation: Conversation, judged: Iterator[Judged]) -> Iterator[Judged]:
        doubled = False
        if conversation.leg is Role.CLIENT and Role.AGENT in self._open:
            doubled = self._open[Role.AGENT].version is conversation.version
        for item in judged:
            if not (doubled and isinstance(item, StateChange)):
                yield item


def _body(raw: bytes) -> dict[str, Any] | None:
    try:
        body = codec.decode(codec.strip_bom(raw))
    except codec.DecodeError:
        return None
    return body if isinstance(body, dict) else None


def _is_json(raw: bytes) -> bool:
    try:
        codec.decode(raw)
    except codec.DecodeError:
        return False
    return True


def tokens() -> Callable[[], str]:
    """Texts that are made up by nobody but look the same in every run."""
    count = itertools.count(1)
    return lambda: f"{next(count):012x}"
