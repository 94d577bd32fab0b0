"""Scalars, lists, maps and objects: unchanged, made to fit, or refused at a place."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Version

V1, V2 = Version.V1, Version.V2
TEXT = {"type": "text", "text": "hello"}
CHUNK = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}
CALL = {"sessionUpdate": "tool_call_update", "toolCallId": "t"}
STDIO = {"name": "n", "command": "/c", "args": [], "env": []}


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [
        (V1, "SessionUpdate", {"sessionUpdate": "agent_message_chunk", "content": TEXT}),
        (V2, "SessionUpdate", CHUNK),
        (V2, "SessionUpdate", {**CALL, "kind": "future", "status": "_own"}),
        (V2, "UsageUpdate", {"used": 2**80, "size": 1.0}),
        (V2, "ErrorCode", 7),
        (V2, "PermissionOption", {"optionId": "o", "name": "n", "kind": "Allow_Once"}),
    ],
)
@pytest.mark.parametrize("synonyms", [False, True])
def test_what_fits_comes_back_as_the_same_object(
    version: Version, name: str, value: Any, synonyms: bool
) -> None:
    outcome = conform(version, name, value, synonyms=synonyms)
    assert (outcome.value is value, outcome.notes, outcome.problem) == (True, [], None)


@pytest.mark.parametrize(
    ("version", "name", "value", "wanted", "notes"),
    [
        (
            V2,
            "SessionUpdate",
            {**CALL, "title": 5, "_meta": []},
            CALL,
            [("title", "omitted"), ("_meta", "omitted")],
        ),
        (
            V2,
            "TextContent",
            {**TEXT, "annotations": {"priority": 2}},
            {**TEXT, "annotations": {}},
            [("annotations/priority", "omitted")],
        ),
        (
            V1,
            "ToolCallUpdate",
            {"toolCallId": "t", "kind": "zap"},
            {"toolCallId": "t"},
            [("kind", "omitted")],
        ),
        (V2, "IdleStateUpdate", {"stopReason": 5}, {}, [("stopReason", "omitted")]),
        (V2, "RunningStateUpdate", {"background": [{"type": "terminal"}]}, {}, [("background", "omitted")]),
        (
            V2,
            "McpServerStdio",
            {"name": "n", "command": "/c", "args": None},
            {"name": "n", "command": "/c"},
            [("args", "omitted")],
        ),
        (
            V2,
            "SetProviderRequest",
            {"providerId": "p", "apiType": "x", "baseUrl": "u", "headers": None},
            {"providerId": "p", "apiType": "x", "baseUrl": "u"},
            [("headers", "omitted")],
        ),
        (
            V1,
            "ToolCall",
            {"toolCallId": "t", "title": "x", "status": None},
            {"toolCallId": "t", "title": "x"},
            [("status", "omitted")],
        ),
        (V1, "McpServerStdio", {**STDIO, "args": None}, STDIO, [("args", "emptied")]),
        (V1, "Plan", {"entries": "x"}, {"entries": []}, [("entries", "emptied")]),
        (
            V2,
            "AgentMessage",
            {"messageId": "m", "content": [5, TEXT, {"type": "text"}, {"type": "_x"}]},
            {"messageId": "m", "content": [TEXT, {"type": "_x"}]},
            [("content/0", "dropped item"), ("content/2", "dropped item")],
        ),
        (
            V1,
            "AgentCapabilities",
            {"loadSession": "yes", "promptCapabilities": {"image": 1, "audio": True}},
            {"promptCapabilities": {"audio": True}},
            [("loadSession", "omitted"), ("promptCapabilities/image", "omitted")],
        ),
        (
            V2,
            "ToolCallUpdate",
            {
                "toolCallId": "t",
                "content": [{"type": "diff", "changes": [{"operation": "Add", "path": "/p"}], "patch": {}}],
            },
            {
                "toolCallId": "t",
                "content": [{"type": "diff", "changes": [{"operation": "add", "path": "/p"}]}],
            },
            [("content/0/changes/0/operation", "respelled"), ("content/0/patch", "omitted")],
        ),
        # What was noted inside a part that is then omitted is not told.
        (
            V2,
            "Diff",
            {"changes": [], "patch": {"format": "gitPatch", "text": 5}},
            {"changes": []},
            [("patch", "omitted")],
        ),
        (
            V1,
            "PromptResponse",
            {"stopReason": "endTurn"},
            {"stopReason": "end_turn"},
            [("stopReason", "respelled")],
        ),
        (
            V2,
            "PermissionOption",
            {"optionId": "o", "name": "n", "kind": "rejectOnce"},
            {"optionId": "o", "name": "n", "kind": "reject_once"},
            [("kind", "respelled")],
        ),
        (
            V2,
            "ElicitationSchema",
            {"type": "object", "properties": {"secret": {"type": "string", "title": 5}}},
            {"type": "object", "properties": {"secret": {"type": "string"}}},
            [("properties/*/title", "omitted")],
        ),
    ],
)
def test_what_leniency_covers_is_made_to_fit(
    version: Version, name: str, value: Any, wanted: Any, notes: list[tuple[str, str]]
) -> None:
    before = copy.deepcopy(value)
    outcome = conform(version, name, value)
    assert (outcome.value, outcome.notes, outcome.problem) == (wanted, notes, None)
    assert value == before


@pytest.mark.parametrize(
    ("version", "name", "value", "problem"),
    [
        (V2, "SessionUpdate", {**CHUNK, "content": 5}, "content: expected an object"),
        (
            V2,
            "SessionUpdate",
            {**CHUNK, "content": {"type": "text", "text": 5}},
            "content/text: expected a string",
        ),
        (V1, "PromptResponse", {"stopReason": "zap"}, "stopReason: unknown value"),
        (V1, "PermissionOption", {"optionId": "o", "name": "n", "kind": "Allow_Once"}, "kind: unknown value"),
        (V2, "UsageUpdate", {"used": True, "size": 1}, "used: expected an integer"),
        (V2, "UsageUpdate", {"used": 1.5, "size": 1}, "used: expected an integer"),
        (V2, "UsageUpdate", {"used": -1, "size": 1}, "used: expected an integer within bounds"),
        (V2, "Cost", {"amount": "1", "currency": "X"}, "amount: expected a number"),
        (V2, "Notice", {"severity": "info", "title": ""}, "title: expected a longer string"),
        (V2, "PromptRequest", {"sessionId": "s", "prompt": []}, "prompt: expected more items"),
        (
            V2,
            "PromptRequest",
            {"sessionId": "s", "prompt": [TEXT, {"type": "image"}]},
            "prompt/1/data: required field is missing",
        ),
        (V2, "PromptRequest", {"sessionId": None, "prompt": [TEXT]}, "sessionId: expected a string"),
        (
            V2,
            "SessionConfigSelectGroup",
            {"groupId": "g", "name": "n", "options": [5]},
            "options: expected more items",
        ),
        (V2, "ListSessionsRequest", {"cursor": 5}, "cursor: expected a string"),
        (
            V1,
            "AuthMethodTerminal",
            {"id": "i", "name": "n", "env": {"SECRET": 5}},
            "env/*: expected a string",
        ),
    ],
)
def test_what_leniency_does_not_cover_is_located(
    version: Version, name: str, value: Any, problem: str
) -> None:
    outcome = conform(version, name, value)
    assert (outcome.value is value, outcome.notes, outcome.problem) == (True, [], problem)
