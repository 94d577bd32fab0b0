"""The list of background work in snapshots (V16, V17, V18). Source: LC-20, LC-21."""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.inference.watch.detector import Detector
from acp_proxy.inference.watch.record import STANDARD_STATES, STRANGE, SessionRecord
from acp_proxy.jsonrpc.message import Json, Message

_IDS: Final = {"terminal": "terminalId", "tool_call": "toolCallId", "subagent": "sessionId"}

Item = tuple[str, str]


class Background(Detector):
    """Compares each list with the one before and with what was announced."""

    __slots__ = ()

    def reported(self, session: SessionRecord, update: Json, message: Message) -> None:
        """A snapshot; called before the record takes its state over."""
        state = update.get("state")
        if type(state) is not str or state not in STANDARD_STATES:
            return
        listed = update.get("background")
        if type(listed) is not list:
            if session.background is not None:
                text = "background work is no longer reported"
                self._tell("V16", session, text, session.state_frame, message)
            return
        items = [item for item in map(_item, listed) if item is not None]
        self._announced(session, items, message)
        if session.background is not None:
            before = [item for item in map(_item, session.background) if item is not None]
            self._removed(session, set(before) - set(items), message)
        session.background = listed

    def _announced(self, session: SessionRecord, items: list[Item], message: Message) -> None:
        seen: set[Item] = set()
        for item in items:
            if item in seen or self._as_terminal(session, item, items):
                self._wrong(session, item, "a background item listed twice", message)
            elif not session.partial and not self._known(session, item):
                self._wrong(session, item, "a background item that was never announced", message)
            seen.add(item)
        session.listed_wrong &= seen

    def _wrong(self, session: SessionRecord, item: Item, text: str, message: Message) -> None:
        if item not in session.listed_wrong:
            session.listed_wrong.add(item)
            self._tell("V17", session, text, message)

    def _as_terminal(self, session: SessionRecord, item: Item, items: list[Item]) -> bool:
        """Process work is listed as its terminal, not as the tool call that started it as well."""
        tool = session.tools.get(item[1]) if item[0] == "tool_call" else None
        return tool is not None and any(kind == "terminal" and key in tool.terminals for kind, key in items)

    def _known(self, session: SessionRecord, item: Item) -> bool:
        kind, key = item
        if kind == "terminal":
            return key in session.terminals
        if kind == "tool_call":
            return key in session.tools
        child = self._book.sessions.get(key)
        return child is not None and child.bond != STRANGE

    def _removed(self, session: SessionRecord, items: set[Item], message: Message) -> None:
        for kind, key in sorted(items):
            if kind == "terminal":
                terminal = session.terminals.get(key)
                ended = terminal is None or terminal.exited
            elif kind == "tool_call":
                tool = session.tools.get(key)
                ended = tool is None or tool.final
            else:
                child = self._book.sessions.get(key)
                ended = child is None or not child.busy
            if not ended:
                text = "a background item vanished without its final status"
                self._tell("V18", session, text, session.state_frame, message)


def _item(listed: Any) -> Item | None:
    """Type and id of a listed item; None for types nobody knows, which still mean work (LC-21)."""
    if type(listed) is not dict:
        return None
    kind = listed.get("type")
    key = listed.get(_IDS.get(kind, "")) if type(kind) is str else None
    return (kind, key) if type(key) is str and type(kind) is str else None
