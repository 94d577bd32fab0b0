"""The form of what passes: malformed known variants and values nobody may mint (V42, V34).

Source: LC-23, LC-24, lifecycle §2.5, bridge §10. What another rule says better is left to it: an empty
prompt (V23), a prompt's answer (V19, V47), a permission's answer (V39).
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.methods import Kind, method_info
from acp_proxy.acp.shapes import conform
from acp_proxy.acp.unknown_values import UnknownValue, unknown_values
from acp_proxy.acp.version import Role, Version
from acp_proxy.acp.vocabulary import known_values
from acp_proxy.inference.watch.detector import Detector
from acp_proxy.inference.watch.permissions import PERMISSION
from acp_proxy.jsonrpc.message import Json, Message, Notification, Request, Response

_TEXT_CHUNKS: Final = frozenset({"agent_message_chunk", "agent_thought_chunk"})
_ANSWERED_ELSEWHERE: Final = frozenset({"session/prompt", PERMISSION, "initialize"})
_MISSING: Final[Json] = {}


class Minted:
    """V34: the values nobody listed, below `holder` (`params` or `result`) of the message."""

    __slots__ = ("holder", "values")

    def __init__(self, holder: str, values: list[UnknownValue]) -> None:
        self.holder = holder
        self.values = values


class Values(Detector):
    """Compares a message with the schema of the version the agent speaks."""

    __slots__ = ()

    def call(self, message: Request | Notification, sender: Role) -> bool:
        """Judge a request or notification; answers whether what it says may be believed."""
        version = self._book.agent_version or Version.V1
        method = message.method
        params = message.body.get("params", _MISSING)
        if method == "session/update" and is_plain_chunk(params, version):
            return True
        kind: Kind = "request" if type(message) is Request else "notification"
        info = method_info(version, method, kind)
        if info is None or sender.other not in info.receivers:
            return True
        checked = conform(version, info.params, params, keep_unknown=True)
        session_id = params.get("sessionId") if type(params) is dict else None
        session = session_id if type(session_id) is str else None
        if checked.problem is not None:
            if _is_empty_prompt(method, params):
                return True
            self._tell("V42", session, f"{method}: {checked.problem}", message, leg=sender.value)
            return False
        self._minted(version, info.params, params, "params", session, message, sender)
        return True

    def result(self, method: str, session: str | None, message: Response, sender: Role) -> None:
        """Judge the answer to a request."""
        if message.is_error or method in _ANSWERED_ELSEWHERE:
            return
        version = self._book.agent_version or Version.V1
        info = method_info(version, method, "request")
        if info is None or info.result is None or message.result is None:
            return
        checked = conform(version, info.result, message.result, keep_unknown=True)
        if checked.problem is not None:
            text = f"{method} result: {checked.problem}"
            self._tell("V42", session, text, message, leg=sender.value)
            return
        self._minted(version, info.result, message.result, "result", session, message, sender)

    def _minted(
        self,
        version: Version,
        type_name: str,
        value: Any,
        holder: str,
        session: str | None,
        message: Message,
        sender: Role,
    ) -> None:
        found = unknown_values(version, type_name, value)
        if version is Version.V1:
            found = [one for one in found if not _is_v2(one)]
        if not found:
            return
        detail = Minted(holder, found)
        minor = all(one.type_name == "SessionConfigOptionCategory" for one in found)
        names = ", ".join(sorted({one.type_name for one in found}))
        text = f"unknown value where only listed ones and those with _ may stand: {names}"
        # A rule of its own: who reads findings by rule takes V34 for an error, and this one is none.
        rule = "V60" if minor else "V34"
        self._tell(rule, session, text, message, leg=sender.value, detail=detail)


def is_plain_chunk(params: Any, version: Version) -> bool:
    """The commonest update there is, told apart cheaply: text, a message id, and nothing else."""
    if type(params) is not dict or len(params) != 2:
        return False
    update = params.get("update")
    tag = update.get("sessionUpdate") if type(update) is dict else None
    if type(update) is not dict or type(tag) is not str or tag not in _TEXT_CHUNKS:
        return False
    content = update.get("content")
    if type(content) is not dict or len(content) != 2:
        return False
    if content.get("type") != "text" or type(content.get("text")) is not str:
        return False
    if type(params.get("sessionId")) is not str:
        return False
    if len(update) == 3:
        return type(update.get("messageId")) is str
    return len(update) == 2 and version is Version.V1


def _is_v2(one: UnknownValue) -> bool:
    """A v1 agent that already says something of v2 has not made it up."""
    try:
        return one.value in known_values(Version.V2, one.type_name)
    except KeyError:
        return one.type_name == "StopReason" and one.value in known_values(Version.V2, "IdleStateUpdate")


def _is_empty_prompt(method: str, params: Any) -> bool:
    return (
        method == "session/prompt"
        and type(params) is dict
        and params.get("prompt") == []
        and type(params.get("sessionId")) is str
    )
