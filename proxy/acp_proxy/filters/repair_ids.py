"""Names that a repair has changed, and keeps changed: message ids of prompts, and request ids used twice.

Source: V19, V20, V22 (LC-30 to LC-32), V31 (LC-73).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from acp_proxy.acp.version import Role
from acp_proxy.filters.translate.meta import marked
from acp_proxy.inference.watch.prompts import echoes
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request, Response, id_key

_USER: Final = frozenset({"user_message", "user_message_chunk"})


class MessageIds:
    """Which user message the client knows under which id, which it was told already, and which never."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], str] = {}
        self._made: dict[tuple[str, str], list[Any]] = {}
        self._awaited: dict[str, list[tuple[str, list[Any]]]] = {}
        self._dropped: set[tuple[str, str]] = set()

    @property
    def any(self) -> bool:
        """Whether there is anything to look after."""
        return bool(self._told or self._made or self._awaited or self._dropped)

    def told(self, session_id: str, message_id: str) -> str:
        """The id by which the client knows a message of the agent."""
        return self._told.get((session_id, message_id), message_id)

    def rename(self, session_id: str, wrong: str, right: str) -> str:
        """From now on `wrong` is told as what `right` is told as; returns that."""
        told = self.told(session_id, right)
        self._told[session_id, wrong] = told
        return told

    def made(self, session_id: str, message_id: str, blocks: list[Any]) -> None:
        """An echo was made in the agent's name; the agent's own may yet come, under whatever id."""
        self._made[session_id, message_id] = blocks
        self.awaits(session_id, message_id, blocks)

    def awaits(self, session_id: str, message_id: str, blocks: list[Any]) -> None:
        """An echo with this content is told under this id, whatever its own."""
        self._awaited.setdefault(session_id, []).append((message_id, blocks))

    def drop(self, session_id: str, message_id: str) -> None:
        """A message the client must never see (V22)."""
        self._dropped.add((session_id, message_id))

    def pass_update(
        self, message: Notification, claimed: Container[str], *, replayed: bool
    ) -> Notification | None:
        """Rename, or drop what the client knows already; a replay tells everything anew.

        `claimed` are the ids of messages known to be other prompts' echoes.
        """
        params = message.params
        update, session_id = params.get("update"), params.get("sessionId")
        if type(update) is not dict:
            return message
        tag, message_id = update.get("sessionUpdate"), update.get("messageId")
        if type(tag) is not str or tag not in _USER:
            return message
        if type(message_id) is not str or type(session_id) is not str:
            return message
        if (session_id, message_id) in self._dropped:
            return None
        whole = tag == "user_message"
        if (session_id, message_id) not in self._told and message_id not in claimed:
            self._find(session_id, message_id, update.get("content"), whole)
        told = self.told(session_id, message_id)
        made = self._made.get((session_id, told))
        if made is not None and not replayed and (not whole or update.get("content") == made):
            return None
        if told == message_id:
            return message
        return renamed_update(message, told)

    def _find(self, session_id: str, message_id: str, content: Any, whole: bool) -> None:
        """An echo that comes after one was made for it takes that one's id."""
        for entry in self._awaited.get(session_id, ()):
            if echoes(entry[1], content, whole):
                self._told[session_id, message_id] = entry[0]
                self._awaited[session_id].remove(entry)
                return


def renamed_update(message: Notification, message_id: str) -> Notification:
    """An update of another message id, with its own kept beside it."""
    params = message.params
    update = params["update"]
    changed = {**params, "update": {**update, "messageId": message_id}}
    return Notification(
        {**message.body, "params": marked(changed, "orig", {"messageId": update["messageId"]})}
    )


class RequestIds:
    """Requests whose id was in flight already: they travel on under one of ours (V31)."""

    def __init__(self) -> None:
        self._given: dict[tuple[Role, Any], Any] = {}
        self._ours: dict[tuple[Role, Any], str] = {}
        self._last = 0

    @property
    def any(self) -> bool:
        """Whether any request travels under an id of ours."""
        return bool(self._given)

    def replace(self, message: Request, sender: Role) -> Request:
        """The request under an id of ours."""
        self._last += 1
        own_id = f"acp-proxy-{self._last}"
        self._given[sender, own_id] = message.id
        self._ours[sender, id_key(message.id)] = own_id
        return Request({**message.body, "id": own_id})

    def restore(self, message: Message, sender: Role) -> Message:
        """An answer under the id its asker gave, a withdrawal under the id the other side knows."""
        if type(message) is Response:
            key = (sender.other, message.id)
            if type(message.id) is str and key in self._given:
                given = self._given.pop(key)
                if self._ours.get((sender.other, id_key(given))) == message.id:
                    del self._ours[sender.other, id_key(given)]
                return Response({**message.body, "id": given})
        elif type(message) is Notification and message.method == "$/cancel_request":
            own_id = self._ours.get((sender, id_key(message.params.get("requestId"))))
            if own_id is not None:
                params: Json = {**message.params, "requestId": own_id}
                return Notification({**message.body, "params": params})
        return message
