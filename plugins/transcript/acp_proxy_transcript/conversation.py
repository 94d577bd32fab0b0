"""Reports in, lines of the transcript out: what client and agent said, in the client's dialect, v1 or v2.

Only the client's leg is read, and of it only message texts, titles, option names and statuses. Tool
input and output, thoughts, file contents, elicitation answers, environment variables and `_meta` are
never written. What an agent repeats of a prompt is not written twice, and a replayed history not at all.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from acp_proxy.plugin import (
    Finding,
    FrameReport,
    Json,
    Notification,
    Report,
    Request,
    Response,
    Role,
    StateReport,
    id_key,
)
from acp_proxy_transcript.printable import printable

# A message is written when it is complete, or in pieces of this many characters.
PIECE: Final = 1 << 16
# How many prompts are expected to be echoed, for agents that never do: v1 asks nobody to.
ECHOES: Final = 32
_INDENT: Final = " " * 25
_SPEAKERS: Final = {
    "agent_message_chunk": "agent",
    "agent_message": "agent",
    "user_message_chunk": "user",
    "user_message": "user",
}
_QUESTIONS: Final = {"session/request_permission": "asks", "elicitation/create": "asks"}


class Speech:
    """A message that is still being said."""

    __slots__ = ("at", "key", "size", "texts")

    def __init__(self, key: tuple[str, Any], at: float) -> None:
        self.key = key
        self.at = at
        self.texts: list[str] = []
        self.size = 0

    def add(self, text: str) -> None:
        """Go on with this text."""
        self.texts.append(text)
        self.size += len(text)

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.texts)


class Session:
    """What must be remembered of one session to write its next line."""

    __slots__ = ("echoes", "label", "last", "replays", "speech", "tools")

    def __init__(self, label: str) -> None:
        self.label = label
        self.speech: Speech | None = None
        self.last: tuple[tuple[str, Any], str] | None = None
        self.echoes: deque[int] = deque(maxlen=ECHOES)
        self.replays = 0
        self.tools: dict[str, tuple[str, str]] = {}


class Conversation:
    """All sessions of one client; `take` every report, then `finish`."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._lines: list[str] = []
        self._prompts: dict[Any, Session] = {}
        self._replays: dict[Any, Session] = {}
        self._asked: dict[Any, tuple[Session | None, dict[str, str]]] = {}

    def take(self, report: Report) -> list[str]:
        """The lines that this report completes."""
        if isinstance(report, FrameReport):
            if report.leg is Role.CLIENT:
                self._frame(report, report.at)
        elif isinstance(report, StateReport):
            self._state(report)
        elif (
            isinstance(report, Finding)  # pyright: ignore[reportUnnecessaryIsInstance] more kinds may come
            and report.source == "plugins"
        ):
            self._add(report.at, None, "note", report.text)
        return self._taken()

    def finish(self) -> list[str]:
        """What was not yet complete."""
        for session in self._sessions.values():
            self._complete(session)
        return self._taken()

    # ------------------------------------------------------------ messages

    def _frame(self, report: FrameReport, at: float) -> None:
        message = report.message
        from_client = report.direction == "in"
        if isinstance(message, Request):
            if from_client:
                self._client_asks(message, at)
            elif message.method in _QUESTIONS:
                self._agent_asks(message, at)
        elif isinstance(message, Notification):
            if from_client:
                if message.method == "session/cancel":
                    self._add(at, self._session(message.params, at), "user", "(cancels)")
            elif message.method == "session/update":
                self._update(message.params, at)
            elif message.method == "$/cancel_request":
                self._answered(message.params.get("requestId"), None, at)
        elif isinstance(message, Response):
            if from_client:
                self._answered(message.id, message, at)
            else:
                self._agent_answers(message, at)

    def _client_asks(self, message: Request, at: float) -> None:
        session = self._session(message.params, at)
        if session is None:
            return
        if message.method == "session/prompt":
            text = _text(message.params.get("prompt"))
            self._add(at, session, "user", text)
            session.echoes.append(hash(text))
            self._prompts[id_key(message.id)] = session
        elif message.method in ("session/load", "session/resume"):
            session.replays += 1
            self._replays[id_key(message.id)] = session

    def _agent_answers(self, message: Response, at: float) -> None:
        key = id_key(message.id)
        resumed = self._replays.pop(key, None)
        if resumed is not None:
            resumed.replays -= 1
            if not message.is_error:
                self._add(at, resumed, "note", "resumed; what was said before is not repeated here")
        prompted = self._prompts.pop(key, None)
        session = prompted or resumed
        if session is not None and message.is_error:
            self._add(at, session, "error", str(message.error.get("message", "")))
        if prompted is not None and prompted not in self._prompts.values():
            self._complete(prompted)

    def _update(self, params: Json, at: float) -> None:
        update = params.get("update")
        session = self._session(params, at)
        if type(update) is not dict or session is None or session.replays:
            return
        tag = update.get("sessionUpdate")
        if type(tag) is not str:
            return
        if tag in ("tool_call", "tool_call_update"):
            self._tool(session, update, at)
        elif tag == "state_update" and type(update.get("error")) is dict:
            self._add(at, session, "error", str(update["error"].get("message", "")))
        elif tag in _SPEAKERS:
            whole = not tag.endswith("_chunk")
            if not whole or "content" in update:
                content = update.get("content")
                key = (_SPEAKERS[tag], update.get("messageId"))
                self._says(session, key, _text(content if whole else [content]), whole, at)

    def _says(self, session: Session, key: tuple[str, Any], text: str, whole: bool, at: float) -> None:
        """A chunk goes on with the message it belongs to; a whole message replaces what was said of it."""
        if whole and session.last == (key, text):
            return
        speech = session.speech
        if speech is None or speech.key != key:
            self._complete(session)
            speech = session.speech = Speech(key, at)
        elif whole:
            speech.texts.clear()
            speech.size = 0
        speech.add(text)
        if speech.size > PIECE:
            self._complete(session)

    def _tool(self, session: Session, update: Json, at: float) -> None:
        tool_id = update.get("toolCallId")
        if type(tool_id) is not str:
            return
        title, status = update.get("title"), update.get("status")
        before = session.tools.get(tool_id, ("", ""))
        now = (title if type(title) is str else before[0], status if type(status) is str else before[1])
        now = (now[0] or "tool call", now[1] or "pending")
        session.tools[tool_id] = now
        if now[1] != before[1]:
            self._add(at, session, "tool", f"{now[0]}: {now[1]}")

    # ------------------------------------------------------------ questions

    def _agent_asks(self, message: Request, at: float) -> None:
        params = message.params
        session = self._session(params, at)
        names: dict[str, str] = {}
        if message.method == "elicitation/create":
            question = params.get("message")
        else:
            question = params.get("title") or self._tool_title(session, params.get("toolCall"))
            options = params.get("options")
            for option in options if type(options) is list else ():
                if type(option) is dict and type(option.get("optionId")) is str:
                    names[option["optionId"]] = str(option.get("name", "?"))
        self._asked[id_key(message.id)] = (session, names)
        offered = f" ({' / '.join(names.values())})" if names else ""
        text = question if type(question) is str else "a question without a title"
        self._add(at, session, _QUESTIONS[message.method], f"{text}{offered}")

    def _tool_title(self, session: Session | None, tool: Any) -> Any:
        if type(tool) is not dict:
            return None
        if type(tool.get("title")) is str:
            return tool["title"]
        known = session.tools.get(str(tool.get("toolCallId"))) if session is not None else None
        return known[0] if known is not None else None

    def _answered(self, token: Any, message: Response | None, at: float) -> None:
        """The client answered a question, or the agent took it back."""
        asked = self._asked.pop(id_key(token), None)
        if asked is None:
            return
        session, names = asked
        if message is None:
            self._add(at, session, "agent", "(withdraws the question)")
            return
        given = message.result if type(message.result) is dict else {}
        outcome = given.get("outcome")
        if message.is_error:
            choice = "error"
        elif type(outcome) is dict:
            choice = names.get(str(outcome.get("optionId"))) or str(outcome.get("outcome"))
        else:
            choice = str(given.get("action"))
        self._add(at, session, "user", f"({choice})")

    # ------------------------------------------------------------ lines

    def _state(self, report: StateReport) -> None:
        session = self._session({"sessionId": report.session_id}, report.at)
        stop = f" ({report.stop_reason})" if report.stop_reason else ""
        if report.new != report.old or stop:
            self._add(report.at, session, "state", f"{report.new}{stop}")

    def _session(self, params: Json, at: float) -> Session | None:
        session_id = params.get("sessionId")
        if type(session_id) is not str:
            return None
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = Session(f"#{len(self._sessions) + 1}")
            self._add(at, session, "note", f"this is session {session_id}")
        return session

    def _complete(self, session: Session) -> None:
        """Write the message that is being said, unless it only repeats a prompt."""
        speech, session.speech = session.speech, None
        if speech is None:
            return
        text = speech.text
        session.last = (speech.key, text)
        if speech.key[0] == "user" and hash(text) in session.echoes:
            session.echoes.remove(hash(text))
        elif text:
            self._line(speech.at, session.label, speech.key[0], text)

    def _add(self, at: float, session: Session | None, kind: str, text: str) -> None:
        if session is not None:
            self._complete(session)
        self._line(at, session.label if session is not None else "", kind, text)

    def _line(self, at: float, label: str, kind: str, text: str) -> None:
        first, *more = printable(text).split("\n")
        self._lines.append(f"{at:10.1f}  {label:4}  {kind:5}  {first}".rstrip())
        self._lines += [f"{_INDENT}{line}".rstrip() for line in more]

    def _taken(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


def _text(blocks: Any) -> str:
    """What content blocks say; anything but text is only named."""
    texts: list[str] = []
    for block in blocks if type(blocks) is list else ():
        if type(block) is dict:
            text = block.get("text")
            texts.append(
                text if block.get("type") == "text" and type(text) is str else f"[{block.get('type')}]"
            )
    return "".join(texts)
