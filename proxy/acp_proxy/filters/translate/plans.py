"""The one plan of a v1 session as a v2 plan with a fixed id (bridge §6, §7.4)."""

from __future__ import annotations

from typing import Any

PLAN_ID = "acp-proxy"
"""v1 has one plan a session and replaces it each time: a constant id says the same in v2."""


def plan(update: Any) -> Any:
    """Translate the body of a `plan` update to `plan_update {plan: {type, planId, entries}}`.

    Entries have the same shape in both versions and pass as they are. `_meta` and unknown fields stay on
    the update, where the agent put them. What is no object is returned as it is.
    """
    if not isinstance(update, dict):
        return update
    content: dict[str, Any] = {"type": "items", "planId": PLAN_ID}
    out: dict[str, Any] = {}
    for key, value in update.items():
        if key == "entries":
            content["entries"] = value
            out["plan"] = content
        elif key != "plan":
            out[key] = value
    out["sessionUpdate"] = "plan_update"
    out.setdefault("plan", content)
    return out
