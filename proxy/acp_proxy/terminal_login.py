"""Runs the agent itself, in place of the proxy, when a client starts us in a terminal to log in.

A terminal auth method makes the client run its configured program again, with the method's arguments
appended, in a terminal where a person answers. That program is the proxy; relaying there would be in the
way, so the proxy becomes the agent. A bridged client is told to set MARK for that; a client of the agent's
own version gets the method unchanged, and is known by the terminal at both ends.

Source: bridge §7.8.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from acp_proxy.filters.translate.initialize import TERMINAL_LOGIN
from acp_proxy.transport.agent_command import AgentCommand, agent_environment, find_executable

MARK = TERMINAL_LOGIN


def wanted(environment: Mapping[str, str], *, at_terminal: bool) -> bool:
    """Whether to become the agent: MARK says `1` (yes) or `0` (no); without it a terminal at both ends decides."""
    mark = environment.get(MARK)
    return at_terminal if mark is None else mark == "1"


def become(argv: Sequence[str]) -> int:
    """Replace this process by the agent; returns only where a process cannot be replaced, with the exit status.

    Raises AgentStartError when the agent cannot be found or executed.
    """
    command = AgentCommand(argv)
    environment = agent_environment(command, os.environ)
    executable = find_executable(command, environment)
    if os.name == "posix":
        os.execve(executable, list(argv), environment)
    import subprocess

    return subprocess.call([executable, *argv[1:]], env=environment)
