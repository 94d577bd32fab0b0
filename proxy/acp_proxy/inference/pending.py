"""Requests still open in one direction of one leg, keyed by the id's JSON type and value (LC-70)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from acp_proxy.jsonrpc.message import PLAIN_IDS, id_key

T = TypeVar("T")


class Pending(Generic[T]):
    """What is remembered of each open request until its one answer comes."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[Any, tuple[Any, T]] = {}

    def add(self, token: Any, entry: T) -> None:
        """Note a request as open; an id used twice in flight keeps the later entry."""
        self._open[token if type(token) in PLAIN_IDS else id_key(token)] = (token, entry)

    def get(self, token: Any) -> T | None:
        """What is known of an open request, None when no such request is open."""
        found = self._open.get(token if type(token) in PLAIN_IDS else id_key(token))
        return None if found is None else found[1]

    def pop(self, token: Any) -> T | None:
        """Close a request and return its entry, None when no such request is open."""
        found = self._open.pop(token if type(token) in PLAIN_IDS else id_key(token), None)
        return None if found is None else found[1]

    def __contains__(self, token: object) -> bool:
        return (token if type(token) in PLAIN_IDS else id_key(token)) in self._open

    def __len__(self) -> int:
        return len(self._open)

    def items(self) -> Iterator[tuple[Any, T]]:
        """The open requests with the id tokens as they came, oldest first; safe against changes."""
        return iter(list(self._open.values()))
