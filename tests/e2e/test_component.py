"""`acp-proxy component` inside a conductor: one stream, a v2 client before it, a v1 agent behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COMMAND = (sys.executable, "-m", "acp_proxy", "component")


class Conductor:
    """The other end of the component's stream; speaks for both sides."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def say(self, **body: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def successor_says(self, update: dict[str, Any]) -> None:
        inner = {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
        self.say(method="proxy/successor", params=inner)


@contextmanager
def component() -> Iterator[Conductor]:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Conductor(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_v1_successor_is_a_v2_agent_to_the_client_of_the_conductor() -> None:
    with component() as conductor:
        params = {"protocolVersion": 2, "info": {"name": "c", "version": "1"}}
        conductor.say(id=1, method="proxy/initialize", params=params)
        offer = conductor.hear()
        assert (offer["method"], offer["params"]["method"]) == ("proxy/successor", "initialize")
        conductor.say(id=offer["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
        answer = conductor.hear()
        assert (answer["id"], answer["result"]["protocolVersion"]) == (1, 2)

        conductor.say(id=2, method="session/new", params={"cwd": "/p"})
        asked = conductor.hear()
        assert asked["params"] == {"method": "session/new", "params": {"cwd": "/p", "mcpServers": []}}
        conductor.say(id=asked["id"], result={"sessionId": "s1"})
        assert conductor.hear()["result"]["sessionId"] == "s1"

        prompt = {"sessionId": "s1", "prompt": [{"type": "text", "text": "go"}]}
        conductor.say(id=3, method="session/prompt", params=prompt)
        said = [conductor.hear(), conductor.hear()]
        asked = next(body for body in said if body["method"] == "proxy/successor")
        state = next(body for body in said if body["method"] == "session/update")
        assert state["params"]["update"]["state"] == "running"
        conductor.successor_says(
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
        )
        assert conductor.hear()["params"]["update"]["sessionUpdate"] == "user_message"
        assert conductor.hear()["id"] == 3
        assert conductor.hear()["params"]["update"]["messageId"] == "0-a1"

        permission = {
            "sessionId": "s1",
            "toolCall": {"toolCallId": "t", "title": "T"},
            "options": [{"optionId": "ok", "name": "Yes", "kind": "allow_once"}],
        }
        conductor.say(
            id=90,
            method="proxy/successor",
            params={"method": "session/request_permission", "params": permission},
        )
        question = conductor.hear()
        assert (question["method"], question["params"]["title"]) == ("session/request_permission", "T")
        assert conductor.hear()["params"]["update"]["state"] == "requires_action"
        conductor.say(id=question["id"], result={"outcome": {"outcome": "selected", "optionId": "ok"}})
        said = [conductor.hear(), conductor.hear()]
        assert {
            "jsonrpc": "2.0",
            "id": 90,
            "result": {"outcome": {"outcome": "selected", "optionId": "ok"}},
        } in said

        conductor.say(id=asked["id"], result={"stopReason": "end_turn"})
        assert conductor.hear()["params"]["update"]["stopReason"] == "end_turn"
