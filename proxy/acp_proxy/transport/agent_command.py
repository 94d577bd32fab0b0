"""What is started as the agent, in which environment, and how its process ended."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence

from acp_proxy.errors import AgentStartError

NOT_FOUND = 127
NOT_EXECUTABLE = 126

# Settings of ours, among them tokens: no business of the agent's, and a nested proxy must not read them.
OWN_VARIABLES = "ACP_PROXY_"

_CAUSES = {
    errno.ENOEXEC: "not a program this system can run (exec format error; a script needs a #! line)",
    errno.EACCES: "permission denied",
    # The file itself was found before, so this is about the one named in its first line or its ELF header.
    errno.ENOENT: "the interpreter it names does not exist",
    errno.E2BIG: "its arguments and environment are too long",
}


class AgentCommand:
    """An agent's command line: argv as it is, never a shell's reading of a string.

    `argv[0]` is looked up on the agent's PATH unless it holds a slash; `env` is added to the inherited
    environment; `cwd` is the working directory, ours if None. A relative `argv[0]` is relative to `cwd`.
    """

    __slots__ = ("argv", "cwd", "env")

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        self.argv = tuple(argv)
        self.env = None if env is None else dict(env)
        self.cwd = cwd

    def __repr__(self) -> str:
        # Arguments and variables hold keys often enough that they are left out here.
        return f"<AgentCommand {self.name!r} with {len(self.argv[1:])} arguments>"

    @property
    def name(self) -> str:
        """The program as the user named it, for people."""
        return self.argv[0] if self.argv else ""


class ExitStatus:
    """How the agent's own process ended: `code` when it exited, `signal` (a number) when a signal killed it.

    Exactly one of the two is not None.
    """

    __slots__ = ("code", "signal")

    def __init__(self, code: int | None = None, signal: int | None = None) -> None:
        self.code = code
        self.signal = signal

    @classmethod
    def from_returncode(cls, returncode: int) -> ExitStatus:
        """Read Python's convention: -N stands for signal N."""
        return cls(signal=-returncode) if returncode < 0 else cls(code=returncode)

    @property
    def status(self) -> int:
        """What a shell would report: the exit code, or 128+N for signal N."""
        if self.signal is not None:
            return 128 + self.signal
        return self.code or 0

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit status {self.code}"
        try:
            return f"killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"killed by signal {self.signal}"

    def __repr__(self) -> str:
        return f"<ExitStatus {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExitStatus):
            return NotImplemented
        return (self.code, self.signal) == (other.code, other.signal)

    def __hash__(self) -> int:
        return hash((self.code, self.signal))


def agent_environment(command: AgentCommand, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's whole environment: `inherited` and the command's own, without our settings."""
    merged = {**inherited, **(command.env or {})}
    return {name: value for name, value in merged.items() if not name.startswith(OWN_VARIABLES)}


def find_executable(command: AgentCommand, environment: Mapping[str, str]) -> str:
    """Return the path to be executed, relative to the command's working directory if it is relative.

    Looked up before anything is started, as execvp(3) would: the first file on PATH that may be executed wins
    over one before it that may not.

    Raises:
        AgentStartError: with 127 when there is no such file, with 126 when it cannot be executed or there is
            no such working directory.
    """
    if command.cwd is not None and not os.path.isdir(command.cwd):
        raise AgentStartError(
            f"cannot start agent {command.name!r}: no such working directory: {command.cwd}", NOT_EXECUTABLE
        )
    if not command.name:
        raise AgentStartError("cannot start agent: the command is empty", NOT_FOUND)
    on_path = os.sep not in command.name
    folders = os.get_exec_path(dict(environment)) if on_path else [""]
    found = None
    for folder in folders:
        path = os.path.join(folder, command.name)
        there = os.path.join(command.cwd or "", path)
        if not os.path.exists(there) or (on_path and os.path.isdir(there)):
            continue
        if os.access(there, os.X_OK) and not os.path.isdir(there):
            # A bare name, found through an empty entry of PATH, must not look like one still to be found.
            return path if os.sep in path else os.path.join(os.curdir, path)
        found = found or path
    if found is None:
        where = "not found on PATH" if on_path else "no such file"
        raise AgentStartError(f"cannot start agent {command.name!r}: {where}", NOT_FOUND)
    cause = "it is a directory" if os.path.isdir(os.path.join(command.cwd or "", found)) else "not executable"
    raise AgentStartError(f"cannot start agent {command.name!r}: {found}: {cause}", NOT_EXECUTABLE)


def start_error(command: AgentCommand, error: OSError | ValueError) -> AgentStartError:
    """Return what to raise, with status 126, for a command that was found and could not be executed."""
    number = error.errno if isinstance(error, OSError) else None
    cause = _CAUSES.get(number or 0) or (os.strerror(number) if number else str(error))
    return AgentStartError(f"cannot start agent {command.name!r}: {cause}", NOT_EXECUTABLE)
