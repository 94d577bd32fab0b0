"""Reads `session/update`: which detectors hear which variant, and what a session's record takes over.

The hot path: text in a turn that has begun to speak is passed by at once (`steady`).
"""

from __future__ import annotations

from collections.abc import Callable

from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import canonical
from acp_proxy.inference.session import FINAL_STATUSES
from acp_proxy.inference.watch.detectors import Detectors
from acp_proxy.inference.watch.record import ATTACHED, STRANGE, Book, SessionRecord, ToolRecord
from acp_proxy.jsonrpc.message import Json, Message, Notification

Reader = Callable[[SessionRecord, str, Json, Message, float], None]


class Updates:
    """The agent's updates of all sessions."""

    def __init__(self, book: Book, detectors: Detectors) -> None:
        self._book = book
        self._on = detectors
        self._readers: dict[str, Reader] = {
            "agent_message_chunk": self._said,
            "agent_message": self._said,
            "agent_thought_chunk": self._said,
            "agent_thought": self._said,
            "plan_update": self._said,
            "plan": self._said,
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "tool_call_content_chunk": self._tool_content,
            "terminal_update": self._terminal,
            "user_message": self._user,
            "user_message_chunk": self._user,
            "state_update": self._state,
            "subagent_update": self._subagent,
            "notice": self._notice,
        }

    def take(self, message: Notification, at: float) -> None:
        """An update of the agent that fits its schema."""
        params = message.body.get("params")
        if type(params) is not dict:
            return
        session_id, update = params.get("sessionId"), params.get("update")
        if type(session_id) is not str or type(update) is not dict:
            return
        tag = update.get("sessionUpdate")
        session = self._book.sessions.get(session_id)
        if session is None:
            session = self._book.session(session_id)
        elif session.steady and (tag == "agent_message_chunk" or tag == "agent_thought_chunk"):
            session.heard_at = at
            message_id = update.get("messageId")
            if type(message_id) is str:
                session.messages.add(message_id)
            return
        if self._on.close.silent(session, message):
            return
        if self._book.agent_version == 2 and session.bond == STRANGE:
            self._on.children.heard(session, tag, message)
        reader = self._readers.get(tag) if type(tag) is str else None
        if reader is not None:
            assert type(tag) is str
            reader(session, tag, update, message, at)
        session.heard_at = at
        self.settle(session, at)

    def settle(self, session: SessionRecord, at: float) -> None:
        """After anything that was not mere text: who waits, and whether mere text can be passed by."""
        if self._book.native:
            self._on.waits.look(session, at)
        if session.bond != ATTACHED or session.resumption is not None or not session.output:
            session.steady = False
        elif self._book.agent_version == 2:
            session.steady = session.state == "running" or (session.state is None and session.stateless)
        else:
            session.steady = session.state is None or session.state == "running"

    def _said(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        if session.resumption is not None and self._on.resume.content(session, tag, update, message):
            return
        if session.extension:
            self._on.states.output(session, message)
        message_id = update.get("messageId")
        self._on.output.text(session, message_id if type(message_id) is str else None, message)

    def _tool(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        tool_id = update.get("toolCallId")
        if type(tool_id) is not str:
            return
        replayed = session.resumption is not None and self._on.resume.content(session, tag, update, message)
        tool = session.tools.get(tool_id)
        if tool is None:
            tool = session.tools[tool_id] = ToolRecord(0 if replayed else session.span)
        tool.announced = True
        turned = self.news(session, tool_id, tool, update)
        if replayed:
            tool.span = 0
            session.moving.discard(tool_id)
            return
        if session.extension:
            self._on.states.output(session, message)
        self._on.output.tool(session, tool_id, tool, turned, message)

    def news(self, session: SessionRecord, tool_id: str, tool: ToolRecord, update: Json) -> str | None:
        """Take over what an update says of a tool call; the status it has taken on, if it is another one."""
        if "capabilities" in update:
            self._on.cancellable.tool(tool, update)
        content = update.get("content")
        if type(content) is list:
            terminals = [item.get("terminalId") for item in content if type(item) is dict]
            tool.terminals |= {one for one in terminals if type(one) is str}
        status = update.get("status")
        if type(status) is not str:
            return None
        status = canonical(Version.V2, "ToolCallStatus", status)
        turned = status if status != tool.status else None
        tool.status = status
        if status == "in_progress" and tool.span == session.span:
            session.moving.add(tool_id)
        else:
            session.moving.discard(tool_id)
        return turned if turned is not None or status not in FINAL_STATUSES else status

    def _tool_content(
        self, session: SessionRecord, tag: str, update: Json, message: Message, at: float
    ) -> None:
        if session.resumption is not None and self._on.resume.content(session, tag, update, message):
            return
        tool_id = update.get("toolCallId")
        tool = session.tools.get(tool_id) if type(tool_id) is str else None
        if tool is not None and type(tool_id) is str:
            self._on.output.tool(session, tool_id, tool, None, message)

    def _terminal(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        self._on.cancellable.terminal(session, update)

    def _user(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        if session.resumption is not None and self._on.resume.content(session, tag, update, message):
            return
        if self._book.agent_version == 2:
            self._on.prompts.user_message(session, update, message)

    def _state(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        """Snapshots mean something where one peer speaks v2: a v1 client's update stream has none."""
        state = update.get("state")
        if type(state) is not str or not self._book.native:
            return
        self._on.turns.reported(session, state)
        self._on.resume.reported(session, update, state)
        self._on.background.reported(session, update, message)
        self._on.waits.reported(session, state, message, at)
        after_cancel = session.cancelling
        self._on.states.reported(session, update, message, at)
        if state == "idle" and self._book.agent_version == 2 and session.prompts:
            self._on.prompts.idle(session, after_cancel, message, at)

    def _subagent(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        if self._book.agent_version == 2:
            self._on.children.named(session, update)

    def _notice(self, session: SessionRecord, tag: str, update: Json, message: Message, at: float) -> None:
        self._on.resume.notice(session, message)
