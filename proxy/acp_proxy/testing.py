"""Means of testing what is built on the relay: a playbook for it, memory transports for the runner.

A `Playbook` plays client and agent to one `Relay` by hand, on a clock of its own, and keeps all
that comes out. Nothing waits and nothing is random, so a test reads as a script and always runs
the same. It feeds the relay as the runner does: bytes are cut into lines by the same splitter.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any, Final

import trio.testing

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import Filter
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.framing import LineSplitter
from acp_proxy.jsonrpc.message import Json, id_key
from acp_proxy.relay.commands import (
    CloseLeg,
    Divert,
    Emit,
    Forget,
    Remember,
    Report,
    RestartLeg,
    SendFrames,
    Serve,
    SetDeadline,
)
from acp_proxy.relay.events import DeadlinePassed, Event, FramesReceived, LegClosed
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay
from acp_proxy.transport.base import StreamTransport

_LIMIT: Final = 1 << 25
_PATIENCE: Final = 1000
_SHOWN: Final = 30


class Sent:
    """A line the relay wrote to a leg: when, its bytes, and what they say (None when no JSON object)."""

    __slots__ = ("at", "body", "raw")

    def __init__(self, at: float, raw: bytes, body: Any) -> None:
        self.at = at
        self.raw = raw
        self.body = body

    def __repr__(self) -> str:
        return f"<Sent at {self.at:g}: {self.raw.decode(errors='replace')}>"


class Playbook:
    """One relay with a client and an agent that do what the test says; time stands still in between."""

    def __init__(self, *, filters: Sequence[Filter] = (), reporting: bool = False, **options: Any) -> None:
        """`filters` are a plugin's; `options` are those of `RelayOptions`, by name."""
        tokens = (f"{number:012x}" for number in itertools.count(1))
        self.relay = Relay(
            RelayOptions(**options), token=tokens.__next__, plugin_filters=filters, reporting=reporting
        )
        self.now = 0.0
        self.deadline: float | None = None
        self.sent: dict[Role, list[Sent]] = {Role.CLIENT: [], Role.AGENT: []}
        self.closed: set[Role] = set()
        self.reports: list[Report] = []
        self.diverted: list[bytes] = []
        self.served: list[Serve] = []
        self.remembered: list[Remember | Forget] = []
        self.restarts = 0
        self._splitters = {leg: LineSplitter(_LIMIT) for leg in Role}
        self._left: set[Role] = set()
        self._read = {Role.CLIENT: 0, Role.AGENT: 0}
        self._open: dict[Role, dict[Any, Json]] = {Role.CLIENT: {}, Role.AGENT: {}}
        self._script: list[str] = []

    # ------------------------------------------------------------ what happens

    def client_sends(self, *items: Json | bytes) -> None:
        """Let the client send messages in one piece; `jsonrpc` is added to objects without it.

        Bytes are put on the stream as they are, with a line feed after them.
        """
        self._receive(Role.CLIENT, items)

    def agent_sends(self, *items: Json | bytes) -> None:
        """Let the agent send messages; see `client_sends`."""
        self._receive(Role.AGENT, items)

    def client_answers(self, method: str, result: Any = None, *, error: Json | None = None) -> None:
        """Let the client answer the oldest request of this method that it was sent and left open."""
        self._reply(Role.CLIENT, method, result, error)

    def agent_answers(self, method: str, result: Any = None, *, error: Json | None = None) -> None:
        """Let the agent answer the oldest request of this method that it was sent and left open."""
        self._reply(Role.AGENT, method, result, error)

    def advance(self, seconds: float) -> None:
        """Let time pass; each deadline the relay asked for is delivered exactly when it is due."""
        end = self.now + seconds
        for _ in range(_PATIENCE):
            if self.deadline is None or self.deadline > end:
                self.now = end
                return
            self.now = max(self.now, self.deadline)
            self.deadline = None
            self._script.append(f"{self.now:9.3f}  deadline")
            self._handle(DeadlinePassed(self.now))
        raise AssertionError(f"the relay keeps asking to be woken at {self.now:g}" + self._told())

    def happens(self, event: Event) -> None:
        """Let anything else happen, such as AgentRestarted or HostSaid; its `at` should be `now`."""
        self._script.append(f"{self.now:9.3f}  {type(event).__name__}")
        self._handle(event)

    def client_leaves(self) -> None:
        """Let the client close its end."""
        self._leave(LegClosed(Role.CLIENT, self.now, "the client closed its end"))

    def agent_leaves(self, why: str = "the agent has ended", data: object = None) -> None:
        """Let the agent end; `why` and `data` go into the errors that its open requests get."""
        self._leave(LegClosed(Role.AGENT, self.now, why, data))

    # ------------------------------------------------------------ what came out

    @property
    def findings(self) -> list[Finding]:
        """The findings emitted so far."""
        return [report for report in self.reports if isinstance(report, Finding)]

    def states(self, session_id: str) -> list[str]:
        """The states of a session the client was told, such as `running` or `idle(end_turn)`."""
        told: list[str] = []
        wanted = {"params": {"sessionId": session_id, "update": {"sessionUpdate": "state_update"}}}
        for sent in self.sent[Role.CLIENT]:
            if matches(wanted, sent.body):
                update = sent.body["params"]["update"]
                told.append(update["state"] + (f"({update['stopReason']})" if "stopReason" in update else ""))
        return told

    def take(self, leg: Role) -> list[Any]:
        """What was sent to a leg since it was last taken or checked, decoded."""
        fresh = [sent.body for sent in self.sent[leg][self._read[leg] :]]
        self._read[leg] = len(self.sent[leg])
        return fresh

    def client_gets(self, *wanted: Any) -> None:
        """Check all that was sent to the client since the last look, in order.

        A wanted object names the members that matter and leaves the others open, `...` stands for
        anything. Raises AssertionError with the difference and the script so far.
        """
        self._check(Role.CLIENT, wanted)

    def agent_gets(self, *wanted: Any) -> None:
        """Check all that was sent to the agent since the last look; see `client_gets`."""
        self._check(Role.AGENT, wanted)

    # ------------------------------------------------------------ inside

    def _receive(self, leg: Role, items: Sequence[Json | bytes]) -> None:
        assert leg not in self._left, f"the {leg.value} has left"
        data = b""
        for item in items:
            raw = item if isinstance(item, bytes) else codec.encode({"jsonrpc": "2.0", **item})
            self._script.append(f"{self.now:9.3f}  {leg.value + ' >':>17}  {_text(raw)}")
            if not isinstance(item, bytes) and "method" not in item:
                self._open[leg].pop(id_key(item.get("id")), None)
            data += raw + b"\n"
        recognize = self.relay.recognize if leg is Role.AGENT else None
        self._handle(FramesReceived(leg, self._splitters[leg].feed(data, recognize), self.now))

    def _reply(self, leg: Role, method: str, result: Any, error: Json | None) -> None:
        token = next((body["id"] for body in self._open[leg].values() if body["method"] == method), None)
        if token is None:
            raise AssertionError(f"the {leg.value} has no open {method} to answer" + self._told())
        self._receive(leg, [{"id": token, **({"result": result} if error is None else {"error": error})}])

    def _leave(self, event: LegClosed) -> None:
        self._left.add(event.leg)
        self._script.append(f"{self.now:9.3f}  {event.leg.value + ' leaves':>17}")
        self._handle(event)

    def _handle(self, event: Event) -> None:
        for command in self.relay.handle(event):
            if isinstance(command, SendFrames):
                for raw in b"\n".join(command.frames).split(b"\n"):
                    self._take(command.leg, raw)
            elif isinstance(command, SetDeadline):
                self.deadline = command.at
            elif isinstance(command, Emit):
                self.reports.append(command.report)
            elif isinstance(command, Divert):
                self.diverted.append(command.raw)
            elif isinstance(command, CloseLeg):
                self.closed.add(command.leg)
            elif isinstance(command, Serve):
                self.served.append(command)
            elif isinstance(command, (Remember, Forget)):
                self.remembered.append(command)
            else:
                assert isinstance(command, RestartLeg)
                self.restarts += 1
                self._left.discard(Role.AGENT)
                self._splitters[Role.AGENT] = LineSplitter(_LIMIT)
                self._open[Role.AGENT].clear()

    def _take(self, leg: Role, raw: bytes) -> None:
        if leg in self.closed:
            return  # as in the runner: nothing is written after the end
        self._script.append(f"{self.now:9.3f}  {'> ' + leg.value:>17}  {_text(raw)}")
        try:
            body = codec.decode(raw)
        except codec.DecodeError:
            body = None
        self.sent[leg].append(Sent(self.now, raw, body))
        if isinstance(body, dict) and "method" in body and "id" in body:
            self._open[leg][id_key(body["id"])] = body

    def _check(self, leg: Role, wanted: Sequence[Any]) -> None:
        got = self.take(leg)
        lines: list[str] = []
        for index in range(max(len(wanted), len(got))):
            if index < len(wanted) and index < len(got) and matches(wanted[index], got[index]):
                lines.append(f"    {_text(got[index])}")
            else:
                lines += [f"  - {_text(one)}" for one in wanted[index : index + 1]]
                lines += [f"  + {_text(one)}" for one in got[index : index + 1]]
        if any(not line.startswith("    ") for line in lines):
            lines.insert(0, f"what the {leg.value} got (+) is not what was wanted (-):")
            raise AssertionError("\n".join(lines) + self._told())

    def _told(self) -> str:
        return "\nthe script so far:\n" + "\n".join(self._script[-_SHOWN:])


class MemoryTransport(StreamTransport):
    """One end of a connection inside the process; keeps the contract of `transport.base.Transport`.

    Nothing is buffered: who writes waits until the other end has read it all, as with a slow peer.
    """


def memory_transports() -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected ends: give one to the code under test, and play the peer on the other."""
    near, far = trio.testing.lockstep_stream_pair()
    return (
        MemoryTransport(near.send_stream, near.receive_stream),
        MemoryTransport(far.send_stream, far.receive_stream),
    )


def matches(wanted: Any, got: Any) -> bool:
    """Whether a JSON value is as wanted: objects by the members named, the rest exactly, `...` anything."""
    if wanted is ...:
        return True
    if isinstance(wanted, dict) and isinstance(got, dict):
        return all(name in got and matches(value, got[name]) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(matches, wanted, got))
    return type(wanted) is type(got) and bool(wanted == got)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return json.dumps(value, ensure_ascii=False, default=lambda _: "...")
