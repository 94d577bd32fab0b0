"""What the runner asks of an agent beyond a byte stream, wherever the agent runs."""

from __future__ import annotations

import abc

from acp_proxy.transport.agent_command import ExitStatus
from acp_proxy.transport.base import Transport


class AgentLeg(Transport):
    """An agent's stream, and the agent's own end; see `AgentProcess` for what each promises of a process."""

    exit_status: ExitStatus | None = None

    @abc.abstractmethod
    async def wait(self) -> ExitStatus:
        """Wait for the agent's own end."""

    @abc.abstractmethod
    async def receive_rest(self) -> bytes:
        """Return what can still be read at this moment, without waiting."""

    @abc.abstractmethod
    def stderr_tail(self) -> list[str]:
        """Return the last lines the agent wrote to stderr."""

    @abc.abstractmethod
    async def shut_down(self) -> None:
        """Let the agent end by itself, then make it."""

    @abc.abstractmethod
    async def terminate_now(self) -> None:
        """Ask the agent to end, then make it."""

    @abc.abstractmethod
    async def kill(self) -> None:
        """Make the agent end."""

    @abc.abstractmethod
    def hand_over(self) -> None:
        """Stop waiting for whatever is left of the agent."""
