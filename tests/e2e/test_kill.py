"""Somebody dies, at every step of a turn: nobody hangs, nobody is left behind, everybody still there is told.

Source: design of the command line (exit status), lifecycle §2.3 (EOF rows), production §1 and §2 (orphans).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from script_steps import PERMISSION, chunk, tool
from side_by_side import together
from wrapped import Wrapped, wrapped

from child_processes import is_running

Script = dict[str, Any]
WITHIN = 5.0
KILL: list[Any] = ["kill", "SIGKILL"]
HERE: list[Any] = ["mark", "here"]
STOP: list[Any] = ["stop"]
SHORT_GRACES = ("--set", "agent.eof_grace=0.3", "--set", "agent.term_grace=0.3")


class Step(NamedTuple):
    """A moment in a conversation: what the agent does up to it, and what the client does meanwhile.

    `states` are those of the session up to then; `open` says whether the last request is unanswered then,
    `asks` whether a permission is, and `client_cancels` whether the client has cancelled the turn.
    """

    event: str
    steps: list[Any]
    states: list[str] = []  # noqa: RUF012  # never changed
    open: bool = False
    asks: bool = False
    client_cancels: bool = False

    @property
    def busy(self) -> bool:
        return bool(self.states) and not self.states[-1].startswith("idle")


RUNNING = ["running"]
STEPS = {
    "initialize received": Step("initialize", [], open=True),
    "initialized": Step("initialize", [["reply"]]),
    "session opened": Step("session/new", [["reply"]]),
    "prompt received": Step("session/prompt", [], RUNNING, open=True),
    "first chunk": Step("session/prompt", [chunk()], RUNNING),
    "tool in progress": Step("session/prompt", [chunk(), tool("in_progress")], RUNNING),
    "permission open": Step(
        "session/prompt",
        [tool("pending"), ["call", "session/request_permission", PERMISSION, "q"]],
        ["running", "requires_action"],
        asks=True,
    ),
    "cancelled": Step("session/prompt", [chunk(), ["await", "session/cancel"]], RUNNING, client_cancels=True),
    "between turns": Step("session/prompt", [chunk(), ["reply"]], ["running", "idle(end_turn)"]),
}


def script(step: Step, *then: list[Any]) -> Script:
    return {"on": {step.event: [*step.steps, HERE, *then]}}


async def lead_to(run: Wrapped, step: Step) -> Any:
    """Say what the client says up to the step; return the id of the last request."""
    about = {"protocolVersion": run.version, "info": {"name": "c", "version": "1"}, "capabilities": {}}
    last = await run.ask("initialize", about)
    if step.event != "initialize":
        await run.answer(last)
        last = await run.ask("session/new", {"cwd": "/p", "mcpServers": []})
    if step.event == "session/prompt":
        await run.answer(last)
        last = await run.prompt("s1")
    if step.client_cancels:
        await run.until(lambda: run.chunks("s1"), "the first chunk")
        await run.tell("session/cancel", {"sessionId": "s1"})
    return last


async def come_to(run: Wrapped, step: Step) -> Any:
    """Play the client up to the step, until all is quiet; return the id of the last request."""
    last = await lead_to(run, step)
    await run.reach("here")
    if not step.open:
        await run.answer(last)
    if step.states:
        await run.until(lambda: len(run.states("s1")) >= len(step.states), "the states up to here")
    if step.asks:
        await run.until(lambda: run.requests("session/request_permission"), "the permission request")
    return last


def check_told(run: Wrapped, step: Step, last: Any) -> None:
    """The client knows that nothing more will come of what it asked, and that this was nobody's wish (§2.3)."""
    ending = "idle(error)"
    assert run.invalid() == [], run.story()
    assert len(run.answers(last)) == 1, run.story()
    answer = run.answers(last)[0]
    if step.open:
        assert answer["error"]["code"] == -32603, answer
        assert answer["error"]["message"], answer
    else:
        assert "result" in answer, answer
    assert run.states("s1") == [*step.states, *([ending] if step.busy else [])], run.story()
    if step.busy:
        idle = run.updates("s1", "state_update")[-1]
        assert idle["error"]["code"] == -32603, idle
    if step.asks:
        asked = run.requests("session/request_permission")[0]["id"]
        withdrawn = [f["params"] for f in run.frames if f.get("method") == "$/cancel_request"]
        assert withdrawn == [{"requestId": asked}], run.story()


def check_cancelled(run: Wrapped, step: Step) -> None:
    """The agent was asked to stop if it worked; once more does no harm when the client had asked already."""
    count = len(run.agent_heard("session/cancel"))
    assert count == int(step.busy) or (step.client_cancels and count == 2), run.agent_messages()


def check_quiet(run: Wrapped) -> None:
    assert b"Traceback" not in run.stderr, run.story()


def for_each_step(case: Callable[[Step], Awaitable[None]]) -> dict[str, Callable[[], Awaitable[None]]]:
    return {name: partial(case, step) for name, step in STEPS.items()}


# ---------------------------------------------------------------- the agent dies


async def test_client_is_told_when_the_agent_is_killed() -> None:
    async def case(step: Step) -> None:
        async with wrapped(script(step, STOP)) as run:
            last = await come_to(run, step)
            os.kill(run.pids("agent")[0], signal.SIGKILL)
            assert await run.ended(WITHIN) == 128 + signal.SIGKILL
            check_told(run, step, last)
            check_quiet(run)
            await run.no_orphans(WITHIN)

    await together(for_each_step(case))


async def test_client_is_told_when_the_agent_dies_with_its_last_words() -> None:
    """No pause between the last output and the end: what was written before must not get lost."""

    async def case(step: Step) -> None:
        async with wrapped(script(step, KILL)) as run:
            last = await lead_to(run, step)
            assert await run.ended(WITHIN) == 128 + signal.SIGKILL
            check_told(run, step, last)
            check_quiet(run)

    await together(for_each_step(case))


async def test_v1_client_is_told_when_the_agent_is_killed() -> None:
    async with wrapped({"on": {"session/prompt": [chunk(), HERE, KILL]}}, version=1) as run:
        session = await run.open()
        first = await run.prompt(session)
        assert await run.ended(WITHIN) == 128 + signal.SIGKILL
        assert [frame["error"]["code"] for frame in run.answers(first)] == [-32603]
        assert run.chunks(session) == ["hi"]
        assert run.states(session) == []
        check_quiet(run)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
async def test_agents_own_status_is_ours() -> None:
    async def case(ending: list[Any], status: int) -> None:
        async with wrapped({"on": {"session/prompt": [chunk(), ending]}}) as run:
            await run.prompt(await run.open())
            assert await run.ended(WITHIN) == status, run.story()
            assert run.states("s1") == ["running", "idle(error)"], run.story()

    await together(
        {
            "exit 0": partial(case, ["exit", 0], 0),
            "exit 7": partial(case, ["exit", 7], 7),
            "exit 255": partial(case, ["exit", 255], 255),
            "SIGTERM": partial(case, ["kill", "SIGTERM"], 128 + signal.SIGTERM),
            "SIGSEGV": partial(case, ["kill", "SIGSEGV"], 128 + signal.SIGSEGV),
        }
    )


async def test_descendants_of_a_dead_agent_do_not_outlive_the_proxy() -> None:
    spawns = [["spawn", "child"], ["spawn", "immune"], ["spawn", "setsid"]]
    async with wrapped({"on": {"session/prompt": [*spawns, chunk(), KILL]}}, *SHORT_GRACES) as run:
        await run.prompt(await run.open())
        # The descendants hold the agent's stdout open; its end is seen all the same.
        assert await run.ended(WITHIN) == 128 + signal.SIGKILL
        assert run.states("s1") == ["running", "idle(error)"], run.story()
        assert len(run.pids()) == 4
        await run.no_orphans(WITHIN)


# ---------------------------------------------------------------- the client goes


@pytest.mark.parametrize("way", ["close_stdin", "vanish"])
async def test_agent_is_told_and_ended_when_the_client_goes(way: str) -> None:
    async def case(step: Step) -> None:
        async with wrapped(script(step, STOP)) as run:
            await come_to(run, step)
            await getattr(run, way)()
            assert await run.ended(WITHIN) == 0, run.story()
            await run.no_orphans(WITHIN)
            check_quiet(run)
            assert run.journal()[-1] == {"end": True}, "the agent saw no end of its stdin"
            check_cancelled(run, step)
            outcomes = [m["result"] for m in run.agent_messages() if m.get("id") == "q"]
            assert outcomes == ([{"outcome": {"outcome": "cancelled"}}] if step.asks else [])

    await together(for_each_step(case))


async def test_client_that_only_stops_reading_has_gone() -> None:
    async with wrapped({"on": {"session/prompt": [chunk(), STOP]}}) as run:
        session = await run.open()
        await run.close_stdout()
        await run.prompt(session)
        assert await run.ended(WITHIN) == 0, run.story()
        await run.no_orphans(WITHIN)
        check_quiet(run)


async def test_client_that_goes_before_it_said_anything() -> None:
    async with wrapped() as run:
        await run.close_stdin()
        assert await run.ended(WITHIN) == 0
        await run.no_orphans(WITHIN)
        assert run.raw == []


async def test_client_closes_first_means_0_whatever_the_agent_makes_of_it() -> None:
    async def case(end: list[Any], last: str | None, *start: list[Any]) -> None:
        on = {"start": list(start), "session/prompt": [chunk(), STOP], "end": end}
        async with wrapped({"on": on}, *SHORT_GRACES) as run:
            await run.prompt(await run.open())
            await run.until(lambda: run.chunks("s1"), "the first chunk")
            await run.close_stdin()
            assert await run.ended(WITHIN) == 0, run.story()
            await run.no_orphans(WITHIN)
            assert ({"signal": last} in run.journal()) is (last is not None)

    await together(
        {
            "exits 3": partial(case, [["exit", 3]], None),
            "ended by our TERM": partial(case, [STOP], None),
            "ended by our KILL": partial(case, [STOP], "SIGTERM", ["ignore", "SIGTERM"]),
            "leaves descendants": partial(
                case, [["exit", 0]], None, ["spawn", "immune"], ["spawn", "setsid"]
            ),
        }
    )


# ---------------------------------------------------------------- the proxy is ended


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signaled_proxy_ends_its_agent_and_says_by_what(number: signal.Signals) -> None:
    async def case(step: Step) -> None:
        async with wrapped(script(step, STOP)) as run:
            await come_to(run, step)
            run.process.send_signal(number)
            assert await run.ended(WITHIN) == 128 + number, run.story()
            await run.no_orphans(WITHIN)
            check_quiet(run)
            assert run.journal()[-1] == {"end": True}, "the agent saw no end of its stdin"
            check_cancelled(run, step)

    await together(for_each_step(case))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signaled_proxy_leaves_no_request_of_the_client_open(number: signal.Signals) -> None:
    async def case(step: Step) -> None:
        async with wrapped(script(step, STOP)) as run:
            last = await come_to(run, step)
            run.process.send_signal(number)
            await run.ended(WITHIN)
            check_told(run, step, last)

    await together(for_each_step(case))


async def test_second_signal_waits_for_nobody() -> None:
    on = {"start": [["ignore", "SIGTERM"]], "session/prompt": [chunk(), STOP], "end": [["mark", "end"], STOP]}
    graces = ("--set", "agent.eof_grace=50", "--set", "agent.term_grace=50")
    async with wrapped({"on": on}, *graces) as run:
        await run.prompt(await run.open())
        await run.until(lambda: run.chunks("s1"), "the first chunk")
        run.process.send_signal(signal.SIGTERM)
        await run.reach("end")
        run.process.send_signal(signal.SIGTERM)
        assert await run.ended(WITHIN) == 128 + signal.SIGTERM
        await run.no_orphans(WITHIN)


@pytest.mark.skipif(sys.platform != "linux", reason="the lifeline needs a child subreaper")
async def test_killed_proxy_leaves_nobody_behind() -> None:
    family = [["spawn", "child"], ["spawn", "immune"], ["spawn", "setsid"]]

    async def case(step: Step) -> None:
        on = {"start": [["ignore", "SIGTERM"], *family], **script(step, STOP)["on"]}
        on["end"] = [STOP]
        async with wrapped({"on": on}, *SHORT_GRACES) as run:
            await come_to(run, step)
            await run.until(lambda: len(run.pids()) == 4, "the family")
            run.process.kill()
            await run.ended(WITHIN)
            await run.no_orphans(WITHIN)

    await together(for_each_step(case))


@pytest.mark.skipif(sys.platform != "linux", reason="the lifeline needs a child subreaper")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_signal_while_starting_leaves_nobody_behind(number: signal.Signals) -> None:
    """At whatever moment it comes: before our handlers, while the agent is started, or after."""

    async def case(delay: float) -> None:
        async with wrapped({}, *SHORT_GRACES) as run:
            await trio.sleep(delay)
            run.process.send_signal(number)
            status = await run.ended(WITHIN)
            # An interrupt that meets the bare interpreter ends it with a traceback and 1.
            assert status in (-number, 128 + number) or (number is signal.SIGINT and status == 1), run.story()
            await trio.sleep(0.1)  # an agent just started has not said its pid yet
            await run.no_orphans(WITHIN)

    await together({f"{delay} ms": partial(case, delay / 1000) for delay in range(20, 300, 20)})


# ---------------------------------------------------------------- status without an agent


async def test_usage_and_configuration_errors_are_2() -> None:
    async def case(*options: str) -> None:
        async with wrapped({}, *options) as run:
            assert await run.ended() == 2, run.story()
            assert run.raw == []
            assert run.pids() == []
            assert run.stderr, "nothing said about it"
            check_quiet(run)

    await together(
        {
            "unknown option": partial(case, "--nonsense"),
            "unknown key": partial(case, "--set", "bridge.ack_timout=1"),
            "bad value": partial(case, "--set", "bridge.ack_timeout=soon"),
            "no such file": partial(case, "--config", "/nowhere/at/all.toml"),
            "bad choice": partial(case, "--bridge", "maybe"),
            "findings file": partial(case, "--findings", "/nowhere/at/all"),
        }
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
async def test_findings_into_a_pipe_that_nobody_reads_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with wrapped({}, "--findings", str(tmp_path / "pipe")) as run:
        assert await run.ended() == 2, run.story()
        assert b"findings.file" in run.stderr


def test_watch_for_orphans_tells_the_living_from_the_dead() -> None:
    sleeper = subprocess.Popen([sys.executable, "-S", "-E", "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(sleeper.pid)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not is_running(sleeper.pid), "a zombie counts as gone"
    sleeper.communicate()
    assert not is_running(sleeper.pid)
