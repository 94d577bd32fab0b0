"""What every detector has: the shared book, and a way to tell a breach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from acp_proxy.inference.watch.breach import Breach, frames_of
from acp_proxy.inference.watch.record import Book, SessionRecord
from acp_proxy.jsonrpc.message import Message

AGENT: Final = "agent"
CLIENT: Final = "client"

Report = Callable[[Breach], None]


class Detector:
    """One subject of the catalogue; reads messages and the book, writes only its own part of the records."""

    __slots__ = ("_book", "_report")

    def __init__(self, book: Book, report: Report) -> None:
        self._book = book
        self._report = report

    def _tell(
        self,
        rule: str,
        session: SessionRecord | str | None,
        text: str,
        *evidence: Message | int | None,
        leg: str = AGENT,
        detail: Any = None,
        again: bool = False,
    ) -> None:
        session_id = session.id if isinstance(session, SessionRecord) else session
        self._report(Breach(rule, leg, session_id, text, frames_of(*evidence), detail, again))
