"""Bridge §1, §2, §7.8, §12: the opening exchange."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.initialize import (
    is_v2_shape,
    offer_both,
    offer_v1,
    read_version,
    result_to_v2,
)

INFO = {"name": "client", "version": "1", "title": None, "_meta": {"i": 1}}
UNKNOWN = {"name": "unknown", "version": "unknown"}
SESSION = {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}
BASE: dict[str, Any] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "auth": {"terminal": False},
    "session": SESSION,
}


@pytest.mark.parametrize(
    ("value", "number", "was_text"),
    [
        (1, 1, False),
        (2, 2, False),
        (0, 0, False),
        (-1, -1, False),
        (99, 99, False),
        (1.0, 1, False),
        ("1", 1, True),
        ("1.0", 1, True),
        (" 2 ", 2, True),
        ("+2", 2, True),
        ("1.", 1, True),
        (1.5, None, False),
        (float("inf"), None, False),
        (float("nan"), None, False),
        (True, None, False),
        (False, None, False),
        ("", None, False),
        ("v1", None, False),
        ("1.5", None, False),
        ("1.0.0", None, False),
        ("1e0", None, False),
        ("0x1", None, False),
        ("1_0", None, False),
        ("\u0661", None, False),
        ("1" * 5_000, None, False),
        ("2025-06-18", None, False),
        (None, None, False),
        ([1], None, False),
        ({}, None, False),
    ],
)
def test_read_version(value: Any, number: int | None, was_text: bool) -> None:
    assert read_version(value) == (number, was_text)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"protocolVersion": 2, "info": UNKNOWN}, True),
        ({"protocolVersion": 2, "capabilities": {}}, True),
        ({"protocolVersion": 2.0, "capabilities": {}}, True),
        ({"protocolVersion": 2, "agentInfo": UNKNOWN, "agentCapabilities": {}}, False),
        ({"protocolVersion": 2}, False),
        ({"protocolVersion": 2, "info": None, "capabilities": None}, False),
        ({"protocolVersion": 1, "info": UNKNOWN, "capabilities": {}}, False),
        ({"protocolVersion": True, "info": UNKNOWN}, False),
        ({"info": UNKNOWN}, False),
        (None, False),
        ([], False),
        ("2", False),
    ],
)
def test_is_v2_shape(result: Any, expected: bool) -> None:
    assert is_v2_shape(result) is expected


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({}, BASE),
        (None, BASE),
        ("odd", BASE),
        ({"auth": {"terminal": {}}}, {**BASE, "auth": {"terminal": True}}),
        ({"auth": {"terminal": None}}, BASE),
        ({"auth": {"terminal": True}}, BASE),
        ({"auth": None}, BASE),
        ({"auth": ["odd"]}, BASE),
        (
            {"auth": {"_meta": {"k": None}, "vendor": 1}},
            {**BASE, "auth": {"_meta": {"k": None}, "vendor": 1, "terminal": False}},
        ),
        ({"elicitation": {"form": {}, "url": None}}, {**BASE, "elicitation": {"form": {}, "url": None}}),
        ({"elicitation": None}, {**BASE, "elicitation": None}),
        ({"_meta": {"k": None}, "vendor": {"x": 1}}, {**BASE, "_meta": {"k": None}, "vendor": {"x": 1}}),
        ({"fs": {"readTextFile": True}, "terminal": True}, BASE),
        ({"session": {"vendor": 1, "notices": None}}, {**BASE, "session": {**SESSION, "vendor": 1}}),
    ],
)
def test_client_capabilities(capabilities: Any, expected: dict[str, Any]) -> None:
    params = {"protocolVersion": 2, "info": INFO, "capabilities": capabilities}
    before = repr(params)
    assert offer_both(params)["clientCapabilities"] == expected
    assert offer_v1(params)["clientCapabilities"] == expected
    assert repr(params) == before


@pytest.mark.parametrize(
    ("served", "fs", "terminal"),
    [
        (set(), False, False),
        ({"fs"}, True, False),
        ({"terminal"}, False, True),
        ({"fs", "terminal"}, True, True),
    ],
)
def test_what_the_proxy_serves_is_claimed(served: set[str], fs: bool, terminal: bool) -> None:
    capabilities = offer_both({}, frozenset(served))["clientCapabilities"]
    assert capabilities["fs"] == {"readTextFile": fs, "writeTextFile": fs}
    assert capabilities["terminal"] is terminal


def test_unstable_baseline_of_v2_is_claimed_only_on_request() -> None:
    stable = offer_both({})["clientCapabilities"]
    unstable = offer_both({}, unstable=True)["clientCapabilities"]
    assert unstable == {**stable, "subagents": {}, "plan": {}}


def test_the_first_offer_has_both_shapes() -> None:
    params = {
        "protocolVersion": 7,
        "info": INFO,
        "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": {"name": "their own"},
        "_meta": {"traceparent": "t"},
        "vendor": 1,
    }
    assert offer_both(params) == {
        "protocolVersion": 2,
        "info": INFO,
        "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": INFO,
        "clientCapabilities": {**BASE, "elicitation": {"form": {}}},
        "_meta": {"traceparent": "t"},
        "vendor": 1,
    }


def test_the_v1_offer_has_v1_fields_only() -> None:
    params = {
        "protocolVersion": 2,
        "info": INFO,
        "capabilities": {},
        "_meta": {"traceparent": "t"},
        "vendor": 1,
    }
    assert offer_v1(params) == {
        "protocolVersion": 1,
        "clientInfo": INFO,
        "clientCapabilities": BASE,
        "_meta": {"traceparent": "t"},
        "vendor": 1,
    }


@pytest.mark.parametrize("params", [{}, {"info": None, "capabilities": None}, None, [], "x"])
def test_missing_parts_of_an_offer(params: Any) -> None:
    assert offer_both(params) == {
        "protocolVersion": 2,
        "info": UNKNOWN,
        "capabilities": {},
        "clientInfo": UNKNOWN,
        "clientCapabilities": BASE,
    }
    assert offer_v1(params) == {"protocolVersion": 1, "clientInfo": UNKNOWN, "clientCapabilities": BASE}


def capabilities_of(given: Any, **settings: Any) -> Any:
    return result_to_v2({"agentCapabilities": given}, client_terminal_auth=False, **settings)["capabilities"]


MCP = {"stdio": {}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"session": {"mcp": MCP}}),
        ({"loadSession": True}, {"session": {"mcp": MCP}}),
        (
            {
                "promptCapabilities": {
                    "image": True,
                    "audio": False,
                    "embeddedContext": True,
                    "_meta": {},
                    "x": 1,
                }
            },
            {"session": {"prompt": {"image": {}, "embeddedContext": {}, "_meta": {}, "x": 1}, "mcp": MCP}},
        ),
        (
            {"promptCapabilities": {"image": "yes", "audio": 1, "embeddedContext": None}},
            {"session": {"prompt": {}, "mcp": MCP}},
        ),
        ({"promptCapabilities": None}, {"session": {"prompt": {}, "mcp": MCP}}),
        (
            {"mcpCapabilities": {"http": True, "sse": True, "_meta": {"k": 1}, "x": 1}},
            {"session": {"mcp": {"http": {}, "_meta": {"k": 1}, "x": 1, "stdio": {}}}},
        ),
        ({"mcpCapabilities": {"http": False, "sse": False}}, {"session": {"mcp": MCP}}),
        ({"mcpCapabilities": "odd"}, {"session": {"mcp": MCP}}),
        (
            {
                "sessionCapabilities": {
                    "list": {},
                    "resume": {},
                    "close": {},
                    "delete": {},
                    "additionalDirectories": {"_meta": {}},
                    "fork": {},
                    "archive": None,
                    "status": {},
                    "title": {},
                    "systemPrompt": {},
                    "_meta": {"k": None},
                    "vendor": 1,
                }
            },
            {
                "session": {
                    "delete": {},
                    "additionalDirectories": {"_meta": {}},
                    "fork": {},
                    "archive": None,
                    "status": {},
                    "title": {},
                    "systemPrompt": {},
                    "_meta": {"k": None},
                    "vendor": 1,
                    "mcp": MCP,
                }
            },
        ),
        ({"sessionCapabilities": {"prompt": {"image": {}}, "mcp": {"sse": {}}}}, {"session": {"mcp": MCP}}),
        ({"sessionCapabilities": ["odd"], "session": {"theirs": 1}}, {"session": {"mcp": MCP}}),
        ({"auth": {"logout": {}}}, {"session": {"mcp": MCP}}),
        (
            {"auth": {"logout": {}, "status": {}, "_meta": {"a": 1}}},
            {"session": {"mcp": MCP}, "auth": {"status": {}, "_meta": {"a": 1}}},
        ),
        ({"providers": {}}, {"session": {"mcp": MCP}, "providers": {}}),
        (
            {"_meta": {"k": None}, "vendor": [1]},
            {"session": {"mcp": MCP}, "_meta": {"k": None}, "vendor": [1]},
        ),
        (None, {"session": {"mcp": MCP}}),
        ("odd", {"session": {"mcp": MCP}}),
    ],
    ids=range(17),
)
def test_agent_capabilities(given: Any, expected: dict[str, Any]) -> None:
    before = repr(given)
    assert capabilities_of(given) == expected
    assert repr(given) == before


def test_the_acp_transport_is_a_marker_only_with_unstable() -> None:
    given = {"mcpCapabilities": {"acp": True}}
    assert capabilities_of(given)["session"]["mcp"] == {"stdio": {}}
    assert capabilities_of(given, unstable=True)["session"]["mcp"] == {"acp": {}, "stdio": {}}
    given = {"mcpCapabilities": {"acp": False}}
    assert capabilities_of(given, unstable=True)["session"]["mcp"] == {"stdio": {}}


def test_the_rest_of_the_result() -> None:
    capabilities = {"loadSession": True, "mcpCapabilities": {"sse": True}}
    given = {
        "_meta": {"k": None},
        "protocolVersion": 1,
        "agentCapabilities": capabilities,
        "agentInfo": INFO,
        "authMethods": [],
        "models": ["kept"],
    }
    before = repr(given)
    assert result_to_v2(given, client_terminal_auth=True) == {
        "protocolVersion": 2,
        "info": INFO,
        "capabilities": {"session": {"mcp": MCP}},
        "authMethods": [],
        "models": ["kept"],
        "_meta": {"k": None, "acp-proxy": {"orig": {"agentCapabilities": capabilities}}},
    }
    assert repr(given) == before


@pytest.mark.parametrize(
    "given", [{}, {"protocolVersion": 2}, {"agentInfo": None, "authMethods": None}, None, [], "x", 5]
)
def test_missing_parts_of_a_result(given: Any) -> None:
    assert result_to_v2(given, client_terminal_auth=False) == {
        "protocolVersion": 2,
        "info": UNKNOWN,
        "capabilities": {"session": {"mcp": MCP}},
    }


def test_an_agent_that_sends_both_shapes_is_known_by_either_name() -> None:
    given = {"protocolVersion": 1, "info": INFO, "capabilities": {"session": None}}
    assert result_to_v2(given, client_terminal_auth=False)["info"] == INFO
    given["agentInfo"] = {"name": "a", "version": "2"}
    out = result_to_v2(given, client_terminal_auth=False)
    assert out["info"] == {"name": "a", "version": "2"}
    assert out["capabilities"] == {"session": {"mcp": MCP}}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ({"id": "a", "name": "A"}, {"type": "agent", "methodId": "a", "name": "A"}),
        (
            {
                "id": "a",
                "name": "A",
                "description": None,
                "_meta": {"terminal-auth": {"env": {"K": "V"}}},
                "x": 1,
            },
            {
                "type": "agent",
                "methodId": "a",
                "name": "A",
                "description": None,
                "_meta": {"terminal-auth": {"env": {"K": "V"}}},
                "x": 1,
            },
        ),
        ({"type": None, "id": "a"}, {"type": "agent", "methodId": "a"}),
        ({"type": "agent", "id": "a"}, {"type": "agent", "methodId": "a"}),
        (
            {"type": "_vendor/key", "id": "k", "env": {"K": "V"}},
            {"type": "_vendor/key", "methodId": "k", "env": {"K": "V"}},
        ),
        (
            {"type": "terminal", "id": "t", "args": ["login"], "env": {"K": "V", "L": ""}},
            {
                "type": "terminal",
                "methodId": "t",
                "args": ["login"],
                "env": [{"name": "K", "value": "V"}, {"name": "L", "value": ""}],
            },
        ),
        ({"type": "terminal", "id": "t", "args": None, "env": None}, {"type": "terminal", "methodId": "t"}),
        ({"type": "terminal", "id": "t", "env": {}}, {"type": "terminal", "methodId": "t", "env": []}),
        (
            {"type": "terminal", "id": "t", "env": ["odd"]},
            {"type": "terminal", "methodId": "t", "env": ["odd"]},
        ),
        ({"methodId": "v2"}, {"type": "agent", "methodId": "v2"}),
        ({"id": "v1", "methodId": "v2"}, {"type": "agent", "methodId": "v1"}),
        ({"methodId": "v2", "id": "v1"}, {"type": "agent", "methodId": "v1"}),
        ({}, {"type": "agent"}),
        ("odd", "odd"),
        (None, None),
    ],
    ids=range(15),
)
def test_auth_methods(method: Any, expected: Any) -> None:
    before = repr(method)
    out = result_to_v2({"authMethods": [method]}, client_terminal_auth=True)
    if isinstance(expected, dict) and expected["type"] == "terminal":
        # The client will run the proxy again for this: the variable asks it for the agent itself.
        mark = {"name": "ACP_PROXY_TERMINAL_LOGIN", "value": "1"}
        expected = {**expected, "env": [*expected.get("env", ()), mark]}
    assert out["authMethods"] == [expected]
    assert repr(method) == before


def test_terminal_methods_need_a_client_that_can_run_them() -> None:
    methods = [{"id": "a", "type": "terminal"}, {"id": "b"}, {"id": "c", "type": "other"}, "odd"]
    out = result_to_v2({"authMethods": methods}, client_terminal_auth=False)
    assert out["authMethods"] == [
        {"type": "agent", "methodId": "b"},
        {"type": "other", "methodId": "c"},
        "odd",
    ]


@pytest.mark.parametrize("methods", ["odd", 5, {"id": "a"}])
def test_auth_methods_that_are_no_list_stay(methods: Any) -> None:
    assert result_to_v2({"authMethods": methods}, client_terminal_auth=False)["authMethods"] == methods
