"""`bridge.serve` as a whole: a v1 agent whose files and commands the proxy takes care of (bridge §8)."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from wrapped import Wrapped, wrapped

from child_processes import is_running

AGENT = [sys.executable, "-S", "-E", str(Path(__file__).with_name("helped_agent.py"))]
# When the proxy is killed somebody is left to end the commands on Linux only.
WAYS = ["client leaves", "SIGTERM", "agent killed", *(["proxy killed"] if sys.platform == "linux" else [])]
SERVE = ("--set", 'bridge.serve=["fs", "terminal"]')


@asynccontextmanager
async def helped(cwd: Path, options: Sequence[str] = SERVE) -> AsyncIterator[Wrapped]:
    """A run with a session open in `cwd`."""
    async with wrapped(None, *options, agent=AGENT) as run:
        await run.initialize()
        await run.call("session/new", {"cwd": str(cwd), "mcpServers": []})
        yield run


async def does(run: Wrapped, text: str) -> Any:
    """Have the agent do something, and return what it found."""
    turns, heard = len(run.states("s1")), len(run.chunks("s1"))
    await run.prompt("s1", text)
    await run.until(lambda: len(run.states("s1")) >= turns + 2, f"the end of {text}")
    assert run.states("s1")[turns:] == ["running", "idle(end_turn)"], run.story()
    assert run.invalid() == [], run.story()
    return json.loads("".join(run.chunks("s1")[heard:]))


def terminal_output(run: Wrapped) -> bytes:
    chunks = run.updates("s1", "terminal_output_chunk")
    return b"".join(base64.b64decode(chunk["data"]) for chunk in chunks)


async def stays(run: Wrapped) -> int:
    """Have the agent start a command that goes on; its process id."""
    await does(run, "stay")
    await run.until(lambda: terminal_output(run).endswith(b"\n"), "the pid")
    pid = int(terminal_output(run))
    assert is_running(pid)
    return pid


async def is_gone(run: Wrapped, pid: int) -> None:
    for _ in range(500):
        if not is_running(pid):
            return
        await trio.sleep(0.01)  # no event tells of foreign processes
    raise AssertionError(f"process {pid} still runs\n{run.story()}")


async def test_files_and_a_command(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("quiet\n")
    async with helped(tmp_path) as run:
        said = await does(run, "work")
        assert said["offered"]["fs"] == {"readTextFile": True, "writeTextFile": True}
        assert said["offered"]["terminal"] is True
        found = said["found"]
        assert found["wrote"] == found["released"] == {}
        assert found["status"] == {"exitCode": 0, "signal": None}
        assert found["output"] == {
            "output": "made\na warning\nQUIET\n\n",
            "truncated": False,
            "exitStatus": found["status"],
        }
        assert (tmp_path / "OUT.TXT").read_text() == "QUIET\n"

        opened, *_ = told = run.updates("s1", "terminal_update")
        assert opened["cwd"] == str(tmp_path)
        assert opened["command"].startswith(sys.executable)
        assert [one.get("exitStatus") for one in told] == [None, {"exitCode": 0}]
        assert [one["capabilities"] for one in told] == [{"cancel": {}}, None]
        assert terminal_output(run).decode() == found["output"]["output"]
        shown = {"type": "terminal", "terminalId": opened["terminalId"]}
        assert run.updates("s1", "tool_call_update")[0]["content"] == [shown]
        tags = [frame["params"]["update"]["sessionUpdate"] for frame in run.frames if "method" in frame]
        assert tags[:3] == ["state_update", "user_message", "terminal_update"]
        await run.leave()


async def test_a_path_outside_of_the_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link").symlink_to("/etc/passwd")
    async with helped(tmp_path / "project") as run:
        for path in ("/etc/passwd", f"{tmp_path}/project/../secret", f"{tmp_path}/project/link"):
            assert (await does(run, f"peek {path}"))["found"]["code"] == -32602
        await run.leave()


async def test_by_default_nothing_is_served(tmp_path: Path) -> None:
    async with helped(tmp_path, ()) as run:
        said = await does(run, f"peek {tmp_path}/in.txt")
        assert said["offered"]["fs"] == {"readTextFile": False, "writeTextFile": False}
        assert said["found"]["code"] == -32601
        await run.leave()


async def test_the_client_cancels_a_command_that_outlived_its_turn(tmp_path: Path) -> None:
    async with helped(tmp_path) as run:
        pid = await stays(run)
        named = {"sessionId": "s1", "terminalId": run.updates("s1", "terminal_update")[0]["terminalId"]}
        assert (await run.call("terminal/cancel", named))["result"] == {}
        await run.until(lambda: run.updates("s1", "terminal_update")[1:], "the exit")
        assert run.updates("s1", "terminal_update")[1]["exitStatus"] == {"signal": "SIGTERM"}
        assert (await run.call("terminal/cancel", named))["error"]["code"] == -32602
        found = (await does(run, "look"))["found"]
        assert found["exitStatus"] == {"exitCode": None, "signal": "SIGTERM"}
        assert not is_running(pid)
        await run.leave()


async def test_closing_the_session_ends_its_commands_first(tmp_path: Path) -> None:
    async with helped(tmp_path) as run:
        pid = await stays(run)
        assert (await run.call("session/close", {"sessionId": "s1"}))["result"] == {}
        told = [frame for frame in run.frames if "method" in frame][-1]["params"]["update"]
        assert told["exitStatus"] == {}
        await is_gone(run, pid)
        assert run.invalid() == []
        await run.leave()


@pytest.mark.parametrize("way", WAYS)
async def test_no_command_outlives_its_agent_its_client_or_the_proxy(tmp_path: Path, way: str) -> None:
    async with helped(tmp_path) as run:
        pid = await stays(run)
        if way == "client leaves":
            await run.close_stdin()
        elif way == "agent killed":
            os.kill(json.loads(run.chunks("s1")[-1])["pid"], signal.SIGKILL)
        else:
            run.process.send_signal(signal.SIGTERM if way == "SIGTERM" else signal.SIGKILL)
        await run.ended()
        if way == "agent killed":
            assert run.updates("s1", "terminal_update")[-1]["exitStatus"] == {}
        await is_gone(run, pid)
        assert b"Traceback" not in run.stderr, run.story()
