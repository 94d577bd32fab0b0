"""Turns of a v1 agent, which the answer to the prompt ends (V02, V12, V41, V47).

Source: LC-90, LC-91, lifecycle §2.5.
"""

from __future__ import annotations

from typing import Final

from acp_proxy.inference.watch.breach import frame_number
from acp_proxy.inference.watch.detector import Detector
from acp_proxy.inference.watch.record import CLOSED, PromptRecord, SessionRecord
from acp_proxy.inference.watch.states import States, Stop, end_span
from acp_proxy.jsonrpc.message import (
    AUTH_REQUIRED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    Message,
    Request,
    Response,
    id_key,
)

# Errors that say the prompt was never taken; a cancel has nothing to end there.
_NOT_TAKEN: Final = frozenset({REQUEST_CANCELLED, AUTH_REQUIRED, INVALID_PARAMS, INVALID_REQUEST})


# How long after its answer an agent may take to tell its idle; seconds.
MOMENT: Final = 0.5


class TurnsV1(Detector):
    """Follows the open prompts of a v1 agent."""

    __slots__ = ("_states",)

    _states: States

    def with_states(self, states: States) -> TurnsV1:
        """What both kinds of agents share is judged there."""
        self._states = states
        return self

    def asked(self, session: SessionRecord, message: Request) -> None:
        """A prompt goes out."""
        self.unended(session)
        key = id_key(message.id)
        session.prompts[key] = PromptRecord(key, message.id, None, False, frame_number(message))
        session.prompted = True
        session.insertion_frame = frame_number(message)

    def cancelled(self, session: SessionRecord, message: Message) -> None:
        """A cancel covers the open turn."""
        if session.prompts or session.busy:
            session.cancelling = True
        session.cancel_frame = frame_number(message)

    def answered(self, session: SessionRecord, message: Response, at: float) -> None:
        """The answer that ends the turn, or the last of several."""
        prompt = session.prompts.pop(id_key(message.id), None)
        if prompt is None or session.prompts or session.bond == CLOSED:
            return  # what a close leaves open may be answered after it (LC-51)
        if message.is_error:
            self._failed(session, message)
        else:
            self._ended(session, message, at)

    def reported(self, session: SessionRecord, state: str) -> None:
        """An agent that tells its states itself may do so right after its answer."""
        if session.unended is not None:
            if state != "idle":
                self.unended(session)
            session.unended = None
            self._book.deadlines.drop(("V02", session.id))

    def unended(self, session: SessionRecord) -> None:
        """No idle came."""
        if session.unended is not None:
            stop, usage, frame = session.unended
            session.unended = None
            self._book.deadlines.drop(("V02", session.id))
            text = "a prompt's answer ended the turn, and no idle was told"
            self._tell("V02", session, text, frame, detail=(stop, usage))

    def _ended(self, session: SessionRecord, message: Response, at: float) -> None:
        given = message.result if type(message.result) is dict else {}
        stop = given.get("stopReason")
        if type(stop) is not str:
            stop = None
        if session.busy and self._book.client_version == 2:
            session.unended = (stop, given.get("usage"), frame_number(message))
            self._book.deadlines.set(("V02", session.id), at + MOMENT)
            session.state = "idle"
        if session.cancelling:
            if stop is not None and stop != "cancelled":
                self._not_cancelled(session, Stop(stop, "cancelled"), message)
            self._states.left_open(session, message)
        elif stop == "cancelled" and not session.declined:
            self._tell("V47", session, "a turn ended as cancelled, which nobody asked for", message)
        if stop is None:
            self._tell("V47", session, "a prompt's answer without a stopReason", message)
        self._states.empty_turn(session, stop, message)
        self._over(session, stop)

    def _failed(self, session: SessionRecord, message: Response) -> None:
        if session.cancelling and message.error_code not in _NOT_TAKEN:
            self._not_cancelled(session, Stop(None, "cancelled"), message)
        self._over(session, "error")

    def _over(self, session: SessionRecord, stop: str | None) -> None:
        """What trickles in after a v1 turn is not forbidden, a cancelled one's neither (LC-95)."""
        end_span(session, stop, None)
        session.cancelled_span = 0

    def _not_cancelled(self, session: SessionRecord, stop: Stop, message: Response) -> None:
        text = "a cancelled turn ended with another stopReason"
        self._tell("V12", session, text, session.cancel_frame, message, detail=stop)
