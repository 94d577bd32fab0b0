"""Carries out what the relay hands over, and says what comes of it as messages.

It answers requests of v1 (`fs/*`, `terminal/*`) by their ids, and tells of terminals by `session/update`
notifications of v2. A notification handed over wants no answer: `terminal/kill` kills a terminal,
`session/close` all those of a session. Files are handled one after another, and so is what concerns
terminals, so that an agent that does not wait for answers finds things in the order it asked for them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import trio

from acp_proxy.host import roots
from acp_proxy.host.declined import DeclinedError
from acp_proxy.host.files import read_text_file, write_text_file
from acp_proxy.host.terminals import Terminal, Terminals
from acp_proxy.jsonrpc.message import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Json,
    Message,
    Notification,
    Request,
    error,
    notification,
    result,
)

# Processes are kept together as POSIX does it, and paths walked by descriptors.
AVAILABLE: Final = {"fs": roots.AVAILABLE, "terminal": hasattr(os, "killpg")}

HIGH_WATER: Final = 64

T = TypeVar("T")


class Job:
    """A message with what its session was opened with: the working directory, all directories allowed."""

    __slots__ = ("cwd", "directories", "message")

    def __init__(self, message: Request | Notification, cwd: str | None, directories: Sequence[str]) -> None:
        self.message = message
        self.cwd = cwd
        self.directories = directories


class HostExecutor:
    """Files and commands for one agent; `say` takes each answer and update, from the tasks of `run` only.

    `room` is waited for before a command's output is read.
    """

    def __init__(self, say: Callable[[Message], None], room: Callable[[], Awaitable[None]]) -> None:
        self._say = say
        self._terminals = Terminals(self._tell, room)
        self._file_jobs, self._next_file_job = trio.open_memory_channel[Job](math.inf)
        self._terminal_jobs, self._next_terminal_job = trio.open_memory_channel[Job](math.inf)
        self._waiting = 0
        self._fewer = trio.lowlevel.ParkingLot()
        self._scope = trio.CancelScope()

    def take(self, message: Request | Notification, cwd: str | None, directories: Sequence[str]) -> None:
        """Have a message carried out; nothing is said before this returns.

        Its params fit their v1 type; `sessionId` is known to be that of an open session.
        """
        self._waiting += 1
        jobs = self._file_jobs if message.method.startswith("fs/") else self._terminal_jobs
        jobs.send_nowait(Job(message, cwd, directories))

    async def room(self) -> None:
        """Wait until not too many messages wait here."""
        while self._waiting > HIGH_WATER and not self._scope.cancel_called:
            await self._fewer.park()

    async def run(self) -> None:
        """Do the work until `end`; when this returns, no command runs any more."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._do_all, self._next_file_job, self._do_file)
                nursery.start_soon(self._do_all, self._next_terminal_job, partial(self._do_terminal, nursery))

    def end(self) -> None:
        """Take nothing more and end all commands."""
        self._scope.cancel()
        self._fewer.unpark_all()

    async def _do_all(
        self, jobs: trio.MemoryReceiveChannel[Job], do: Callable[[Job], Awaitable[Json | None]]
    ) -> None:
        async for job in jobs:
            try:
                answer = await do(job)
            except DeclinedError as declined:
                self._decline(job.message, declined)
            else:
                if answer is not None and isinstance(job.message, Request):
                    self._say(result(job.message.id, answer))
            self._waiting -= 1
            self._fewer.unpark_all()

    def _decline(self, message: Request | Notification, declined: DeclinedError) -> None:
        if isinstance(message, Request):
            self._say(error(message.id, declined.code, declined.text, declined.data))

    async def _do_file(self, job: Job) -> Json:
        params = job.message.params
        if job.message.method == "fs/read_text_file":
            line, limit = params.get("line"), params.get("limit")
            work = partial(read_text_file, params["path"], job.directories, line, limit)
            return {"content": await _in_thread(work)}
        if job.message.method == "fs/write_text_file":
            await _in_thread(partial(write_text_file, params["path"], params["content"], job.directories))
            return {}
        raise _unknown(job.message)

    async def _do_terminal(self, nursery: trio.Nursery, job: Job) -> Json | None:
        """The answer, None when it comes later or nobody wants one."""
        method, params = job.message.method, job.message.params
        terminals = self._terminals
        if method == "terminal/create":
            return {"terminalId": (await terminals.create(params, job.cwd, nursery)).id}
        if method == "session/close":
            terminals.end_session(params["sessionId"])
            return None
        terminal = terminals.find(params)
        if method == "terminal/output":
            status = terminal.exit_status()
            text, truncated = terminal.output.text(complete=status is not None)
            return {"output": text, "truncated": truncated, "exitStatus": status}
        if method == "terminal/wait_for_exit" and isinstance(job.message, Request):
            nursery.start_soon(self._answer_at_the_end, job.message, terminal)
            return None
        if method == "terminal/kill":
            terminal.kill()
            return {}
        if method == "terminal/release":
            terminals.release(terminal)
            return {}
        raise _unknown(job.message)

    async def _answer_at_the_end(self, message: Request, terminal: Terminal) -> None:
        await terminal.ended.wait()
        self._say(result(message.id, terminal.exit_status()))

    def _tell(self, session_id: str, update: Json) -> None:
        self._say(notification("session/update", {"sessionId": session_id, "update": update}))


def _unknown(message: Request | Notification) -> DeclinedError:
    return DeclinedError(METHOD_NOT_FOUND, f"{message.method} is not available")


async def _in_thread(work: Callable[[], T]) -> T:
    """Not waited for when we end: a file system that hangs must not keep the proxy from ending."""
    try:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
    except ValueError as wrong:  # a NUL or half a character in a path
        raise DeclinedError(INVALID_PARAMS, f"no path: {wrong}") from None
