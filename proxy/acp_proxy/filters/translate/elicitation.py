"""Questions of a v1 agent to the user of a v2 client, and the answers back (bridge §7.9).

Modes, property types, item types and actions are open in both versions and pass unchanged; no word is ever
read as `accept`. v2 requires a few fields v1 fills in by default.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from acp_proxy.filters.translate.meta import marked
from acp_proxy.filters.translate.refusal import INVALID_PARAMS, Refusal


def request_to_v2(params: Any, advertised: Collection[str] | None = None) -> dict[str, Any] | Refusal:
    """Translate params of `elicitation/create`; the same object when nothing is missing.

    Refuses (-32602) a request without scope or with both (`sessionId`, `requestId`), a multi-select without
    anything to select, and, when `advertised` lists the client's modes, any other mode. `requestId` is
    passed on as it is: JSON-RPC ids are the adapter's to map.
    """
    if not isinstance(params, dict):
        return Refusal(INVALID_PARAMS, "params must be an object")
    if (params.get("sessionId") is None) == (params.get("requestId") is None):
        return Refusal(
            INVALID_PARAMS, "an elicitation belongs to a session or to a request, exactly one of them"
        )
    mode = params.get("mode")
    if advertised is not None and not (isinstance(mode, str) and mode in advertised):
        return Refusal(INVALID_PARAMS, "the client does not support this elicitation mode")
    schema = params.get("requestedSchema")
    if mode != "form" or not isinstance(schema, dict):
        return params
    filled = _schema(schema)
    if isinstance(filled, Refusal):
        return filled
    return params if filled is schema else {**params, "requestedSchema": filled}


def response_to_v1(result: Any) -> dict[str, Any]:
    """Translate the client's result; a malformed one becomes `cancel`, never an acceptance.

    v1 takes strings, numbers, booleans and lists of strings as content. Any other value of an accepted form
    is left out and kept in `_meta["acp-proxy"].dropped.content`.
    """
    if not isinstance(result, dict):
        return {"action": "cancel"}
    if not isinstance(result.get("action"), str):
        return {"action": "cancel", "_meta": result["_meta"]} if "_meta" in result else {"action": "cancel"}
    content = result.get("content")
    if result["action"] != "accept" or content is None:
        return result
    if not isinstance(content, dict):
        return {"action": "cancel", "_meta": result["_meta"]} if "_meta" in result else {"action": "cancel"}
    dropped = {key: value for key, value in content.items() if not _is_value(value)}
    if not dropped:
        return result
    kept = {key: value for key, value in content.items() if key not in dropped}
    return marked({**result, "content": kept}, "dropped", {"content": dropped})


def _schema(schema: dict[str, Any]) -> dict[str, Any] | Refusal:
    out = schema
    if schema.get("type") is None:
        out = {**out, "type": "object"}
    properties = schema.get("properties")
    if properties is None:
        return {**out, "properties": {}}
    if not isinstance(properties, dict):
        return out
    changed: dict[str, Any] = {}
    for name, definition in properties.items():
        translated = _property(definition)
        if isinstance(translated, Refusal):
            return translated
        if translated is not definition:
            changed[name] = translated
    return {**out, "properties": {**properties, **changed}} if changed else out


def _property(definition: Any) -> Any:
    """Translate one form field; a Refusal when it lets the user select among nothing."""
    if not isinstance(definition, dict):
        return definition
    if definition.get("type") == "array":
        items = definition.get("items")
        if isinstance(items, dict) and (items.get("enum") == [] or items.get("anyOf") == []):
            return Refusal(INVALID_PARAMS, "a multi-select must offer something to select")
        return definition
    if definition.get("enum") != [] and definition.get("oneOf") != []:
        return definition
    return {key: value for key, value in definition.items() if not (key in ("enum", "oneOf") and value == [])}


def _is_value(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(entry, str) for entry in value)
    return isinstance(value, (str, bool, int, float))
