"""Nothing of an agent outlives the proxy, however either of them ends. Linux only, as the shim is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import trio

from acp_proxy.transport import agent_process
from acp_proxy.transport.agent_process import AgentProcess, ExitStatus, start_agent
from child_processes import ECHO, PYTHON, STUBBORN_FAMILY, TERM_IMMUNE, eventually, is_running, python_agent

GRACE = 0.2
LONG = 50.0

# Starts the agent given as an argument, repeats what it says, and stays.
PROXY = """
import os, signal, sys, trio
from acp_proxy.transport.agent_process import AgentCommand, start_agent

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored

async def main():
    async with trio.open_nursery() as nursery:
        agent = await start_agent(AgentCommand(sys.argv[1:]), nursery=nursery, eof_grace=0.2, term_grace=0.2)
        os.write(1, await agent.receive_some())
        await trio.sleep_forever()

trio.run(main)
"""

# Ends with the agent's status as soon as that is known, and leaves the rest to the shim.
HURRIED_PROXY = """
import os, sys, trio
from acp_proxy.transport.agent_process import AgentCommand, start_agent

async def main():
    async with trio.open_nursery() as nursery:
        agent = await start_agent(AgentCommand(sys.argv[1:]), nursery=nursery, term_grace=2.0)
        status = await agent.wait()
        os.write(1, await agent.receive_rest())
        agent.hand_over()
    return status.status

sys.exit(trio.run(main))
"""

# An agent that ends by itself and leaves the stubborn family behind.
LEAVING_AGENT = STUBBORN_FAMILY.rpartition("time.sleep")[0] + "os._exit(9)"


@asynccontextmanager
async def running(code: str, term_grace: float = GRACE) -> AsyncIterator[tuple[AgentProcess, list[int]]]:
    """An agent and the pids it says, the shim's last."""
    async with trio.open_nursery() as nursery:
        agent = await start_agent(python_agent(code), nursery=nursery, eof_grace=GRACE, term_grace=term_grace)
        try:
            yield agent, [int(pid) for pid in (await agent.receive_some()).split()]
        finally:
            await agent.kill()
            await agent.aclose()


@contextmanager
def proxy_process(code: str, agent: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", code, *PYTHON, agent],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as proxy:
        try:
            yield proxy
        finally:
            proxy.kill()


def pids_said_by(proxy: subprocess.Popen[bytes]) -> list[int]:
    assert proxy.stdout is not None
    pids = [int(pid) for pid in proxy.stdout.readline().split()]
    assert len(pids) == 4
    return pids


async def test_shutting_down_ends_descendants_wherever_they_hide() -> None:
    async with running(STUBBORN_FAMILY) as (agent, pids):
        assert all(is_running(pid) for pid in pids)
        await agent.shut_down()
        assert agent.exit_status == ExitStatus(signal=signal.SIGKILL)
        assert not any(is_running(pid) for pid in pids)


async def test_nobody_waits_for_those_who_discard_the_signal() -> None:
    """A grace is for those who hear SIGTERM; a dead child that was not collected does not count either."""
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0: os._exit(0)\n"
        "os.write(1, b'ready')\n"
        "time.sleep(60)\n"
    )
    async with trio.open_nursery() as nursery:
        agent = await start_agent(python_agent(code), nursery=nursery, eof_grace=0.0, term_grace=LONG)
        assert await agent.receive_some() == b"ready"
        with trio.fail_after(10):
            await agent.shut_down()
        assert agent.exit_status == ExitStatus(signal=signal.SIGKILL)


async def test_killing_ends_them_without_a_grace() -> None:
    with trio.fail_after(LONG / 2):
        async with running(STUBBORN_FAMILY, term_grace=LONG) as (agent, pids):
            await agent.kill()
            assert not any(is_running(pid) for pid in pids)


async def test_what_an_agent_leaves_behind_ends_without_anybodys_doing() -> None:
    async with running(LEAVING_AGENT, term_grace=1.0) as (agent, pids):
        assert await agent.wait() == ExitStatus(code=9)
        assert is_running(pids[0])
        await eventually(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_nothing_outlives_a_proxy_that_is_killed(number: signal.Signals) -> None:
    with proxy_process(PROXY, STUBBORN_FAMILY) as proxy:
        pids = pids_said_by(proxy)
        assert all(is_running(pid) for pid in pids)
        os.killpg(proxy.pid, number)
        await eventually(lambda: not any(is_running(pid) for pid in pids))


async def test_a_proxy_in_a_hurry_ends_with_the_agent_and_before_its_descendants() -> None:
    with proxy_process(HURRIED_PROXY, LEAVING_AGENT) as proxy:
        pids = pids_said_by(proxy)
        assert proxy.wait(30) == 9
        assert is_running(pids[0])
        assert is_running(pids[1])
        await eventually(lambda: not any(is_running(pid) for pid in pids))


async def test_the_shim_is_not_ended_by_signals_for_a_whole_group() -> None:
    async with running("import os, sys; print(os.getppid()); sys.stdin.read()") as (agent, [shim]):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
            os.kill(shim, number)
        await trio.sleep(0.05)
        assert is_running(shim)
        await agent.shut_down()
        assert agent.exit_status == ExitStatus(code=0)


async def test_the_shim_holds_nothing_of_the_agents() -> None:
    async with running("import os, sys; print(os.getppid()); sys.stdin.read()") as (_, [shim]):
        held = {int(fd): os.readlink(f"/proc/{shim}/fd/{fd}") for fd in os.listdir(f"/proc/{shim}/fd")}
        assert [held.pop(standard) for standard in (0, 1, 2)] == ["/dev/null"] * 3
        # Status, lifeline, the two ends of its own alarm, and what it puts in place of the others.
        assert sorted(target.partition(":")[0] for target in held.values()) == ["/dev/null"] + ["pipe"] * 4
        assert os.readlink(f"/proc/{shim}/cwd") == "/"


async def test_a_killed_shim_takes_the_agent_along() -> None:
    async with running(f"import os; print(os.getppid(), flush=True)\n{TERM_IMMUNE}") as (agent, [shim]):
        await eventually(lambda: agent.stderr_tail() == ["!"])
        os.kill(shim, signal.SIGKILL)
        assert await agent.wait() == ExitStatus(signal=signal.SIGKILL)
        await eventually(lambda: not is_running(agent.pid))


async def test_a_stopped_shim_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_process, "KILL_PATIENCE", 0.5)
    async with running(STUBBORN_FAMILY) as (agent, pids):
        os.kill(pids[-1], signal.SIGSTOP)
        await agent.shut_down()
        assert agent.exit_status == ExitStatus(signal=signal.SIGKILL)
        await eventually(lambda: not any(is_running(pid) for pid in pids))


def test_signals_blocked_in_the_proxy_are_not_in_the_shim_or_the_agent() -> None:
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})\n"
    ask = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    # Without SIGCHLD the shim would not notice the agent's end.
    with proxy_process(block + HURRIED_PROXY, ask) as proxy:
        assert proxy.stdout is not None
        assert proxy.stdout.readline() == b"set()\n"
        assert proxy.wait(30) == 0


async def test_many_agents_at_once_share_no_lifeline() -> None:
    async with trio.open_nursery() as nursery:
        agents: list[AgentProcess] = []

        async def start() -> None:
            agents.append(await start_agent(python_agent(ECHO), nursery=nursery, eof_grace=LONG))

        async with trio.open_nursery() as starting:
            for _ in range(8):
                starting.start_soon(start)
        for agent in agents:
            await agent.shut_down()
            assert agent.exit_status == ExitStatus(code=0)
            await agent.aclose()
