"""Answers a repeated `initialize` between v2 peers from the first answer (bridge §1, LC-86).

A v2 client may repeat it, with the same parameters, until its first other request; from then on, and with
other parameters, it is the agent's to refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_proxy.filters.base import Filter, Outcome, ToClient, Travels
from acp_proxy.jsonrpc.message import Json, Message, Request, Response, id_key, result


class InitializeAgain(Filter):
    """Stands on the client's side of the negotiation; `spoken` is called at the first other request."""

    def __init__(self, spoken: Callable[[], None]) -> None:
        self._spoken = spoken
        self._key: Any = None
        self._params: Json | None = None
        self._answer: Any = None

    def forth(self, message: Message, at: float) -> Outcome:
        """Note the first `initialize`; answer one like it once the agent has."""
        if type(message) is not Request:
            return message
        if message.method != "initialize":
            if self._answer is not None:
                self._spoken()
            return message
        if self._answer is not None:
            if message.params == self._params:
                return [ToClient(result(message.id, self._answer))]
        elif self._params is None:
            self._key, self._params = id_key(message.id), message.params
        return message

    def back(self, message: Travels, at: float) -> Outcome:
        """Keep the answer; one that refuses leaves the next `initialize` to be the first."""
        if type(message) is not Response or self._params is None or self._answer is not None:
            return message
        if id_key(message.id) == self._key:
            self._answer = message.result
            if self._answer is None:
                self._params = None
        return message
