"""Prompts of a v2 agent: answer, echo, rejection, and what a cancel or close leaves held (V02, V19 to V23, V27).

Source: LC-30 to LC-34, LC-40, LC-42, LC-51. Which message is the echo of which prompt is told by its id
where the answer has named it, else by its content; a message that is neither is somebody else's.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.inference.watch.breach import frame_number
from acp_proxy.inference.watch.detector import CLIENT, Detector
from acp_proxy.inference.watch.record import Call, PromptRecord, SessionRecord
from acp_proxy.inference.watch.states import end_span
from acp_proxy.jsonrpc.message import REQUEST_CANCELLED, Json, Message, Request, Response, id_key

# How long an agent may take over an echo, or over the answer of a prompt it never took, once due; seconds.
MOMENT: Final = 0.5
_UNANSWERED: Final = "V27"
_UNECHOED: Final = "V20"
_MOST_UNCLAIMED: Final = 16


class Unnamed:
    """V19: a prompt answered without a message id; `echo_id` is the echo's, None when there is none yet."""

    __slots__ = ("echo_id", "prompt")

    def __init__(self, prompt: PromptRecord, echo_id: str | None) -> None:
        self.prompt = prompt
        self.echo_id = echo_id


class Misnamed:
    """V20: answer and echo of one prompt carry two ids; `wrong` came later and means what `right` names."""

    __slots__ = ("right", "wrong")

    def __init__(self, right: str, wrong: str) -> None:
        self.right = right
        self.wrong = wrong


class Refused:
    """V21: a prompt refused after its echo.

    `told` when the agent has reported the failure as idle already, `cancelled` when a cancel covers it.
    """

    __slots__ = ("cancelled", "prompt", "told")

    def __init__(self, prompt: PromptRecord, told: bool, cancelled: bool) -> None:
        self.prompt = prompt
        self.told = told
        self.cancelled = cancelled


class Prompts(Detector):
    """Follows each prompt from its request until it is both answered and echoed."""

    __slots__ = ()

    # ------------------------------------------------------------ the client

    def asked(self, session: SessionRecord, message: Request) -> None:
        """A prompt goes out to the agent."""
        blocks = message.params.get("prompt")
        if type(blocks) is list and not blocks:
            self._tell("V23", session, "a prompt without content", message, leg=CLIENT)
        for prompt in list(session.prompts.values()):
            if prompt.doubted:
                self._unechoed(session, prompt, message)
        session.idle_cancel = 0
        session.late_answer = None
        key = id_key(message.id)
        record = PromptRecord(key, message.id, blocks, session.busy, frame_number(message))
        session.prompts[key] = record
        session.prompted = True

    def cancelled(self, session: SessionRecord, message: Message) -> None:
        """A cancel or close covers foreground work and the prompts that came before it (LC-40)."""
        for prompt in session.prompts.values():
            if not prompt.answered:
                prompt.cancelled = True
                session.covered.add(prompt.key)
        inferred = session.state is None and session.inferred not in (None, "idle")
        if session.busy or session.covered or session.inserted or inferred:
            session.cancelling = True
            session.cancel_frame = frame_number(message)
        else:
            session.idle_cancel = frame_number(message) or 1

    # ------------------------------------------------------------ the agent's answer

    def answered(self, session: SessionRecord, call: Call, message: Response, at: float) -> None:
        """The agent has answered a prompt: it is in, or it never will be."""
        prompt = session.prompts.get(id_key(message.id))
        if prompt is None:
            return
        self._settle(session, prompt)
        if message.is_error:
            self._refused(session, prompt, message, at)
            return
        prompt.answered = True
        self._inserted(session, prompt, message)
        given = message.result if type(message.result) is dict else {}
        message_id = given.get("messageId")
        if type(message_id) is str:
            self._named(session, prompt, message_id, message)
        else:
            self._unnamed(session, prompt, message)
        if prompt.echoed:
            session.prompts.pop(prompt.key, None)
        stop = given.get("stopReason")
        if type(stop) is str:
            self._ended(session, stop, given.get("usage"), message, at)

    def _named(self, session: SessionRecord, prompt: PromptRecord, message_id: str, message: Message) -> None:
        prompt.result_id = message_id
        if prompt.echo_id is not None:
            if prompt.echo_id != message_id:
                session.user_ids.add(message_id)
                text = "answer and echo of a prompt carry different message ids"
                detail = Misnamed(prompt.echo_id, message_id)
                self._tell("V20", session, text, prompt.echo_frame, message, detail=detail)
        elif message_id in session.unclaimed:
            self._claim(session, prompt, message_id, session.unclaimed.pop(message_id))

    def _unnamed(self, session: SessionRecord, prompt: PromptRecord, message: Message) -> None:
        detail = Unnamed(prompt, prompt.echo_id)
        text = "prompt answered without a messageId"
        self._tell("V19", session, text, prompt.frame, message, detail=detail)
        prompt.echoed = True

    def _ended(self, session: SessionRecord, stop: str, usage: Any, message: Message, at: float) -> None:
        """A stop reason in the answer says that the turn is over, as agents that speak v1 say it."""
        if any(not prompt.answered for prompt in session.prompts.values()):
            return
        if not session.busy:
            session.inserted = False
            return
        self.idle(session, session.cancelling, message, at)
        text = "a prompt's answer ends the turn, and no idle was told"
        stop = "cancelled" if session.cancelling else stop
        self._tell("V02", session, text, message, detail=(stop, usage))
        end_span(session, stop, usage if type(usage) is dict else None)
        _idle_told(session)

    def _refused(self, session: SessionRecord, prompt: PromptRecord, message: Response, at: float) -> None:
        session.prompts.pop(prompt.key, None)
        session.covered.discard(prompt.key)
        if prompt.echo_id is not None:
            text = "a prompt refused after its insertion"
            told = session.state == "idle" and session.stop == "error"
            detail = Refused(prompt, told, session.cancelling)
            self._tell("V21", session, text, prompt.frame, prompt.echo_frame, message, detail=detail)
            if message.error_code != REQUEST_CANCELLED and session.state != "idle":
                self.idle(session, session.cancelling, message, at)
                end_span(session, "error", None)
                _idle_told(session)
            return
        session.rejected.append(prompt.blocks)
        if session.cancelling and not session.covered and not session.busy and not session.inserted:
            session.cancelling = False

    # ------------------------------------------------------------ the agent's echo

    def user_message(self, session: SessionRecord, update: Json, message: Message) -> None:
        """A user message or the first chunk of one: the echo of a prompt, or somebody else's words."""
        message_id = update.get("messageId")
        if type(message_id) is not str or message_id in session.user_ids:
            return
        if not session.prompts and not session.rejected:
            self._unclaimed(session, message_id, message)
            return
        content = update.get("content")
        whole = update.get("sessionUpdate") == "user_message"
        for prompt in session.prompts.values():
            if prompt.answered and prompt.result_id == message_id and not prompt.echoed:
                self._claim(session, prompt, message_id, frame_number(message))
                session.prompts.pop(prompt.key)
                return
        for prompt in session.prompts.values():
            if not prompt.echoed and echoes(prompt.blocks, content, whole):
                self._by_content(session, prompt, message_id, message)
                return
        for blocks in session.rejected:
            if echoes(blocks, content, whole):
                session.user_ids.add(message_id)
                text = "a rejected prompt was inserted after all"
                self._tell("V22", session, text, message, detail=message_id)
                return
        self._unclaimed(session, message_id, message)

    def _by_content(
        self, session: SessionRecord, prompt: PromptRecord, message_id: str, message: Message
    ) -> None:
        self._claim(session, prompt, message_id, frame_number(message))
        if not prompt.answered:
            self._inserted(session, prompt, message)
            return
        session.prompts.pop(prompt.key)
        if prompt.result_id is not None:
            text = "answer and echo of a prompt carry different message ids"
            detail = Misnamed(prompt.result_id, message_id)
            self._tell("V20", session, text, prompt.frame, message, detail=detail)

    def _claim(self, session: SessionRecord, prompt: PromptRecord, message_id: str, frame: int) -> None:
        prompt.echoed = True
        prompt.echo_id = message_id
        prompt.echo_frame = frame
        session.user_ids.add(message_id)
        session.claimed.add(message_id)
        self._book.deadlines.drop((_UNECHOED, session.id, str(prompt.key)))

    def _unclaimed(self, session: SessionRecord, message_id: str, message: Message) -> None:
        if not session.prompts:
            session.user_ids.add(message_id)
            return
        session.unclaimed.setdefault(message_id, frame_number(message))
        if len(session.unclaimed) > _MOST_UNCLAIMED:
            del session.unclaimed[next(iter(session.unclaimed))]

    def _inserted(self, session: SessionRecord, prompt: PromptRecord, message: Message) -> None:
        """Prompts are taken in order (LC-33): one that comes later shows that an earlier, cancelled one will not."""
        session.inserted = True
        session.prompted = True
        session.insertion_frame = frame_number(message)
        for earlier in list(session.prompts.values()):
            if earlier is prompt:
                return
            if earlier.cancelled and not earlier.answered and not earlier.echoed and not prompt.cancelled:
                self._unanswered(session, earlier)

    # ------------------------------------------------------------ the end of work

    def idle(self, session: SessionRecord, after_cancel: bool, message: Message, at: float) -> None:
        """Foreground work has ended: what was inserted is echoed by now, what was held is answered in a moment."""
        for prompt in list(session.prompts.values()):
            if prompt.answered and not prompt.echoed:
                if not prompt.busy or prompt.doubted:
                    self._unechoed(session, prompt, message)
                else:
                    # Sent while other work went on, whose end this may be (LC-33).
                    prompt.doubted = True
                    self._book.deadlines.set((_UNECHOED, session.id, str(prompt.key)), at + MOMENT)
            elif after_cancel and prompt.cancelled:
                self._book.deadlines.set((_UNANSWERED, session.id, str(prompt.key)), at + MOMENT)

    def closed(self, session: SessionRecord, at: float) -> None:
        """The session is closed: every prompt still open is answered in a moment (LC-51)."""
        for prompt in session.prompts.values():
            if not prompt.answered:
                self._book.deadlines.set((_UNANSWERED, session.id, str(prompt.key)), at + MOMENT)

    def ring(self, rule: str, session: SessionRecord, key: str) -> None:
        """The moment is over."""
        for prompt in list(session.prompts.values()):
            if str(prompt.key) == key:
                if rule == _UNECHOED and prompt.answered and not prompt.echoed:
                    self._unechoed(session, prompt, None)
                elif rule == _UNANSWERED and not prompt.answered:
                    self._unanswered(session, prompt)

    def _unechoed(self, session: SessionRecord, prompt: PromptRecord, message: Message | None) -> None:
        session.prompts.pop(prompt.key, None)
        self._book.deadlines.drop((_UNECHOED, session.id, str(prompt.key)))
        if prompt.result_id is not None:
            session.user_ids.add(prompt.result_id)
        text = "an inserted prompt was never echoed"
        self._tell("V20", session, text, prompt.frame, message, detail=prompt)

    def _unanswered(self, session: SessionRecord, prompt: PromptRecord) -> None:
        self._settle(session, prompt)
        session.prompts.pop(prompt.key, None)
        if not prompt.echoed:
            session.rejected.append(prompt.blocks)
        frames = (prompt.frame, session.cancel_frame)
        text = "a prompt held at cancel or close was never answered"
        self._tell("V27", session, text, *frames, detail=prompt)

    def _settle(self, session: SessionRecord, prompt: PromptRecord) -> None:
        self._book.deadlines.drop((_UNANSWERED, session.id, str(prompt.key)))


def _idle_told(session: SessionRecord) -> None:
    """What should be true now, also to whoever is just resuming; a session without states stays one."""
    if session.state is not None:
        session.state = "idle"
    if session.resumption is not None:
        session.resumption.told({"sessionUpdate": "state_update", "state": "idle"}, live=False)


def echoes(blocks: list[Any], content: Any, whole: bool) -> bool:
    """Whether user content says what the prompt said: all of it, or for a chunk its beginning.

    Text is compared as text, however it is cut into blocks; other blocks as they are.
    """
    if whole:
        if type(content) is not list:
            return False
        return bool(blocks) and (
            content == blocks or (bool(_text(blocks)) and _text(content) == _text(blocks))
        )
    if not blocks or type(content) is not dict:
        return False
    if content == blocks[0]:
        return True
    first = blocks[0]
    if content.get("type") != "text" or type(first) is not dict or first.get("type") != "text":
        return False
    said, prompt = content.get("text"), first.get("text")
    if type(said) is not str or type(prompt) is not str or not said:
        return False
    return prompt.startswith(said) or said == _text(blocks)


def _text(blocks: list[Any]) -> str | None:
    """The text of content that is text alone."""
    parts: list[str] = []
    for block in blocks:
        text = block.get("text") if type(block) is dict and block.get("type") == "text" else None
        if type(text) is not str:
            return None
        parts.append(text)
    return "".join(parts)
