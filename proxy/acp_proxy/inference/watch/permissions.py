"""Answers to permissions, and permissions a cancel leaves open (V39, V40). Source: LC-43, LC-92."""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.inference.watch.breach import frame_number
from acp_proxy.inference.watch.detector import CLIENT, Detector
from acp_proxy.inference.watch.record import SessionRecord, Wait
from acp_proxy.jsonrpc.message import Json, Message, Request, Response

PERMISSION: Final = "session/request_permission"
_LEFT_OPEN: Final = "V40"
_ALLOWING: Final = frozenset({"allow_once", "allow_always"})


class Permissions(Detector):
    """Reads what was offered and what was chosen. `answer_grace` in seconds, 0 = the client is given no time."""

    __slots__ = ("answer_grace",)

    answer_grace: float

    def answered(self, wait: Wait, message: Response) -> None:
        """The client has answered a permission; an error is an answer as well."""
        if wait.method != PERMISSION or message.is_error:
            return
        outcome = _outcome(message)
        chosen = outcome.get("outcome")
        if chosen == "cancelled":
            return
        if chosen != "selected":
            text = "a permission answered with an unknown outcome"
        elif _option(outcome) not in wait.options:
            text = "a permission answered with an option that was not offered"
        else:
            return
        self._tell("V39", wait.session_id, text, wait.frame, message, leg=CLIENT)

    def cancelled(self, session: SessionRecord, message: Message, at: float) -> None:
        """A v1 client owes an answer to everything pending when it cancels."""
        if self._book.client_version != 1:
            return
        for wait in session.waits.values():
            if wait.method == PERMISSION and not wait.cancelled:
                wait.cancelled = True
                self._book.deadlines.set((_LEFT_OPEN, session.id), at + self.answer_grace)
        session.cancel_frame = frame_number(message) or session.cancel_frame

    def left_open(self, session: SessionRecord, message: Message | None = None) -> None:
        """Its time is over, or it has gone on to something else."""
        for wait in list(session.waits.values()):
            if wait.cancelled:
                del session.waits[wait.key]
                frames = (wait.frame, session.cancel_frame)
                text = "a permission left open after a cancel"
                self._tell("V40", session, text, *frames, message, leg=CLIENT, detail=wait)
        self._book.deadlines.drop((_LEFT_OPEN, session.id))


def offered(message: Request) -> dict[str, Any]:
    """The options of a permission request: id to kind."""
    options = message.params.get("options")
    return {
        option["optionId"]: option.get("kind")
        for option in (options if type(options) is list else ())
        if type(option) is dict and type(option.get("optionId")) is str
    }


def consents(wait: Wait, message: Response) -> bool:
    """Whether an answer lets the work go on: an allow option or an accepted elicitation, and nothing else."""
    if message.is_error:
        return False
    if wait.method == PERMISSION:
        outcome = _outcome(message)
        kind = wait.options.get(_option(outcome))
        return outcome.get("outcome") == "selected" and type(kind) is str and kind in _ALLOWING
    answer = message.result
    return type(answer) is dict and answer.get("action") == "accept"


def _outcome(message: Response) -> Json:
    answer = message.result
    outcome = answer.get("outcome") if type(answer) is dict else None
    return outcome if type(outcome) is dict else {}


def _option(outcome: Json) -> str:
    option = outcome.get("optionId")
    return option if type(option) is str else ""
