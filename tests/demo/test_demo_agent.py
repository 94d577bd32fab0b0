"""The bundled v1 agent, driven as a process by a raw v1 client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from acp_proxy.demo.scenarios import SCENARIOS
from acp_proxy.demo.scripts import SCRIPTS

Message = dict[str, Any]


class RawClient:
    """Writes lines, reads lines."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "acp_proxy.demo.agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.session_id = ""

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def receive(self) -> Message:
        assert self.process.stdout is not None
        message: Message = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def call(self, request_id: int, method: str, params: Message) -> Message:
        self.send(id=request_id, method=method, params=params)
        return self.receive()

    def open(self) -> None:
        answer = self.call(1, "session/new", {"cwd": "/", "mcpServers": []})
        self.session_id = answer["result"]["sessionId"]

    def prompt(self, text: str, request_id: int = 2) -> None:
        blocks = [{"type": "text", "text": text}]
        params = {"sessionId": self.session_id, "prompt": blocks}
        self.send(id=request_id, method="session/prompt", params=params)

    def cancel(self) -> None:
        self.send(method="session/cancel", params={"sessionId": self.session_id})

    def answer(self, request: Message, outcome: Message) -> None:
        assert request["method"] == "session/request_permission"
        self.send(id=request["id"], result={"outcome": outcome})

    def update(self) -> str:
        """The next update, shortened to its gist."""
        message = self.receive()
        assert message["method"] == "session/update", message
        assert message["params"]["sessionId"] == self.session_id
        update = message["params"]["update"]
        if "content" in update:
            return f"{update['sessionUpdate']} {update['content']['text'].strip()}"
        return f"{update['sessionUpdate']} {update['toolCallId']} {update['status']}"

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(10)
        self.process.stdout.close()
        return status


ALLOW = {"outcome": "selected", "optionId": "yes"}
REJECT = {"outcome": "selected", "optionId": "no"}
CANCELLED = {"outcome": "cancelled"}


@pytest.fixture
def client() -> Iterator[RawClient]:
    client = RawClient()
    try:
        client.open()
        yield client
    finally:
        client.process.kill()
        client.close()


def test_there_is_a_script_for_every_scenario() -> None:
    assert [scenario.prompt for scenario in SCENARIOS] == list(SCRIPTS)


def test_an_offer_of_version_2_is_answered_with_version_1(client: RawClient) -> None:
    offer = {"protocolVersion": 2, "info": {"name": "c", "version": "1"}, "capabilities": {}}
    result = client.call(5, "initialize", offer)["result"]
    assert result["protocolVersion"] == 1
    assert "info" not in result
    assert "capabilities" not in result


@pytest.mark.parametrize(
    ("line", "request_id", "code"),
    [
        ("{", None, -32700),
        ("[]", None, -32600),
        ('{"id": 4, "method": "session/resume", "params": {}}', 4, -32601),
        ('{"id": 4, "method": "session/prompt", "params": []}', 4, -32602),
        ('{"id": 4, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}', 4, -32002),
    ],
)
def test_what_it_does_not_understand_gets_an_error(
    client: RawClient, line: str, request_id: int | None, code: int
) -> None:
    client.write(line)
    answer = client.receive()
    assert (answer["id"], answer["error"]["code"]) == (request_id, code)


def test_messages_that_ask_for_nothing_are_ignored(client: RawClient) -> None:
    client.write("")
    client.send(method="$/cancel_request", params={"requestId": 1})
    client.send(id=99, result={})
    client.send(id="99", result={})
    client.cancel()
    assert client.call(7, "initialize", {"protocolVersion": 1})["id"] == 7


def test_text_is_two_chunks_and_a_response(client: RawClient) -> None:
    client.prompt("text")
    assert client.update().startswith("agent_message_chunk I know")
    assert client.update().startswith("agent_message_chunk You cannot")
    assert client.receive()["result"] == {"stopReason": "end_turn"}


def test_chunks_carry_no_message_id(client: RawClient) -> None:
    client.prompt("text")
    assert set(client.receive()["params"]["update"]) == {"sessionUpdate", "content"}


@pytest.mark.parametrize(
    ("outcome", "statuses"),
    [
        (ALLOW, ["in_progress", "completed"]),
        (REJECT, ["failed"]),
        (CANCELLED, ["failed"]),
        ({"outcome": "selected", "optionId": "else"}, ["failed"]),
    ],
)
def test_a_tool_runs_only_with_permission(client: RawClient, outcome: Message, statuses: list[str]) -> None:
    client.prompt("permission")
    assert client.update() == "tool_call t1 pending"
    request = client.receive()
    assert [option["kind"] for option in request["params"]["options"]] == ["allow_once", "reject_once"]
    client.answer(request, outcome)
    for status in statuses:
        assert client.update() == f"tool_call_update t1 {status}"
    assert client.receive()["result"] == {"stopReason": "end_turn"}


def test_an_error_in_place_of_the_answer_is_no_permission(client: RawClient) -> None:
    client.prompt("permission")
    client.update()
    client.send(id=client.receive()["id"], error={"code": -32603, "message": "no user"})
    assert client.update() == "tool_call_update t1 failed"


def test_the_other_tool_moves_while_permission_is_asked(client: RawClient) -> None:
    client.prompt("parallel")
    assert client.update() == "tool_call t1 in_progress"
    assert client.update() == "tool_call t2 in_progress"
    request = client.receive()
    assert request["params"]["toolCall"]["toolCallId"] == "t2"
    assert client.update() == "tool_call_update t1 completed"
    client.answer(request, ALLOW)
    assert client.update() == "tool_call_update t2 completed"
    assert client.receive()["result"] == {"stopReason": "end_turn"}


def test_cancel_flushes_an_update_before_the_response(client: RawClient) -> None:
    client.prompt("cancel")
    assert client.update() == client.update() == "agent_message_chunk Thinking..."
    client.cancel()
    last = client.update()
    while last == "agent_message_chunk Thinking...":
        last = client.update()
    assert last == "agent_message_chunk Stopped."
    assert client.receive()["result"] == {"stopReason": "cancelled"}


def test_cancel_during_a_question_ends_the_turn_as_cancelled(client: RawClient) -> None:
    client.prompt("permission")
    client.update()
    request = client.receive()
    client.cancel()
    client.answer(request, CANCELLED)
    assert client.update() == "tool_call_update t1 failed"
    assert client.receive()["result"] == {"stopReason": "cancelled"}


def test_an_error_follows_output(client: RawClient) -> None:
    client.prompt("error")
    assert client.update().startswith("agent_message_chunk")
    answer = client.receive()
    assert answer["id"] == 2
    assert answer["error"] == {"code": -32603, "message": "model unavailable"}


def test_another_prompt_is_explained(client: RawClient) -> None:
    client.prompt("hello")
    assert "permission, parallel" in client.update()
    assert client.receive()["result"] == {"stopReason": "end_turn"}


def test_it_reads_on_during_a_turn(client: RawClient) -> None:
    client.prompt("permission")
    client.update()
    request = client.receive()
    client.prompt("text", request_id=3)
    busy = client.receive()
    assert (busy["id"], busy["error"]["code"]) == (3, -32600)
    client.answer(request, REJECT)
    client.update()
    assert client.receive()["id"] == 2


def test_a_prompt_right_after_the_response_is_taken(client: RawClient) -> None:
    for request_id in range(10, 30):
        client.prompt("error", request_id)
        client.update()
        assert client.receive()["error"]["message"] == "model unavailable"


@pytest.mark.parametrize("text", ["permission", "cancel"])
def test_the_end_of_stdin_ends_an_open_turn(client: RawClient, text: str) -> None:
    client.prompt(text)
    client.update()
    assert client.close() == 0
