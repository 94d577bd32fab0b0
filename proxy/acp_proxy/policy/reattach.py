"""What a restarted agent must be told to stand where the old one stood; all in the agent's own dialect.

Recorded are the `initialize` that succeeded and the parameters each session was opened with. A session is
taken up by `session/resume`, or by `session/load` where the agent has only that.

Source: BR-06; schema types AgentCapabilities, LoadSessionRequest, ResumeSessionRequest, Notice.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.inference.pending import Pending
from acp_proxy.jsonrpc.message import Json, Notification, Request, Response, notification
from acp_proxy.policy.native_end import UPDATE

_OPENING: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_CLOSING: Final = frozenset({"session/close", "session/delete", "session/archive"})
_NOT_KEPT: Final = frozenset({"sessionId", "replayFrom"})
_MARK: Final[Json] = {"acp-proxy": {"synthetic": True}}


class Attached:
    """The record: `sessions` maps each open session to the parameters it can be taken up with."""

    __slots__ = ("_asked", "greeting", "result", "sessions")

    def __init__(self) -> None:
        self.greeting: Request | None = None
        self.result: Json | None = None
        self.sessions: dict[str, Json] = {}
        self._asked: Pending[Request] = Pending()

    def sent(self, message: Request) -> None:
        """The agent is asked this."""
        if message.method in _OPENING or message.method in _CLOSING or message.method == "initialize":
            self._asked.add(message.id, message)

    def answered(self, message: Response) -> None:
        """The agent's answer to anything."""
        asked = self._asked.pop(message.id)
        if asked is None or message.is_error:
            return
        given = message.result if type(message.result) is dict else {}
        session_id = asked.params.get("sessionId")
        if asked.method == "initialize":
            self.greeting, self.result = asked, given
        elif asked.method in _CLOSING:
            self.sessions.pop(session_id, None) if type(session_id) is str else None
        else:
            opened = given.get("sessionId", session_id)
            if type(opened) is str:
                kept = {key: value for key, value in asked.params.items() if key not in _NOT_KEPT}
                self.sessions[opened] = kept

    def forget_open(self) -> None:
        """What the agent was asked last will not be answered any more."""
        self._asked = Pending()

    def tells_notices(self, version: Version) -> bool:
        """Whether a notice may be said to the client: in v1 only if it asked for them (LC-94)."""
        if version is not Version.V1:
            return True
        assert self.greeting is not None
        return _at(self.greeting.params, "clientCapabilities", "session", "notices") is not None


def same_version(before: Json, now: Json) -> bool:
    """Whether two `initialize` results speak of one protocol version."""
    return bool(before.get("protocolVersion") == now.get("protocolVersion"))


def way_back(version: Version, result: Json) -> str | None:
    """The method that takes a session up, by the result of `initialize`; None when the agent has none."""
    if version is not Version.V1:
        return "session/resume" if _at(result, "capabilities", "session") is not None else None
    if _at(result, "agentCapabilities", "sessionCapabilities", "resume") is not None:
        return "session/resume"
    return "session/load" if _at(result, "agentCapabilities", "loadSession") is True else None


def settings_after(session_id: str, result: Json) -> list[Notification]:
    """What the client may have set differently before: the modes and options the new process begins with."""
    told: list[Notification] = []
    mode = _at(result, "modes", "currentModeId")
    if type(mode) is str:
        told.append(_update(session_id, {"sessionUpdate": "current_mode_update", "currentModeId": mode}))
    options = result.get("configOptions")
    if type(options) is list:
        told.append(_update(session_id, {"sessionUpdate": "config_option_update", "configOptions": options}))
    return told


def notice(session_id: str, severity: str, title: str, description: str) -> Notification:
    """Live information for the user."""
    body = {"sessionUpdate": "notice", "severity": severity, "title": title, "description": description}
    return _update(session_id, body)


def _update(session_id: str, update: Json) -> Notification:
    return notification(UPDATE, {"sessionId": session_id, "update": update, "_meta": _MARK})


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if type(value) is dict else None
    return value
