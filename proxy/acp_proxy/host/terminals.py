"""Commands that an agent runs on our own machine, and what they put out (bridge §8).

A command is started without a shell, in a session of its own, below the same supervisor as an agent: all
that descends from it ends with it, and with us. There is no pseudo-terminal: stdin is empty, stdout and
stderr are one pipe. While the client does not read, neither do we, and the command waits.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import signal
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from acp_proxy.errors import AgentStartError
from acp_proxy.host.declined import DeclinedError
from acp_proxy.host.output import OutputTail
from acp_proxy.jsonrpc.message import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, Json
from acp_proxy.transport.agent_command import AgentCommand, ExitStatus, agent_environment, find_executable
from acp_proxy.transport.agent_tree import KILL_PATIENCE, AgentTree, start_tree

# Not released, running or not; each keeps its output.
MAX_TERMINALS: Final = 128
DEFAULT_OUTPUT_BYTES: Final = 1024 * 1024
MAX_OUTPUT_BYTES: Final = 4 * 1024 * 1024
TERM_GRACE: Final = 2.0

_CHUNK: Final = 48 * 1024  # a multiple of three, so that base64 needs no padding
_REST: Final = 1024 * 1024

# Takes the id of a session and the body of an update for it (schema type SessionUpdate of v2).
Tell = Callable[[str, Json], None]


class Terminal:
    """One command, from its start to the end of all that descends from it."""

    def __init__(
        self,
        terminal_id: str,
        session_id: str,
        tree: AgentTree,
        output: OutputTail,
        tell: Tell,
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self.id = terminal_id
        self.session_id = session_id
        self.output = output
        self.status: ExitStatus | None = None
        self.ended = trio.Event()
        self._tree = tree
        self._tell = tell
        self._room = room
        self._gone = False
        self._killing = trio.Event()
        self._reading = trio.CancelScope()

    def __repr__(self) -> str:
        return f"<Terminal {self.id}: {self.status or 'running'}>"

    async def run(self) -> None:
        """Read what it puts out and see it end; cancelled, end it."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                nursery.start_soon(self._kill_when_told)
                await self._tree.watch(self._note_end)
                self._gone = True
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._see_it_end()
            self._tree.release()
            self._tree.stdout.close()

    def kill(self) -> None:
        """SIGTERM now, SIGKILL after the grace; does not wait."""
        self._killing.set()

    def exit_status(self) -> Json | None:
        """How it ended, as v1 tells it: `{exitCode, signal}`, one of them null; None while it runs."""
        if self.status is None:
            return None
        return {"exitCode": self.status.code, "signal": _signal_name(self.status.signal)}

    async def _read(self) -> None:
        with self._reading:
            while True:
                await self._room()
                data = bytes(await self._tree.stdout.receive_some(_CHUNK))
                if not data:
                    break
                self._take(data)

    def _take(self, data: bytes) -> None:
        self.output.add(data)
        chunk = {"sessionUpdate": "terminal_output_chunk", "terminalId": self.id}
        self._tell(self.session_id, {**chunk, "data": base64.b64encode(data).decode()})

    def _note_end(self, status: ExitStatus) -> None:
        """The command's own process has ended. What its descendants still say is nobody's output."""
        if self.status is not None:
            return
        self._take_rest()
        self._reading.cancel()
        self.status = status
        told = {key: value for key, value in (self.exit_status() or {}).items() if value is not None}
        update = {"sessionUpdate": "terminal_update", "terminalId": self.id}
        self._tell(self.session_id, {**update, "exitStatus": told, "capabilities": None})
        self.ended.set()

    def _take_rest(self) -> None:
        """What stands in the pipe at this moment, in order after what was read."""
        size = 0
        with contextlib.suppress(OSError):
            while size < _REST and (data := os.read(self._tree.stdout.fileno(), _CHUNK)):
                size += len(data)
                self._take(data)

    async def _kill_when_told(self) -> None:
        await self._killing.wait()
        self._tree.terminate()
        await trio.sleep(TERM_GRACE)
        self._tree.kill()

    async def _see_it_end(self) -> None:
        """SIGTERM, the grace, SIGKILL: the end of whatever `run` was not allowed to wait for."""
        for end, patience in ((self._tree.terminate, TERM_GRACE), (self._tree.kill, KILL_PATIENCE)):
            if not self._gone:
                end()
                with trio.move_on_after(patience):
                    await self._tree.watch(self._note_end)
                    self._gone = True


class Terminals:
    """The terminals of all sessions of one agent; ids are never used twice."""

    def __init__(self, tell: Tell, room: Callable[[], Awaitable[None]]) -> None:
        self._tell = tell
        self._room = room
        self._open: dict[str, Terminal] = {}

    async def create(self, params: Json, cwd: str | None, nursery: trio.Nursery) -> Terminal:
        """Start a command (schema type CreateTerminalRequest); the client is told before this returns.

        Raises:
            DeclinedError: it cannot be started, or there are too many.
        """
        if len(self._open) >= MAX_TERMINALS:
            raise DeclinedError(INTERNAL_ERROR, f"more than {MAX_TERMINALS} terminals wait to be released")
        folder = _folder(params.get("cwd") or cwd)
        argv = [params["command"], *params.get("args", ())]
        added = {variable["name"]: variable["value"] for variable in params.get("env", ())}
        tree = await _start(AgentCommand(argv, env=added, cwd=folder))
        terminal = Terminal(
            # Not counted: a session that is loaded again tells of terminals of an earlier run.
            f"terminal-{os.urandom(8).hex()}",
            params["sessionId"],
            tree,
            OutputTail(_output_limit(params.get("outputByteLimit"))),
            self._tell,
            self._room,
        )
        self._open[terminal.id] = terminal
        opened = {"sessionUpdate": "terminal_update", "terminalId": terminal.id, "command": shlex.join(argv)}
        self._tell(terminal.session_id, {**opened, "cwd": folder, "capabilities": {"cancel": {}}})
        nursery.start_soon(terminal.run)
        return terminal

    def find(self, params: Json) -> Terminal:
        """The terminal that a request names.

        Raises:
            DeclinedError: the session has none of this id, or it was released (-32002).
        """
        terminal = self._open.get(params["terminalId"])
        if terminal is None or terminal.session_id != params["sessionId"]:
            named = {"terminalId": params["terminalId"]}
            raise DeclinedError(RESOURCE_NOT_FOUND, "the session has no such terminal", named)
        return terminal

    def release(self, terminal: Terminal) -> None:
        """Forget a terminal; a command that still runs is killed."""
        del self._open[terminal.id]
        terminal.kill()

    def end_session(self, session_id: str) -> None:
        """Release all terminals of a session."""
        for terminal in list(self._open.values()):
            if terminal.session_id == session_id:
                self.release(terminal)


def _folder(path: str | None) -> str:
    if path is None or not os.path.isabs(path):
        raise DeclinedError(INVALID_PARAMS, "cwd must be an absolute path")
    if not os.path.isdir(path):
        raise DeclinedError(INVALID_PARAMS, f"no such working directory: {path}")
    return path


async def _start(command: AgentCommand) -> AgentTree:
    environment = agent_environment(command, os.environ)
    try:
        if not command.name:
            raise DeclinedError(INVALID_PARAMS, "the command is empty")
        executable = find_executable(command, environment)
        argv = [executable, *command.argv]
        return await start_tree(argv, command.cwd, environment, TERM_GRACE, one_output=True)
    except AgentStartError as error:
        cause = error.reason.removeprefix(f"cannot start agent {command.name!r}: ")
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else str(error)
    except ValueError as error:  # a NUL, half a character, or a variable's name with `=` in it
        cause = str(error)
    # Some agents put a whole shell command into one string.
    raise DeclinedError(INVALID_PARAMS, f"cannot run {command.name!r} (without a shell): {cause}")


def _output_limit(wanted: int | float | None) -> int:
    return DEFAULT_OUTPUT_BYTES if wanted is None else min(int(wanted), MAX_OUTPUT_BYTES)


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
