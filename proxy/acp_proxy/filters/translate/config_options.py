"""Session settings and modes of a v1 agent as v2 config options (bridge §7.6).

v2 has no modes: a mode is a select option of category `mode`. When the agent offers modes and no such
option, one is made up; setting it is a `session/set_mode` for the agent. The adapter keeps the last full
list of a session, because v2 results and updates always carry all options.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from acp_proxy.filters.translate.refusal import INVALID_PARAMS, Refusal

MODE_ID = "mode"
TAKEN_MODE_ID = "acp-proxy-mode"
"""The id of the made-up option when the agent has an option `mode` of another meaning."""


def options(v1_options: Any) -> list[Any]:
    """Translate a list of v1 config options; null and what is no list give an empty list.

    Renames `id` to `configId` and `group` to `groupId`. Leaves out empty groups and a select without
    options, as v2 wants at least one. Unknown option types stay.
    """
    if not isinstance(v1_options, list):
        return []
    out: list[Any] = []
    for option in v1_options:
        if not isinstance(option, dict):
            out.append(option)
            continue
        renamed = _renamed(option, "id", "configId")
        choices = renamed.get("options")
        if isinstance(choices, list):
            choices = [translated for translated in map(_choice, choices) if translated is not None]
            renamed["options"] = choices
        if choices or renamed.get("type") != "select":
            out.append(renamed)
    return out


def has_mode(config_options: Any) -> bool:
    """Say whether a list of options, of either version, has one of category `mode`."""
    return isinstance(config_options, list) and any(
        isinstance(option, dict) and option.get("category") == "mode" for option in config_options
    )


def mode_option(modes: Any, taken_ids: Collection[str]) -> dict[str, Any] | None:
    """Make the select option that stands for a v1 `modes` object.

    None without a single usable mode: v2 knows no empty select. `taken_ids` are the `configId`s already in
    use. Names, descriptions and `_meta` are the agent's own.
    """
    if not isinstance(modes, dict) or not isinstance(modes.get("availableModes"), list):
        return None
    choices: list[dict[str, Any]] = []
    for mode in modes["availableModes"]:
        if not isinstance(mode, dict) or not isinstance(mode.get("id"), str):
            continue
        name = mode.get("name")
        choice: dict[str, Any] = {"value": mode["id"], "name": name if isinstance(name, str) else mode["id"]}
        choice.update((key, mode[key]) for key in ("description", "_meta") if key in mode)
        choices.append(choice)
    if not choices:
        return None
    option: dict[str, Any] = {
        "configId": TAKEN_MODE_ID if MODE_ID in taken_ids else MODE_ID,
        "name": "Mode",
        "category": "mode",
        "type": "select",
        "currentValue": modes.get("currentModeId"),
        "options": choices,
    }
    if "_meta" in modes:
        option["_meta"] = modes["_meta"]
    return option


def with_value(config_options: Any, config_id: Any, value: Any) -> Any:
    """Copy a v2 list with `currentValue` of one option replaced; the same list when that changes nothing."""
    if not isinstance(config_options, list):
        return config_options
    for index, option in enumerate(config_options):
        if isinstance(option, dict) and option.get("configId") == config_id:
            current = option.get("currentValue")
            if type(current) is type(value) and current == value:
                return config_options
            out = list(config_options)
            out[index] = {**option, "currentValue": value}
            return out
    return config_options


def current_mode(update: Any) -> str | None:
    """Read the mode of a `current_mode_update`: `currentModeId`, or `modeId` as v1's documentation has it."""
    if not isinstance(update, dict):
        return None
    for key in ("currentModeId", "modeId"):
        mode = update.get(key)
        if isinstance(mode, str):
            return mode
    return None


def set_request(params: Any) -> dict[str, Any] | Refusal:
    """Translate params of `session/set_config_option`: type `id` loses its tag, `boolean` passes.

    Refuses (-32602) any other type, and a value that is not of its type: without the tag a v1 agent would
    take it for something else.
    """
    if not isinstance(params, dict):
        return Refusal(INVALID_PARAMS, "params must be an object")
    kind, value = params.get("type"), params.get("value")
    if kind == "id":
        if not isinstance(value, str):
            return Refusal(INVALID_PARAMS, "a config value of type id must be a string")
        return {key: field for key, field in params.items() if key != "type"}
    if kind == "boolean":
        if not isinstance(value, bool):
            return Refusal(INVALID_PARAMS, "a config value of type boolean must be true or false")
        return params
    return Refusal(INVALID_PARAMS, "the agent knows config values of type id and boolean only")


def mode_request(params: dict[str, Any]) -> dict[str, Any]:
    """Turn params that `set_request` let pass, for the made-up option, into those of `session/set_mode`."""
    out: dict[str, Any] = {}
    for key, field in params.items():
        if key == "value":
            out["modeId"] = field
        elif key not in ("configId", "type"):
            out[key] = field
    return out


def _choice(choice: Any) -> Any:
    """Translate a choice or a group of choices; None for a group that has none."""
    if not isinstance(choice, dict) or ("group" not in choice and "groupId" not in choice):
        return choice
    if not choice.get("options"):
        return None
    return _renamed(choice, "group", "groupId")


def _renamed(holder: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old not in holder:
        return dict(holder)
    return {new if key == old else key: value for key, value in holder.items() if key != new}
