"""The agent as a child process: started without a shell, heard to its last byte, and never left behind.

The agent's end is judged by its process, not by its pipes: a grandchild may hold them open long after. What
is to be ended is always the whole tree of processes. On Linux the shim of `lifeline.py` stands between us and
the agent and ends the tree also when we are killed; elsewhere the agent is our own child and its group is
signaled.

This is the one module of the package that may import what only POSIX systems have.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

import trio

from acp_proxy.transport.agent_command import (
    AgentCommand,
    ExitStatus,
    agent_environment,
    find_executable,
    start_error,
)
from acp_proxy.transport.agent_leg import AgentLeg
from acp_proxy.transport.agent_stderr import StderrLines
from acp_proxy.transport.agent_tree import KILL_PATIENCE, UNSEEN_END, AgentTree, start_tree
from acp_proxy.transport.base import RECEIVE_BYTES, StreamTransport

__all__ = ["AgentCommand", "AgentProcess", "ExitStatus", "start_agent"]

# What is read of an ended agent's output at most in one go: a pipe's content, however large it was made.
REST_BYTES = 1024 * 1024
# What an agent may write ahead of us: less makes it wait for each of our reads, which halves the rate of long lines.
PIPE_BYTES = 1024 * 1024


async def start_agent(
    command: AgentCommand,
    *,
    nursery: trio.Nursery,
    eof_grace: float = 5.0,
    term_grace: float = 3.0,
    on_stderr: Callable[[bytes], None] | None = None,
) -> AgentProcess:
    """Start the agent in a session of its own and return it running.

    Its environment is ours and the command's, without variables whose name begins with `ACP_PROXY_`. It gets
    descriptors 0, 1 and 2 and no other, and on Linux the default disposition of every signal; elsewhere of
    those that Python changes.

    `nursery` holds the tasks that drain stderr and watch the process. They end when the agent and its
    descendants are gone, so leaving the nursery's block waits for that; cancelling the nursery climbs the
    ladder of `AgentProcess.shut_down`. `eof_grace` and `term_grace` are that ladder's waits in seconds.

    `on_stderr` gets what the agent writes to stderr, as whole lines of at most 8 KiB and at most 200 a
    second, followed by a line that says how many were left out. It must not block; once it raised, it is not
    called again.

    Raises:
        AgentStartError: with 127 when the command is not found, with 126 when it cannot be executed.
            Nothing is left running then, nor when the call is cancelled.
    """
    environment = agent_environment(command, os.environ)
    executable = find_executable(command, environment)
    try:
        tree = await start_tree([executable, *command.argv], command.cwd, environment, term_grace)
    except (OSError, ValueError) as error:
        raise start_error(command, error) from error
    agent = AgentProcess(tree, eof_grace, term_grace, on_stderr)
    try:
        agent.run_in(nursery)
    except BaseException:
        await tree.discard()
        raise
    return agent


class AgentProcess(StreamTransport, AgentLeg):
    """A started agent: its stdin and stdout as a transport, its stderr drained, its end watched.

    `receive_some` ends when the agent closes stdout, which is not yet the end of the process (`exit_status`
    is None then): that state is for the caller to judge. The other way round, after `wait` returned, stdout
    may hold output that was written before the end: take it with `receive_rest` before the end is acted on.
    """

    def __init__(
        self,
        tree: AgentTree,
        eof_grace: float,
        term_grace: float,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        super().__init__(tree.stdin, tree.stdout)
        _widen(tree.stdout.fileno())
        self.pid = tree.pid
        self.exit_status: ExitStatus | None = None
        self._tree = tree
        self._eof_grace = eof_grace
        self._term_grace = term_grace
        self._on_stderr = on_stderr
        self._stderr_lines = StderrLines()
        self._ended = trio.Event()
        self._gone = trio.Event()
        self._watching = trio.CancelScope(shield=True)
        self._draining = trio.CancelScope(shield=True)

    def __repr__(self) -> str:
        return f"<AgentProcess {self.pid}: {self.exit_status or 'running'}>"

    def run_in(self, nursery: trio.Nursery) -> None:
        """Start the background tasks; called once, by `start_agent`."""
        nursery.start_soon(self._watch)
        nursery.start_soon(self._drain_stderr)
        nursery.start_soon(self._end_when_cancelled)

    async def wait(self) -> ExitStatus:
        """Wait for the end of the agent's own process; any number of tasks may.

        Its stderr is read up to that moment. Its descendants are sent SIGTERM by then, and SIGKILL after the
        grace, without anybody's doing.
        """
        await self._ended.wait()
        assert self.exit_status is not None
        return self.exit_status

    async def receive_rest(self) -> bytes:
        """Return what stands in stdout's pipe at this moment, without waiting for more; at most about 1 MiB.

        For the task that reads, between two calls of `receive_some`. `b""` means nothing more for now: a
        descendant that holds the pipe may still write, so a caller goes on for a short bounded time at most.
        """
        await trio.lowlevel.checkpoint()
        return _read_now(self._tree.stdout, REST_BYTES)

    def stderr_tail(self) -> list[str]:
        """Return the last 20 lines of stderr, without their ends, each cut at 8 KiB."""
        return self._stderr_lines.tail()

    async def shut_down(self) -> None:
        """Climb the ladder: close stdin, SIGTERM after `eof_grace`, SIGKILL after `term_grace`.

        The first step waits for the agent's own end, the others for the end of all its descendants. Returns
        when nobody is left, at the latest after both graces and a few seconds in which even SIGKILL had no
        effect. Not interrupted by cancellation. Harmless when called again, at the same time too, and after
        the end.
        """
        with trio.CancelScope(shield=True):
            await self.send_eof()
            with trio.move_on_after(self._eof_grace):
                await self._ended.wait()
            await self.terminate_now()

    async def terminate_now(self) -> None:
        """Climb the ladder from SIGTERM on; otherwise like `shut_down`, also while that is waiting."""
        with trio.CancelScope(shield=True):
            self._tree.terminate()
            with trio.move_on_after(self._term_grace):
                await self._gone.wait()
            await self.kill()

    async def kill(self) -> None:
        """Send SIGKILL to the agent and all its descendants; otherwise like `shut_down`, also during it."""
        if self._gone.is_set():
            return
        with trio.CancelScope(shield=True):
            self._tree.kill()
            with trio.move_on_after(KILL_PATIENCE):
                await self._gone.wait()
            self._tree.force()
            with trio.move_on_after(KILL_PATIENCE):
                await self._gone.wait()
            self.hand_over()

    def hand_over(self) -> None:
        """Stop waiting for whatever is left, so that the nursery can be left at once.

        For a process that exits after the agent ended: on Linux the shim ends the descendants by itself,
        SIGTERM, grace and SIGKILL, elsewhere they get SIGKILL now. An agent still running is ended in the
        same way.
        """
        self._watching.cancel()

    async def aclose(self) -> None:
        """Shut the agent down (see `shut_down`), then close the pipes."""
        try:
            await self.shut_down()
        finally:
            await super().aclose()

    async def _watch(self) -> None:
        try:
            with self._watching:
                await self._tree.watch(self._note_end)
        finally:
            if self.exit_status is None:
                self._note_end(UNSEEN_END)
            self._gone.set()
            self._draining.cancel()
            self._tree.release()

    def _note_end(self, status: ExitStatus) -> None:
        # Whoever waits for the end wants the agent's last words, which may still be in the pipe.
        self._take_stderr(_read_now(self._tree.stderr, REST_BYTES))
        self.exit_status = status
        self._ended.set()

    async def _end_when_cancelled(self) -> None:
        try:
            await self._gone.wait()
        except trio.Cancelled:
            await self.shut_down()
            raise

    async def _drain_stderr(self) -> None:
        stderr = self._tree.stderr
        with self._draining, contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            at_end = False
            while not at_end:
                chunk = b""
                with trio.move_on_at(self._stderr_lines.report_due):
                    chunk = await stderr.receive_some(RECEIVE_BYTES)
                    at_end = not chunk
                self._take_stderr(chunk)
        self._take_stderr(_read_now(stderr, REST_BYTES))
        self._show_stderr(self._stderr_lines.finish())
        with trio.CancelScope(shield=True):
            await stderr.aclose()

    def _take_stderr(self, chunk: bytes) -> None:
        self._show_stderr(self._stderr_lines.feed(chunk, trio.current_time()))

    def _show_stderr(self, lines: bytes) -> None:
        if lines and self._on_stderr is not None:
            try:
                self._on_stderr(lines)
            except Exception:  # an observer's failure must not stop the agent's stderr from being drained
                self._on_stderr = None


def _widen(descriptor: int) -> None:
    """Let an agent write ahead, where the system allows it."""
    # Linux alone has a way to ask for it, and may refuse it to a user with many pipes.
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _read_now(stream: trio.lowlevel.FdStream, limit: int) -> bytes:
    """Return what a pipe of ours holds at this moment, up to about `limit` bytes."""
    chunks: list[bytes] = []
    size = 0
    # The end, a broken pipe and a closed one (-1) are all nothing more to be had.
    with contextlib.suppress(OSError):
        while size < limit and (chunk := os.read(stream.fileno(), RECEIVE_BYTES)):
            chunks.append(chunk)
            size += len(chunk)
    return b"".join(chunks)
