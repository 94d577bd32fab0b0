"""Chooses what is done about a breach of the lifecycle: note it, repair it, or refuse it (lifecycle §3).

Stands at the agent's end, on the client's side of the engine: the watch says what is wrong, `repairs`
knows how each rule is put right, and only here is it known which of the three is wanted. Where anything
but noting is wanted, a message leaves as the encoding of what was judged: two parsers can read two things
in the same bytes (a member twice, a huge number), and then the judged one is not the one that arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import Filter, Outcome, Step, ToClient, Travels
from acp_proxy.filters.passage import Passage
from acp_proxy.filters.repairs import NOTED, REFUSED, REPAIRED, Repairs, refuse_id
from acp_proxy.filters.snapshot import snapshot_params
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.foreground import Change, Rules
from acp_proxy.inference.session import State
from acp_proxy.inference.triggers import Ending
from acp_proxy.inference.watch.breach import Breach
from acp_proxy.inference.watch.inferred import Inferred
from acp_proxy.inference.watch.watch import Watch
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.message import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Frame,
    Json,
    Message,
    Notification,
    Request,
    Response,
    id_key,
    notification,
)

OBSERVE: Final = "observe"
ENFORCE: Final = "enforce"
STRICT: Final = "strict"
OFF: Final = "off"

# What strict refuses although enforce lets it pass. A snapshot is never held back: the client waits for it.
_STRICT_DROPS: Final = frozenset({"V11", "V13", "V14", "V15", "V34", "V37", "V42", "V43"})
_STRICT_REFUSES: Final = {"V23": INVALID_PARAMS, "V44": INVALID_REQUEST}
# What is said in a peer's name whatever becomes of the message that shows the breach.
_BY_ITSELF: Final = frozenset({"V20", "V27", "V40"})
# Noted in every mode but by choice: there is nothing to put right on the wire.
_BY_CHOICE: Final = frozenset({"V41"})


class Lifecycle(Filter):
    """Guards one connection. `mode` is observe, enforce or strict; `rules` says otherwise for single rules."""

    def __init__(
        self,
        watch: Watch,
        findings: FindingLog,
        token: Callable[[], str],
        *,
        mode: str = OBSERVE,
        rules: Mapping[str, str] | None = None,
        close_tools: bool = False,
        synonyms: bool = False,
        inference: Rules | None = None,
    ) -> None:
        self._watch = watch
        self._deadlines = watch.book.deadlines
        self._findings = findings
        self._mode = mode
        self._rules = dict(rules or {})
        self._repairs = Repairs(watch.book, token, close_tools=close_tools, synonyms=synonyms)
        self._close_tools = close_tools
        self._inference = inference if inference is not None else Rules()
        self._inferred: dict[str, Inferred] = {}
        self._over = False
        self._mended = False
        self._rewrites = mode != OBSERVE or any(word in (ENFORCE, STRICT) for word in self._rules.values())

    def response_to(self, rule: str) -> str:
        """The mode that holds for one rule; a bridged session is always made conformant."""
        chosen = self._rules.get(rule, self._mode)
        return ENFORCE if chosen == OBSERVE and self._watch.book.bridged else chosen

    def action(self, rule: str, done: str) -> str | None:
        """The action of a finding the relay makes itself; None when the rule is off."""
        chosen = self.response_to(rule)
        return (
            None if chosen == OFF else NOTED if chosen == OBSERVE else REFUSED if chosen == STRICT else done
        )

    def may_pass(self, text: bytes) -> bool:
        """Whether lines that hold a chunk of text each, and can be no breach, may pass unjudged.

        A line recognized byte by byte reads the same to every parser, but for what it writes as an escape:
        half a surrogate pair is where parsers differ.
        """
        if not self._rewrites:
            return True
        return not self._repairs.any and not self._inferred and b"\\u" not in text

    # ------------------------------------------------------------ messages

    def forth(self, message: Message, at: float) -> Outcome:
        """A message for the agent."""
        return self._pass(message, Role.CLIENT, at)

    def back(self, message: Travels, at: float) -> Outcome:
        """A message of the agent, or a state change inferred from one."""
        if isinstance(message, Change):
            self._cancelled_change(message)
            return message
        return self._pass(message, Role.AGENT, at)

    def _pass(self, message: Message, sender: Role, at: float) -> Outcome:
        watch = self._watch
        if self._over:
            return message
        if self._rewrites:
            self._as_judged(message)
        found, sound = watch.form(message, sender)
        passage: Passage | None = None
        if found:
            passage = Passage(message, sender, at)
            self._respond(found, passage)
            if passage.message is None:
                return passage.outcome()
            if passage.message is not message:
                passage.message.frame = _encoded(passage.message.body, message.frame)
                message = passage.message
        found = watch.take(message, sender, at, sound)
        if not found and passage is None and not self._inferred and not (self._mended and self._repairs.any):
            return message
        if passage is None:
            passage = Passage(message, sender, at)
        self._rename(passage)
        if found:
            self._respond(found, passage)
            if passage.refused and type(message) is Request:
                watch.undo(message, sender)
        if self._inferred and passage.message is not None:
            self._infer(passage, message)
        if self._repairs.answered[sender.other] and self._repairs.is_late(message, sender):
            passage.drop()
        if self._repairs.request_ids.any and passage.message is not None:
            passage.message = self._repairs.request_ids.restore(passage.message, sender)
        return passage.outcome()

    def _as_judged(self, message: Message) -> None:
        message.frame = _encoded(message.body, message.frame)

    def _rename(self, passage: Passage) -> None:
        message = passage.message
        ids = self._repairs.message_ids
        if ids.any and type(message) is Notification and passage.sender is Role.AGENT:
            session = self._watch.book.sessions.get(str(message.params.get("sessionId")))
            if session is not None:
                replayed = session.resumption is not None and session.resumption.replaying
                passage.message = ids.pass_update(message, session.claimed, replayed=replayed)

    def _respond(self, found: Sequence[Breach], passage: Passage) -> None:
        self._mended = True  # or may be from here on: then what earlier repairs promised is looked after
        for breach in found:
            chosen = self.response_to(breach.rule)
            if chosen == OFF:
                continue
            action = NOTED
            if passage.message is not None or passage.given is None or breach.rule in _BY_ITSELF:
                action = self._respond_to(breach, passage, chosen)
            if breach.again:
                continue
            self._findings.note(
                Finding(
                    passage.at,
                    breach.rule,
                    breach.leg,
                    breach.text,
                    session=breach.session,
                    frames=breach.frames,
                    action=action,
                    source=breach.source,
                )
            )

    def _respond_to(self, breach: Breach, passage: Passage, chosen: str) -> str:
        rule = breach.rule
        if chosen == OBSERVE and not (rule in _BY_CHOICE and self._close_tools):
            return NOTED
        if chosen == STRICT:
            refused = self._refuse(breach, passage)
            if refused is not None:
                return refused
        if rule == "V03":
            return self._begin_inference(breach, passage)
        repair = self._repairs.table.get(rule)
        return NOTED if repair is None else repair(passage, breach)

    def _refuse(self, breach: Breach, passage: Passage) -> str | None:
        """Strict: the action when this rule is refused rather than repaired, else None."""
        rule, message = breach.rule, passage.message
        if rule in _STRICT_REFUSES and type(message) is Request:
            passage.refuse(_STRICT_REFUSES[rule], breach.text, rule)
            return REFUSED
        if rule == "V31" and type(message) is Request and breach.detail == "reused":
            refuse_id(passage, breach)
            return REFUSED
        if rule == "V38" and type(message) is Notification:
            passage.drop()
            return REFUSED
        if rule not in _STRICT_DROPS:
            return None
        if type(message) is Request:
            code = INVALID_PARAMS if rule == "V42" else INVALID_REQUEST
            passage.refuse(code, breach.text, rule)
            return REFUSED
        if type(message) is not Notification:
            return NOTED
        if _is_snapshot(message) and rule not in ("V14", "V15", "V42"):
            return None
        passage.drop()
        return REFUSED

    # ------------------------------------------------------------ a v2 agent without states

    def _begin_inference(self, breach: Breach, passage: Passage) -> str:
        session_id = breach.session
        assert session_id is not None
        inferred = self._inferred[session_id] = Inferred(session_id, self._inference)
        session = self._watch.book.sessions[session_id]
        open_prompts = [key for key, prompt in session.prompts.items() if not prompt.answered]
        closing = self._watch.open_closes(session_id)
        for change in inferred.begin(open_prompts, closing, session.cancelling, passage.at):
            passage.before.append(self._told(change))
        return REPAIRED

    def _infer(self, passage: Passage, message: Message) -> None:
        """Follow the sessions whose states are inferred; the agent's own first snapshot ends that for good."""
        inferred = self._inferred_of(message, passage.sender)
        if inferred is None:
            return
        session_id = inferred.session.id
        if _is_snapshot(message):
            del self._inferred[session_id]
            return
        for change in inferred.take(message, passage.sender, passage.at):
            if type(message) is Response and passage.sender is Role.AGENT:
                if change.new is State.IDLE:
                    self._respond(self._watch.ended(session_id, message, passage.at), passage)
                passage.before.append(self._told(change))
            else:
                passage.after.append(self._told(change))

    def _inferred_of(self, message: Message, sender: Role) -> Inferred | None:
        """The inferred session a message belongs to; an answer's is the one that waits for it."""
        if isinstance(message, (Request, Notification)):
            session_id = message.params.get("sessionId")
            return self._inferred.get(session_id) if type(session_id) is str else None
        assert type(message) is Response
        key = id_key(message.id)
        return next((one for one in self._inferred.values() if one.awaits(key, sender)), None)

    def _told(self, change: Change) -> Step:
        self._cancelled_change(change)
        self._watch.book.session(change.session.id).inferred = change.new.value
        return ToClient(notification("session/update", snapshot_params(change)))

    # ------------------------------------------------------------ inferred changes, time, ends

    def _cancelled_change(self, change: Change) -> None:
        """The end of a cancelled v1 turn is told as its answer will be (V12)."""
        ending = change.ending
        if not change.after_cancel or ending is None:
            return
        if self.response_to("V12") not in (ENFORCE, STRICT) or change.new is not State.IDLE:
            return
        if ending.stop_reason not in (None, "cancelled"):
            change.ending = Ending(ending.key, "cancelled", ending.usage, None, ending.stop_reason)

    def next_deadline(self) -> float | None:
        """When a detector wants to look again."""
        return self._deadlines.earliest

    def expire(self, at: float) -> Sequence[Step]:
        """What time alone shows."""
        passage = Passage(None, Role.AGENT, at)
        self._respond(self._watch.expire(at), passage)
        return [*passage.before, *passage.after]

    def end(self, at: float) -> None:
        """The client has left: what is known only by its absence is known now; what follows is no breach."""
        if self._over:
            return
        self._over = True
        for breach in self._watch.client_gone():
            chosen = self.response_to(breach.rule)
            if chosen != OFF:
                self._findings.note(
                    Finding(
                        at,
                        breach.rule,
                        breach.leg,
                        breach.text,
                        session=breach.session,
                        frames=breach.frames,
                        source=breach.source,
                    )
                )

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """The agent has ended: the states told in its name end with it."""
        steps: list[Step] = []
        for inferred in self._inferred.values():
            steps += [self._told(change) for change in inferred.gone(error_body, at)]
        self._inferred.clear()
        return steps


def _encoded(body: Json, frame: Frame | None) -> Frame | None:
    """The frame a body leaves as, with the number it came with; none where the relay is to say why not."""
    if frame is None:
        return None
    try:
        return Frame(codec.encode(body), frame.number)
    except codec.EncodeError:
        return None


def _is_snapshot(message: Message) -> bool:
    if type(message) is not Notification:
        return False
    update = message.params.get("update")
    return type(update) is dict and update.get("sessionUpdate") == "state_update"
