"""Counts the values that an agent made up, for each agent and version: findings V61 (LC-23, bridge §10).

A value is told of at first sight and again at ten, a hundred, a thousand sightings: so the count stands in
the findings, and their number stays bounded.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.unknown_values import UnknownValue, unknown_values
from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import known_values
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.jsonrpc.message import Json, Message

_TEXT_CHUNKS: Final = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk")
_LONGEST_WORD: Final = 40
_MOST_VALUES: Final = 100
_OTHERS: Final = ("", "")


class Sightings:
    """What one agent has said that nobody lists; `counts` maps (enum or union, value) to how often."""

    __slots__ = ("_agent", "_findings", "_version", "counts")

    def __init__(self, findings: FindingLog, version: Version, name: str, agent_version: str) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self._findings = findings
        self._version = version
        self._agent = f"{name[:60]} {agent_version[:30]}".strip() or "an agent without a name"

    def call(self, message: Message, method: str, kind: Any, params: Any, at: float) -> None:
        """Look through a request or notification of the agent."""
        if method == "session/update" and _is_text(params):
            return
        info = method_info(self._version, method, kind)
        if info is not None:
            self._look(info.params, params, message, at)

    def result(self, message: Message, method: str, value: Any, at: float) -> None:
        """Look through the agent's answer to a request of the client."""
        info = method_info(self._version, method, "request")
        if info is not None and info.result is not None:
            self._look(info.result, value, message, at)

    def _look(self, type_name: str, value: Any, message: Message, at: float) -> None:
        for one in unknown_values(self._version, type_name, value):
            if not self._is_known_elsewhere(one):
                self._count(one, value, message, at)

    def _count(self, one: UnknownValue, holder: Json, message: Message, at: float) -> None:
        key = (one.type_name, one.value)
        if key not in self.counts and len(self.counts) >= _MOST_VALUES:
            key = _OTHERS
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if not _is_power_of_ten(count):
            return
        what = f"{one.type_name} {_shown(one.value)}" if key is not _OTHERS else "further values"
        times = "once" if count == 1 else f"{count} times"
        session_id = holder.get("sessionId")
        self._findings.note(
            Finding(
                at,
                "V61",
                "agent",
                f"unknown to the protocol, seen {times} from {self._agent}: {what}",
                session=session_id if type(session_id) is str else None,
                frames=(message.frame.number,) if message.frame is not None else (),
                source="LC-23",
            )
        )

    def _is_known_elsewhere(self, one: UnknownValue) -> bool:
        """A v1 agent that already says something of v2 has not made it up."""
        if self._version is Version.V2:
            return False
        for name in (one.type_name, "IdleStateUpdate" if one.type_name == "StopReason" else one.type_name):
            try:
                if one.value in known_values(Version.V2, name):
                    return True
            except KeyError:
                pass
        return False


def _is_text(params: Any) -> bool:
    update = params.get("update") if type(params) is dict else None
    if type(update) is not dict or update.get("sessionUpdate") not in _TEXT_CHUNKS:
        return False
    content = update.get("content")
    return type(content) is dict and content.get("type") == "text" and "annotations" not in content


def _is_power_of_ten(count: int) -> bool:
    while count % 10 == 0:
        count //= 10
    return count == 1


def _shown(value: str) -> str:
    """The value if it looks like a name of something; text of any other kind may be somebody's."""
    letters = value.replace("_", "").replace("-", "").replace(".", "")
    is_word = letters.isalnum() and value.isascii() and value[0].isalpha() and len(value) <= _LONGEST_WORD
    return f'"{value}"' if is_word else "(no plain word)"
