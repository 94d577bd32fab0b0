"""Enum values and union tags: which are known, and which known one a misspelling means.

Rules: bridge §10 step 1 (spelling) and step 2 (synonyms); step 3 (field names) uses `snake_case` from here. A
value that is known verbatim, or starts with `_` (reserved for extensions), is never touched, and nothing is
ever read as consent.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from acp_proxy.acp import shapes_v1, shapes_v2
from acp_proxy.acp.version import Version

TABLES: dict[Version, dict[str, Any]] = {Version.V1: shapes_v1.TYPES, Version.V2: shapes_v2.TYPES}

# Longer strings are text, not a misspelt word: looking at them would only cost time.
_LONGEST_WORD = 64

# Values that grant something. Only the exact spelling counts: a guess here could approve what nobody
# approved.
_CONSENT: dict[str, frozenset[str]] = {
    "PermissionOptionKind": frozenset({"allow_once", "allow_always"}),
    "RequestPermissionOutcome": frozenset({"selected"}),
    "CreateElicitationResponse": frozenset({"accept"}),
}

_ACTIVITY = {
    "running": "in_progress",
    "executing": "in_progress",
    "queued": "pending",
    "done": "completed",
    "success": "completed",
    "error": "failed",
    "canceled": "cancelled",
    "aborted": "cancelled",
}
_STOP_REASONS = {
    "stop": "end_turn",
    "complete": "end_turn",
    "done": "end_turn",
    "length": "max_tokens",
    "max_turns": "max_turn_requests",
    "refused": "refusal",
    "content_filter": "refusal",
    "canceled": "cancelled",
    "aborted": "cancelled",
    "interrupted": "cancelled",
    "failed": "error",
}

# Type → synonym → known value. A row applies in every version that knows the value.
_SYNONYMS: dict[str, dict[str, str]] = {
    "ToolKind": {
        "write": "edit",
        "modify": "edit",
        "bash": "execute",
        "shell": "execute",
        "run": "execute",
        "remove": "delete",
        "rename": "move",
        "grep": "search",
        "find": "search",
        "web": "fetch",
        "reasoning": "think",
    },
    "ToolCallStatus": _ACTIVITY,
    "CompactionStatus": _ACTIVITY,
    "PlanEntryStatus": {
        "todo": "pending",
        "active": "in_progress",
        "done": "completed",
        "canceled": "cancelled",
        "skipped": "cancelled",
    },
    "PlanEntryPriority": {"normal": "medium", "critical": "high", "urgent": "high"},
    "Role": {"agent": "assistant", "model": "assistant", "human": "user"},
    "SessionConfigOptionCategory": {"reasoning_effort": "thought_level"},
    "NoticeSeverity": {"warn": "warning"},
    "SessionUpdate": {"status_update": "state_update"},
    "StateUpdate": {
        "busy": "running",
        "working": "running",
        "active": "running",
        "thinking": "running",
        "waiting": "requires_action",
        "blocked": "requires_action",
        "input_required": "requires_action",
        "done": "idle",
        "ready": "idle",
        "stopped": "idle",
    },
    "StopReason": _STOP_REASONS,  # v1: an enum of its own
    "IdleStateUpdate": _STOP_REASONS,
    "ContentBlock": {"embedded_resource": "resource"},
    "DiffChange": {
        "create": "add",
        "remove": "delete",
        "update": "modify",
        "edit": "modify",
        "rename": "move",
    },
    "RequestPermissionOutcome": {"canceled": "cancelled", "dismissed": "cancelled", "rejected": "cancelled"},
    "McpServer": {"streamable_http": "http"},
    "SessionConfigOption": {"enum": "select", "dropdown": "select", "bool": "boolean", "toggle": "boolean"},
    "CreateElicitationResponse": {
        "declined": "decline",
        "rejected": "decline",
        "canceled": "cancel",
        "dismissed": "cancel",
    },
}

_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-\s]+")


class _Words(NamedTuple):
    known: frozenset[str]
    spellings: dict[str, str]
    synonyms: dict[str, str]


def snake_case(text: str) -> str:
    """`text` trimmed, lower-cased, with camelCase, hyphens and spaces turned into underscores."""
    return _WORD_BOUNDARY.sub("_", text.strip()).lower()


def known_values(version: Version, name: str) -> frozenset[str]:
    """The values of an enum, or the tags of a union, that `version` lists, unstable ones included.

    Raises KeyError when `version` has no enum or union called `name`: that is a mistake of ours.
    """
    return _words(version, name).known


def canonical(version: Version, name: str, value: str, *, synonyms: bool = False) -> str:
    """The known value that `value` means, or `value` itself when none is meant.

    `name` is the enum or union type. `synonyms` adds the table of bridge §10 step 2 to the repair of
    spelling. Raises KeyError as `known_values` does.
    """
    words = _words(version, name)
    if value in words.known or len(value) > _LONGEST_WORD or value.startswith("_"):
        return value
    spelling = snake_case(value)
    meant = words.spellings.get(spelling)
    if meant is None and synonyms:
        meant = words.synonyms.get(spelling)
    return value if meant is None else meant


_cache: dict[tuple[Version, str], _Words] = {}


def _words(version: Version, name: str) -> _Words:
    words = _cache.get((version, name))
    if words is None:
        known = frozenset(_listed(name, TABLES[version][name]))
        repairable = known - _CONSENT.get(name, frozenset())
        # Compared by their snake_case form, so that `date-time` is found although its own spelling has a
        # hyphen.
        spellings = {snake_case(value): value for value in repairable}
        synonyms = {word: value for word, value in _SYNONYMS.get(name, {}).items() if value in repairable}
        words = _cache[version, name] = _Words(known, spellings, synonyms)
    return words


def _listed(name: str, node: Any) -> list[str]:
    if node[0] == "enum":
        return list(node[2])
    if node[0] == "union":
        return [variant[0] for variant in node[3]]
    if node[0] == "either" and node[3][0][0] == "union":  # an open union with an untagged form beside it
        return [variant[0] for variant in node[3][0][3]]
    raise KeyError(name)
