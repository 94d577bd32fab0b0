"""Commands run for an agent, each below the shim and as our own child: output, end, and nothing left behind."""

from __future__ import annotations

import base64
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_proxy.host import terminals as terminals_module
from acp_proxy.host.declined import DeclinedError
from acp_proxy.host.terminals import Terminal, Terminals
from acp_proxy.transport import agent_tree
from child_processes import STUBBORN_FAMILY, eventually, is_running

PYTHON = [sys.executable, "-S", "-E", "-u", "-c"]
SLEEP = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture(params=["shim", "group"], autouse=True)
def keeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs with both ways of keeping a command's processes together."""
    if request.param == "group":
        monkeypatch.setattr(agent_tree, "HAVE_LIFELINE", False)
    monkeypatch.setattr(terminals_module, "TERM_GRACE", 0.2)
    return str(request.param)


class Host:
    """Terminals under test, and what was told of them."""

    def __init__(self, nursery: trio.Nursery, cwd: Path | None) -> None:
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.open = trio.Event()
        self.open.set()
        self.terminals = Terminals(lambda session, update: self.updates.append((session, update)), self._room)
        self._nursery = nursery
        self._cwd = None if cwd is None else str(cwd)

    async def _room(self) -> None:
        await self.open.wait()

    async def create(self, *argv: str, session: str = "s1", **more: Any) -> Terminal:
        params = {"sessionId": session, "command": argv[0], "args": list(argv[1:]), **more}
        return await self.terminals.create(params, self._cwd, self._nursery)

    async def python(self, code: str, **more: Any) -> Terminal:
        return await self.create(*PYTHON, code, **more)

    def told(self, terminal: Terminal) -> list[dict[str, Any]]:
        return [update for _, update in self.updates if update["terminalId"] == terminal.id]

    def output(self, terminal: Terminal) -> bytes:
        """What the client can put together from the chunks, each decoded by itself."""
        chunks = [
            one["data"] for one in self.told(terminal) if one["sessionUpdate"] == "terminal_output_chunk"
        ]
        return b"".join(base64.b64decode(chunk, validate=True) for chunk in chunks)

    async def said(self, terminal: Terminal, text: bytes) -> None:
        await eventually(lambda: text in self.output(terminal))


@asynccontextmanager
async def hosting(cwd: Path | None) -> AsyncIterator[Host]:
    async with trio.open_nursery() as nursery:
        yield Host(nursery, cwd)
        nursery.cancel_scope.cancel()


async def ended(terminal: Terminal) -> dict[str, Any]:
    await terminal.ended.wait()
    status = terminal.exit_status()
    assert status is not None
    return status


# ---------------------------------------------------------------- output


async def test_a_terminal_is_told_from_its_opening_to_its_exit(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python("import sys; print('a b'); sys.exit(3)")
        assert await ended(terminal) == {"exitCode": 3, "signal": None}
        opened, *chunks, last = host.told(terminal)
    assert opened == {
        "sessionUpdate": "terminal_update",
        "terminalId": terminal.id,
        "command": shlex.join([*PYTHON, "import sys; print('a b'); sys.exit(3)"]),
        "cwd": str(tmp_path),
        "capabilities": {"cancel": {}},
    }
    assert {chunk["sessionUpdate"] for chunk in chunks} == {"terminal_output_chunk"}
    assert last == {
        "sessionUpdate": "terminal_update",
        "terminalId": terminal.id,
        "exitStatus": {"exitCode": 3},
        "capabilities": None,
    }
    assert terminal.output.text(complete=True) == ("a b\n", False)


async def test_stdout_and_stderr_are_one_and_stdin_is_empty(tmp_path: Path) -> None:
    code = "import os\nfor n in range(50): os.write(1 + n % 2, b'%d ' % n)\nprint(os.read(0, 9))"
    async with hosting(tmp_path) as host:
        terminal = await host.python(code)
        await ended(terminal)
        expected = " ".join(map(str, range(50))) + " b''\n"
        assert terminal.output.text(complete=True)[0] == expected
        assert host.output(terminal).decode() == expected


async def test_all_output_of_a_command_that_ends_at_once_is_there(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python("import os; os.write(1, b'x' * 60000); os._exit(0)")
        await ended(terminal)
        assert host.output(terminal) == b"x" * 60000


async def test_what_nobody_had_read_when_the_command_ended_is_there_before_its_exit(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        host.open = trio.Event()
        terminal = await host.python("print('unread')")
        await ended(terminal)
        assert terminal.output.text(complete=True) == ("unread\n", False)
        assert "exitStatus" in host.told(terminal)[-1]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, ("aéb😀", False)), (8, ("aéb😀", False)), (5, ("b😀", True)), (3, ("", True)), (0, ("", True))],
)
async def test_the_client_is_told_all_of_an_output_that_is_kept_in_part(
    tmp_path: Path, limit: int | None, expected: tuple[str, bool]
) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python(
            "import sys; sys.stdout.buffer.write('aéb😀'.encode())", outputByteLimit=limit
        )
        await ended(terminal)
        assert terminal.output.text(complete=True) == expected
        assert host.output(terminal).decode() == "aéb😀"


async def test_the_proxys_own_limit_holds_whatever_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals_module, "MAX_OUTPUT_BYTES", 4)
    monkeypatch.setattr(terminals_module, "DEFAULT_OUTPUT_BYTES", 3)
    async with hosting(tmp_path) as host:
        for limit, kept in ((2**70, "2345"), (4.0, "2345"), (None, "345")):
            terminal = await host.python("print('012345', end='')", outputByteLimit=limit)
            await ended(terminal)
            assert terminal.output.text(complete=True) == (kept, True)


async def test_a_command_waits_while_the_client_does_not_read(tmp_path: Path) -> None:
    code = "import os\nwhile True: os.write(1, b'x' * 65536); open('wrote', 'ab').write(b'.')"
    async with hosting(tmp_path) as host:
        host.open = trio.Event()
        terminal = await host.python(code)
        await eventually((tmp_path / "wrote").exists)
        assert host.output(terminal) == b""
        assert len((tmp_path / "wrote").read_bytes()) < 20
        host.open.set()
        await eventually(lambda: len((tmp_path / "wrote").read_bytes()) > 40)


# ---------------------------------------------------------------- the start


async def test_arguments_reach_the_command_without_a_shell(tmp_path: Path) -> None:
    odd = ["$HOME", "; exit 1", "`id`", "*", "", "a b", "-x", "\n"]
    async with hosting(tmp_path) as host:
        terminal = await host.create(*PYTHON, "import sys; print(sys.argv[1:])", *odd)
        await ended(terminal)
        assert terminal.output.text(complete=True)[0] == f"{odd}\n"


async def test_environment_and_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_PROXY_TOKEN", "secret")
    monkeypatch.setenv("INHERITED", "yes")
    (tmp_path / "sub").mkdir()
    names = ["ACP_PROXY_TOKEN", "ACP_PROXY_X", "INHERITED", "ADDED"]
    code = f"import os; print(os.getcwd(), *map(os.environ.get, {names}))"
    env = [{"name": "ADDED", "value": "é"}, {"name": "ACP_PROXY_X", "value": "x"}]
    async with hosting(tmp_path) as host:
        for cwd, folder in ((None, tmp_path), (str(tmp_path / "sub"), tmp_path / "sub")):
            terminal = await host.python(code, env=env, cwd=cwd)
            await ended(terminal)
            assert terminal.output.text(complete=True)[0] == f"{folder} None None yes é\n"
            assert host.told(terminal)[0]["cwd"] == str(folder)


async def test_a_relative_command_is_relative_to_the_directory(tmp_path: Path) -> None:
    (tmp_path / "run").write_text(f"#!{sys.executable}\nprint('ran')\n")
    (tmp_path / "run").chmod(0o755)
    async with hosting(tmp_path) as host:
        terminal = await host.create("./run")
        await ended(terminal)
        assert terminal.output.text(complete=True)[0] == "ran\n"


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"command": "no-such-command"}, "cannot run 'no-such-command' (without a shell): not found on PATH"),
        ({"command": "echo a | wc"}, "cannot run 'echo a | wc' (without a shell): not found on PATH"),
        ({"command": "./missing"}, "cannot run './missing' (without a shell): no such file"),
        ({"command": "/"}, "cannot run '/' (without a shell): /: it is a directory"),
        ({"command": ""}, "the command is empty"),
        ({"command": "env", "args": ["a\0b"]}, "cannot run 'env' (without a shell): embedded null byte"),
        ({"command": "env", "env": [{"name": "a=b", "value": ""}]}, "illegal environment variable name"),
        ({"command": "env", "cwd": "sub"}, "cwd must be an absolute path"),
        ({"command": "env", "cwd": "/no/such/folder"}, "no such working directory: /no/such/folder"),
    ],
)
async def test_what_cannot_be_started_is_declined_and_told_to_nobody(
    tmp_path: Path, params: dict[str, Any], why: str
) -> None:
    more = {name: value for name, value in params.items() if name in ("env", "cwd")}
    async with hosting(tmp_path) as host:
        with pytest.raises(DeclinedError) as caught:
            await host.create(params["command"], *params.get("args", []), **more)
        assert why in caught.value.text
        assert caught.value.code == -32602
        assert host.updates == []


async def test_a_session_without_a_directory_needs_one_named(tmp_path: Path) -> None:
    async with hosting(None) as host:
        with pytest.raises(DeclinedError, match="cwd must be an absolute path"):
            await host.python("")
        await ended(await host.python("", cwd=str(tmp_path)))


async def test_terminals_are_limited_until_they_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals_module, "MAX_TERMINALS", 2)
    async with hosting(tmp_path) as host:
        first, second = await host.python(""), await host.python("")
        await ended(first)
        with pytest.raises(DeclinedError, match="more than 2 terminals"):
            await host.python("")
        host.terminals.release(first)
        third = await host.python("")
        assert len({first.id, second.id, third.id}) == 3


# ---------------------------------------------------------------- which terminal


async def test_a_terminal_is_found_by_its_session_until_it_is_released(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python("")
        assert host.terminals.find({"sessionId": "s1", "terminalId": terminal.id}) is terminal
        for params in (
            {"sessionId": "s2", "terminalId": terminal.id},
            {"sessionId": "s1", "terminalId": "other"},
        ):
            with pytest.raises(DeclinedError) as caught:
                host.terminals.find(params)
            assert caught.value.code == -32002
        host.terminals.release(terminal)
        with pytest.raises(DeclinedError):
            host.terminals.find({"sessionId": "s1", "terminalId": terminal.id})


async def test_ids_are_not_used_again_in_another_run(tmp_path: Path) -> None:
    ids: set[str] = set()
    for _ in range(2):
        async with hosting(tmp_path) as host:
            ids |= {(await host.python("")).id for _ in range(2)}
    assert len(ids) == 4


# ---------------------------------------------------------------- the end


async def test_a_killed_command_may_say_its_last_words(tmp_path: Path) -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("bye"), sys.exit(5)))
print("up")
time.sleep(600)
"""
    async with hosting(tmp_path) as host:
        terminal = await host.python(code)
        await host.said(terminal, b"up\n")
        terminal.kill()
        assert await ended(terminal) == {"exitCode": 5, "signal": None}
        assert host.output(terminal) == b"up\nbye\n"


async def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    async with hosting(tmp_path) as host:
        terminal = await host.python(code)
        await host.said(terminal, b"up\n")
        terminal.kill()
        terminal.kill()
        assert await ended(terminal) == {"exitCode": None, "signal": "SIGKILL"}
        assert host.told(terminal)[-1]["exitStatus"] == {"signal": "SIGKILL"}


async def test_signals_without_a_name_have_a_number(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python("import os; os.kill(os.getpid(), 40)")
        assert (await ended(terminal))["signal"] == "SIG40"


async def test_release_kills_a_running_command(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python(SLEEP)
        await host.said(terminal, b"up\n")
        host.terminals.release(terminal)
        assert await ended(terminal) == {"exitCode": None, "signal": "SIGTERM"}
        assert host.told(terminal)[-1]["exitStatus"] == {"signal": "SIGTERM"}


async def test_a_closed_session_takes_only_its_own_commands_along(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        mine, too, other = [await host.python(SLEEP, session=name) for name in ("s1", "s1", "s2")]
        for terminal in (mine, too, other):
            await host.said(terminal, b"up\n")
        host.terminals.end_session("s1")
        await ended(mine)
        await ended(too)
        assert other.exit_status() is None
        assert host.terminals.find({"sessionId": "s2", "terminalId": other.id}) is other


async def family(host: Host) -> tuple[Terminal, list[int]]:
    """A command that ignores SIGTERM, as do a child in its group and a grandchild in a session of its own."""
    terminal = await host.python(STUBBORN_FAMILY)
    await host.said(terminal, b"\n")
    return terminal, [int(pid) for pid in host.output(terminal).split()[:3]]


def gone(pids: list[int], keeper: str) -> Callable[[], bool]:
    """Without the shim, one that left the group escapes us."""
    followed = pids if keeper == "shim" else [pids[index] for index in range(3) if in_group(pids, index)]
    return lambda: not any(map(is_running, followed))


def in_group(pids: list[int], index: int) -> bool:
    try:
        return os.getpgid(pids[index]) == pids[2]
    except ProcessLookupError:
        return True


@pytest.mark.parametrize("how", ["kill", "release", "end"])
async def test_all_that_a_command_started_ends_with_it(tmp_path: Path, how: str, keeper: str) -> None:
    async with hosting(tmp_path) as host:
        terminal, pids = await family(host)
        over = gone(pids, keeper)
        escaped = [pid for pid, index in zip(pids, range(3), strict=True) if not in_group(pids, index)]
        assert is_running(pids[0])
        if how == "kill":
            terminal.kill()
        elif how == "release":
            host.terminals.release(terminal)
        if how != "end":
            await eventually(over)
    assert over()
    if keeper == "group":
        for pid in escaped:
            os.kill(pid, 9)


async def test_what_a_command_leaves_behind_is_no_longer_heard_and_ended(tmp_path: Path, keeper: str) -> None:
    code = """
import os, time
if os.fork() == 0:
    print(os.getpid())
    time.sleep(600)
time.sleep(0.2)
"""
    async with hosting(tmp_path) as host:
        terminal = await host.python(code)
        assert await ended(terminal) == {"exitCode": 0, "signal": None}
        assert host.told(terminal)[-1]["exitStatus"] == {"exitCode": 0}
        pid = int(host.output(terminal))
        await eventually(lambda: not is_running(pid))


async def test_being_cancelled_ends_commands_and_closes_all(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    async with hosting(tmp_path) as host:
        terminals = [await host.python(SLEEP) for _ in range(3)]
        for terminal in terminals:
            await host.said(terminal, b"up\n")
    assert [terminal.exit_status() for terminal in terminals] == [{"exitCode": None, "signal": "SIGTERM"}] * 3
    assert len(os.listdir("/dev/fd")) == before


async def test_repr_says_how_it_is(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        terminal = await host.python("")
        assert repr(terminal) == f"<Terminal {terminal.id}: running>"
        await ended(terminal)
        assert repr(terminal) == f"<Terminal {terminal.id}: exit status 0>"
