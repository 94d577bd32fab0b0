"""The shim that outlives us: starts the agent, tells how it ended, and leaves nothing of it behind.

Linux only, and run as a program of its own, by `python -I -S` with the arguments of `main`; nothing imports
it. It imports little, since every agent's start waits for it.

Two pipes join it to the proxy. On the *status* pipe it writes lines: `started PID`, or `failed ERRNO` and
nothing more; then `exited CODE` or `killed SIGNAL` when the agent's own process ends. The *lifeline* is a
pipe whose write end only the proxy holds. Its end means that the proxy is no more, in whatever way it went,
and is the same order as `T`: SIGTERM to all that is left, and after a grace SIGKILL. `K` is SIGKILL now.

Being the child subreaper it inherits every descendant of the agent that loses its parent, also one in a
session of its own. Hence two facts: all of them are found below it in /proc, and having no children means
that there are none. A parent death signal would be simpler, but comes when the *thread* that started the
child ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable

PR_SET_CHILD_SUBREAPER = 36

# How long to wait for a child's end before looking for descendants again that were missed or newly born.
SWEEP_SECONDS = 0.05
# Long enough for those who do hear SIGTERM to be gone when the others are looked at.
LOOK_SECONDS = 0.2

# SIGKILL is not refused by a process that we may kill. One we may not (it became another user) is left alone.
KILL_PATIENCE = 30.0

# A terminal's or a service manager's signal to a whole group is also for the agent, which has its own
# handlers. Ours is to see it through: we end when there is nothing left to look after.
IGNORED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Shim:
    """One agent and its descendants, from the start to the last of them."""

    def __init__(self, status: int, lifeline: int, term_grace: float) -> None:
        self.status = status
        self.lifeline = lifeline
        self.term_grace = term_grace
        self.agent: int | None = None
        self.kill_at: float | None = None
        self.look_at: float | None = None
        self.wake, wake_writer = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_writer, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)

    def start(self, executable: str, argv: list[str]) -> bool:
        """Start the agent in a session of its own and say so, or say why not."""
        try:
            self.agent = os.posix_spawn(
                executable,
                argv,
                os.environ,
                setsid=True,
                setsigdef=signal.valid_signals(),
            )
        except OSError as error:
            self.report(f"failed {error.errno}")
            return False
        self.report(f"started {self.agent}")
        return True

    def watch(self) -> None:
        """Return when the agent and all its descendants are gone, or cannot be killed."""
        poll = select.poll()
        poll.register(self.lifeline, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while self.reap():
            if self.agent is None:
                self.terminate()
            for fd, _ in poll.poll(self.milliseconds_to_wait()):
                if fd == self.wake:
                    os.read(fd, 4096)
                else:
                    self.obey(os.read(fd, 16), poll)
            if self.look_at is not None and time.monotonic() >= self.look_at:
                self.look_at = None
                if all(ignores(pid, signal.SIGTERM) for pid in descendants(os.getpid())):
                    # Nobody who is left will ever hear of it: waiting would be for nothing.
                    self.kill_at = time.monotonic()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                if time.monotonic() >= self.kill_at + KILL_PATIENCE:
                    return
                self.signal_all(signal.SIGKILL)

    def milliseconds_to_wait(self) -> float | None:
        """How long nothing is to be done of our own accord, None for ever."""
        if self.kill_at is None:
            return None
        due = self.kill_at if self.look_at is None else min(self.kill_at, self.look_at)
        return max(due - time.monotonic(), SWEEP_SECONDS) * 1000

    def obey(self, orders: bytes, poll: select.poll) -> None:
        """Do what the proxy wants, or what is to be done without it."""
        if not orders:
            poll.unregister(self.lifeline)
        if b"K" in orders:
            self.kill_at = time.monotonic()
        else:
            self.terminate()

    def terminate(self) -> None:
        """Ask everybody to end and set the time when they are made to. The first call counts."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.term_grace
            self.look_at = time.monotonic() + LOOK_SECONDS
            self.signal_all(signal.SIGTERM)
            # A stopped process gets its SIGTERM only when it goes on.
            self.signal_all(signal.SIGCONT)

    def reap(self) -> bool:
        """Collect the children that ended, report the agent's end, return whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.agent:
                self.agent = None
                code = os.waitstatus_to_exitcode(status)
                self.report(f"exited {code}" if code >= 0 else f"killed {-code}")

    def signal_all(self, number: int) -> None:
        """Send a signal to the agent's group and to every descendant outside of it, once to each."""
        group = self.agent
        if group is not None:
            # All at once, before any of them can be told apart. Only while we have not reaped the leader:
            # later the number may belong to somebody else.
            send(os.killpg, group, number)
        for pid in descendants(os.getpid()):
            try:
                in_group = os.getpgid(pid) == group
            except OSError:
                continue
            if not in_group:
                send(os.kill, pid, number)

    def report(self, line: str) -> None:
        """Write a line for the proxy, which may be gone."""
        with contextlib.suppress(OSError):
            os.write(self.status, line.encode() + b"\n")


def send(kill: Callable[[int, int], None], target: int, number: int) -> None:
    """Signal a process or group that may have ended or become another user's."""
    with contextlib.suppress(OSError):
        kill(target, number)


def descendants(ancestor: int) -> list[int]:
    """Return the processes below `ancestor`, from /proc; none where it is not mounted."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The command in parentheses may hold anything, parentheses included.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    level = [ancestor]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def ignores(pid: int, number: int) -> bool:
    """Whether a process has the system discard a signal, or is dead already and only waits to be collected.

    No when it cannot be told.
    """
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"State:") and line.split()[1] in (b"Z", b"X"):
                    return True
                if line.startswith(b"SigIgn:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    except (OSError, ValueError, IndexError):
        pass
    return False


def become_subreaper() -> None:
    """Have orphaned descendants given to us.

    Where it is refused or Python was built without ctypes, those that stay below us are still ours to end.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(arguments: list[str]) -> None:
    """Take STATUS_FD LIFELINE_FD TERM_GRACE CWD EXECUTABLE ARGV..., and stay until all is over.

    CWD is empty to start the agent where we are. The agent gets our environment and our descriptors 0, 1 and
    2.
    """
    status, lifeline, term_grace, cwd, executable, *argv = arguments
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    shim = Shim(int(status), int(lifeline), float(term_grace))
    os.set_inheritable(shim.status, False)
    os.set_inheritable(shim.lifeline, False)
    become_subreaper()
    try:
        if cwd:
            os.chdir(cwd)
    except OSError as error:
        shim.report(f"failed {error.errno}")
        return
    if not shim.start(executable, argv):
        return
    # The agent's pipes must end with the agent, and its folder must not be kept busy.
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.chdir("/")
    shim.watch()


if __name__ == "__main__":
    main(sys.argv[1:])
