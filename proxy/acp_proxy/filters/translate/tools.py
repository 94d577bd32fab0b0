"""Tool calls of a v1 agent as v2 upserts (bridge §6, §7.2, §9).

In a v1 update null means "unchanged"; in v2 it clears. So no null of a tool call passes, `_meta: null` and
unknown fields included: agents that write every unset field as null would otherwise empty what the client
stores.

An update in which nothing changes comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from acp_proxy.filters.translate.content import BLOCK_TYPES, content_block
from acp_proxy.filters.translate.diffs import diff_content
from acp_proxy.filters.translate.paths import resolve

NO_TERMINALS: frozenset[str] = frozenset()


def tool_call(update: Any, cwd: str | None, served_terminals: AbstractSet[str] = NO_TERMINALS) -> Any:
    """Translate the body of a `tool_call` to that of a `tool_call_update`, all present fields kept.

    A second `tool_call` with the same id is a patch in both versions, so nothing is filled in. `cwd` is the
    session's; `served_terminals` are the ids the proxy itself runs. What is no object is returned as it is.
    """
    if not isinstance(update, dict):
        return update
    out = permission_tool_call(update, cwd, served_terminals)
    if out.get("sessionUpdate") == "tool_call_update":
        return out
    if out is update:
        out = dict(update)
    out["sessionUpdate"] = "tool_call_update"
    return out


tool_call_update = tool_call
"""The body of a v1 `tool_call_update`; the same work, since both are one upsert in v2."""


def permission_tool_call(
    fields: Any, cwd: str | None, served_terminals: AbstractSet[str] = NO_TERMINALS
) -> Any:
    """Translate the fields of a tool call that stands in a permission request and has no `sessionUpdate`."""
    if not isinstance(fields, dict):
        return fields
    out: dict[str, Any] = {}
    changed = False
    for key, value in fields.items():
        if value is None:
            changed = True
            continue
        if key == "content":
            translated = tool_content(value, cwd, served_terminals)
        elif key == "locations":
            translated = _locations(value, cwd)
        else:
            out[key] = value
            continue
        if translated is not value:
            changed = True
        out[key] = translated
    return out if changed else fields


def tool_content(items: Any, cwd: str | None, served_terminals: AbstractSet[str] = NO_TERMINALS) -> Any:
    """Translate the content items of a tool call; what is no list is returned as it is.

    Diffs get changes and a patch; a terminal the proxy does not serve becomes a line of text, because a v2
    client would wait for its output; a bare content block (v1's documentation shows one) is wrapped;
    unknown items stay.
    """
    if not isinstance(items, list):
        return items
    out: list[Any] = []
    changed = False
    for item in items:
        translated = _item(item, cwd, served_terminals) if isinstance(item, dict) else item
        if translated is not item:
            changed = True
        out.append(translated)
    return out if changed else items


def _item(item: dict[str, Any], cwd: str | None, served_terminals: AbstractSet[str]) -> dict[str, Any]:
    kind = item.get("type")
    if kind == "content":
        block = item.get("content")
        translated = content_block(block)
        return item if translated is block else {**item, "content": translated}
    if kind == "diff":
        translated_diff: dict[str, Any] = diff_content(item, cwd)
        return translated_diff
    if kind == "terminal":
        terminal = item.get("terminalId")
        if not isinstance(terminal, str) or terminal in served_terminals:
            return item
        rest = {key: value for key, value in item.items() if key not in ("type", "terminalId", "content")}
        return {"type": "content", "content": {"type": "text", "text": f"[terminal {terminal}]"}, **rest}
    if isinstance(kind, str) and kind in BLOCK_TYPES:
        return {"type": "content", "content": content_block(item)}
    return item


def _locations(items: Any, cwd: str | None) -> Any:
    if not isinstance(items, list):
        return items
    out: list[Any] = []
    changed = False
    for item in items:
        translated = _location(item, cwd) if isinstance(item, dict) else item
        if translated is not item:
            changed = True
        out.append(translated)
    return out if changed else items


def _location(location: dict[str, Any], cwd: str | None) -> dict[str, Any]:
    """Make the path absolute and leave out a line v2 forbids: v1 agents write 0 or null for "no line"."""
    out = location
    path = location.get("path")
    if isinstance(path, str):
        absolute = resolve(path, cwd)
        if absolute != path:
            out = {**out, "path": absolute}
    if "line" in location:
        line = location["line"]
        if line is None or line == 0:
            out = {key: value for key, value in out.items() if key != "line"}
    return out
