"""Requests that were answered in the client's name while the client's own answer may still come.

That answer must reach nobody. A new request under such an id would make the two answers look alike, and a
late yes would approve what nobody was asked: so it goes to the client under an id of ours (LC-12, LC-70).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_proxy.jsonrpc.message import Json, Notification, Request, Response, id_key


class LateAnswers:
    """The ids of one hop on which an answer may come late, and the ids of ours that stand for them.

    `token` makes unguessable texts.
    """

    __slots__ = ("_alias", "_late", "_meant", "_token")

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token
        self._late: set[Any] = set()
        self._alias: dict[Any, str] = {}
        self._meant: dict[str, Any] = {}

    def expect(self, client_id: Any) -> None:
        """The request the client knows by this id was answered in its name."""
        self._late.add(id_key(client_id))

    def meant(self, client_id: Any) -> Any:
        """The agent's own id of the request that the client knows by this one."""
        return self._meant.get(client_id, client_id) if type(client_id) is str else client_id

    def out(self, message: Request) -> Request:
        """A request as it goes to the client: itself, or under another id."""
        key = id_key(message.id)
        if key not in self._late:
            return message
        own = self._alias[key] = f"acp-proxy-{self._token()}"
        self._meant[own] = message.id
        return Request({**message.body, "id": own})

    def withdrawn(self, message: Notification) -> Notification:
        """The agent's `$/cancel_request` as it goes to the client."""
        own = self._alias.get(id_key(message.params.get("requestId")))
        if own is None:
            return message
        return Notification({**message.body, "params": {**message.params, "requestId": own}})

    def back(self, message: Response) -> Response | None:
        """The client's answer as it goes to the agent; None when it comes too late."""
        key = id_key(message.id)
        late = key in self._late
        self._late.discard(key)
        if type(message.id) is str and message.id in self._meant:
            meant = self._meant.pop(message.id)
            if self._alias.get(id_key(meant)) == message.id:
                del self._alias[id_key(meant)]
            if not late:
                body: Json = {**message.body, "id": meant}
                return Response(body)
        return None if late else message
