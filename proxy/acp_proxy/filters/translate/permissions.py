"""Permission requests of a v1 agent for a v2 client, and the answers back (bridge §7.3).

Whatever cannot be said or understood becomes `cancelled`; nothing is ever turned into an approval.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from acp_proxy.filters.translate.refusal import INVALID_PARAMS, Refusal
from acp_proxy.filters.translate.tools import NO_TERMINALS, permission_tool_call

FALLBACK_TITLE = "Permission required"


def request_to_v2(
    params: Any,
    *,
    stored_title: str | None,
    cwd: str | None,
    served_terminals: AbstractSet[str] = NO_TERMINALS,
) -> dict[str, Any] | Refusal:
    """Translate params of `session/request_permission` to `{sessionId, title, subject, options, …}`.

    `stored_title` is what the client knows the tool by, None for a tool it has not seen. A different title
    in the request is the text of the question: it becomes the title of the request and does not rename the
    tool.

    A Refusal means: do not ask the client, answer the agent `cancelled`, and note the text. It is given
    when there is nothing to choose (no option with id, name and kind) or nothing to approve (no
    `toolCall`).
    """
    if not isinstance(params, dict):
        return Refusal(INVALID_PARAMS, "params must be an object")
    tool = params.get("toolCall")
    if not isinstance(tool, dict):
        return Refusal(INVALID_PARAMS, "a permission request must name its toolCall")
    options = params.get("options")
    if not isinstance(options, list) or not any(map(_is_option, options)):
        return Refusal(INVALID_PARAMS, "a permission request must offer an option")
    asked = tool.get("title")
    if not isinstance(asked, str) or not asked:
        asked = None
    translated = permission_tool_call(tool, cwd, served_terminals)
    if stored_title is not None and translated.get("title", stored_title) != stored_title:
        translated = {key: value for key, value in translated.items() if key != "title"}
    title = asked or stored_title or FALLBACK_TITLE
    out: dict[str, Any] = {}
    for key, value in params.items():
        if key == "toolCall":
            out["title"] = title
            out["subject"] = {"type": "tool_call", "toolCall": translated}
        elif key not in ("title", "subject"):
            out[key] = value
    return out


def offered_options(params: Any) -> frozenset[str]:
    """Give the option ids of permission params, of either version: the only ones an answer may select."""
    options = params.get("options") if isinstance(params, dict) else None
    if not isinstance(options, list):
        return frozenset()
    ids = [option.get("optionId") for option in options if isinstance(option, dict)]
    return frozenset(option_id for option_id in ids if isinstance(option_id, str))


def outcome_to_v1(result: object, offered: frozenset[str]) -> tuple[dict[str, Any], str | None]:
    """Translate the client's result, and say why when it had to become `cancelled`.

    Passes: `cancelled`, and `selected` with an id among `offered`, both exactly so spelled. Everything else
    is `cancelled`, with `_meta` of both objects kept; the client's own word goes nowhere, or an agent that
    greps for it could find the approval nobody gave.
    """
    if not isinstance(result, dict):
        return {"outcome": {"outcome": "cancelled"}}, "the permission result is no object"
    outcome = result.get("outcome")
    if not isinstance(outcome, dict):
        return _cancelled(result, None), "the permission result has no outcome"
    word = outcome.get("outcome")
    if word == "cancelled":
        return result, None
    if word != "selected":
        return _cancelled(result, outcome), "the permission outcome is unknown to the agent"
    option_id = outcome.get("optionId")
    if isinstance(option_id, str) and option_id in offered:
        return result, None
    return _cancelled(result, outcome), "the selected permission option was not offered"


def _cancelled(result: dict[str, Any], outcome: dict[str, Any] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"outcome": "cancelled"}
    if outcome is not None and "_meta" in outcome:
        answer["_meta"] = outcome["_meta"]
    if "_meta" in result:
        return {"outcome": answer, "_meta": result["_meta"]}
    return {"outcome": answer}


def _is_option(option: Any) -> bool:
    return isinstance(option, dict) and all(
        isinstance(option.get(key), str) for key in ("optionId", "name", "kind")
    )
