"""Resuming a session: replay, then one current snapshot, then the answer (V09, V10, V11, V43).

Whether content during a resume is replay or live is told by what the session was doing: an agent at
work may go on talking, an idle one can only repeat. Source: LC-14, LC-93.
"""

from __future__ import annotations

from typing import Final

from acp_proxy.inference.watch.breach import frame_number
from acp_proxy.inference.watch.detector import Detector
from acp_proxy.inference.watch.record import Resumption, SessionRecord
from acp_proxy.jsonrpc.message import Json, Message, Request, Response

_USER: Final = frozenset({"user_message", "user_message_chunk"})
_LIVE: Final = frozenset({"running", "requires_action"})


class Resume(Detector):
    """Follows one open `session/resume` or `session/load` of each session."""

    __slots__ = ()

    def asked(self, session: SessionRecord, message: Request) -> None:
        """The client resumes or loads; a v1 load always replays."""
        replay = message.method == "session/load" or message.params.get("replayFrom") is not None
        live = session.busy or bool(session.prompts)
        session.resumption = Resumption(replay, live, frame_number(message))

    def content(self, session: SessionRecord, tag: str, update: Json, message: Message) -> bool:
        """Conversation content while a resume is open; answers whether it is replay."""
        resumption = session.resumption
        assert resumption is not None
        if tag in _USER:
            message_id = update.get("messageId")
            known = type(message_id) is str and message_id in session.user_ids
            live = bool(session.prompts) and not known
        else:
            live = resumption.live
        resumption.replaying = not live
        if live:
            return False
        if not resumption.asked:
            again, resumption.unasked = resumption.unasked, True
            text = "replay that nobody asked for"
            self._tell("V11", session, text, resumption.frame, message, again=again)
        resumption.replayed = True
        if resumption.reported is not None:
            resumption.replayed_after = frame_number(message) or 1
        return True

    def notice(self, session: SessionRecord, message: Message) -> None:
        """A notice between replayed content and the snapshot is most likely replayed too."""
        resumption = session.resumption
        if resumption is not None and resumption.replayed and resumption.reported is None:
            self._tell("V43", session, "a notice within a replay", resumption.frame, message)

    def reported(self, session: SessionRecord, update: Json, state: str) -> None:
        """A snapshot while a resume is open."""
        resumption = session.resumption
        if resumption is not None:
            resumption.told(update, live=state in _LIVE)

    def answered(self, session: SessionRecord, message: Response) -> None:
        """The answer came: the current state must have been told after the replay."""
        resumption, session.resumption = session.resumption, None
        if resumption is None or message.is_error or self._book.agent_version != 2:
            return
        if resumption.reported is None:
            text = "resume answered without a current-state snapshot"
            self._tell("V09", session, text, resumption.frame, message)
        elif resumption.replayed_after:
            text = "replay went on after the current-state snapshot"
            frame = resumption.replayed_after
            self._tell("V10", session, text, frame, message, detail=resumption.reported)
