"""A message on its way past a filter, with what is to be said before and after it."""

from __future__ import annotations

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import Outcome, Step, ToAgent, ToClient
from acp_proxy.jsonrpc.message import Message, Request, error


class Passage:
    """What becomes of one message; `message` is None once it is dropped, or where time alone is the cause."""

    __slots__ = ("after", "at", "before", "given", "message", "refused", "sender")

    def __init__(self, message: Message | None, sender: Role, at: float) -> None:
        self.given = message
        self.message = message
        self.sender = sender
        self.at = at
        self.refused = False
        self.before: list[Step] = []
        self.after: list[Step] = []

    def drop(self) -> None:
        """It goes no further."""
        self.message = None

    def answer(self, message: Message) -> None:
        """Say something back to whoever sent it."""
        self.before.append(ToClient(message) if self.sender is Role.CLIENT else ToAgent(message))

    def refuse(self, code: int, text: str, rule: str) -> None:
        """Answer a request with an error that names the rule; it goes no further."""
        assert isinstance(self.given, Request)
        self.answer(error(self.given.id, code, text, {"rule": rule}))
        self.drop()
        self.refused = True

    def outcome(self) -> Outcome:
        """What the filter answers to the chain."""
        message = self.message
        if not self.before and not self.after:
            return message
        steps = list(self.before)
        if message is not None:
            steps.append(ToAgent(message) if self.sender is Role.CLIENT else ToClient(message))
        return steps + self.after
