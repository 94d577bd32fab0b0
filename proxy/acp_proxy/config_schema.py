"""The JSON Schema of the configuration, read off the structs of `config`, with what each key means.

An editor that knows it completes and checks the TOML file while it is written. Types, words, bounds and
defaults come from the structs alone; here stands only what no type says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from acp_proxy.config import LAST_RULE, Settings

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

MEANINGS: Final[dict[str, str]] = {
    "bridge.mode": "Translate between peers that negotiate different protocol versions, or never.",
    "bridge.ack_timeout": "How long to wait for a sign that a v1 agent took a prompt before the client is told.",
    "bridge.close_timeout": "How long to wait for the open turn's end where the agent cannot close a session.",
    "bridge.settle": "Quiet time after the last update behind a prompt's result before idle is told.",
    "bridge.load_settle": "The same after a loaded session's history.",
    "bridge.max_held": "How many prompts may wait behind the one that runs; more are refused.",
    "bridge.queue_boundary": "Between queued prompts tell an end and a start each, or one span of work.",
    "bridge.batch": "JSON-RPC batches: one error, or each item for itself.",
    "bridge.drop_sse": "Leave out MCP servers over SSE instead of refusing the session.",
    "bridge.serve": "What a v1 agent behind a v2 client may have done on this machine.",
    "lifecycle.mode": "Note a violation, repair it, or refuse it.",
    "lifecycle.rules": "Another word for single rules; off: neither noted nor repaired.",
    "lifecycle.answer_grace": "How long a client may still answer a permission after its cancel.",
    "lifecycle.close_tools": "Tell tool calls that a cancel or close left open as cancelled.",
    "lifecycle.cancel_timeout": "A cancel unconfirmed for so long ends the turn as cancelled.",
    "lifecycle.permission_timeout": "A permission unanswered for so long is rejected, never approved.",
    "lifecycle.turn_timeout": "Ceiling of one turn; then a finding and stall_action.",
    "lifecycle.tool_timeout": "Ceiling of one tool call; then a finding and stall_action.",
    "lifecycle.extension_timeout": "An agent's extension request unanswered for so long gets -32601.",
    "lifecycle.stall_after": "Quiet foreground work with no open tool or wait; then a finding and stall_action.",
    "lifecycle.stall_action": "What is done about a stall or a ceiling, step by step.",
    "permissions.rules": "Who answers a permission request: the first table that fits, else the client.",
    "prompts.busy": "A prompt while a turn runs, between peers of one protocol version.",
    "prompts.idle_cancel": "A cancel with nothing in the foreground.",
    "inference.quiet_idle": "Quiet time after which a v2 agent that reports no states counts as idle.",
    "inference.agent_initiated": "Output outside any turn: no change, work the agent began, or unknown.",
    "inference.requires_action": "A question to the user counts when nothing else moves, or always.",
    "inference.quiet_time": "Quiet that ends work which the agent began itself.",
    "inference.end_markers": "Marks that end such work: notification methods, or paths below _meta.",
    "normalize.synonyms": "Read synonyms of known values, too.",
    "limits.message_bytes": "The longest message; longer ones are skipped and answered with an error.",
    "agent.version": "The protocol version offered to the agent.",
    "agent.profile": "What is known of the agent beyond the protocol: found by its name, none, or by this name.",
    "agent.restart": "Whether an agent that ended is started again: only while nothing runs, or always.",
    "agent.restart_limit": "So many restarts within restart_window, then no more.",
    "agent.restart_window": "The time that restart_limit counts in.",
    "agent.restart_delay": "The first wait before a restart, doubled with each one.",
    "agent.eof_grace": "Between closing the agent's input and SIGTERM.",
    "agent.term_grace": "Between SIGTERM and SIGKILL.",
    "profiles.dir": "The folder of the user's own agent profiles.",
    "record.file": "Where the recording is written.",
    "findings.file": "Where findings are written, one JSON object a line.",
    "state.path": "The registry of sessions, kept from run to run.",
    "state.required": "Refuse to start without the registry, or go on and forget.",
    "log.level": "The least that is written on stderr.",
    "log.format": "The form of what is written on stderr.",
    "plugins.enabled": "The plugins to load; their filters stand in this order, the client's end first.",
    "unstable": "Translate items of the protocols' unstable schemas too.",
}
"""One line a dotted key."""

_PATTERNS: Final = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
PERMISSION_RULE: Final[dict[str, Any]] = {
    "description": "Every match key given must fit: globs, or a regular expression between slashes.",
    "type": "object",
    "properties": {
        **dict.fromkeys(("kind", "title", "command", "path", "cwd", "option_kinds"), _PATTERNS),
        "decision": {"enum": ["ask", "allow_once", "reject"]},
    },
    "required": ["decision"],
    "additionalProperties": False,
}
"""One table of `permissions.rules`, which `policy.permission_rules` reads and this room cannot see."""


def schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a configuration file, nested as TOML nests it.

    Unknown keys are refused as `config.load` refuses them; a plugin's table is free, for only the plugin
    knows it.
    """
    tables: dict[str, Any] = msgspec.json.schema(Settings)["$defs"]
    top = _table(tables, "Settings", "")
    return {"$schema": DIALECT, "title": "acp-proxy configuration", **top}


def _table(tables: Mapping[str, Any], name: str, prefix: str) -> dict[str, Any]:
    """One struct as a closed table; `prefix` is its dotted key with a dot behind."""
    properties: dict[str, Any] = {}
    for member, given in tables[name]["properties"].items():
        if "$ref" in given:
            properties[member] = _table(tables, given["$ref"].rpartition("/")[2], f"{member}.")
        elif f"{prefix}{member}" != "plugins.tables":
            properties[member] = _key(f"{prefix}{member}", given)
    described = {"description": _paragraph(tables[name]["description"])}
    rest: object = {"type": "object"} if prefix == "plugins." else False
    return {**described, "type": "object", "properties": properties, "additionalProperties": rest}


def _key(key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """One key: what the struct says, in TOML's terms, with its meaning before it."""
    kind = dict(given)
    choices = [choice for choice in kind.pop("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        kind.update(choices[0])
    if kind.get("default", kind) is None:
        del kind["default"]  # TOML has no null: without a value the key is left out
    kind.pop("maximum", None)  # it only keeps infinity out, which JSON has none of
    takes = kind.pop("description", None)
    if key == "agent.version":
        kind["enum"] = [*kind["enum"], "1", "2"]
    if key == "permissions.rules":
        kind["items"] = PERMISSION_RULE
    if key == "lifecycle.rules":
        kind["propertyNames"] = {"enum": [f"V{number:02}" for number in range(1, LAST_RULE + 1)]}
    meaning = [MEANINGS[key]] if key in MEANINGS else []
    return {"description": " ".join([*meaning, *([f"Takes {takes}."] if takes else [])]), **kind}


def _paragraph(text: str) -> str:
    return " ".join(text.split())
