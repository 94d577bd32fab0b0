"""Request ids of one direction, and whose method it is (V29, V30, V31, V33). Source: LC-70, LC-73, LC-86."""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.methods import MethodInfo, method_info
from acp_proxy.acp.version import Role
from acp_proxy.inference.watch.detector import AGENT, CLIENT, Detector
from acp_proxy.jsonrpc.message import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PLAIN_IDS,
    Message,
    Notification,
    Request,
    id_key,
)

_MOST_REMEMBERED: Final = 20_000


class Received:
    """The ids a peer has ever used for a request; past a limit it no longer claims to know them all."""

    __slots__ = ("_ids", "full")

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self.full = False

    def add(self, token: Any) -> None:
        """Remember an id."""
        if len(self._ids) < _MOST_REMEMBERED:
            self._ids.add(token if type(token) in PLAIN_IDS else id_key(token))
        else:
            self.full = True

    def __contains__(self, token: object) -> bool:
        return self.full or id_key(token) in self._ids


class Ids(Detector):
    """Judges ids, and whether a message may come from where it comes."""

    __slots__ = ("_doubled", "initialized")

    initialized: bool
    _doubled: dict[Any, int]

    def begin(self) -> Ids:
        """Nothing has been said yet."""
        self.initialized = False
        self._doubled = {}
        return self

    def request(self, message: Request, sender: Role, in_flight: bool) -> None:
        """A request; `in_flight` when its id is already taken. A breach's detail is the error code it deserves."""
        token = message.id
        version = self._book.agent_version
        if not self.initialized and sender is Role.CLIENT:
            if message.method == "initialize":
                self.initialized = True
            else:
                text = "a request before initialize"
                self._tell("V33", None, text, message, leg=CLIENT, detail=INVALID_REQUEST)
        if type(token) not in PLAIN_IDS and (version == 2 or token is not None):
            if not (type(token) is float and version != 2):
                text = "request id must be a string or an integer"
                self._tell("V31", session_of(message), text, message, leg=sender.value)
        elif in_flight:
            text = "request id reused in flight"
            key = (sender, id_key(token))
            self._doubled[key] = self._doubled.get(key, 0) + 1
            self._tell("V31", session_of(message), text, message, leg=sender.value, detail="reused")
        info = method_info(version, message.method, "request") if version is not None else None
        if info is not None:
            self._direction(message, sender, info)

    def notification(self, message: Notification, sender: Role) -> None:
        """A notification that is no update."""
        version = self._book.agent_version
        info = method_info(version, message.method, "notification") if version is not None else None
        if info is not None:
            self._direction(message, sender, info)

    def _direction(self, message: Request | Notification, sender: Role, info: MethodInfo) -> None:
        if info.receivers and sender.other not in info.receivers:
            text = f"{message.method} in the wrong direction"
            leg = sender.value
            self._tell("V33", session_of(message), text, message, leg=leg, detail=METHOD_NOT_FOUND)

    def stray_response(self, message: Message, sender: Role) -> None:
        """A response to an id that is not open; one that was used twice in flight is answered twice."""
        key = (sender.other, id_key(message.body["id"]))
        if key in self._doubled:
            self._doubled[key] -= 1
            if not self._doubled[key]:
                del self._doubled[key]
            return
        text = "response to an id that is not open"
        self._tell("V29", None, text, message, leg=CLIENT if sender is Role.CLIENT else AGENT)

    def cancel_request(self, message: Notification, sender: Role, received: Received) -> None:
        """`$/cancel_request`; one for an answered request merely crossed with the answer."""
        token = message.params.get("requestId")
        if token not in received:
            text = "cancel of a request that was never received"
            self._tell("V30", None, text, message, leg=sender.value)


def session_of(message: Request | Notification) -> str | None:
    """The session a message names, if it does."""
    session_id = message.params.get("sessionId")
    return session_id if type(session_id) is str else None
