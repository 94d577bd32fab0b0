"""Unions told apart by a tag or by form."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Version

V1, V2 = Version.V1, Version.V2
TEXT = {"type": "text", "text": "hello"}
CHUNK = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}
ELICITATION = {"message": "m", "mode": "url", "elicitationId": "e", "url": "u"}
STDIO = {"name": "n", "command": "/c", "args": [], "env": []}


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [
        (V2, "SessionUpdate", {"sessionUpdate": "_own", "content": 5}),
        (V2, "SessionUpdate", {"sessionUpdate": "state_update", "state": "idle"}),
        (V2, "SessionUpdate", {"sessionUpdate": "state_update", "state": "idle", "stopReason": None}),
        (V2, "SessionUpdate", {"sessionUpdate": "state_update", "state": "pondering", "stopReason": 5}),
        (V1, "RequestId", None),
        (V2, "RequestId", "a"),
        (V2, "RequestId", 1.0),
        (V1, "McpServer", STDIO),
        (V1, "McpServer", {**STDIO, "type": "stdio"}),
        (V1, "SetSessionConfigOptionRequest", {"sessionId": "s", "configId": "c", "value": "v"}),
        (V2, "MultiSelectItems", {"type": "string", "anyOf": [{"const": "a", "title": "A"}]}),
        (V2, "EmbeddedResourceResource", {"uri": "u", "blob": "b"}),
        (
            V2,
            "SessionConfigSelectOptions",
            [{"groupId": "g", "name": "n", "options": [{"value": "v", "name": "n"}]}],
        ),
        (V2, "CreateElicitationRequest", {**ELICITATION, "sessionId": "s"}),
        (V2, "CreateElicitationRequest", {**ELICITATION, "sessionId": "s", "requestId": {}}),
        (V1, "CreateElicitationRequest", {**ELICITATION, "sessionId": "s", "requestId": 1}),
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
            "ToolCallUpdate",
            {"toolCallId": "t", "content": [{"type": "Content", "content": {"type": "Text"}}]},
            {"toolCallId": "t", "content": [{"type": "content", "content": {"type": "Text"}}]},
            [("content/0/type", "respelled")],
        ),
        (
            V1,
            "ToolCallUpdate",
            {"toolCallId": "t", "content": [{"type": "Content", "content": {"type": "Text"}}]},
            {"toolCallId": "t", "content": []},
            [("content/0", "dropped item")],
        ),
        (
            V2,
            "SessionUpdate",
            {**CHUNK, "sessionUpdate": "agentMessageChunk"},
            CHUNK,
            [("sessionUpdate", "respelled")],
        ),
        (
            V2,
            "StateUpdate",
            {"state": "Idle", "stopReason": "End Turn"},
            {"state": "idle", "stopReason": "end_turn"},
            [("state", "respelled"), ("stopReason", "respelled")],
        ),
        (
            V1,
            "SetSessionConfigOptionRequest",
            {"sessionId": "s", "configId": "c", "type": "Boolean", "value": True},
            {"sessionId": "s", "configId": "c", "type": "boolean", "value": True},
            [("type", "respelled")],
        ),
        (
            V2,
            "CreateElicitationRequest",
            {**ELICITATION, "sessionId": "s", "toolCallId": 5},
            {**ELICITATION, "sessionId": "s"},
            [("toolCallId", "omitted")],
        ),
        (
            V2,
            "EmbeddedResource",
            {"resource": {"uri": "u", "blob": "b", "mimeType": 5}},
            {"resource": {"uri": "u", "blob": "b"}},
            [("resource/mimeType", "omitted")],
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
        (V2, "SessionUpdate", [], "expected an object"),
        (V2, "SessionUpdate", {}, "sessionUpdate: required field is missing"),
        (V2, "SessionUpdate", {"sessionUpdate": ["x"]}, "sessionUpdate: expected a string"),
        (V1, "SessionUpdate", {"sessionUpdate": "zap"}, "sessionUpdate: unknown tag"),
        (V1, "SessionUpdate", {"sessionUpdate": "ToolCall"}, "toolCallId: required field is missing"),
        (V2, "CreateElicitationRequest", ELICITATION, "sessionId: required field is missing"),
        (
            V2,
            "CreateElicitationRequest",
            {**ELICITATION, "sessionId": "s", "requestId": 1},
            "fits several forms of which one may hold",
        ),
        (
            V2,
            "CreateElicitationRequest",
            {**ELICITATION, "_meta": 5, "sessionId": "s", "requestId": 1},
            "fits several forms of which one may hold",
        ),
        (V2, "RequestId", True, "fits none of the allowed forms"),
        (
            V1,
            "AuthMethod",
            {"type": "terminal", "id": "i", "name": "n", "args": 5},
            "args: expected an array",
        ),
        (V1, "McpServer", {**STDIO, "type": "http"}, "url: required field is missing"),
        (V1, "McpServer", {"type": "zap", "name": "n"}, "command: required field is missing"),
        (V2, "AuthMethod", {"type": "zap", "name": "n"}, "methodId: required field is missing"),
    ],
)
def test_what_leniency_does_not_cover_is_located(
    version: Version, name: str, value: Any, problem: str
) -> None:
    outcome = conform(version, name, value)
    assert (outcome.value is value, outcome.notes, outcome.problem) == (True, [], problem)
