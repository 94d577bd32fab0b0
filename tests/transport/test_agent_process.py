"""Agents as real processes, each below the shim and as our own child."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from transport_contract import Peer, check_transport

from acp_proxy.errors import AgentStartError
from acp_proxy.transport import agent_tree
from acp_proxy.transport.agent_process import AgentCommand, AgentProcess, ExitStatus, start_agent
from acp_proxy.transport.base import Transport
from child_processes import ECHO, SLEEP, TERM_IMMUNE, eventually, is_running, python_agent

GRACE = 0.2
LONG = 50.0

SIGTERM, SIGKILL = ExitStatus(signal=signal.SIGTERM), ExitStatus(signal=signal.SIGKILL)


@pytest.fixture(params=["shim", "group"], autouse=True)
def keeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs with both ways of keeping an agent's processes together."""
    if request.param == "group":
        monkeypatch.setattr(agent_tree, "HAVE_LIFELINE", False)
    return str(request.param)


@asynccontextmanager
async def running(
    command: AgentCommand,
    *,
    eof_grace: float = GRACE,
    term_grace: float = GRACE,
    on_stderr: Callable[[bytes], None] | None = None,
) -> AsyncIterator[AgentProcess]:
    async with trio.open_nursery() as nursery:
        agent = await start_agent(
            command, nursery=nursery, eof_grace=eof_grace, term_grace=term_grace, on_stderr=on_stderr
        )
        try:
            yield agent
        finally:
            await agent.kill()
            await agent.aclose()


async def output_of(command: AgentCommand) -> bytes:
    output = b""
    async with running(command) as agent:
        while data := await agent.receive_some():
            output += data
        assert await agent.wait() == ExitStatus(code=0)
    return output


async def receive_line(agent: AgentProcess) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        data = await agent.receive_some()
        assert data, f"ended after {line!r}"
        line += data
    return line


async def test_the_contract() -> None:
    programs: dict[Peer, str] = {"echo": ECHO, "deaf": SLEEP, "gone": ""}

    @asynccontextmanager
    async def open_transport(peer: Peer) -> AsyncIterator[Transport]:
        async with running(python_agent(programs[peer])) as agent:
            yield agent

    await check_transport(open_transport)


# The start


async def test_the_agent_leads_a_session_and_has_the_pid_we_say() -> None:
    code = "import os, sys; print(os.getpid(), os.getsid(0), os.getpgrp()); sys.stdin.read()"
    async with running(python_agent(code)) as agent:
        assert await receive_line(agent) == b"%d %d %d\n" % (agent.pid, agent.pid, agent.pid)


async def test_arguments_and_environment_arrive_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_PROXY_TOKEN", "secret")
    monkeypatch.setenv("INHERITED", "yes")
    code = """
import os, sys
print([os.fsencode(argument) for argument in sys.argv[1:]])
print([os.environb.get(name) for name in (b"INHERITED", b"ACP_PROXY_TOKEN", b"ADDED")])
"""
    odd = os.fsdecode(b"a b'\"$HOME\xff\n")
    command = AgentCommand([*python_agent(code).argv, odd, ""], env={"ADDED": odd})
    expected = f"{[os.fsencode(odd), b'']}\n{[b'yes', None, os.fsencode(odd)]}\n"
    assert await output_of(command) == expected.encode()


async def test_the_agent_sees_its_name_as_it_was_given() -> None:
    assert await output_of(AgentCommand(["cat", "/proc/self/cmdline"])) == b"cat\0/proc/self/cmdline\0"


async def test_the_agent_starts_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "agent").chmod(0o755)
    command = AgentCommand(["./agent"], cwd=str(tmp_path))
    assert await output_of(command) == f"{tmp_path}\n".encode()


async def test_the_agent_gets_three_descriptors() -> None:
    leak = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leak, True)
    try:
        # ls sees the folder it reads as well.
        assert await output_of(AgentCommand(["ls", "/proc/self/fd"])) == b"0\n1\n2\n3\n"
    finally:
        os.close(leak)


async def test_the_agent_gets_the_default_of_every_signal(keeper: str) -> None:
    old = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        status = (await output_of(AgentCommand(["cat", "/proc/self/status"]))).decode()
    finally:
        signal.signal(signal.SIGUSR1, old)
    masks = re.findall(r"^Sig(?:Blk|Ign):\s*(\w+)$", status, re.MULTILINE)
    blocked, ignored = (int(mask, 16) for mask in masks)
    assert blocked == 0
    if keeper == "shim":
        # Signals 32 and 33 are the C library's own, and glibc's posix_spawn leaves them ignored.
        assert ignored & ~(1 << 31 | 1 << 32) == 0
    else:
        # What a user has ignored for us stays so; what Python ignores does not.
        assert ignored & (1 << signal.SIGPIPE - 1) == 0
        assert ignored & (1 << signal.SIGUSR1 - 1)


@pytest.mark.parametrize(
    ("content", "mode", "exit_status", "cause"),
    [
        (None, 0, 127, "no such file"),
        (b"#!/bin/sh\n", 0o644, 126, "not executable"),
        (b"no program\n", 0o755, 126, "exec format error"),
        (b"#!/no/such/interpreter\n", 0o755, 126, "interpreter"),
    ],
)
async def test_a_command_that_cannot_be_started(
    tmp_path: Path, content: bytes | None, mode: int, exit_status: int, cause: str
) -> None:
    program = tmp_path / "agent"
    if content is not None:
        program.write_bytes(content)
        program.chmod(mode)
    async with trio.open_nursery() as nursery:
        with pytest.raises(AgentStartError, match=cause) as caught:
            await start_agent(AgentCommand([str(program)]), nursery=nursery)
        assert not nursery.child_tasks
    assert caught.value.exit_status == exit_status
    assert str(program) in caught.value.reason
    assert children() == []


async def test_a_command_that_is_not_on_path() -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(AgentStartError, match=r"'no-such-agent': not found on PATH") as caught:
            await start_agent(AgentCommand(["no-such-agent"]), nursery=nursery)
    assert caught.value.exit_status == 127


async def test_an_argument_that_no_process_can_have() -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(AgentStartError, match="null byte"):
            await start_agent(AgentCommand(["cat", "a\0b"]), nursery=nursery)


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.01, 0.02])
async def test_a_cancelled_start_leaves_nothing(delay: float) -> None:
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(delay):
            agent = await start_agent(python_agent(TERM_IMMUNE), nursery=nursery)
            await agent.kill()
    await eventually(lambda: children() == [])


async def test_a_nursery_that_is_over_leaves_nothing() -> None:
    async with trio.open_nursery() as nursery:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        await start_agent(python_agent(TERM_IMMUNE), nursery=nursery)
    assert children() == []


def children() -> list[str]:
    """The pids of our child processes, collected or not, without ps itself."""
    ps = subprocess.Popen(["ps", "-o", "pid=", "--ppid", str(os.getpid())], stdout=subprocess.PIPE, text=True)
    listed, _ = ps.communicate()
    return [pid for pid in listed.split() if int(pid) != ps.pid]


# The end


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", ExitStatus(code=0)),
        ("raise SystemExit(3)", ExitStatus(code=3)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", SIGTERM),
    ],
)
async def test_every_waiter_gets_the_agents_own_end(code: str, expected: ExitStatus) -> None:
    seen: list[ExitStatus] = []
    async with running(python_agent(code)) as agent:

        async def wait() -> None:
            seen.append(await agent.wait())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wait)
        seen.append(await agent.wait())
        assert repr(agent) == f"<AgentProcess {agent.pid}: {expected}>"
    assert seen == [expected] * 3


async def test_the_end_is_the_processs_and_not_the_pipes() -> None:
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-E", "-c", {TERM_IMMUNE!r}], stderr=subprocess.PIPE)
child.stderr.read(1)
print(child.pid, flush=True)
raise SystemExit(5)
"""
    async with running(python_agent(code), term_grace=LONG) as agent:
        grandchild = int(await receive_line(agent))
        assert await agent.wait() == ExitStatus(code=5)
        assert is_running(grandchild)
        with trio.move_on_after(0.05) as scope:
            await agent.receive_some()
        assert scope.cancelled_caught
        await agent.kill()
        assert not is_running(grandchild)
        assert await agent.receive_some() == b""


async def test_a_closed_stdout_is_not_the_end() -> None:
    code = "import os, sys; os.close(1); sys.stdin.read(); raise SystemExit(4)"
    async with running(python_agent(code)) as agent:
        assert await agent.receive_some() == b""
        assert agent.exit_status is None
        assert repr(agent) == f"<AgentProcess {agent.pid}: running>"
        await agent.send_eof()
        assert await agent.wait() == ExitStatus(code=4)


async def test_the_last_output_can_be_had_after_the_end() -> None:
    code = "import os, sys; os.write(2, b'one\\ntwo'); os.write(1, b'x' * 60000)"
    async with running(python_agent(code)) as agent:
        await agent.wait()
        assert agent.stderr_tail() == ["one", "two"]
        assert await agent.receive_rest() == b"x" * 60000
        assert await agent.receive_rest() == b""


async def test_the_rest_is_what_is_there_now() -> None:
    async with running(python_agent(ECHO)) as agent:
        assert await agent.receive_rest() == b""
        await agent.send_all(b"x" * 10)
        rest = b""
        while len(rest) < 10:
            rest += await agent.receive_rest()
        assert rest == b"x" * 10
        await agent.aclose()
        assert await agent.receive_rest() == b""


async def test_writing_waits_for_a_slow_agent() -> None:
    code = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.write(1, b"ready\\n")
signal.sigwait({signal.SIGUSR1})
total = 0
while data := os.read(0, 1 << 20):
    total += len(data)
print(total)
"""
    sent = trio.Event()
    async with running(python_agent(code), eof_grace=LONG) as agent, trio.open_nursery() as nursery:

        async def send() -> None:
            await agent.send_all(bytes(8 * 2**20))
            sent.set()

        await receive_line(agent)
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not sent.is_set()
        os.kill(agent.pid, signal.SIGUSR1)
        await sent.wait()
        await agent.send_eof()
        assert await receive_line(agent) == b"%d\n" % (8 * 2**20)


# The ladder

ON_TERM = """
import os, signal, time
def end(*_):
    raise SystemExit(7)
signal.signal(signal.SIGTERM, end)
os.write(2, b"!")
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ECHO, ExitStatus(code=0)),
        ("import os; os.write(2, b'!'); import time; time.sleep(600)", SIGTERM),
        (ON_TERM, ExitStatus(code=7)),
        (TERM_IMMUNE, SIGKILL),
        ("import os, signal; os.write(2, b'!'); os.kill(os.getpid(), signal.SIGSTOP)", SIGTERM),
    ],
)
async def test_the_ladder_ends_every_agent(code: str, expected: ExitStatus) -> None:
    async with running(python_agent(code)) as agent:
        if code != ECHO:
            await eventually(lambda: agent.stderr_tail() == ["!"])
        await agent.shut_down()
        assert agent.exit_status == expected
        assert not is_running(agent.pid)
        await agent.shut_down()
        await agent.terminate_now()
        await agent.kill()


async def test_an_agent_that_ends_by_itself_is_not_waited_for_any_longer() -> None:
    with trio.fail_after(LONG / 2):
        async with running(python_agent(ECHO), eof_grace=LONG, term_grace=LONG) as agent:
            await agent.shut_down()
            assert agent.exit_status == ExitStatus(code=0)


async def test_terminate_now_skips_the_first_step() -> None:
    with trio.fail_after(LONG / 2):
        async with running(python_agent(ON_TERM), eof_grace=LONG) as agent:
            await eventually(lambda: agent.stderr_tail() == ["!"])
            await agent.terminate_now()
            assert agent.exit_status == ExitStatus(code=7)


async def test_killing_cuts_a_ladder_short() -> None:
    with trio.fail_after(LONG / 2):
        async with running(python_agent(TERM_IMMUNE), eof_grace=LONG, term_grace=LONG) as agent:
            await eventually(lambda: agent.stderr_tail() == ["!"])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.shut_down)
                await trio.testing.wait_all_tasks_blocked()
                await agent.kill()
            assert agent.exit_status == SIGKILL


async def test_a_cancelled_caller_does_not_stop_the_ladder() -> None:
    async with running(python_agent(TERM_IMMUNE)) as agent:
        await eventually(lambda: agent.stderr_tail() == ["!"])
        with trio.CancelScope() as scope:
            scope.cancel()
            await agent.shut_down()
        assert agent.exit_status == SIGKILL


async def test_a_cancelled_nursery_ends_the_agent() -> None:
    async with trio.open_nursery() as nursery:
        agent = await start_agent(
            python_agent(TERM_IMMUNE), nursery=nursery, eof_grace=GRACE, term_grace=GRACE
        )
        await eventually(lambda: agent.stderr_tail() == ["!"])
        nursery.cancel_scope.cancel()
    assert agent.exit_status == SIGKILL
    assert not is_running(agent.pid)
    await agent.aclose()


async def test_a_group_is_ended_with_its_leader() -> None:
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-E", "-c", {TERM_IMMUNE!r}], stderr=subprocess.PIPE)
child.stderr.read(1)
print(child.pid, flush=True)
sys.stdin.read()
"""
    async with running(python_agent(code)) as agent:
        grandchild = int(await receive_line(agent))
        await agent.shut_down()
        assert agent.exit_status == ExitStatus(code=0)
        assert not is_running(grandchild)


async def test_what_an_agent_leaves_in_its_group_ends_without_anybodys_doing() -> None:
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-E", "-c", {TERM_IMMUNE!r}], stderr=subprocess.PIPE)
child.stderr.read(1)
print(child.pid, flush=True)
"""
    async with running(python_agent(code)) as agent:
        grandchild = int(await receive_line(agent))
        assert await agent.wait() == ExitStatus(code=0)
        await eventually(lambda: not is_running(grandchild))


# Standard error


async def test_stderr_is_shown_in_whole_lines() -> None:
    shown: list[bytes] = []
    code = "import os; os.write(2, b'one\\ntw'); os.write(2, b'o\\nthree')"
    async with running(python_agent(code), on_stderr=shown.append) as agent:
        await agent.wait()
        assert agent.stderr_tail() == ["one", "two", "three"]
    assert b"".join(shown) == b"one\ntwo\nthree\n"


async def test_the_last_words_are_read_before_the_end_is_told() -> None:
    code = """
import fcntl, os
fcntl.fcntl(2, fcntl.F_SETPIPE_SZ, 1 << 20)
os.write(2, b"go\\n")
os.write(2, b"x\\n" * 450_000 + b"last words")
"""

    def look_away(lines: bytes) -> None:
        if lines == b"go\n":
            time.sleep(0.3)

    async with running(python_agent(code), on_stderr=look_away) as agent:
        await agent.wait()
        assert agent.stderr_tail()[-1] == "last words"


async def test_an_observer_that_fails_does_not_stop_the_draining() -> None:
    calls: list[bytes] = []

    def fail(lines: bytes) -> None:
        calls.append(lines)
        raise ValueError

    code = (
        "import os; os.write(2, b'x' * 99 + b'\\n'); [os.write(2, b'x' * 99 + b'\\n') for _ in range(9999)]"
    )
    async with running(python_agent(code), on_stderr=fail) as agent:
        assert await agent.wait() == ExitStatus(code=0)
        assert len(agent.stderr_tail()) == 20
    assert len(calls) == 1


async def test_the_count_of_a_flood_is_told_though_nothing_follows() -> None:
    shown: list[bytes] = []
    code = "import os, sys; os.write(2, b'x\\n' * 300); sys.stdin.read()"
    async with running(python_agent(code), on_stderr=shown.append):
        await eventually(lambda: b"".join(shown) == b"x\n" * 200 + b"(agent stderr: 100 lines left out)\n")


async def test_a_flood_on_stderr_neither_blocks_the_agent_nor_fills_memory() -> None:
    shown: list[bytes] = []
    code = "import os; chunk = (b'x' * 99 + b'\\n') * 1000\nfor _ in range(1000): os.write(2, chunk)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with running(python_agent(code), on_stderr=shown.append) as agent:
        assert await agent.wait() == ExitStatus(code=0)
        assert agent.stderr_tail() == ["x" * 99] * 20
    text = b"".join(shown)
    passed = text.count(b"x" * 99 + b"\n")
    left_out = [int(number) for number in re.findall(rb"\(agent stderr: (\d+) lines left out\)\n", text)]
    assert passed + sum(left_out) == 1_000_000
    assert passed <= 200 * (len(left_out) + 1)
    # The figure is in KiB on Linux, in bytes on macOS.
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // (
        1 if sys.platform == "linux" else 1024
    )
    assert grown < 30 * 1024
