"""Walks a message through the filters, forth to the agent or back to the client.

What a filter says is walked to its end before the next thing it says: so the state in hand
always belongs to the message in hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, ToClient, ToHost, Travels
from acp_proxy.inference.foreground import Change
from acp_proxy.jsonrpc.message import Json, Message

Filters = list[Filter]


class Chain:
    """The filters from the client's end to the agent's, and the two ends."""

    def __init__(
        self,
        filters: Sequence[Filter],
        to_agent: Callable[[Message, float], None],
        to_client: Callable[[Message, float], None],
        restart: Callable[[], None],
        to_host: Callable[[ToHost, float], None],
    ) -> None:
        self._arrange(list(filters))
        self._to_agent = to_agent
        self._to_client = to_client
        self._restart = restart
        self._to_host = to_host

    @property
    def filters(self) -> Sequence[Filter]:
        """The stages, the client's end first."""
        return self._filters

    def replace(self, old: Filter, new: Filter | None) -> None:
        """Put another stage in a stage's place, or none; the walk under way keeps its old list."""
        index = self._filters.index(old)
        kept = [new] if new is not None else []
        self._arrange([*self._filters[:index], *kept, *self._filters[index + 1 :]])

    def insert(self, new: Filter, before: Filter) -> None:
        """Put another stage in front of a stage, on the client's side of it."""
        index = self._filters.index(before)
        self._arrange([*self._filters[:index], new, *self._filters[index:]])

    def _arrange(self, filters: list[Filter]) -> None:
        self._filters = filters
        self._timed = [stage for stage in filters if type(stage).next_deadline is not Filter.next_deadline]

    def forth(self, message: Message, at: float, index: int = 0, filters: Filters | None = None) -> None:
        """A message that the client sent, or that is said in its name.

        `index` is the first stage it comes to; `filters` is the list of the walk it is part of.
        """
        if filters is None:
            filters = self._filters
        count = len(filters)
        while index < count:
            outcome: Outcome = filters[index].forth(message, at)
            if outcome is message:
                index += 1
            elif isinstance(outcome, Message):
                message = outcome
                index += 1
            else:
                if outcome:
                    assert not isinstance(outcome, Change)
                    self._say(filters, index, outcome, at)
                return
        self._to_agent(message, at)

    def back(
        self, message: Travels, at: float, index: int | None = None, filters: Filters | None = None
    ) -> None:
        """A message that the agent sent, or that is said in its name; `index` and `filters` as in `forth`."""
        if filters is None:
            filters = self._filters
        if index is None:
            index = len(filters) - 1
        while index >= 0:
            outcome: Outcome = filters[index].back(message, at)
            if outcome is message:
                index -= 1
            elif isinstance(outcome, (Message, Change)):
                message = outcome
                index -= 1
            else:
                if outcome:
                    self._say(filters, index, outcome, at)
                return
        if isinstance(message, Message):
            self._to_client(message, at)

    def next_deadline(self) -> float | None:
        """The earliest time any filter waits for."""
        earliest: float | None = None
        for stage in self._timed:
            due = stage.next_deadline()
            if due is not None and (earliest is None or due < earliest):
                earliest = due
        return earliest

    def expire(self, at: float) -> None:
        """Let every filter do what is due."""
        for stage in list(self._timed):
            due = stage.next_deadline()
            if due is not None and due <= at:
                self._say(self._filters, self._filters.index(stage), stage.expire(at), at)

    def client_gone(self, at: float) -> None:
        """Let every filter end what only the client could have ended, the client's end first."""
        for stage in list(self._filters):
            self._say(self._filters, self._filters.index(stage), stage.client_gone(at), at)

    def agent_gone(self, error: Json, at: float) -> None:
        """Let every filter end what the agent leaves open, the client's end first."""
        for stage in list(self._filters):
            self._say(self._filters, self._filters.index(stage), stage.agent_gone(error, at), at)

    def forth_from(self, stage: Filter, message: Message, at: float) -> None:
        """A message to the agent in the client's name that enters at a stage, in the dialect spoken there."""
        self.forth(message, at, self._filters.index(stage))

    def say(self, stage: Filter, steps: Sequence[Step], at: float) -> None:
        """What a stage says for a reason that came to it by another way than the chain."""
        self._say(self._filters, self._filters.index(stage), steps, at)

    def _say(self, filters: Filters, index: int, steps: Sequence[Step], at: float) -> None:
        for step in steps:
            if type(step) is ToClient:
                self.back(step.message, at, index - 1, filters)
            elif type(step) is ToAgent:
                self.forth(step.message, at, index + 1, filters)
            elif type(step) is ToHost:
                self._to_host(step, at)
            else:
                assert type(step) is RestartAgent
                self._restart()
