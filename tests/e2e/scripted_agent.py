"""An agent that does what its script says; standard library only, run as `python -S -E scripted_agent.py SCRIPT`.

SCRIPT is a JSON object, or `@FILE` with one in it:

    journal   file to append to: what was received and what happened, one JSON object a line
    version   1 (default) or 2: the dialect of the answers it knows by itself
    agent     capabilities for the initialize result
    on        what to do at an event, instead of what it does by itself; see below

Events are `start`, `end` (stdin is at its end), a method's name, or for prompts `session/prompt TEXT` with the
text of the first block. The value is a list of steps, or `{"each": [steps, ...]}`: the first time the first
list, and so on, the last one from then on. A step is a list of a verb and its arguments:

    reply [RESULT]          answer the request at hand; without RESULT as it would by itself
    fail CODE [TEXT]        answer it with an error
    update UPDATE           session/update in the session at hand
    notify METHOD PARAMS    a notification
    ask METHOD PARAMS [ID]  a request; go on when it is answered
    call METHOD PARAMS [ID] a request; go on at once
    send MESSAGE            a whole message
    raw TEXT                bytes as they are (TEXT holds them as latin-1), nothing added
    flood COUNT SIZE        COUNT message chunks of SIZE characters
    sleep SECONDS           go on later; other events are taken meanwhile
    await METHOD            go on when a message with this method comes
    stop                    go on never
    deaf                    read no more from stdin
    stderr TEXT             write there
    mark WORD               note it in the journal
    spawn KIND              a process that outlives us: `child`, `immune` (to SIGTERM), `setsid`
    ignore SIGNAL           survive it and note it in the journal
    close NAME              close `stdout` or `stdin`
    kill SIGNAL             send ourselves a signal
    exit STATUS             end at once

In MESSAGE, PARAMS, RESULT and UPDATE the strings `$id`, `$session` and `$text` stand for those of the message
at hand. Journal entries: `{"in": LINE}` (latin-1; a line over 64 KiB as its `head`, `size` and `sha256`),
`{"pid": N, "who": KIND}`, `{"mark": WORD}`, `{"signal": NAME}`, `{"end": true}`.

A line is in the journal as soon as it has arrived, whatever the script is busy with.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

Json = dict[str, Any]
Wait = tuple[str, Any]

LONG_LINE = 65536
SESSION_METHODS = {"session/prompt", "session/close", "session/set_mode", "session/set_config_option"}
NOTHING: Json = {}


def text_of(message: Json) -> str:
    """The text of a prompt's first block."""
    params = message.get("params")
    blocks = params.get("prompt") if isinstance(params, dict) else None
    first = blocks[0] if isinstance(blocks, list) and blocks else None
    text = first.get("text") if isinstance(first, dict) else None
    return text if isinstance(text, str) else ""


def filled(value: Any, words: Json) -> Any:
    """The value with the `$` words replaced."""
    if isinstance(value, str):
        return words.get(value, value)
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, words) for key, item in value.items()}
    return value


class ScriptedAgent:
    """Runs step lists as generators; one waits while others go on."""

    def __init__(self, script: Json) -> None:
        self._on: Json = script.get("on", {})
        self._version = script.get("version", 1)
        self._capabilities = script.get("agent", {})
        path = script.get("journal")
        self._journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if path else -1
        self._incoming: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._deaf = threading.Event()
        self._seen: dict[str, int] = {}
        self._ids = itertools.count(1)
        self._sessions: set[Any] = set()
        self._waiting: list[tuple[Wait, Generator[Wait, None, None]]] = []
        self._timers: list[tuple[float, int, Generator[Wait, None, None]]] = []

    def run(self) -> None:
        """Work until a script says otherwise or stdin ends."""
        self._note(pid=os.getpid(), who="agent")
        self._event("start", NOTHING)
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            patience = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            try:
                line = self._incoming.get(timeout=patience)
            except queue.Empty:
                self._go_on(heapq.heappop(self._timers)[2])
                continue
            if line is not None:
                self._take(line)
            elif not self._event("end", NOTHING):
                os._exit(0)

    # ------------------------------------------------------------ in

    def _read(self) -> None:
        rest = b""
        while not self._deaf.is_set():
            try:
                data = os.read(0, 1 << 20)
            except OSError:
                data = b""
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._note_line(line)
                self._incoming.put(line)
        if not self._deaf.is_set():
            if rest:
                self._note_line(rest)
            self._note(end=True)
            self._incoming.put(None)

    def _note_line(self, line: bytes) -> None:
        if len(line) <= LONG_LINE:
            self._note(**{"in": line.decode("latin-1")})
        else:
            head = line[:200].decode("latin-1")
            self._note(head=head, size=len(line), sha256=hashlib.sha256(line).hexdigest())

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        method = message.get("method")
        if not isinstance(method, str):
            self._wake(("answer", json.dumps(message.get("id"))))
            return
        self._wake(("method", method))
        special = f"{method} {text_of(message)}"
        if self._event(special if special in self._on else method, message):
            return
        if "id" in message:
            self._start([*self._by_itself(message)], message)

    def _event(self, name: str, message: Json) -> bool:
        steps = self._on.get(name)
        if steps is None:
            return False
        if isinstance(steps, dict):
            lists = steps["each"]
            count = self._seen.get(name, 0)
            self._seen[name] = count + 1
            steps = lists[min(count, len(lists) - 1)]
        self._start(steps, message)
        return True

    # ------------------------------------------------------------ steps

    def _start(self, steps: list[Any], message: Json) -> None:
        self._go_on(self._steps(steps, message))

    def _go_on(self, running: Generator[Wait, None, None]) -> None:
        wait = next(running, None)
        if wait is None:
            return
        if wait[0] == "time":
            heapq.heappush(self._timers, (time.monotonic() + wait[1], next(self._ids), running))
        else:
            self._waiting.append((wait, running))

    def _wake(self, event: Wait) -> None:
        due = [running for wait, running in self._waiting if wait == event]
        self._waiting = [(wait, running) for wait, running in self._waiting if wait != event]
        for running in due:
            self._go_on(running)

    def _steps(self, steps: list[Any], message: Json) -> Generator[Wait, None, None]:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        words = {"$id": message.get("id"), "$session": params.get("sessionId"), "$text": text_of(message)}
        for verb, *given in steps:
            arguments = filled(given, words)
            if verb in ("ask", "call"):
                method, asked, *own_id = arguments
                token = own_id[0] if own_id else f"q{next(self._ids)}"
                self._send({"id": token, "method": method, "params": asked})
                if verb == "ask":
                    yield ("answer", json.dumps(token))
            elif verb == "sleep":
                yield ("time", arguments[0])
            elif verb == "await":
                yield ("method", arguments[0])
            elif verb == "stop":
                yield ("never", None)
            elif verb in ("reply", "fail") and "id" not in message:
                continue  # the script was written for a request, but this is a notification
            elif verb == "reply":
                result = arguments[0] if arguments else self._result(str(message.get("method")), params)
                self._send({"id": message.get("id"), "result": result})
            elif verb == "fail":
                code, *text = arguments
                error = {"code": code, "message": text[0] if text else "scripted"}
                self._send({"id": message.get("id"), "error": error})
            elif verb == "update":
                body = {"sessionId": words["$session"], "update": arguments[0]}
                self._send({"method": "session/update", "params": body})
            elif verb == "notify":
                self._send({"method": arguments[0], "params": arguments[1]})
            else:
                self._do(verb, arguments, words["$session"])

    def _do(self, verb: str, arguments: list[Any], session: Any) -> None:
        if verb == "send":
            self._send(arguments[0])
        elif verb == "raw":
            self._write(arguments[0].encode("latin-1"))
        elif verb == "flood":
            count, size = arguments
            chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * size}}
            body = {"method": "session/update", "params": {"sessionId": session, "update": chunk}}
            line = json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n"
            block = max(1, 65536 // len(line))
            for _ in range(count // block):
                self._write(line * block)
            self._write(line * (count % block))
        elif verb == "stderr":
            os.write(2, arguments[0].encode())
        elif verb == "mark":
            self._note(mark=arguments[0])
        elif verb == "spawn":
            self._spawn(arguments[0])
        elif verb == "ignore":
            name = arguments[0]
            signal.signal(getattr(signal, name), lambda *_: self._note(signal=name))
        elif verb == "deaf":
            self._deaf.set()
        elif verb == "close":
            os.close({"stdin": 0, "stdout": 1}[arguments[0]])
        elif verb == "kill":
            os.kill(os.getpid(), getattr(signal, arguments[0]))
        elif verb == "exit":
            os._exit(arguments[0])
        else:
            raise ValueError(f"no such step: {verb}")

    def _spawn(self, kind: str) -> None:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            if kind == "immune":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            elif kind == "setsid":
                os.setsid()
                if os.fork():
                    os._exit(0)
            self._note(pid=os.getpid(), who=kind)
            os.write(writer, b"!")
            time.sleep(600)
            os._exit(0)
        os.read(reader, 1)  # go on only when it is what it shall be, and its pid is known
        os.close(reader)
        os.close(writer)
        if kind == "setsid":
            os.waitpid(pid, 0)

    # ------------------------------------------------------------ out

    def _send(self, message: Json) -> None:
        body = message if "jsonrpc" in message else {"jsonrpc": "2.0", **message}
        self._write(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def _note(self, **entry: Any) -> None:
        if self._journal >= 0:
            os.write(self._journal, json.dumps(entry).encode() + b"\n")

    # ------------------------------------------------------------ what it does by itself

    def _by_itself(self, message: Json) -> Generator[list[Any], None, None]:
        method = message["method"]
        params = message.get("params")
        session = params.get("sessionId") if isinstance(params, dict) else None
        if method in SESSION_METHODS and (type(session) is not str or session not in self._sessions):
            yield ["fail", -32002, "no such session"]
        elif method != "session/prompt":
            known = self._result(method, params if isinstance(params, dict) else {})
            yield ["reply", known] if known is not None else ["fail", -32601, "no such method"]
        elif self._version == 1:
            yield ["update", {"sessionUpdate": "agent_message_chunk", "content": TEXT}]
            yield ["reply", {"stopReason": "end_turn"}]
        else:
            name = f"m{next(self._ids)}"
            yield ["update", {"sessionUpdate": "state_update", "state": "running"}]
            yield ["update", {"sessionUpdate": "user_message", "messageId": name, "content": [TEXT]}]
            yield ["reply", {"messageId": name}]
            yield [
                "update",
                {"sessionUpdate": "agent_message_chunk", "messageId": name + "a", "content": TEXT},
            ]
            yield ["update", {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}]

    def _result(self, method: str, params: Json) -> Any:
        if method == "initialize":
            about = {"name": "scripted", "version": "1"}
            if self._version == 1:
                known = {"agentInfo": about, "agentCapabilities": self._capabilities}
            else:
                known = {"info": about, "capabilities": {"session": {}, **self._capabilities}}
            return {"protocolVersion": self._version, **known, "authMethods": []}
        if method in ("session/new", "session/fork"):
            name = f"s{len(self._sessions) + 1}"
            self._sessions.add(name)
            return {"sessionId": name}
        if method in ("session/load", "session/resume"):
            if isinstance(params.get("sessionId"), str):
                self._sessions.add(params["sessionId"])
            return {}
        if method == "session/prompt":
            return {"stopReason": "end_turn"}
        if method == "session/list":
            return {"sessions": []}
        if method == "session/set_config_option":
            return {"configOptions": []}
        empty = {"authenticate", "logout", "auth/login", "auth/logout", "session/close", "session/delete"}
        return {} if method in empty or method == "session/set_mode" or method.startswith("_") else None


TEXT = {"type": "text", "text": "hello"}


if __name__ == "__main__":
    wanted = sys.argv[1]
    if wanted.startswith("@"):
        with open(wanted[1:], encoding="utf-8") as file:
            wanted = file.read()
    ScriptedAgent(json.loads(wanted)).run()
