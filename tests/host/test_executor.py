"""What the relay hands over is done in its order and answered once, and all of it ends with the proxy."""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from acp_proxy.acp.version import Role, Version
from acp_proxy.host import executor as executor_module
from acp_proxy.host.executor import HostExecutor
from acp_proxy.jsonrpc.message import Message, Response, notification, request
from schema_cache import message_error, response_error

PYTHON = [sys.executable, "-S", "-E", "-u", "-c"]
SLEEP = "import time; print('up', flush=True); time.sleep(600)"


async def no_wait() -> None:
    """There is always room."""


class Agent:
    """Asks the executor under test, and waits for what it says."""

    def __init__(self, cwd: Path) -> None:
        self.said: list[Message] = []
        self.host = HostExecutor(self._hear, no_wait)
        self.cwd = str(cwd)
        self._last = 0
        self._news = trio.Event()

    def _hear(self, message: Message) -> None:
        self.said.append(message)
        self._news.set()

    def asks(self, method: str, directories: Sequence[str] | None = None, **params: Any) -> int:
        """Ask and do not wait."""
        self._last += 1
        message = request(self._last, method, {"sessionId": "s1", **params})
        self.host.take(message, self.cwd, [self.cwd] if directories is None else directories)
        return self._last

    def tells(self, method: str, **params: Any) -> None:
        self.host.take(notification(method, {"sessionId": "s1", **params}), self.cwd, [self.cwd])

    async def answer(self, own_id: int) -> dict[str, Any]:
        while True:
            found = [one for one in self.said if isinstance(one, Response) and one.id == own_id]
            if found:
                assert len(found) == 1
                return found[0].body
            self._news = trio.Event()
            await self._news.wait()

    async def gets(self, method: str, **params: Any) -> Any:
        """Ask, wait, and check that the result is as the schema has it."""
        answer = await self.answer(self.asks(method, **params))
        result = answer["result"]
        assert response_error(Version.V1, method, result, receiver_of_request=Role.CLIENT) is None
        return result

    async def is_declined(self, method: str, **params: Any) -> int:
        answer = await self.answer(self.asks(method, **params))
        code: int = answer["error"]["code"]
        return code

    async def runs(self, code: str, **params: Any) -> str:
        """Create a terminal with a Python program; its id."""
        made = await self.gets("terminal/create", command=PYTHON[0], args=[*PYTHON[1:], code], **params)
        terminal_id: str = made["terminalId"]
        return terminal_id

    async def is_up(self, terminal_id: str) -> None:
        """Wait until a program has said so."""
        while b"up\n" not in self.output(terminal_id):
            self._news = trio.Event()
            await self._news.wait()

    def output(self, terminal_id: str) -> bytes:
        told = [update for update in self.updates if update["terminalId"] == terminal_id]
        return b"".join(base64.b64decode(update["data"]) for update in told if "data" in update)

    @property
    def updates(self) -> list[dict[str, Any]]:
        """The bodies of the updates said so far."""
        return [one.body["params"]["update"] for one in self.said if not isinstance(one, Response)]


@asynccontextmanager
async def working(cwd: Path) -> AsyncIterator[Agent]:
    agent = Agent(cwd)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.host.run)
        yield agent
        agent.host.end()


async def test_files_are_written_and_read(tmp_path: Path) -> None:
    path = f"{tmp_path}/f"
    async with working(tmp_path) as agent:
        assert await agent.is_declined("fs/read_text_file", path=path) == -32002
        assert await agent.gets("fs/write_text_file", path=path, content="a\nb\nc\n") == {}
        assert await agent.gets("fs/read_text_file", path=path) == {"content": "a\nb\nc\n"}
        assert await agent.gets("fs/read_text_file", path=path, line=2, limit=1) == {"content": "b\n"}
        assert await agent.gets("fs/read_text_file", path=path, line=None, limit=1.0) == {"content": "a\n"}


async def test_a_refusal_says_which_path_and_why(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        answer = await agent.answer(agent.asks("fs/read_text_file", path="/etc/passwd"))
        text = "the path is not in the session's directories: /etc/passwd"
        assert answer["error"] == {"code": -32602, "message": text, "data": {"path": "/etc/passwd"}}
        for path in (f"{tmp_path}/a\0b", f"{tmp_path}/\ud800"):
            for method, more in (("fs/read_text_file", {}), ("fs/write_text_file", {"content": ""})):
                assert await agent.is_declined(method, path=path, **more) == -32602


async def test_files_are_handled_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    path = f"{tmp_path}/f"
    async with working(tmp_path) as agent:
        for number in range(20):
            agent.asks("fs/write_text_file", path=path, content=str(number))
            agent.asks("fs/read_text_file", path=path)
        await agent.answer(40)
        answers = [one for one in agent.said if isinstance(one, Response)]
        assert [one.id for one in answers] == list(range(1, 41))
        assert [one.result["content"] for one in answers[1::2]] == [str(number) for number in range(20)]


async def test_nothing_is_said_while_something_is_handed_over(tmp_path: Path) -> None:
    """The relay is still telling what else is to be done."""
    async with working(tmp_path) as agent:
        own = agent.asks("terminal/kill", terminalId="none")
        agent.asks("fs/remove")
        assert agent.said == []
        assert (await agent.answer(own))["error"]["code"] == -32002


@pytest.mark.parametrize("method", ["fs/remove", "terminal/resize"])
async def test_what_is_not_known_is_declined(tmp_path: Path, method: str) -> None:
    async with working(tmp_path) as agent:
        terminal = await agent.runs("")
        assert await agent.is_declined(method, terminalId=terminal, path=f"{tmp_path}/f") == -32601


async def test_the_life_of_a_terminal(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        terminal = await agent.runs("print('a'); print(input())")
        status = await agent.gets("terminal/wait_for_exit", terminalId=terminal)
        assert status == {"exitCode": 1, "signal": None}
        shown = await agent.gets("terminal/output", terminalId=terminal)
        assert shown["output"].startswith("a\nTraceback")
        assert (shown["truncated"], shown["exitStatus"]) == (False, status)
        assert await agent.gets("terminal/kill", terminalId=terminal) == {}
        assert await agent.gets("terminal/release", terminalId=terminal) == {}
        for method in ("output", "wait_for_exit", "kill", "release"):
            assert await agent.is_declined(f"terminal/{method}", terminalId=terminal) == -32002
        updates = [one.body for one in agent.said if not isinstance(one, Response)]
        for one in updates:
            assert message_error(Version.V2, one, sender=Role.AGENT) is None, one


async def test_a_terminal_is_told_of_before_the_agent_knows_it(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        terminal = await agent.runs("")
        first, second = agent.said[:2]
        assert first.body["params"]["update"]["terminalId"] == terminal
        assert isinstance(second, Response)


async def test_waiting_for_an_exit_holds_nothing_else_up(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        terminal = await agent.runs(SLEEP)
        waiting = [agent.asks("terminal/wait_for_exit", terminalId=terminal) for _ in range(2)]
        await agent.is_up(terminal)
        shown = await agent.gets("terminal/output", terminalId=terminal)
        assert shown == {"output": "up\n", "truncated": False, "exitStatus": None}
        await agent.gets("terminal/release", terminalId=terminal)
        for own in waiting:
            assert (await agent.answer(own))["result"] == {"exitCode": None, "signal": "SIGTERM"}


async def test_notifications_are_done_and_not_answered(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        killed, closed = await agent.runs(SLEEP), await agent.runs(SLEEP)
        await agent.is_up(killed)
        await agent.is_up(closed)
        before = len([one for one in agent.said if isinstance(one, Response)])
        agent.tells("terminal/kill", terminalId="none")
        agent.tells("terminal/kill", terminalId=killed)
        status = await agent.gets("terminal/wait_for_exit", terminalId=killed)
        assert status == {"exitCode": None, "signal": "SIGTERM"}
        waiting = agent.asks("terminal/wait_for_exit", terminalId=closed)
        agent.tells("session/close")
        assert (await agent.answer(waiting))["result"] == status
        assert len([one for one in agent.said if isinstance(one, Response)]) == before + 2


async def test_a_terminal_asked_for_before_its_session_closed_ends_with_it(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        own = agent.asks("terminal/create", command=PYTHON[0], args=[*PYTHON[1:], SLEEP])
        agent.tells("session/close")
        terminal = (await agent.answer(own))["result"]["terminalId"]
        assert await agent.is_declined("terminal/output", terminalId=terminal) == -32002


async def test_there_is_room_until_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "HIGH_WATER", 2)
    agent = Agent(tmp_path)
    for _ in range(2):
        agent.asks("fs/read_text_file", path=f"{tmp_path}/f")
    await agent.host.room()
    agent.asks("fs/read_text_file", path=f"{tmp_path}/f")
    with trio.move_on_after(0.05) as waiting:
        await agent.host.room()
    assert waiting.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.host.run)
        await agent.host.room()
        agent.host.end()


async def test_the_end_frees_whoever_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "HIGH_WATER", 0)
    agent = Agent(tmp_path)
    agent.asks("fs/read_text_file", path=f"{tmp_path}/f")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.host.room)
        await trio.testing.wait_all_tasks_blocked()
        agent.host.end()
    await agent.host.run()
    assert agent.said == []


async def test_a_file_system_that_hangs_does_not_keep_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, begun = threading.Event(), threading.Event()

    def hang(*_: object) -> str:
        begun.set()
        hanging.wait()
        return ""

    monkeypatch.setattr(executor_module, "read_text_file", hang)
    try:
        async with working(tmp_path) as agent:
            own = agent.asks("fs/read_text_file", path=f"{tmp_path}/f")
            terminal = await agent.runs("")
            assert (await agent.gets("terminal/wait_for_exit", terminalId=terminal))["exitCode"] == 0
            await trio.to_thread.run_sync(begun.wait)
    finally:
        hanging.set()
    assert not any(isinstance(one, Response) and one.id == own for one in agent.said)


async def test_the_end_ends_all_commands(tmp_path: Path) -> None:
    async with working(tmp_path) as agent:
        terminals = [await agent.runs(SLEEP) for _ in range(2)]
        for terminal in terminals:
            await agent.is_up(terminal)
    ends = {one["terminalId"]: one["exitStatus"] for one in agent.updates if "exitStatus" in one}
    assert ends == {name: {"signal": "SIGTERM"} for name in terminals}


def test_everything_is_available_here() -> None:
    assert executor_module.AVAILABLE == {"fs": True, "terminal": True}
