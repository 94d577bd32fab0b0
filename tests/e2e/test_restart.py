"""The agent's process is started anew, and the client goes on: real processes, a scripted agent (BR-05, BR-06)."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from wrapped import Wrapped, wrapped

WITHIN = 10.0
LOADING = {"loadSession": True}
ALWAYS = ("--set", "agent.restart=always", "--set", "agent.restart_delay=0.05")
CHUNK = ["update", {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}]
DIES = {"session/prompt die": [CHUNK, ["exit", 3]]}


def greetings(run: Wrapped) -> int:
    return len(run.agent_heard("initialize"))


async def restarted(run: Wrapped, count: int = 1) -> None:
    """Wait for so many processes to have been started after the first one."""
    await run.until(lambda: len(run.pids("agent")) == count + 1, f"restart {count}", WITHIN)


@pytest.mark.parametrize("version", [1, 2])
async def test_client_goes_on_in_the_same_session_after_a_crash(version: int) -> None:
    script = {"agent": LOADING, "on": DIES}
    async with wrapped(script, *ALWAYS, version=version) as run:
        session = await run.open()
        dying = await run.prompt(session, "die")
        if version == 2:
            await run.until(lambda: "idle(error)" in run.states(session), "the end of the turn")
        else:
            assert (await run.answer(dying))["error"]["code"] == -32603
        await restarted(run)
        await run.healthy_turn(session)
        assert [body["params"]["sessionId"] for body in run.agent_heard("session/load")] == [session]
        assert greetings(run) == 2
        await run.leave()


async def test_client_goes_on_in_a_v2_session_after_a_kill() -> None:
    async with wrapped({"version": 2}, *ALWAYS) as run:
        session = await run.open()
        await run.healthy_turn(session)
        os.kill(run.pids("agent")[0], signal.SIGKILL)
        await restarted(run)
        await run.healthy_turn(session)
        assert len(run.updates(session, "notice")) == 1, run.story()
        assert run.invalid() == []
        await run.leave()


async def test_what_is_asked_in_the_gap_is_answered() -> None:
    delay = ("--set", "agent.restart=idle", "--set", "agent.restart_delay=0.6")
    async with wrapped({}, *delay) as run:
        await run.open()
        first = run.pids("agent")[0]
        os.kill(first, signal.SIGKILL)
        await run.until(lambda: b"ended" in run.stderr, "the news of its end", WITHIN)
        answer = await run.call("session/new", {"cwd": "/q"})
        assert answer["result"]["sessionId"] == "s1", "the first of the new process"
        assert len(run.pids("agent")) == 2
        await run.leave()


async def test_an_agent_that_always_dies_is_given_up() -> None:
    """Its last status is ours."""
    options = (*ALWAYS, "--set", "agent.restart_limit=2")
    async with wrapped({"on": DIES}, *options) as run:
        session = await run.open()
        await run.prompt(session, "die")
        await restarted(run)
        os.kill(run.pids("agent")[-1], signal.SIGKILL)
        await restarted(run, 2)
        os.kill(run.pids("agent")[-1], signal.SIGKILL)
        assert await run.ended(WITHIN) == 128 + signal.SIGKILL, run.story()
        assert len(run.pids("agent")) == 3
        await run.no_orphans()


async def test_by_default_the_agents_status_is_ours() -> None:
    async with wrapped({"on": DIES}) as run:
        await run.prompt(await run.open(), "die")
        assert await run.ended(WITHIN) == 3
        assert len(run.pids("agent")) == 1


async def test_idle_does_not_restart_in_a_turn() -> None:
    async with wrapped({"on": DIES}, "--set", "agent.restart=idle") as run:
        await run.prompt(await run.open(), "die")
        assert await run.ended(WITHIN) == 3
        assert len(run.pids("agent")) == 1


async def test_a_program_that_is_gone_is_given_up(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    scripted = Path(__file__).with_name("scripted_agent.py")
    script = {"journal": str(tmp_path / "journal"), "on": DIES}
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -S -E {scripted} '{json.dumps(script)}'\n")
    program.chmod(0o755)
    async with wrapped(None, *ALWAYS, "--set", "agent.restart_limit=2", agent=[str(program)]) as run:
        session = await run.open()
        program.unlink()
        await run.prompt(session, "die")
        assert await run.ended(WITHIN) == 127, run.story()
        assert run.stderr.count(b"cannot start agent") == 2, run.story()


async def test_descendants_of_the_old_process_do_not_stay() -> None:
    script: dict[str, Any] = {
        "on": {"session/prompt die": [["spawn", "setsid"], ["spawn", "child"], ["exit", 3]]}
    }
    async with wrapped(script, *ALWAYS) as run:
        await run.prompt(await run.open(), "die")
        await restarted(run)
        await run.leave()


@pytest.mark.parametrize("end", ["close_stdin", "signal"])
async def test_the_proxy_ends_in_the_gap(end: str) -> None:
    options = ("--set", "agent.restart=always", "--set", "agent.restart_delay=30")
    async with wrapped({}, *options) as run:
        await run.open()
        os.kill(run.pids("agent")[0], signal.SIGKILL)
        await run.until(lambda: b"ended" in run.stderr, "the news of its end", WITHIN)
        started = time.monotonic()
        if end == "signal":
            run.process.send_signal(signal.SIGTERM)
        else:
            await run.close_stdin()
        status = await run.ended(WITHIN)
        assert status == (0 if end == "close_stdin" else 128 + signal.SIGTERM), run.story()
        assert time.monotonic() - started < 5.0
        assert len(run.pids("agent")) == 1


async def test_a_stalled_agent_is_cancelled_then_replaced() -> None:
    on = {"session/prompt hang": [CHUNK, ["stop"]], "session/cancel": [["mark", "cancel"]]}
    options = (
        *("--set", "lifecycle.stall_after=0.3", "--set", "lifecycle.stall_action=cancel,restart"),
        *("--set", "lifecycle.cancel_timeout=0.3", "--set", "agent.restart_delay=0.05"),
    )
    async with wrapped({"agent": LOADING, "on": on}, *options) as run:
        session = await run.open()
        await run.prompt(session, "hang")
        await run.until(lambda: "idle(cancelled)" in run.states(session), "the end of the turn", WITHIN)
        assert run.marked("cancel")
        await restarted(run)
        await run.healthy_turn(session)
        await run.leave()


async def test_output_of_the_old_process_does_not_mix_with_the_new() -> None:
    """A replaced process that goes on writing until it is ended is not heard."""
    on = {
        "session/prompt hang": [CHUNK, ["ignore", "SIGTERM"], ["stop"]],
        "session/cancel": [
            ["sleep", 0.5],
            [
                "update",
                {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "ghost"}},
            ],
        ],
    }
    options = (
        *("--set", "lifecycle.stall_after=0.2", "--set", "lifecycle.stall_action=cancel,restart"),
        *("--set", "lifecycle.cancel_timeout=0.2", "--set", "agent.term_grace=0.8"),
    )
    async with wrapped({"agent": LOADING, "on": on}, *options) as run:
        session = await run.open()
        await run.prompt(session, "hang")
        await restarted(run)
        await run.healthy_turn(session)
        assert "ghost" not in run.chunks(session)
        await run.leave()
