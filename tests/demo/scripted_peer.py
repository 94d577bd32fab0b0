"""A v2 agent that plays what the proxy would send, for tests of the demo: `python scripted_peer.py [FAULT]`.

FAULT is one thing it does wrong: `blind` (never says requires_action), `unmarked`, `wrong_end`, `gone` (exits
in the second turn), `stubborn` (exit status 3).
"""

from __future__ import annotations

import json
import sys
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
MARK = {} if FAULT == "unmarked" else {"_meta": {"acp-proxy": {"synthetic": True}}}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    message: dict[str, Any] = json.loads(sys.stdin.readline())
    return message


def update(kind: str, **fields: Any) -> None:
    mark = MARK if kind == "state_update" else {}
    params = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}, **mark}
    send(method="session/update", params=params)


def state(name: str, **fields: Any) -> None:
    update("state_update", state=name, **fields)


def say(text: str) -> None:
    update("agent_message_chunk", messageId="0-a1", content={"type": "text", "text": text})


def tool(tool_id: str, status: str, **fields: Any) -> None:
    update("tool_call_update", toolCallId=tool_id, status=status, **fields)


def ask(tool_id: str, title: str) -> None:
    options = [
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    ]
    subject = {"type": "tool_call", "toolCall": {"toolCallId": tool_id}}
    params = {"sessionId": "s", "title": title, "options": options, "subject": subject}
    send(id=1, method="session/request_permission", params=params)


def block_on_answer() -> None:
    if FAULT != "blind":
        state("requires_action")
    assert receive()["result"] == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    state("running")


def play(prompt: str) -> None:
    if prompt == "text":
        say("I know ")
        say("v1 only.")
        state("idle", stopReason="refusal" if FAULT == "wrong_end" else "end_turn")
    elif prompt == "permission":
        tool("t1", "pending", title="Delete")
        ask("t1", "Delete")
        block_on_answer()
        tool("t1", "completed")
        state("idle", stopReason="end_turn")
    elif prompt == "parallel":
        tool("t1", "in_progress", title="Search")
        tool("t2", "in_progress", title="Test")
        ask("t2", "Test")
        tool("t1", "completed")
        block_on_answer()
        tool("t2", "completed")
        state("idle", stopReason="end_turn")
    elif prompt == "cancel":
        say("Thinking...")
        assert receive() == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
        say("Thinking...")
        say("Stopped.")
        state("idle", stopReason="cancelled")
    else:
        say("Let me see.")
        state("idle", stopReason="error", error={"code": -32603, "message": "model unavailable"})


def main() -> int:
    turns = 0
    for line in sys.stdin:
        request = json.loads(line)
        request_id, method, params = request["id"], request["method"], request["params"]
        if method == "initialize":
            send(id=request_id, result={"protocolVersion": 2, "info": {"name": "p", "version": "1"}})
        elif method == "session/new":
            send(id=request_id, result={"sessionId": "s"})
        else:
            turns += 1
            if FAULT == "gone" and turns == 2:
                print("agent ran out of luck", file=sys.stderr)
                return 7
            state("running")
            update("user_message", messageId=f"0-u{turns}", content=params["prompt"])
            send(id=request_id, result={"messageId": f"0-u{turns}"})
            play(params["prompt"][0]["text"])
    return 3 if FAULT == "stubborn" else 0


if __name__ == "__main__":
    raise SystemExit(main())
