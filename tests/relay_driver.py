"""Drives a Relay without input or output: lines in, lines out, and a clock that only tests move.

`story` puts what went out into short words, so that a test reads like the traces it was made from.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import Filter
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc.framing import LineSplitter, Oversize
from acp_proxy.jsonrpc.message import classify
from acp_proxy.relay.commands import (
    CloseLeg,
    Command,
    Divert,
    Emit,
    RestartLeg,
    SendFrames,
    Serve,
    SetDeadline,
)
from acp_proxy.relay.events import AgentRestarted, DeadlinePassed, Event, FramesReceived, HostSaid, LegClosed
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay

Json = dict[str, Any]

CLIENT_INFO = {"name": "editor", "version": "1"}
AGENT_INFO = {"name": "agent", "version": "1"}


def line(body: Any) -> bytes:
    """A body as SDKs write it: compact, UTF-8."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def tell(body: Json) -> str:
    """One message in a few words: a state, an update's tag, an answer, a call."""
    if "method" in body:
        params = body.get("params") or {}
        if body["method"] == "session/update":
            update = params["update"]
            if update["sessionUpdate"] == "state_update":
                return " ".join(str(update[key]) for key in ("state", "stopReason") if key in update)
            return str(update["sessionUpdate"])
        if "id" in body:
            return f"{body['method']} #{body['id']}"
        if body["method"] == "$/cancel_request":
            return f"withdraw {params['requestId']}"
        return str(body["method"])
    if "error" in body:
        return f"error {body['id']} {body['error']['code']}"
    return f"answer {body['id']}"


def story(bodies: Iterable[Json]) -> list[str]:
    """Messages in words."""
    return [tell(body) for body in bodies]


class Said:
    """What the relay did in one step: the lines of both legs in one order, and the commands themselves."""

    def __init__(self, commands: list[Command]) -> None:
        self.commands = commands
        self.lines = [
            (command.leg, raw)
            for command in commands
            if isinstance(command, SendFrames)
            for frame in command.frames
            for raw in frame.split(b"\n")  # a run of lines leaves in one piece
        ]

    def raw(self, leg: Role) -> list[bytes]:
        return [raw for to, raw in self.lines if to is leg]

    @property
    def client(self) -> list[Json]:
        """What went to the client, decoded."""
        return [json.loads(raw) for raw in self.raw(Role.CLIENT)]

    @property
    def agent(self) -> list[Json]:
        """What went to the agent, decoded."""
        return [json.loads(raw) for raw in self.raw(Role.AGENT)]

    @property
    def both(self) -> list[str]:
        """What went out on both legs in its order: `C` toward the client, `A` toward the agent."""
        return [f"{'C' if to is Role.CLIENT else 'A'} {tell(json.loads(raw))}" for to, raw in self.lines]

    @property
    def findings(self) -> list[Finding]:
        """The findings told of in this step."""
        return [c.report for c in self.commands if isinstance(c, Emit) and isinstance(c.report, Finding)]

    @property
    def rules(self) -> list[str]:
        """Their rule ids."""
        return [finding.rule for finding in self.findings]

    @property
    def diverted(self) -> list[bytes]:
        """What was shown on stderr instead."""
        return [command.raw for command in self.commands if isinstance(command, Divert)]

    @property
    def served(self) -> list[Serve]:
        """What was handed to the host."""
        return [command for command in self.commands if isinstance(command, Serve)]

    @property
    def restarts(self) -> int:
        return sum(isinstance(command, RestartLeg) for command in self.commands)

    @property
    def delays(self) -> list[float]:
        """The waits before the restarts, in seconds."""
        return [command.delay for command in self.commands if isinstance(command, RestartLeg)]

    @property
    def closed(self) -> list[Role]:
        return [command.leg for command in self.commands if isinstance(command, CloseLeg)]


class Driver:
    """A relay under test."""

    def __init__(self, *, filters: tuple[Filter, ...] = (), reporting: bool = False, **options: Any) -> None:
        tokens = (f"tok{number}" for number in itertools.count(1))
        self.relay = Relay(
            RelayOptions(**options),
            token=lambda: next(tokens),
            plugin_filters=filters,
            reporting=reporting,
        )
        self.at = 100.0
        self.deadline: float | None = None
        self.said: list[Said] = []
        self._splitter = LineSplitter(1 << 25)

    # ------------------------------------------------------------ in

    def client_sends(self, *bodies: Any) -> Said:
        return self.lines(Role.CLIENT, *map(line, bodies))

    def agent_sends(self, *bodies: Any) -> Said:
        return self.agent_writes(b"".join(line(body) + b"\n" for body in bodies))

    def agent_writes(self, data: bytes) -> Said:
        """Bytes of the agent's stdout, read at once and cut as the transport cuts them."""
        pieces = self._splitter.feed(data, self.relay.recognize)
        return self._handle(FramesReceived(Role.AGENT, pieces, self.at))

    def lines(self, leg: Role, *lines: bytes | Oversize) -> Said:
        """Raw lines, read at once but each for itself."""
        return self._handle(FramesReceived(leg, list(lines), self.at))

    def host_says(self, body: Json) -> Said:
        """What comes of a Serve: an answer under its id, or an update."""
        message = classify(body)
        assert message is not None
        return self._handle(HostSaid(message, self.at))

    def client_leaves(self) -> Said:
        return self._handle(LegClosed(Role.CLIENT, self.at))

    def agent_exits(self, why: str = "the agent exited with status 1", data: Any = None) -> Said:
        return self._handle(LegClosed(Role.AGENT, self.at, why, data))

    def agent_returns(self) -> Said:
        """A new process runs in the place of the one that is gone."""
        return self._handle(AgentRestarted(self.at))

    def advance(self, seconds: float) -> Said:
        """Let time pass; every deadline on the way is kept at its moment."""
        until = self.at + seconds
        commands: list[Command] = []
        while self.deadline is not None and self.deadline <= until:
            self.at = max(self.at, self.deadline)
            self.deadline = None
            commands += self._handle(DeadlinePassed(self.at)).commands
        self.at = until
        return Said(commands)

    def _handle(self, event: Event) -> Said:
        said = Said(self.relay.handle(event))
        for command in said.commands:
            if isinstance(command, SetDeadline):
                self.deadline = command.at
        self.said.append(said)
        return said

    # ------------------------------------------------------------ out

    @property
    def outputs(self) -> Said:
        """All that was done since the start."""
        return Said([command for said in self.said for command in said.commands])

    def agent_id(self, method: str) -> Any:
        """The id of the latest request with this method that the agent was sent."""
        return [body["id"] for body in self.outputs.agent if body.get("method") == method][-1]

    def client_id(self, method: str) -> Any:
        """The id of the latest request with this method that the client was sent."""
        return [body["id"] for body in self.outputs.client if body.get("method") == method][-1]

    # ------------------------------------------------------------ turns of a bridged session

    def prompt(self, request_id: Any = 7, text: str = "go", session: str = "s1") -> Said:
        return self.client_sends(prompt(request_id, text, session))

    def ends(self, reason: str | None = "end_turn", **more: Any) -> Said:
        """The agent answers the latest prompt it was sent."""
        return self.agent_sends(
            answer(self.agent_id("session/prompt"), {**({"stopReason": reason} if reason else {}), **more})
        )

    def fails(self, method: str, code: int, text: str = "no", data: Any = None) -> Said:
        """The agent refuses the latest request of this method."""
        return self.agent_sends(failure(self.agent_id(method), code, text, data))

    def answers(self, method: str, result: Any) -> Said:
        """The agent answers the latest request of this method."""
        return self.agent_sends(answer(self.agent_id(method), result))


# ---------------------------------------------------------------- openings


def initialize_v1(request_id: Any = 0, version: Any = 1, **more: Any) -> Json:
    params = {"protocolVersion": version, "clientInfo": CLIENT_INFO, "clientCapabilities": {}, **more}
    return call(request_id, "initialize", params)


def initialize_v2(request_id: Any = 0, version: Any = 2, **capabilities: Any) -> Json:
    params = {"protocolVersion": version, "info": CLIENT_INFO, "capabilities": capabilities}
    return call(request_id, "initialize", params)


def v1_result(version: Any = 1, **capabilities: Any) -> Json:
    return {
        "protocolVersion": version,
        "agentInfo": AGENT_INFO,
        "agentCapabilities": capabilities,
        "authMethods": [],
    }


V2_RESULT = {"protocolVersion": 2, "info": AGENT_INFO, "capabilities": {"session": {}}, "authMethods": []}
EVERYTHING = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
}


def bridged(
    *,
    agent: Json | None = None,
    client: Json | None = None,
    session: bool = True,
    result: Json | None = None,
    **options: Any,
) -> Driver:
    """A v2 client and a v1 agent that have agreed; with `session`, `s1` in `/p` is open."""
    driver = Driver(**options)
    driver.client_sends(initialize_v2(0, **(client or {})))
    driver.agent_sends(answer(0, v1_result(**(agent or {}))))
    if session:
        driver.client_sends(call(1, "session/new", {"cwd": "/p", "mcpServers": []}))
        driver.answers("session/new", {"sessionId": "s1", **(result or {})})
    return driver


def both_v1(*, session: bool = True, client: Json | None = None, **options: Any) -> Driver:
    """A v1 client and a v1 agent that have agreed."""
    driver = Driver(**options)
    driver.client_sends(initialize_v1(0, **(client or {})))
    driver.agent_sends(answer(0, v1_result()))
    if session:
        driver.client_sends(call(1, "session/new", {"cwd": "/p", "mcpServers": []}))
        driver.agent_sends(answer(1, {"sessionId": "s1"}))
    return driver


def both_v2(**options: Any) -> Driver:
    """A v2 client and a v2 agent that have agreed."""
    driver = Driver(**options)
    driver.client_sends(initialize_v2(0))
    driver.agent_sends(answer(0, V2_RESULT))
    return driver


# ---------------------------------------------------------------- words


def call(request_id: Any, method: str, params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def note(method: str, params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(request_id: Any, result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: Any, code: Any, text: Any = "no", data: Any = None) -> Json:
    error = {"code": code, "message": text, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def prompt(request_id: Any, text: str = "go", session: str = "s1") -> Json:
    return call(request_id, "session/prompt", {"sessionId": session, "prompt": [text_block(text)]})


def cancel(session: str = "s1") -> Json:
    return note("session/cancel", {"sessionId": session})


def withdraw(request_id: Any) -> Json:
    return note("$/cancel_request", {"requestId": request_id})


def update(tag: str, session: str = "s1", **fields: Any) -> Json:
    return note("session/update", {"sessionId": session, "update": {"sessionUpdate": tag, **fields}})


def message(text: str = "hi", **more: Any) -> Json:
    return update("agent_message_chunk", content=text_block(text), **more)


def thought(text: str = "hm", **more: Any) -> Json:
    return update("agent_thought_chunk", content=text_block(text), **more)


def echo(text: str = "go", **more: Any) -> Json:
    return update("user_message_chunk", content=text_block(text), **more)


def usage(**more: Any) -> Json:
    return update("usage_update", **{"used": 9, "size": 99, **more})


def tool(tool_id: str, status: str, **more: Any) -> Json:
    return update("tool_call", toolCallId=tool_id, status=status, **{"title": "t", **more})


def tool_update(tool_id: str, status: str, **more: Any) -> Json:
    return update("tool_call_update", toolCallId=tool_id, status=status, **more)


OPTIONS = [
    {"optionId": "ok", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def ask(request_id: Any = 90, tool_id: str = "k", session: str = "s1", **more: Any) -> Json:
    params = {"sessionId": session, "toolCall": {"toolCallId": tool_id}, "options": OPTIONS, **more}
    return call(request_id, "session/request_permission", params)


def selected(request_id: Any, option: str = "ok") -> Json:
    return answer(request_id, {"outcome": {"outcome": "selected", "optionId": option}})


def dismissed(request_id: Any) -> Json:
    return answer(request_id, {"outcome": {"outcome": "cancelled"}})


def form(request_id: Any = 91, **scope: Any) -> Json:
    """A request-scoped or session-scoped elicitation."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": "?", "mode": "form", "requestedSchema": schema, **(scope or {"sessionId": "s1"})}
    return call(request_id, "elicitation/create", params)
