"""The one loop: bytes from two transports into the relay, its commands back out.

Everything that decides is in the relay. Here is only what waits: readers, writers, the clock, the
agent's process, our own signals; and what must happen in the end whatever came before.
"""

from __future__ import annotations

import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Protocol

import trio

from acp_proxy.acp.version import Role
from acp_proxy.attention import Attention
from acp_proxy.errors import AgentStartError
from acp_proxy.filters.translate.session_registry import SessionRecord
from acp_proxy.jsonrpc.framing import LineSplitter, Piece
from acp_proxy.jsonrpc.message import Message, Notification, Request
from acp_proxy.outbox import HIGH_WATER, Outbox
from acp_proxy.relay.commands import (
    CloseLeg,
    Command,
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
from acp_proxy.relay.events import (
    AgentRestarted,
    DeadlinePassed,
    Ending,
    Event,
    FramesReceived,
    HostSaid,
    LegClosed,
)
from acp_proxy.relay.relay import Relay
from acp_proxy.transport.agent_leg import AgentLeg
from acp_proxy.transport.base import Transport

LINGER: Final = 2.0
FLUSH: Final = 2.0
PATIENCE: Final = 5.0
"""Seconds without a write that a client is waited for at the end."""
SILENT_GRACE: Final = 0.5
_STDERR_LINES: Final = 5
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)


class Observers(Protocol):
    """Who is told of what passes: the recorder, the findings file, plugins."""

    def tell(self, report: Report) -> None:
        """Take one report; must neither block nor raise."""

    def flush(self) -> None:
        """A batch is over."""


class Registry(Protocol):
    """Who keeps session records for later runs; no call may block or raise."""

    def remember(self, record: SessionRecord) -> None:
        """Keep a record."""

    def forget(self, agent: str, session_id: str) -> None:
        """Drop a record."""


class Host(Protocol):
    """Who does what `bridge.serve` allows on our own machine."""

    def take(self, message: Request | Notification, cwd: str | None, directories: Sequence[str]) -> None:
        """Have this done; see `filters.base.ToHost`. Must neither block nor say anything yet."""

    async def room(self) -> None:
        """Wait until not too much waits to be done."""

    async def run(self) -> None:
        """Do it, until `end`; nothing that was started is left when this returns."""

    def end(self) -> None:
        """Take nothing more, and end what was started."""


class Runner:
    """Runs one client and one agent process to their end; `run` returns the exit status of the proxy."""

    def __init__(
        self,
        relay: Relay,
        client: Transport,
        start: Callable[[trio.Nursery], Awaitable[AgentLeg]],
        command_name: str,
        observers: Observers,
        divert: Callable[[bytes], None],
        complain: Callable[[str], None],
        limit: int,
        registry: Registry | None = None,
        host: Callable[[Callable[[Message], None], Callable[[], Awaitable[None]]], Host] | None = None,
    ) -> None:
        """`host` is given where what comes of its work goes, and what to wait for before it says much."""
        self._relay = relay
        self._client = client
        self._start = start
        self._name = command_name
        self._observers = observers
        self._divert = divert
        self._complain = complain
        self._limit = limit
        self._registry = registry
        # Asked with every read: trio's own function for it goes through two more.
        self._clock = trio.lowlevel.current_clock().current_time
        self._started_at = self._clock()
        self._to_client = Outbox()
        self._to_agent = Outbox()
        self._host = host(self._host_said, self._to_client.room) if host is not None else None
        self._agent: AgentLeg | None = None
        self._generation = 0
        self._reading_agent = trio.CancelScope()
        self._attention = Attention()
        self._deadline: float | None = None
        self._deadline_changed = trio.Event()
        self._agent_gone = self._signaled = self._given_up = False
        self._patience = trio.CancelScope()
        self._told_after_end = trio.Event()
        self._ending = trio.Event()
        self._status: int | None = None
        self._client_left = trio.Event()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> int:
        """Relay until one side ends, then end the other; nothing the agent started survives."""
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._watch_signals, signals)
                nursery.start_soon(self._to_client.serve, self._client)
                nursery.start_soon(self._watch_deadline)
                nursery.start_soon(self._attention.keep)
                if self._host is not None:
                    nursery.start_soon(self._host.run)
                await self._start_agent(nursery)
                nursery.start_soon(self._read_client)
                nursery.start_soon(self._mind_client)
                await self._ending.wait()
                await self._finish()
                nursery.cancel_scope.cancel()
        assert self._status is not None
        return self._status

    # ------------------------------------------------------------ the relay's hands

    def _now(self) -> float:
        return self._clock() - self._started_at

    def _hear(self, leg: Role, lines: Sequence[Piece]) -> None:
        at = self._now()
        self._handle(FramesReceived(leg, lines, at))
        self._attention.heard(leg, at)

    def _handle(self, event: Event) -> None:
        commands = self._relay.handle(event)
        if commands:
            self._execute(commands)

    def _host_said(self, message: Message) -> None:
        self._handle(HostSaid(message, self._now()))

    def _execute(self, commands: Sequence[Command]) -> None:
        told = False
        for command in commands:
            kind = type(command)
            if kind is SendFrames:
                assert isinstance(command, SendFrames)
                if command.leg is Role.CLIENT:
                    self._to_client.put(command.frames)
                    if self._agent_gone:
                        self._told_after_end.set()
                else:
                    self._to_agent.put(command.frames)
            elif kind is SetDeadline:
                assert isinstance(command, SetDeadline)
                self._deadline = command.at
                self._deadline_changed.set()
            elif kind is Emit:
                assert isinstance(command, Emit)
                self._observers.tell(command.report)
                told = True
            elif kind is Divert:
                assert isinstance(command, Divert)
                self._divert(command.raw)
            elif kind is Remember:
                assert isinstance(command, Remember)
                if self._registry is not None:
                    self._registry.remember(command.record)
            elif kind is Forget:
                assert isinstance(command, Forget)
                if self._registry is not None:
                    self._registry.forget(command.agent, command.session_id)
            elif kind is Serve:
                assert isinstance(command, Serve)
                assert self._host is not None
                self._host.take(command.message, command.cwd, command.directories)
            elif kind is RestartLeg:
                assert isinstance(command, RestartLeg)
                self._restart(command.delay)
            else:
                assert isinstance(command, CloseLeg)
                if command.leg is Role.AGENT:
                    self._to_agent.close()
        if self._to_agent.waiting:
            self._to_agent.flush()
        if self._to_client.waiting:
            self._to_client.flush()
        if told:
            self._observers.flush()

    def _end(self, status: int) -> None:
        """The first reason to end decides the exit status."""
        if self._status is None:
            self._status = status
            self._ending.set()

    # ------------------------------------------------------------ client

    async def _read_client(self) -> None:
        splitter = LineSplitter(self._limit)
        while True:
            if self._to_agent.size > HIGH_WATER:
                await self._to_agent.room()
            data = await self._client.receive_some()
            if not data:
                break
            lines = splitter.feed(data)
            if lines:
                self._hear(Role.CLIENT, lines)
        rest = splitter.finish()
        if rest is not None:
            self._handle(FramesReceived(Role.CLIENT, [rest], self._now()))
        self._client_has_left("the client closed its end")

    async def _mind_client(self) -> None:
        """A client that reads no more has left, though its own end may still be open."""
        await self._to_client.done.wait()
        if self._to_client.failed:
            self._client_has_left("the client reads no more")

    def _client_has_left(self, why: str) -> None:
        self._client_left.set()
        self._handle(LegClosed(Role.CLIENT, self._now(), why))
        if not self._agent_gone:
            self._end(0)

    # ------------------------------------------------------------ agent

    async def _start_agent(self, nursery: trio.Nursery) -> None:
        try:
            agent = await self._start(nursery)
        except AgentStartError as exc:
            why = exc.reason
            self._complain(why)
            if self._has_ended(LegClosed(Role.AGENT, self._now(), why)):
                nursery.start_soon(self._end_after_telling, exc.exit_status)
            return
        self._agent = agent
        self._reading_agent = trio.CancelScope()
        nursery.start_soon(self._to_agent.serve, agent)
        nursery.start_soon(self._read_agent, agent, self._generation, self._reading_agent)

    async def _read_agent(self, agent: AgentLeg, generation: int, reading: trio.CancelScope) -> None:
        """Read until the process ends; a grandchild may hold its pipe, or it may close the pipe and live."""
        assert self._nursery is not None
        splitter = LineSplitter(self._limit)
        self._nursery.start_soon(self._stop_reading_at_exit, agent, reading)
        with reading:
            while True:
                if self._to_client.size > HIGH_WATER:
                    await self._to_client.room()
                if self._host is not None:
                    await self._host.room()
                data = await agent.receive_some()
                if not data:
                    break
                self._take(splitter.feed(data, self._relay.recognize), generation)
        if agent.exit_status is None:
            with trio.move_on_after(SILENT_GRACE):
                await agent.wait()
        while agent.exit_status is not None and (rest := await agent.receive_rest()):
            self._take(splitter.feed(rest), generation)
        last = splitter.finish()
        if last is not None:
            self._take([last], generation)
        if generation == self._generation:
            await self._agent_ended(agent)

    async def _stop_reading_at_exit(self, agent: AgentLeg, reading: trio.CancelScope) -> None:
        await agent.wait()
        reading.cancel()

    def _take(self, lines: Sequence[Piece], generation: int) -> None:
        if lines and generation == self._generation:
            self._hear(Role.AGENT, lines)

    async def _agent_ended(self, agent: AgentLeg) -> None:
        status = agent.exit_status
        if status is None:
            why = f"agent {self._name!r} closed its output but is still running"
        else:
            why = f"agent {self._name!r} ended: {status}"
        if not self._client_left.is_set() and not self._ending.is_set():
            self._complain(why)
        data: dict[str, object] = {"stderr": agent.stderr_tail()[-_STDERR_LINES:]}
        if status is not None:
            data["exitStatus"] = status.status
        if self._has_ended(LegClosed(Role.AGENT, self._now(), why, data)):
            await self._end_after_telling(status.status if status is not None else 1)

    def _has_ended(self, event: LegClosed) -> bool:
        """Tell that the agent is gone; whether that is the end, or the relay has it started anew."""
        generation = self._generation
        self._agent_gone = True
        self._handle(event)
        return generation == self._generation

    async def _end_after_telling(self, status: int) -> None:
        """Whoever is still to send its first request learns the reason too, within reason."""
        if not self._relay.negotiation.answered and not self._client_left.is_set():
            with trio.move_on_after(LINGER):
                async with trio.open_nursery() as nursery:

                    async def either(event: trio.Event) -> None:
                        await event.wait()
                        nursery.cancel_scope.cancel()

                    nursery.start_soon(either, self._told_after_end)
                    nursery.start_soon(either, self._client_left)
        self._end(status)

    def _restart(self, delay: float) -> None:
        """Replace the agent; what is put from now on waits for the new one."""
        assert self._nursery is not None
        self._agent_gone = False
        old, self._agent = self._agent, None
        self._generation += 1
        self._reading_agent.cancel()
        self._to_agent.close()
        self._to_agent = Outbox()
        self._nursery.start_soon(self._replace, old, delay)

    async def _replace(self, old: AgentLeg | None, delay: float) -> None:
        assert self._nursery is not None
        if old is not None:
            await old.terminate_now()
        await trio.sleep(delay)
        await self._start_agent(self._nursery)
        if self._agent is not None:
            self._handle(AgentRestarted(self._now()))

    # ------------------------------------------------------------ time, signals, the end

    async def _watch_deadline(self) -> None:
        while True:
            self._deadline_changed = trio.Event()
            deadline = self._deadline
            if deadline is None:
                await self._deadline_changed.wait()
                continue
            with trio.move_on_at(deadline + self._started_at) as scope:
                await self._deadline_changed.wait()
            if scope.cancelled_caught:
                self._deadline = None
                self._handle(DeadlinePassed(self._now()))

    async def _watch_signals(self, signals: AsyncIterator[int]) -> None:
        seen = 0
        async for number in signals:
            seen += 1
            if seen > 1:
                if self._agent is not None:
                    await self._agent.kill()
                continue
            self._agent_gone = self._signaled = True
            self._patience.deadline = trio.current_time() + FLUSH
            why = f"acp-proxy was ended by {signal.Signals(number).name}"
            self._handle(Ending(self._now(), why))
            self._end(128 + number)

    async def _finish(self) -> None:
        """Write what is owed to both sides, then climb the ladder for the agent."""
        agent = self._agent
        if self._host is not None:
            self._host.end()
        if self._agent_gone:
            await self._write_out()
        if agent is None:
            return
        if agent.exit_status is not None:
            agent.hand_over()
            return
        self._to_agent.close()
        with trio.move_on_after(FLUSH):
            await self._to_agent.done.wait()
        await agent.shut_down()
        await self._write_out()

    async def _write_out(self) -> None:
        """Let the client have what is left for it, as long as it goes on reading; less once we are told to end."""
        box = self._to_client
        box.close()
        left = math.inf
        with trio.CancelScope() as self._patience:
            if self._signaled:
                self._patience.deadline = trio.current_time() + FLUSH
            while not (box.done.is_set() or self._given_up) and box.size < left:
                left = box.size
                with trio.move_on_after(PATIENCE):
                    await box.done.wait()
        if not (box.done.is_set() or self._given_up):
            self._given_up = True
            self._complain(
                f"the client does not read: {box.size} bytes for it are lost, the last frame may be cut"
            )
