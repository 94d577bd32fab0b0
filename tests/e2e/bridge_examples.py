"""A valid example of every kind of message that a bridge for a v2 client and a v1 agent reads, and broken ones.

Shapes: bridge §11. `broken` is for the tests what a careless peer is for the proxy.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

JUNK: list[Any] = [None, 7, "x", [], {}, True]
MISSING = object()
META = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
TEXT = {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": META}
IMAGE = {"type": "image", "data": "QQ==", "mimeType": "image/png", "uri": "file:///i"}
LINK = {"type": "resource_link", "name": "n", "uri": "file:///l", "size": 3, "title": "t", "mimeType": "a/b"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///r", "text": "t", "mimeType": "text/plain"}}
STDIO = {"name": "n", "command": "/c", "args": ["a"], "env": [{"name": "A", "value": "b"}]}
HTTP = {"type": "http", "name": "n", "url": "http://h", "headers": [{"name": "A", "value": "b"}]}
CHOICES = [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A", "description": "d"}]}]
SELECT = {"id": "model", "name": "M", "type": "select", "currentValue": "a", "options": CHOICES}
CHECK = {"id": "fast", "name": "F", "type": "boolean", "currentValue": True, "category": "model_config"}
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask", "description": "d"}]}
TOOL = {
    "toolCallId": "t1",
    "title": "T",
    "kind": "edit",
    "status": "pending",
    "content": [
        {"type": "content", "content": TEXT},
        {"type": "diff", "path": "/p/a", "oldText": "a\n", "newText": "b\n"},
        {"type": "terminal", "terminalId": "term"},
    ],
    "locations": [{"path": "/p/a", "line": 3}],
    "rawInput": {"a": 1},
    "rawOutput": {"b": 2},
    "_meta": META,
}
OPTIONS = [{"optionId": "ok", "name": "Yes", "kind": "allow_once"}]
USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": 0}
ERROR = {"code": -32000, "message": "no", "data": {"a": 1}}

CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
    "auth": {"logout": {}},
}
CLIENT_CAPABILITIES: Json = {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}}

INITIALIZE = {
    "protocolVersion": 2,
    "info": {"name": "n", "version": "1", "title": "t"},
    "capabilities": CLIENT_CAPABILITIES,
    "_meta": META,
}
INITIALIZE_RESULT = {
    "protocolVersion": 1,
    "agentInfo": {"name": "n", "version": "1", "title": "t"},
    "agentCapabilities": CAPABILITIES,
    "authMethods": [
        {"id": "a", "name": "A", "description": "d"},
        {"id": "t", "name": "T", "type": "terminal", "args": ["x"], "env": {"A": "b"}},
    ],
    "_meta": META,
}

# ---------------------------------------------------------------- v2 client

_V2_STDIO = {"type": "stdio", **STDIO}
_OPENING = {
    "cwd": "/p",
    "mcpServers": [_V2_STDIO, HTTP],
    "additionalDirectories": ["/q"],
    "_meta": META,
}
CLIENT_REQUESTS: list[tuple[str, Json]] = [
    ("auth/login", {"methodId": "a", "_meta": META}),
    ("auth/logout", {}),
    ("session/new", _OPENING),
    ("session/resume", {"sessionId": "s1", **_OPENING}),
    ("session/resume", {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}),
    ("session/list", {"cwd": "/p", "cursor": "c", "_meta": META}),
    ("session/close", {"sessionId": "other", "_meta": META}),
    ("session/delete", {"sessionId": "other", "_meta": META}),
    ("session/prompt", {"sessionId": "s1", "prompt": [TEXT, IMAGE, LINK, RESOURCE], "_meta": META}),
    ("session/set_config_option", {"sessionId": "s1", "configId": "model", "type": "id", "value": "a"}),
    ("session/set_config_option", {"sessionId": "s1", "configId": "fast", "type": "boolean", "value": True}),
    ("session/set_config_option", {"sessionId": "s1", "configId": "mode", "type": "id", "value": "ask"}),
    ("tool_call/cancel", {"sessionId": "s1", "toolCallId": "t1"}),
    ("terminal/cancel", {"sessionId": "s1", "terminalId": "t"}),
    ("_extension", {"anything": [1, {"a": None}]}),
]
CLIENT_NOTIFICATIONS: list[tuple[str, Json]] = [
    ("session/cancel", {"sessionId": "s1", "_meta": META}),
    ("$/cancel_request", {"requestId": 3, "_meta": META}),
    ("_extension", {"anything": 1}),
]
PERMISSION_RESULT = {"outcome": {"outcome": "selected", "optionId": "ok", "_meta": META}, "_meta": META}
ELICITATION_RESULT = {"action": "accept", "content": {"name": "n", "many": ["a"]}, "_meta": META}

# ---------------------------------------------------------------- v1 agent

UPDATES: list[Json] = [
    {"sessionUpdate": "user_message_chunk", "content": TEXT, "messageId": "m1", "_meta": META},
    {"sessionUpdate": "agent_message_chunk", "content": IMAGE, "messageId": None},
    {"sessionUpdate": "agent_message_chunk", "content": LINK},
    {"sessionUpdate": "agent_thought_chunk", "content": RESOURCE},
    {"sessionUpdate": "tool_call", **TOOL},
    {"sessionUpdate": "tool_call_update", **TOOL, "status": "completed"},
    {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "high", "status": "pending"}]},
    {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "c", "description": "d", "input": {"hint": "h"}}],
    },
    {"sessionUpdate": "current_mode_update", "currentModeId": "ask"},
    {"sessionUpdate": "config_option_update", "configOptions": [SELECT, CHECK]},
    {"sessionUpdate": "session_info_update", "title": "t", "updatedAt": "2026-01-01T00:00:00Z"},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 0.5, "currency": "EUR"}},
    {"sessionUpdate": "notice", "severity": "info", "title": "t", "description": "d"},
    {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed", "summary": [TEXT]},
    {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": TEXT},
]
# A tag of v2 makes the session a native one, so these get a session of their own.
NATIVE_UPDATES: list[Json] = [
    {"sessionUpdate": "state_update", "state": "running", "background": []},
    {"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": ERROR},
    {"sessionUpdate": "agent_message", "messageId": "m", "content": [TEXT]},
    {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "c", "exitStatus": {"exitCode": 0}},
]
AGENT_REQUESTS: list[tuple[str, Json]] = [
    ("session/request_permission", {"sessionId": "s1", "toolCall": TOOL, "options": OPTIONS, "_meta": META}),
    (
        "elicitation/create",
        {
            "sessionId": "s1",
            "toolCallId": "t1",
            "message": "m",
            "mode": "form",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "title": "t", "minLength": 1, "enum": ["a"]},
                    "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 2},
                    "count": {"type": "integer", "minimum": 1, "default": 2},
                },
                "required": ["name"],
            },
        },
    ),
    (
        "elicitation/create",
        {"sessionId": "s1", "message": "m", "mode": "url", "elicitationId": "e", "url": "http://h"},
    ),
    ("fs/read_text_file", {"sessionId": "s1", "path": "/p/a", "line": 1, "limit": 2}),
    ("terminal/create", {"sessionId": "s1", "command": "c", "args": ["a"]}),
    ("_extension", {"sessionId": "s1", "anything": None}),
]
AGENT_NOTIFICATIONS: list[tuple[str, Json]] = [
    ("$/cancel_request", {"requestId": "nothing", "_meta": META}),
    ("elicitation/complete", {"elicitationId": "e", "_meta": META}),
    ("_extension", {"anything": 1}),
]
_OPENED = {"modes": MODES, "configOptions": [SELECT, CHECK], "_meta": META}
_ENTRY = {"sessionId": "s1", "cwd": "/p", "title": "t", "updatedAt": "2026-01-01T00:00:00Z"}
# The client's request, the agent's method, and what the agent answers.
RESULTS: list[tuple[str, Json, str, Json]] = [
    ("session/new", {"cwd": "/p"}, "session/new", {"sessionId": "s7", **_OPENED}),
    ("session/resume", {"sessionId": "s7", "cwd": "/p"}, "session/resume", _OPENED),
    (
        "session/resume",
        {"sessionId": "s7", "cwd": "/p", "replayFrom": {"type": "start"}},
        "session/load",
        _OPENED,
    ),
    ("session/list", {}, "session/list", {"sessions": [_ENTRY], "nextCursor": "c", "_meta": META}),
    ("session/close", {"sessionId": "other"}, "session/close", {"_meta": META}),
    ("session/delete", {"sessionId": "other"}, "session/delete", {"_meta": META}),
    ("auth/login", {"methodId": "a"}, "authenticate", {"_meta": META}),
    ("auth/logout", {}, "logout", {"_meta": META}),
    (
        "session/set_config_option",
        {"sessionId": "s1", "configId": "model", "type": "id", "value": "a"},
        "session/set_config_option",
        {"configOptions": [SELECT, CHECK], "_meta": META},
    ),
    (
        "session/prompt",
        {"sessionId": "s1", "prompt": [{"type": "text", "text": "go"}]},
        "session/prompt",
        {"stopReason": "max_tokens", "usage": USAGE, "_meta": META},
    ),
]


def broken(value: Any) -> Iterator[tuple[str, Any]]:
    """Copies of `value`, in each of which one place is missing or holds junk; what and where goes first."""
    for path in places(value):
        for junk in (*JUNK, MISSING):
            copied = copy.deepcopy(value)
            holder = copied
            for key in path[:-1]:
                holder = holder[key]
            if junk is MISSING:
                del holder[path[-1]]
            else:
                holder[path[-1]] = copy.deepcopy(junk)
            said = "missing" if junk is MISSING else repr(junk)
            yield f"{'/'.join(map(str, path))} = {said}", copied


def places(value: Any) -> Iterator[list[Any]]:
    """The paths of all that is inside `value`, `_meta` only as a whole."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield [key]
            if key != "_meta":
                for path in places(item):
                    yield [key, *path]
