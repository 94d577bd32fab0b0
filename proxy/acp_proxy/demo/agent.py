"""A small agent from before protocol v2, run as `python -m acp_proxy.demo.agent`.

It is a correct v1 agent: JSON-RPC, one object per line, requests on stdin, everything it says on stdout.
There is no model behind it; the text of a prompt picks one of the scripts in `scripts.py`. Run it by hand and
type a request to see what such an agent says. Just as telling is what v1 gives it no message for:

- that it has started to work: nothing happens until the first piece of output, however long that takes;
- that it has taken in the user's message: v1 neither echoes a message nor gives it an id;
- that all its work waits for the user: a permission request says that one tool waits, not that none moves;
- that it is idle: a turn ends with the response to `session/prompt`, known only to whoever sent that prompt.

A v2 client expects to be told all four. Source: lifecycle §2.4, bridge §11 (v1 shapes).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import sys
import threading
from typing import Any, BinaryIO

from acp_proxy.demo.scripts import SCRIPTS, Message, ModelError, Turn, explain

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002


class LegacyAgent:
    """Answers v1 requests line by line and keeps reading while turns run in threads of their own."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._lock = threading.Lock()
        self._sessions: list[str] = []
        self._turns: dict[str, Turn] = {}
        self._threads: list[threading.Thread] = []
        self._asked: dict[int, queue.SimpleQueue[Message]] = {}
        self._request_ids = itertools.count(1)
        self._closed = False

    def serve(self) -> None:
        """Work until stdin ends, then stop open turns as if each had been cancelled."""
        try:
            for line in self._incoming:
                if line.strip():
                    self._receive(line)
        finally:
            for turn in list(self._turns.values()):
                turn.cancelled.set()
            with self._lock:
                self._closed = True
                for answers in self._asked.values():
                    answers.put({})
            for thread in self._threads:
                thread.join()

    def notify(self, method: str, params: Message) -> None:
        """Send a notification; it needs no answer."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Message) -> queue.SimpleQueue[Message]:
        """Send a request to the client; its response arrives in the queue, `{}` if it never will."""
        answers: queue.SimpleQueue[Message] = queue.SimpleQueue()
        with self._lock:
            request_id = next(self._request_ids)
            self._asked[request_id] = answers
            if self._closed:
                answers.put({})
        self._send({"id": request_id, "method": method, "params": params})
        return answers

    def _send(self, message: Message) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        # A client that is gone is no failure of a turn: stdin ends as well and stops everything.
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._outgoing.write(line)
            self._outgoing.flush()

    def _refuse(self, request_id: Any, code: int, text: str) -> None:
        self._send({"id": request_id, "error": {"code": code, "message": text}})

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self._refuse(None, PARSE_ERROR, "not JSON")
            return
        if not isinstance(message, dict):
            self._refuse(None, INVALID_REQUEST, "not a JSON-RPC object")
            return
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        if "method" not in message:
            self._take_response(message)
        elif "id" in message:
            self._answer(message["id"], message["method"], params)
        elif message["method"] == "session/cancel":
            # The only notification it knows. Others are ignored, since a notification cannot be refused.
            self._cancel(params)

    def _take_response(self, message: Message) -> None:
        request_id = message.get("id")
        with self._lock:
            answers = self._asked.pop(request_id, None) if isinstance(request_id, int) else None
        if answers is not None:
            answers.put(message)

    def _answer(self, request_id: Any, method: str, params: Message) -> None:
        if method == "initialize":
            # Whatever the client offers, 1 is the only version there is; fields of v2 are not even looked at.
            result: Message = {
                "protocolVersion": 1,
                "agentCapabilities": {},
                "authMethods": [],
                "agentInfo": {"name": "legacy-demo-agent", "version": "1.0.0"},
            }
            self._send({"id": request_id, "result": result})
        elif method == "session/new":
            session_id = f"demo-{len(self._sessions) + 1}"
            self._sessions.append(session_id)
            self._send({"id": request_id, "result": {"sessionId": session_id}})
        elif method == "session/prompt":
            self._start_turn(request_id, params)
        else:
            self._refuse(request_id, METHOD_NOT_FOUND, f"no method {method}")

    def _start_turn(self, request_id: Any, params: Message) -> None:
        session_id = params.get("sessionId")
        prompt = params.get("prompt")
        if not isinstance(session_id, str) or not isinstance(prompt, list):
            self._refuse(request_id, INVALID_PARAMS, "sessionId and prompt are required")
        elif session_id not in self._sessions:
            self._refuse(request_id, RESOURCE_NOT_FOUND, "no such session")
        elif session_id in self._turns:
            self._refuse(request_id, INVALID_REQUEST, "the session already has a turn")
        else:
            text = "".join(block.get("text", "") for block in prompt if isinstance(block, dict))
            turn = Turn(session_id, self.notify, self.ask)
            self._turns[session_id] = turn
            thread = threading.Thread(target=self._run_turn, args=(request_id, turn, text))
            self._threads.append(thread)
            thread.start()

    def _run_turn(self, request_id: Any, turn: Turn, text: str) -> None:
        answer: Message
        try:
            SCRIPTS.get(text.strip(), explain)(turn)
            answer = {"result": {"stopReason": "cancelled" if turn.cancelled.is_set() else "end_turn"}}
        except ModelError as failure:
            answer = {"error": {"code": INTERNAL_ERROR, "message": str(failure)}}
        # Before the answer, because the next prompt may arrive the moment after it.
        del self._turns[turn.session_id]
        # This response is the only sign that the turn is over. No update says "idle".
        self._send({"id": request_id, **answer})

    def _cancel(self, params: Message) -> None:
        turn = self._turns.get(params.get("sessionId", ""))
        if turn is not None:
            turn.cancelled.set()


def main() -> int:
    """Serve stdin and stdout until the client closes."""
    try:
        LegacyAgent(sys.stdin.buffer, sys.stdout.buffer).serve()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
