"""The agent's process with all that descends from it: how it is started, watched and ended on this system.

On Linux below the shim of `lifeline.py`, which can find every descendant and lives on when we are killed.
Elsewhere as our own child in a session of its own, of which the process group can be signaled: a descendant
that leaves the group escapes, and so do all when we are killed.
"""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import trio

from acp_proxy.transport.agent_command import ExitStatus

LIFELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lifeline.py")
HAVE_LIFELINE = sys.platform == "linux" and bool(sys.executable)

# After SIGKILL only the kernel is waited for, which may be in a system call that nothing interrupts.
KILL_PATIENCE = 2.0

# How often a group of which we are not the parent is asked whether anyone is left.
SURVEY_SECONDS = 0.05

# The end of an agent that we could not see: we did all we can to make it this.
UNSEEN_END = ExitStatus(signal=9)


async def start_tree(
    argv: Sequence[str],
    cwd: str | None,
    environment: Mapping[str, str],
    term_grace: float,
    *,
    one_output: bool = False,
) -> AgentTree:
    """Start an agent: `argv[0]` is the path to execute, the rest what the agent sees as its own argv.

    `one_output` is for commands that are no agents: stdin is empty, and stderr goes where stdout goes.

    Raises:
        OSError: it cannot be executed; nothing is left running, nor is when the call is cancelled.
        ValueError: an argument or variable holds what none can.
    """
    start = ShimTree.start if HAVE_LIFELINE else GroupTree.start
    return await start(argv, cwd, environment, term_grace, one_output)


class AgentTree(abc.ABC):
    """A running agent and its descendants.

    The methods that end them do not wait, never raise, and are harmless when called again or too late.
    """

    def __init__(self, process: trio.Process, pid: int) -> None:
        self.pid = pid
        self._process = process

    @property
    def stdin(self) -> trio.lowlevel.FdStream:
        """Our end of the pipe; there is none to a tree of one output."""
        return _pipe(self._process.stdin)

    @property
    def stdout(self) -> trio.lowlevel.FdStream:
        """Our end of the pipe."""
        return _pipe(self._process.stdout)

    @property
    def stderr(self) -> trio.lowlevel.FdStream:
        """Our end of the pipe; there is none to a tree of one output."""
        return _pipe(self._process.stderr)

    @abc.abstractmethod
    async def watch(self, ended: Callable[[ExitStatus], None]) -> None:
        """Call `ended` when the agent's own process has ended; return when no process is left."""

    @abc.abstractmethod
    def terminate(self) -> None:
        """Send SIGTERM to all."""

    @abc.abstractmethod
    def kill(self) -> None:
        """Send SIGKILL to all."""

    @abc.abstractmethod
    def force(self) -> None:
        """Do what else can be done when `kill` had no effect."""

    @abc.abstractmethod
    def release(self) -> None:
        """Close what is held for watching. Processes that are left are ended without us."""

    async def discard(self) -> None:
        """Undo a start that came to nothing: kill all, collect our child and close everything."""
        self.kill()
        await _dispose(self._process)
        self.release()


class ShimTree(AgentTree):
    """An agent below the shim; the two pipes to it are described there."""

    def __init__(self, process: trio.Process, pid: int, status: StatusLines, lifeline: int) -> None:
        super().__init__(process, pid)
        self._status = status
        self._lifeline: int | None = lifeline
        self._agent_ended = False

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        cwd: str | None,
        environment: Mapping[str, str],
        term_grace: float,
        one_output: bool,
    ) -> ShimTree:
        """Start the shim and wait for its word; see `start_tree`."""
        with contextlib.ExitStack() as ours:
            with contextlib.ExitStack() as theirs:
                status_reader, status_writer = os.pipe()
                theirs.callback(os.close, status_writer)
                status = StatusLines(status_reader)
                ours.callback(status.close)
                lifeline_reader, lifeline = os.pipe()
                theirs.callback(os.close, lifeline_reader)
                ours.callback(os.close, lifeline)
                # Without site and PYTHON* variables: quick, and the agent's environment has no say in it.
                shim = [sys.executable, "-I", "-S", LIFELINE, str(status_writer), str(lifeline_reader)]
                try:
                    process = await _open(
                        [*shim, str(term_grace), cwd or "", *argv],
                        environment,
                        one_output,
                        pass_fds=(status_writer, lifeline_reader),
                    )
                except OSError as error:
                    # Without its number, which would be taken for the agent's.
                    raise OSError(f"its supervisor cannot be started ({error.strerror})") from error
            try:
                word = await status.receive()
                if word[:1] != ["started"]:
                    raise OSError(int(word[1]), "") if word else OSError("its supervisor did not start")
            except BaseException:
                with contextlib.suppress(OSError):
                    os.write(lifeline, b"K")
                await _dispose(process)
                raise
            ours.pop_all()
            return cls(process, int(word[1]), status, lifeline)

    async def watch(self, ended: Callable[[ExitStatus], None]) -> None:
        """See `AgentTree.watch`; only the shim's own end tells that no process is left."""
        while word := await self._status.receive():
            self._agent_ended = True
            number = int(word[1])
            ended(ExitStatus(code=number) if word[0] == "exited" else ExitStatus(signal=number))
        if not self._agent_ended:
            # Somebody killed the shim. The agent's group is all that we can still find.
            self._signal_group(signal.SIGKILL)
            self._agent_ended = True
            ended(UNSEEN_END)
        await self._process.wait()

    def terminate(self) -> None:
        """See `AgentTree.terminate`; the shim goes on to SIGKILL by itself."""
        self._order(b"T")

    def kill(self) -> None:
        """See `AgentTree.kill`."""
        self._order(b"K")

    def force(self) -> None:
        """Wake a shim that somebody stopped, and kill the agent's group without it."""
        with contextlib.suppress(OSError):
            self._process.send_signal(signal.SIGCONT)
        if not self._agent_ended:
            self._signal_group(signal.SIGKILL)

    def release(self) -> None:
        """Let go of the lifeline, which is the shim's order to end what is left."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)
            self._status.close()

    def _order(self, order: bytes) -> None:
        if self._lifeline is not None:
            with contextlib.suppress(OSError):
                os.write(self._lifeline, order)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, number)


class GroupTree(AgentTree):
    """An agent that is our own child and leads a process group."""

    def __init__(self, process: trio.Process, term_grace: float) -> None:
        super().__init__(process, process.pid)
        self._term_grace = term_grace
        self._terminated = False
        self._over = False

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        cwd: str | None,
        environment: Mapping[str, str],
        term_grace: float,
        one_output: bool,
    ) -> GroupTree:
        """Start the agent; see `start_tree`."""
        process = await _open(argv[1:], environment, one_output, executable=argv[0], cwd=cwd)
        return cls(process, term_grace)

    async def watch(self, ended: Callable[[ExitStatus], None]) -> None:
        """See `AgentTree.watch`; what is left of the group is ended here."""
        ended(ExitStatus.from_returncode(await self._process.wait()))
        # The number cannot be given to another process while the group has members, and there is no time
        # between the leader's end and the first of these signals.
        self._signal_group(signal.SIGTERM)
        if not await self._emptied(self._term_grace):
            self._signal_group(signal.SIGKILL)
            await self._emptied(KILL_PATIENCE)
        self._over = True

    def terminate(self) -> None:
        """See `AgentTree.terminate`."""
        if not self._terminated:
            self._terminated = True
            self._signal_group(signal.SIGTERM)
            # A stopped process gets its SIGTERM only when it goes on.
            self._signal_group(signal.SIGCONT)

    def kill(self) -> None:
        """See `AgentTree.kill`."""
        self._signal_group(signal.SIGKILL)

    def force(self) -> None:
        """Nothing more can be done."""

    def release(self) -> None:
        """Kill what is left: nobody does it later."""
        self.kill()
        self._over = True

    async def _emptied(self, patience: float) -> bool:
        for _ in range(1 + int(patience / SURVEY_SECONDS)):
            if not self._anyone_left():
                return True
            await trio.sleep(SURVEY_SECONDS)
        return False

    def _anyone_left(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except OSError:  # also EPERM, which macOS says of a group of zombies
            return False
        return True

    def _signal_group(self, number: int) -> None:
        if not self._over:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)


class StatusLines:
    """The shim's reports, one list of words at a time."""

    def __init__(self, fd: int) -> None:
        self._stream = trio.lowlevel.FdStream(fd)
        self._buffer = b""

    async def receive(self) -> list[str]:
        """Return the next line's words; an empty list when the shim is gone."""
        while b"\n" not in self._buffer:
            chunk = await self._stream.receive_some()
            if not chunk:
                return []
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("ascii").split()

    def close(self) -> None:
        """Close the pipe."""
        self._stream.close()


async def _open(
    argv: Sequence[str],
    environment: Mapping[str, str],
    one_output: bool,
    *,
    executable: str | None = None,
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
) -> trio.Process:
    # Out of reach of signals that a terminal sends to our group: it is for us to say when the agent ends.
    # Ours is done in a thread by trio; a parent death signal must therefore never be set here.
    return await trio.lowlevel.open_process(
        list(argv),
        stdin=subprocess.DEVNULL if one_output else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if one_output else subprocess.PIPE,
        env=environment,
        executable=executable,
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,
    )


async def _dispose(process: trio.Process) -> None:
    """Close a process's pipes and collect it, soon to end or ended."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            _pipe(stream).close()
    with trio.move_on_after(KILL_PATIENCE, shield=True):
        await process.wait()


def _pipe(stream: object) -> trio.lowlevel.FdStream:
    assert isinstance(stream, trio.lowlevel.FdStream)
    return stream
