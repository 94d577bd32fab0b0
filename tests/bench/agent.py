"""The agent behind every benchmark: protocol version 1, standard library only, never the slowest process.

Run as ``python -S -E agent.py SCENARIO``. Scenarios, all numbers decimal:

    idle                      answers requests, sends no update
    chunks:COUNT:SIZE         COUNT `agent_message_chunk` lines of SIZE bytes each, newline included
    mixed:COUNT               COUNT tool, plan and usage updates
    tools:OPEN                OPEN tool calls opened, each updated twice, then each completed: 4 x OPEN lines
    sessions:COUNT:EACH       EACH chunks to each of COUNT sessions, in turn, once all of them have prompted

The prompt says which turn it is: text ``warm`` asks for a few lines of the scenario's kind, so that what runs
only once is over before a clock starts; any other text asks for the whole. Turns are built when the first
session is made, as blocks of lines with a number of repetitions: a million updates need no gigabyte.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable

BLOCK_BYTES = 262144
SIZE = 250
WARM_LINES = 200
WARM_BYTES = 4194304
PROSE = (
    "the relay reads what the agent wrote and hands it on without a second thought while nobody is waiting "
)
# What a file's content is on the wire: escapes and characters beyond ASCII, which no decoder just copies.
SOURCE = (
    "    return [entry for entry in entries if entry.name != \"naïve\"]  # — kept\n\tlog.debug('%s', names)\n"
    * 2
)

Json = dict[str, object]
Turn = list[tuple[bytes, int]]


def encode(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def update(session: str, body: Json) -> bytes:
    return encode(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": body}}
    )


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def chunk(session: str, size: int, number: int) -> bytes:
    """One `agent_message_chunk` line of exactly `size` bytes; neighbors differ."""
    room = size - len(update(session, {"sessionUpdate": "agent_message_chunk", "content": text("")}))
    start = number * 7 % len(PROSE)
    if room < 4096:
        words = (PROSE[start:] + PROSE * (room // len(PROSE) + 1))[:room]
    else:
        unit = len(json.dumps(SOURCE, ensure_ascii=False).encode()) - 2
        words = SOURCE * (room // unit) + PROSE[start : start + 1] * (room % unit)
    return update(session, {"sessionUpdate": "agent_message_chunk", "content": text(words)})


def chunks(session: str, count: int, size: int) -> Turn:
    lines = [chunk(session, size, number) for number in range(max(1, min(count, BLOCK_BYTES // size)))]
    return [(b"".join(lines), count // len(lines)), (b"".join(lines[: count % len(lines)]), 1)]


def tool_call(session: str, name: str) -> bytes:
    body: Json = {
        "sessionUpdate": "tool_call",
        "toolCallId": name,
        "title": "Read proxy.toml",
        "kind": "read",
    }
    locations = [{"path": "/project/proxy.toml", "line": 12}]
    return update(
        session, body | {"status": "pending", "locations": locations, "rawInput": {"path": "proxy.toml"}}
    )


def tool_update(session: str, name: str, status: str, content: Json | None = None) -> bytes:
    body: Json = {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": status}
    shown = content or {"type": "content", "content": text(PROSE[:60])}
    return update(session, body | {"content": [shown]})


def tools(session: str, count: int) -> Turn:
    names = [f"call-{number}" for number in range(count)]
    lines = [tool_call(session, name) for name in names]
    lines += [tool_update(session, name, "in_progress") for name in names] * 2
    lines += [tool_update(session, name, "completed") for name in names]
    return [(b"".join(lines), 1)]


def mixed(session: str, count: int) -> Turn:
    lines: list[bytes] = []
    for number in range(count // 5 + 1):
        name = f"call-{number}"
        diff: Json = {
            "type": "diff",
            "path": "/project/a.py",
            "oldText": "a = 1\nb = 2\n",
            "newText": "a = 1\nb = 3\n",
        }
        entry = {"content": f"step {number}", "priority": "medium", "status": "in_progress"}
        lines += [
            tool_call(session, name),
            tool_update(session, name, "in_progress"),
            tool_update(session, name, "completed", None if number % 8 else diff),
            update(session, {"sessionUpdate": "plan", "entries": [entry, {**entry, "content": "report"}]}),
            update(session, {"sessionUpdate": "usage_update", "used": 1000 + number, "size": 200000}),
        ]
    return [(b"".join(lines[:count]), 1)]


def session_name(number: int) -> str:
    return f"bench-{number}"


def interleaved(sessions: int, each: int) -> Turn:
    # The first session is the one that warmed up; the turn belongs to those after it.
    names = [session_name(number + 2) for number in range(sessions)]
    return [(b"".join(chunk(name, SIZE, number) for number in range(each) for name in names), 1)]


class Agent:
    """Answers one client on descriptors 0 and 1."""

    def __init__(self, scenario: str) -> None:
        self.kind, *numbers = scenario.split(":")
        self.numbers = [int(number) for number in numbers]
        self.sessions = 0
        self.warm: Turn = []
        self.turn: Turn = []
        self.waiting: list[object] = []

    def write(self, turn: Iterable[tuple[bytes, int]]) -> None:
        for block, repetitions in turn:
            for _ in range(repetitions if block else 0):
                rest = memoryview(block)
                while rest:
                    rest = rest[os.write(1, rest) :]

    def build(self) -> None:
        first = session_name(1)
        size = self.numbers[-1] if self.numbers else 0
        if self.kind == "chunks":
            self.warm = chunks(first, min(WARM_LINES, WARM_BYTES // size + 1), size)
            self.turn = chunks(first, self.numbers[0], size)
        elif self.kind == "mixed":
            self.warm, self.turn = mixed(first, WARM_LINES), mixed(first, self.numbers[0])
        elif self.kind == "tools":
            self.warm, self.turn = tools(first, WARM_LINES // 4), tools(first, self.numbers[0])
        elif self.kind == "sessions":
            self.warm = chunks(first, WARM_LINES, SIZE)
            self.turn = interleaved(self.numbers[0], size)

    def prompted(self, request: Json) -> None:
        """Run the turn, then answer every prompt it answers."""
        params = request["params"]
        warm = isinstance(params, dict) and params["prompt"][0]["text"] == "warm"
        self.waiting.append(request["id"])
        if not warm and self.kind == "sessions" and len(self.waiting) < self.numbers[0]:
            return
        self.write(self.warm if warm else self.turn)
        results = [
            {"jsonrpc": "2.0", "id": each, "result": {"stopReason": "end_turn"}} for each in self.waiting
        ]
        self.write([(b"".join(map(encode, results)), 1)])
        self.waiting.clear()

    def handle(self, request: Json) -> None:
        method = request.get("method")
        if "id" not in request:
            return
        if method == "session/prompt":
            self.prompted(request)
            return
        answer: Json = {"jsonrpc": "2.0", "id": request["id"]}
        if method == "_bench/echo":
            answer["result"] = request["params"]
        elif method == "initialize":
            answer["result"] = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
        elif method == "session/new":
            self.sessions += 1
            if self.sessions == 1:
                self.build()
            answer["result"] = {"sessionId": session_name(self.sessions)}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        self.write([(encode(answer), 1)])


def main() -> None:
    agent = Agent(sys.argv[1])
    try:
        for line in sys.stdin.buffer:
            agent.handle(json.loads(line))
    except (BrokenPipeError, KeyboardInterrupt):
        return


if __name__ == "__main__":
    main()
