"""State snapshots: how they follow each other, and how foreground work ends (V04, V12, V14, V15, V35, V36, V41, V47).

`reported` is also where a session's record takes over what the agent says of itself. Source: LC-01 to
LC-08, LC-15, LC-17, LC-22, LC-23, LC-41, LC-45.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.inference.watch.detector import AGENT, Detector
from acp_proxy.inference.watch.record import STANDARD_STATES, SessionRecord
from acp_proxy.jsonrpc.message import Json, Message

# Silence before an `unknown` that cannot be told from mere quiet; seconds.
MERE_SILENCE: Final = 10.0
RIGHT_AFTER: Final = 1.0
_NO_EMPTY_TURN: Final = frozenset({"cancelled", "error", "refusal"})


class Stop:
    """How a snapshot says foreground work ended, as V04 and V12 need it: the stop reason they want instead."""

    __slots__ = ("given", "wanted")

    def __init__(self, given: str | None, wanted: str | None) -> None:
        self.given = given
        self.wanted = wanted


class States(Detector):
    """Reads `state_update`."""

    __slots__ = ()

    def reported(self, session: SessionRecord, update: Json, message: Message, at: float) -> None:
        """Judge one snapshot against the one before, then remember it."""
        state = update.get("state")
        if type(state) is not str:
            return
        frame = message.frame.number if message.frame is not None else 0
        if state == "idle":
            self._idle(session, update, message)
        elif state == "running":
            self._late_answer(session, message, at)
        elif state == "unknown":
            self._unknown(session, message, at)
        if state in STANDARD_STATES:
            session.standard = True
        elif state.startswith("_"):
            self._extension(session, message)
        session.late_answer = None
        if state != "idle":
            session.idle_cancel = 0
            session.cancelled_span = 0
        session.state = state
        session.state_frame = frame

    def output(self, session: SessionRecord, message: Message) -> None:
        """Foreground output was seen: an extension state alone does not announce it (V35)."""
        session.extension_fresh = False
        if session.extension and not session.standard:
            self._alone(session, message)

    # ------------------------------------------------------------ one state each

    def _idle(self, session: SessionRecord, update: Json, message: Message) -> None:
        stop = update.get("stopReason")
        if type(stop) is not str:
            stop = None
        usage = update.get("usage")
        # Work that only its output told of is over as well, if a cancel has asked for that (V03).
        if session.busy or (session.stateless and session.state is None and session.cancelling):
            if session.resumption is None or session.cancelling:
                self._ended(session, stop, message)
            end_span(session, stop, usage if type(usage) is dict else None)
        else:
            self._repeated(session, stop, usage, message)
            if session.inserted or session.cancelling:
                end_span(session, stop, usage if type(usage) is dict else None)
            else:
                session.stop = stop or session.stop
                session.usage = usage if type(usage) is dict else session.usage
        session.idle_frame = message.frame.number if message.frame is not None else 0

    def _ended(self, session: SessionRecord, stop: str | None, message: Message) -> None:
        if session.cancelling:
            if stop is None:
                self._tell(
                    "V04",
                    session,
                    "idle ends cancelled work without a stopReason",
                    session.cancel_frame,
                    message,
                    detail=Stop(None, "cancelled"),
                )
            elif stop != "cancelled":
                self._tell(
                    "V12",
                    session,
                    "cancelled work ended with another stopReason",
                    session.cancel_frame,
                    message,
                    detail=Stop(stop, "cancelled"),
                )
            self.left_open(session, message)
        elif stop is None:
            self._tell(
                "V04",
                session,
                "idle ends foreground work without a stopReason",
                message,
                detail=Stop(None, None),
            )
        elif stop == "cancelled" and not session.declined:
            self._tell("V47", session, "work ended as cancelled, which nobody asked for", message)
        self.empty_turn(session, stop, message)

    def empty_turn(self, session: SessionRecord, stop: str | None, message: Message) -> None:
        """A turn right after a cancelled one that ends without output was probably eaten by the cancel (V47)."""
        if (
            session.after_cancel
            and session.prompted
            and not session.output
            and not session.cancelling
            and stop not in _NO_EMPTY_TURN
        ):
            self._tell("V47", session, "a turn right after a cancel ended without output", message)

    def left_open(self, session: SessionRecord, message: Message) -> None:
        """Tool calls that a cancel or close left open (V41); the detail lists their ids."""
        tools = session.open_tools
        if tools:
            text = f"{len(tools)} tool call(s) left open by a cancel or close"
            self._tell("V41", session, text, session.cancel_frame, message, detail=tools)

    def _repeated(self, session: SessionRecord, stop: str | None, usage: Any, message: Message) -> None:
        if session.state != "idle" or session.resumption is not None:
            return
        if session.inserted or session.cancelling:
            return  # it answers something, so it repeats nothing
        if session.idle_cancel and stop == "cancelled" and session.stop != "cancelled":
            text = "idle told again as cancelled after a cancel that met no work"
            self._tell("V14", session, text, session.idle_cancel, message)
            return
        changed = stop is not None and session.stop is not None and stop != session.stop
        if not changed and type(usage) is dict and session.usage is not None:
            changed = usage != session.usage
        if changed:
            text = "idle told again with another stopReason or usage, and no work between"
            self._tell("V15", session, text, session.idle_frame, message)

    def _late_answer(self, session: SessionRecord, message: Message, at: float) -> None:
        late = session.late_answer
        if late is not None and not session.busy and not session.prompted and at - late[1] <= RIGHT_AFTER:
            self._tell("V08", session, "running right after an answer for ended work", late[0], message)

    def _unknown(self, session: SessionRecord, message: Message, at: float) -> None:
        if session.busy and not session.waits and at - session.heard_at >= MERE_SILENCE:
            self._tell("V36", session, "unknown after nothing but silence", session.state_frame, message)

    def _extension(self, session: SessionRecord, message: Message) -> None:
        """Two in a row may be one report in two words; anything said in between makes them two reports."""
        if session.extension and not session.standard and not session.extension_fresh:
            self._alone(session, message)
        session.extension = message.frame.number if message.frame is not None else 1
        session.extension_fresh = True

    def _alone(self, session: SessionRecord, message: Message) -> None:
        text = "extension states with no standard state beside them"
        self._tell("V35", session, text, session.extension, message, leg=AGENT)
        session.standard = True


def end_span(session: SessionRecord, stop: str | None, usage: Any) -> None:
    """Foreground work has ended; what a cancel ended is remembered for what may still trickle in (V13)."""
    session.after_cancel = session.cancelling
    session.cancelled_span = session.span if session.cancelling else 0
    session.trickled = False
    session.stop = stop
    session.usage = usage
    session.begin_span()
