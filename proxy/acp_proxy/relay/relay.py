"""One client and one agent joined: events in, commands out, no input or output of its own.

A received line is decoded once and walked through the chain. If it comes out as the same object
its original bytes are sent. A line that can change nothing is not even decoded (`untouched`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_proxy.acp.version import Role, Version
from acp_proxy.filters.base import Filter, ToHost
from acp_proxy.filters.lifecycle import Lifecycle
from acp_proxy.filters.observe import Observe
from acp_proxy.filters.snapshot import Snapshot
from acp_proxy.filters.told_states import ToldStates
from acp_proxy.filters.translate.session_registry import Remembered
from acp_proxy.filters.translate.v2_client import V2Client
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.foreground import Rules
from acp_proxy.inference.watch.watch import Watch
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.framing import Oversize, Recognize, Run
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    Frame,
    Json,
    Message,
    Request,
    Response,
    error,
    notification,
    result,
)
from acp_proxy.policy.stages import Stages
from acp_proxy.relay.acquaintance import meet
from acp_proxy.relay.chain import Chain
from acp_proxy.relay.commands import (
    CloseLeg,
    Command,
    Divert,
    Emit,
    Forget,
    FrameReport,
    Remember,
    RestartLeg,
    SendFrames,
    Serve,
    SetDeadline,
    StateReport,
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
from acp_proxy.relay.initialize_again import InitializeAgain
from acp_proxy.relay.intake import Intake
from acp_proxy.relay.negotiate import Agreement, Negotiate
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.passage import Passage


class Relay:
    """Joins two legs; `handle` is the only way in, and the commands it returns the only way out."""

    def __init__(
        self,
        options: RelayOptions,
        *,
        token: Callable[[], str],
        plugin_filters: Sequence[Filter] = (),
        reporting: bool = False,
        remembered: Remembered | None = None,
        chance: Callable[[], float] = lambda: 1.0,
    ) -> None:
        """`token` makes unguessable texts, `chance` numbers from 0 up to 1 that spread restarts.

        `reporting` asks for an Emit of every frame and change. `remembered` holds the sessions of earlier
        runs; what becomes of them is told as commands.
        """
        self.findings = FindingLog()
        self.frames_received = 0
        self._options = options
        self._token = token
        self._reporting = reporting
        self._commands: list[Command] = []
        self._closed: dict[Role, bool] = {Role.CLIENT: False, Role.AGENT: False}
        self._gone: Json | None = None
        self._deadline: float | None = None
        self._translator: V2Client | None = None
        self._remembered = remembered if remembered is not None else Remembered()
        self._muted = False
        self._late: list[tuple[Role, Message]] = []
        rules = Rules(
            agent_initiated=options.agent_initiated,
            any_wait=options.requires_action == "any_wait",
            quiet_time=options.quiet_time,
            end_markers=options.end_markers,
            synonyms=options.synonyms,
        )
        # What is said of a closed session the watch tells as well, and there it can be repaired.
        self.engine = Engine(rules, FindingLog())
        snapshot = Snapshot()
        self._again = InitializeAgain(self._spoken)
        self._snapshot = snapshot
        self.negotiation = Negotiate(
            options, self.engine, self.findings, snapshot, self._bridge, self._settle, self._meet
        )
        self._observe = Observe(self.engine)
        self._watch = Watch(options.answer_grace)
        self._lifecycle = Lifecycle(
            self._watch,
            self.findings,
            token,
            mode=options.lifecycle,
            rules=options.rules,
            close_tools=options.close_tools,
            synonyms=options.synonyms,
            inference=rules,
        )
        self._intake = Intake(
            options.batch,
            walk=self._walk,
            answer=self._answer,
            note=self._note,
            report=self._report if reporting else None,
            divert=lambda raw: self._commands.append(Divert(raw)),
        )
        self._policy = Stages(options, self.engine, self.findings, token, chance)
        self._revival = self._policy.revival
        self._passage = Passage(
            self.engine,
            self._watch,
            may_pass=self._may_pass,
            count=self._count,
            send=lambda raw: self._send(Role.CLIENT, raw),
            take=lambda raw, number, at: self._intake.line(Role.AGENT, raw, number, at),
        )
        # Where lines of the agent end that may come as a Run.
        self.recognize: Recognize = self._passage.recognize
        self._restart_due = False
        filters: list[Filter] = [*self._policy.at_client, *plugin_filters]
        filters.append(snapshot)
        if reporting:
            filters.append(ToldStates(self._report_state))
        filters += [self._again, self.negotiation]
        filters += [*self._policy.before_engine, self._lifecycle, self._observe, *self._policy.at_agent]
        self._chain = Chain(filters, self._to_agent, self._to_client, self._restart, self._to_host)
        self._may_shortcut = not (
            plugin_filters or reporting or options.stall_after or options.agent_initiated != "ignore"
        )

    def handle(self, event: Event) -> list[Command]:
        """Take one event; return what is to be done, in order."""
        at = event.at
        if type(event) is FramesReceived:
            self._receive(event)
        elif type(event) is LegClosed:
            self._leg_closed(event)
        elif type(event) is Ending:
            self._end(event)
        elif type(event) is DeadlinePassed:
            self._deadline = None
            self._chain.expire(at)
        elif type(event) is HostSaid:
            self._host_said(event.message, at)
        elif type(event) is AgentRestarted and self._revival is not None:
            self._chain.say(self._revival, self._revival.started(at), at)
        if self._late:
            self._catch_up(at)
        if self._restart_due:
            self._restart_due = False
            self._replace_agent(at)
            self._catch_up(at)
        due = self._chain.next_deadline()
        if due != self._deadline:
            self._deadline = due
            self._commands.append(SetDeadline(due))
        if self._remembered.changed:
            for session_id, record in self._remembered.take():
                self._commands.append(
                    Remember(record) if record is not None else Forget(self._remembered.agent, session_id)
                )
        if self.findings.fresh:
            self._commands += map(Emit, self.findings.take())
        commands, self._commands = self._commands, []
        return commands

    # ------------------------------------------------------------ in

    def _may_pass(self, data: bytes) -> bool:
        """Whether text of the agent may go past the chain just now."""
        return self._is_up() and self._lifecycle.may_pass(data)

    def _is_up(self) -> bool:
        return self._revival is None or self._revival.up

    def _receive(self, event: FramesReceived) -> None:
        leg, at = event.leg, event.at
        for piece in event.lines:
            if type(piece) is bytes:
                self.frames_received += 1
                self._intake.line(leg, piece, self.frames_received, at)
            elif type(piece) is Run:
                self._passage.run(piece, at)
            else:
                assert type(piece) is Oversize
                self._intake.oversize(leg, piece, self._count(1), at)

    def _count(self, lines: int) -> int:
        """Count received lines; the number of the last of them."""
        self.frames_received += lines
        return self.frames_received

    def _walk(self, leg: Role, message: Message, at: float) -> None:
        if type(message) is Response and message.id is None and message.is_error:
            # It answers nothing, and clients have been seen to break on it (RA-26, BR-27, BR-51).
            self._note(
                at, "V51", leg, "error answer with id null", message.frame, "lifecycle 2.5", "repaired"
            )
        elif leg is Role.CLIENT:
            self._chain.forth(message, at)
        else:
            self._chain.back(message, at)
        if self._late:
            self._catch_up(at)

    def _catch_up(self, at: float) -> None:
        """Walk what had to wait for the walk that caused it: an effect must not overtake the rest of its cause."""
        while self._late:
            sender, message = self._late.pop(0)
            walk = self._chain.back if sender is Role.AGENT else self._chain.forth
            walk(message, at)

    # ------------------------------------------------------------ out

    def _to_agent(self, message: Message, at: float) -> None:
        if self._gone is not None:
            if type(message) is Request:
                gone = self._gone
                refusal = error(message.id, gone["code"], gone["message"], gone.get("data"))
                self._late.append((Role.AGENT, refusal))
            return
        if message.frame is not None and not self._reporting:
            self._send(Role.AGENT, message.frame.raw)
        else:
            self._answer(Role.AGENT, message, at)

    def _to_client(self, message: Message, at: float) -> None:
        if self._closed[Role.CLIENT] and type(message) is Request:
            self._late.append((Role.CLIENT, error(message.id, INTERNAL_ERROR, "the client has disconnected")))
            return
        if self._muted:
            return
        if message.frame is not None and not self._reporting:
            self._send(Role.CLIENT, message.frame.raw)
        else:
            self._answer(Role.CLIENT, message, at)

    def _to_host(self, step: ToHost, at: float) -> None:
        if self._closed[Role.CLIENT] and type(step.message) is Request:
            self._translated(error(step.message.id, INTERNAL_ERROR, "the client has disconnected"), at)
            return
        self._commands.append(Serve(step.message, step.cwd, step.directories))

    def _host_said(self, message: Message, at: float) -> None:
        """Once a leg is closed this is late: the agent was answered then, and the client is told nothing more."""
        if not any(self._closed.values()):
            self._translated(message, at)

    def _translated(self, message: Message, at: float) -> None:
        translator = self._translator
        assert translator is not None
        self._chain.say(translator, translator.host_said(message), at)

    def _answer(self, leg: Role, message: Message, at: float) -> None:
        """Encode, unless the message is still the frame it came as, and send."""
        frame = message.frame
        if frame is not None:
            raw = frame.raw
        else:
            try:
                raw = codec.encode(message.body)
            except codec.EncodeError as exc:
                self._unencodable(leg, message, str(exc), at)
                return
        if self._reporting:
            self._commands.append(
                Emit(FrameReport(at, leg, "out", raw, frame.number if frame is not None else None, message))
            )
        self._send(leg, raw)

    def _send(self, leg: Role, raw: bytes) -> None:
        commands = self._commands
        if commands:
            last = commands[-1]
            if type(last) is SendFrames and last.leg is leg:
                last.frames.append(raw)
                return
        commands.append(SendFrames(leg, [raw]))

    def _unencodable(self, leg: Role, message: Message, why: str, at: float) -> None:
        """A number such as 1e400 decodes to infinity, which JSON cannot carry."""
        self._note(at, "V42", leg.other, f"message cannot be encoded: {why}", None, "RFC 8259 §6", "refused")
        if type(message) is Response:
            # The id itself may be what cannot be written; then nobody can be told more than that.
            token = message.id if codec.is_encodable(message.id) else None
            self._answer(leg, error(token, INTERNAL_ERROR, f"answer cannot be encoded: {why}"), at)
        elif type(message) is Request:
            refusal = error(message.id, PARSE_ERROR, f"request cannot be encoded: {why}")
            self._late.append((leg, refusal))

    # ------------------------------------------------------------ ends

    def _leg_closed(self, event: LegClosed) -> None:
        if self._closed[event.leg]:
            return
        if event.leg is Role.AGENT:
            self._agent_gone(event)
        else:
            self._client_gone(event.at)

    def _agent_gone(self, event: LegClosed) -> None:
        """Everything the client still waits for fails, in the agent's name (lifecycle §2.3)."""
        gone: Json = {"code": INTERNAL_ERROR, "message": event.why}
        if event.data is not None:
            gone["data"] = event.data
        if self._revival is not None and not self._closed[Role.CLIENT]:
            delay = self._revival.delay_after_end(event.at)
            if delay is not None:
                self._await_agent(gone, delay, event.at)
                return
        self._closed[Role.AGENT] = True
        self._gone = gone
        if not self._closed[Role.CLIENT]:
            self._chain.agent_gone(self._gone, event.at)
        self._commands.append(CloseLeg(Role.CLIENT))

    def _client_gone(self, at: float) -> None:
        """Stop what the agent does for a client that has left, and let it have its answers."""
        self._closed[Role.CLIENT] = True
        self._lifecycle.end(at)
        # What the agent still says may be of use to a client that only closed its writing side;
        # what we would say here in the agent's name answers nobody.
        self._muted = True
        self._cancel_all(at)
        self._chain.client_gone(at)
        self._answer_agent(at)
        self._muted = False
        self._commands.append(CloseLeg(Role.AGENT))

    def _end(self, event: Ending) -> None:
        """Both sides learn it: the agent as if the client had left, the client as if the agent had."""
        if not self._closed[Role.AGENT]:
            # Past the engine: to the client this is an end of ours, not a cancel of its own.
            for session in list(self.engine.busy_sessions()):
                cancel = notification("session/cancel", {"sessionId": session.id})
                self._answer(Role.AGENT, cancel, event.at)
            if not self._closed[Role.CLIENT]:
                self._chain.agent_gone({"code": INTERNAL_ERROR, "message": event.why}, event.at)
            self._answer_agent(event.at)
            self._gone = {"code": INTERNAL_ERROR, "message": event.why}
        self._closed[Role.CLIENT] = self._closed[Role.AGENT] = True
        self._commands += [CloseLeg(Role.AGENT), CloseLeg(Role.CLIENT)]

    def _cancel_all(self, at: float) -> None:
        for session in list(self.engine.busy_sessions()):
            if self._watch.is_child(session.id):
                continue
            self._chain.forth(notification("session/cancel", {"sessionId": session.id}), at)

    def _answer_agent(self, at: float) -> None:
        for token, call in self.engine.from_agent.items():
            if call.method == "session/request_permission":
                answer = result(token, {"outcome": {"outcome": "cancelled"}})
            elif call.method == "elicitation/create":
                answer = result(token, {"action": "cancel"})
            else:
                answer = error(token, INTERNAL_ERROR, "the client has disconnected")
            self._chain.forth_from(self._observe, answer, at)

    def _restart(self) -> None:
        if self.negotiation.answered:
            self._restart_due = True
        else:
            self._commands.append(RestartLeg())

    def _replace_agent(self, at: float) -> None:
        """Start an agent anew that still runs, but is of no use: its work ends first."""
        revival = self._revival
        if revival is None or revival.absent or any(self._closed.values()):
            return
        delay = revival.delay(at)
        if delay is not None:
            gone = {"code": INTERNAL_ERROR, "message": "the agent is restarted, it did not respond"}
            self._await_agent(gone, delay, at)
        elif not revival.up:
            self._commands.append(CloseLeg(Role.AGENT))

    def _await_agent(self, gone: Json, delay: float, at: float) -> None:
        self._chain.agent_gone(gone, at)
        if self._translator is not None:
            self._translator.agent_awaited()
        self._commands.append(RestartLeg(delay))

    # ------------------------------------------------------------ negotiation

    def _meet(self, info: Json, version: Version) -> None:
        self._options, stage = meet(info, version, self._options, self.engine, self.findings)
        if stage is not None:
            self._chain.insert(stage, before=self._lifecycle)
        if self.engine.rules.agent_initiated != "ignore":
            self._may_shortcut = False  # outside a turn every chunk may begin one

    def _bridge(self, agreement: Agreement) -> Filter:
        return V2Client(
            agreement.client_params,
            agreement.agent_result,
            agreement.client_result,
            self._options,
            self.engine.sessions,
            self.findings,
            self._token,
            self._remembered,
            self._is_up,
        )

    def _settle(self, translator: Filter | None) -> None:
        self._chain.replace(self.negotiation, translator or self._policy.same_version)
        if self._chain.filters[0] is self._snapshot and not self._snapshot.wanted:
            self._chain.replace(self._snapshot, None)  # at the client's end a change ends by itself
        if translator is not None or self.engine.version is not Version.V2:
            self._spoken()
        agent_version = int(self.engine.version)
        client_version = min(self.negotiation.client_version or agent_version, 2)
        bridged = translator is not None
        self._watch.speak(client_version if bridged else agent_version, agent_version, bridged=bridged)
        self._translator = translator if isinstance(translator, V2Client) else None
        self._passage.settle(self._translator, opens=self._may_shortcut)

    def _spoken(self) -> None:
        """`initialize` can no longer be repeated, or never could."""
        if self._again in self._chain.filters:
            self._chain.replace(self._again, None)

    # ------------------------------------------------------------ notes

    def _note(
        self,
        at: float,
        rule: str,
        leg: Role,
        text: str,
        frame: Frame | None,
        source: str,
        action: str = "noted",
        *,
        ruled: bool = False,
    ) -> None:
        """`ruled`: the breach has one fixed answer; under observe that answer is no repair of ours."""
        chosen = self._lifecycle.action(rule, action) if ruled else action
        if chosen is not None:
            frames = (frame.number,) if frame is not None else ()
            self.findings.note(
                Finding(at, rule, leg.value, text, frames=frames, source=source, action=chosen)
            )

    def _report(self, at: float, leg: Role, direction: str, frame: Frame, message: Message | None) -> None:
        if self._reporting:
            self._commands.append(Emit(FrameReport(at, leg, direction, frame.raw, frame.number, message)))

    def _report_state(self, at: float, session_id: str, old: str, new: str, stop: str | None) -> None:
        self._commands.append(Emit(StateReport(at, session_id, old, new, stop)))
