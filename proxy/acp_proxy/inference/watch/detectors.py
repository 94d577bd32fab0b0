"""All detectors of one connection, made together: they share the book and tell their breaches in one place."""

from __future__ import annotations

from acp_proxy.inference.watch.background import Background
from acp_proxy.inference.watch.cancellable import Cancellable
from acp_proxy.inference.watch.children import Children
from acp_proxy.inference.watch.close import Close
from acp_proxy.inference.watch.detector import Report
from acp_proxy.inference.watch.ids import Ids
from acp_proxy.inference.watch.output import Output
from acp_proxy.inference.watch.permissions import Permissions
from acp_proxy.inference.watch.prompts import Prompts
from acp_proxy.inference.watch.record import Book
from acp_proxy.inference.watch.resume import Resume
from acp_proxy.inference.watch.states import States
from acp_proxy.inference.watch.turns_v1 import TurnsV1
from acp_proxy.inference.watch.values import Values
from acp_proxy.inference.watch.waits import Waits


class Detectors:
    """One of each; `answer_grace` in seconds (V40)."""

    def __init__(self, book: Book, report: Report, answer_grace: float) -> None:
        self.values = Values(book, report)
        self.ids = Ids(book, report).begin()
        self.states = States(book, report)
        self.output = Output(book, report)
        self.waits = Waits(book, report)
        self.prompts = Prompts(book, report)
        self.turns = TurnsV1(book, report).with_states(self.states)
        self.resume = Resume(book, report)
        self.background = Background(book, report)
        self.close = Close(book, report)
        self.children = Children(book, report)
        self.cancellable = Cancellable(book, report)
        self.permissions = Permissions(book, report)
        self.permissions.answer_grace = answer_grace
