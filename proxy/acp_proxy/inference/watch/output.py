"""Foreground output where the state does not allow for it (V01, V03, V07, V13).

Output is message, thought, tool or plan content; never the user's echo, states, notices, usage, info,
configuration or commands, nor tools that outlived their turn. Source: LC-01, LC-10, LC-41, lifecycle §2.1.
"""

from __future__ import annotations

from acp_proxy.inference.session import FINAL_STATUSES
from acp_proxy.inference.watch.detector import Detector
from acp_proxy.inference.watch.record import SessionRecord, ToolRecord
from acp_proxy.jsonrpc.message import Message


class Output(Detector):
    """Told of each piece of output, with the message id or the tool call it belongs to."""

    __slots__ = ()

    def text(self, session: SessionRecord, message_id: str | None, message: Message) -> None:
        """Message, thought or plan content."""
        if message_id is not None:
            if session.cancelled_span and message_id in session.old_messages:
                self._cancelled(session, message)
                return
            session.messages.add(message_id)
        self._judge(session, message)

    def tool(
        self, session: SessionRecord, tool_id: str, tool: ToolRecord, turned: str | None, message: Message
    ) -> None:
        """A tool call's update; `turned` is the status it has taken on with this, if any."""
        if session.cancelled_span and tool.span == session.cancelled_span:
            if not session.lists_tool(tool_id):  # a cancel does not cover listed background work (LC-40)
                self._cancelled(session, message)
            return
        if tool.span != session.span:
            return
        if session.state == "requires_action":
            if turned in FINAL_STATUSES:
                session.output = True
                return
            asked = any(wait.tool_id == tool_id and not wait.ended for wait in session.waits.values())
            if turned == "in_progress" and not asked and not session.cancelling:
                self._resumed(session, message, "a tool call runs")
        self._judge(session, message)

    def _judge(self, session: SessionRecord, message: Message) -> None:
        session.output = True
        state = session.state
        if state == "running":
            return
        if state is None:
            self._stateless(session, message)
        elif state == "idle":
            if self._inserted(session):
                frame = session.insertion_frame
                self._tell("V01", session, "output of a prompt while the state is idle", frame, message)
                self._running(session)
        elif state == "requires_action" and session.had_wait and not session.cancelling:
            self._after_waits(session, message)

    def _stateless(self, session: SessionRecord, message: Message) -> None:
        """Every output of a prompt counts as one, also before its answer: some agents answer at the end."""
        if session.stateless or self._book.agent_version != 2:
            return
        waiting = [prompt.frame for prompt in session.prompts.values() if not prompt.answered]
        if session.inserted or waiting:
            session.stateless = True
            frame = session.insertion_frame or next(iter(waiting), None)
            text = "output in a session whose agent never told a state"
            self._tell("V03", session, text, frame, message)

    def _after_waits(self, session: SessionRecord, message: Message) -> None:
        """Text during a wait proves past work only; with no wait left it is what the work goes on with."""
        if all(wait.ended for wait in session.waits.values()):
            self._resumed(session, message, "output")

    def _inserted(self, session: SessionRecord) -> bool:
        if self._book.agent_version == 1:
            return bool(session.prompts)
        return session.inserted

    def _resumed(self, session: SessionRecord, message: Message, what: str) -> None:
        text = f"{what} while the state is still requires_action"
        self._tell("V07", session, text, session.state_frame, message)
        self._running(session)

    def _running(self, session: SessionRecord) -> None:
        session.state = "running"

    def _cancelled(self, session: SessionRecord, message: Message) -> None:
        text = "output of cancelled work after its idle"
        self._tell("V13", session, text, session.idle_frame, message, again=session.trickled)
        session.trickled = True
