"""The engine's place in the chain: notes what truly passes, and sends state changes back.

A change caused by something said to the agent, or by an update or request of the agent, follows
its cause; one caused by the agent's answer precedes it (lifecycle §2.3, snapshot order). So does the
beginning of work that is inferred from its first output (LC-01).
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import Filter, Outcome, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.session import State
from acp_proxy.jsonrpc.message import Json, Message, Notification, Response, error, notification


class Observe(Filter):
    """Stands nearest the agent; changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def forth(self, message: Message, at: float) -> Outcome:
        """Note what goes out to the agent."""
        changes = self._engine.observe(message, Role.CLIENT, at)
        if not changes:
            return message
        return [ToAgent(message), *map(ToClient, changes)]

    def back(self, message: Travels, at: float) -> Outcome:
        """Note what came from the agent."""
        assert isinstance(message, Message)
        changes = self._engine.observe(message, Role.AGENT, at)
        if not changes:
            return message
        if type(message) is Response or (type(message) is Notification and changes[0].old is State.IDLE):
            return [*map(ToClient, changes), ToClient(message)]
        return [ToClient(message), *map(ToClient, changes)]

    def next_deadline(self) -> float | None:
        """When inferred work of the agent's own would have been quiet long enough."""
        return self._engine.quiet_at() if self._engine.working_alone else None

    def expire(self, at: float) -> Sequence[Step]:
        """Tell that such work has ended."""
        return [ToClient(change) for change in self._engine.fall_quiet(at)]

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """Withdraw the agent's open requests at the client, and fail the client's in the agent's name."""
        steps: list[Step] = [
            ToClient(notification("$/cancel_request", {"requestId": token}))
            for token, _ in self._engine.from_agent.items()
        ]
        # The states first: what ends here ends in an error, whatever was asked of it before (lifecycle §2.3).
        steps += [ToClient(change) for change in self._engine.agent_gone(error_body, at)]
        for token, _ in self._engine.from_client.items():
            answer = error(token, error_body["code"], error_body["message"], error_body.get("data"))
            outcome = self.back(answer, at)
            steps += outcome if isinstance(outcome, list) else [ToClient(answer)]
        return steps
