"""Values nobody has listed are found wherever they stand; extensions and listed ones are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acp_proxy.acp.unknown_values import unknown_values
from acp_proxy.acp.version import Version


def found(update: dict[str, Any], version: Version = Version.V2) -> list[tuple[str, str, str]]:
    name = "UpdateSessionNotification" if version is Version.V2 else "SessionNotification"
    seen = unknown_values(version, name, {"sessionId": "s", "update": update})
    return [("/".join(map(str, one.path)), one.type_name, one.value) for one in seen]


@pytest.mark.parametrize(
    ("update", "path", "type_name"),
    [
        ({"sessionUpdate": "banana"}, "update/sessionUpdate", "SessionUpdate"),
        (
            {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "banana"},
            "update/kind",
            "ToolKind",
        ),
        (
            {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "banana"},
            "update/status",
            "ToolCallStatus",
        ),
        ({"sessionUpdate": "state_update", "state": "banana"}, "update/state", "StateUpdate"),
        (
            {"sessionUpdate": "state_update", "state": "idle", "stopReason": "banana"},
            "update/stopReason",
            "IdleStateUpdate",
        ),
        (
            {"sessionUpdate": "state_update", "state": "running", "background": [{"type": "banana"}]},
            "update/background/0/type",
            "BackgroundWork",
        ),
        (
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "t",
                "content": [{"type": "content", "content": {"type": "banana"}}],
            },
            "update/content/0/content/type",
            "ContentBlock",
        ),
        (
            {
                "sessionUpdate": "config_option_update",
                "configOptions": [{"configId": "x", "name": "X", "type": "select", "category": "banana"}],
            },
            "update/configOptions/0/category",
            "SessionConfigOptionCategory",
        ),
    ],
)
def test_an_unlisted_value_is_found_with_its_place_and_set(
    update: dict[str, Any], path: str, type_name: str
) -> None:
    assert found(update) == [(path, type_name, "banana")]
    extension = json.loads(json.dumps(update).replace("banana", "_banana"))
    assert found(extension) == [], "an extension is no minted value"


def test_listed_values_and_what_is_no_value_at_all_are_not() -> None:
    sound = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t",
        "kind": "read",
        "status": None,
        "content": 5,
    }
    assert found(sound) == []
    assert unknown_values(Version.V2, "UpdateSessionNotification", "text") == []
    assert unknown_values(Version.V2, "MessageId", "banana") == []


def test_version_1_has_its_own_lists() -> None:
    tool = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "t", "status": "paused"}
    assert found(tool, Version.V1) == [("update/status", "ToolCallStatus", "paused")]


def test_an_unknown_type_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        unknown_values(Version.V2, "NoSuchType", {})
