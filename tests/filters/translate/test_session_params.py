"""Bridge §3.1, §7.7: what a v1 agent is told when a session is opened."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.session_params import mcp_servers, new_params

STDIO = {"name": "m", "command": "/bin/m"}
ENV = [{"name": "K", "value": "V"}]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"type": "stdio", **STDIO}, {**STDIO, "args": [], "env": []}),
        ({"type": "stdio", **STDIO, "args": None, "env": None}, {**STDIO, "args": [], "env": []}),
        (
            {"type": "stdio", **STDIO, "args": ["-x"], "env": ENV, "_meta": {"k": None}, "y": 1},
            {**STDIO, "args": ["-x"], "env": ENV, "_meta": {"k": None}, "y": 1},
        ),
        ({"type": "stdio", "args": "odd"}, {"args": "odd", "env": []}),
        (
            {"type": "http", "name": "h", "url": "https://h"},
            {"type": "http", "name": "h", "url": "https://h", "headers": []},
        ),
        ({"type": "http", "headers": None}, {"type": "http", "headers": []}),
        ({"type": "http", "headers": ENV, "_meta": {}}, {"type": "http", "headers": ENV, "_meta": {}}),
        ({"type": "acp", "name": "a", "serverId": "i"}, {"type": "acp", "name": "a", "serverId": "i"}),
    ],
)
def test_a_server(server: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(server)
    assert mcp_servers([server]) == [expected]
    assert repr(server) == before


@pytest.mark.parametrize(
    "servers",
    [
        [{"type": "sse", "name": "s", "url": "https://s"}],
        [{"type": "stdio", **STDIO}, {"type": "_vendor/pipe"}],
        [{"type": "streamable_http"}],
        [STDIO],
        [{"type": None, **STDIO}],
        [{"type": ["stdio"]}],
        ["stdio"],
        [None],
        "stdio",
        {"type": "stdio"},
        0,
        False,
    ],
)
def test_a_server_the_agent_cannot_be_given_is_refused(servers: Any) -> None:
    refused = mcp_servers(servers)
    assert isinstance(refused, Refusal)
    assert refused.code == -32602
    also = new_params({"cwd": "/p", "mcpServers": servers})
    assert isinstance(also, Refusal)
    assert also.message == refused.message


def test_a_refusal_names_the_place_and_keeps_secrets_to_itself() -> None:
    refused = mcp_servers(
        [{"type": "acp"}, {"type": "sse", "url": "https://u:hunter2@h", "headers": ["hunter2"]}]
    )
    assert isinstance(refused, Refusal)
    assert "mcpServers[1]" in refused.message
    assert "hunter2" not in repr(refused)


@pytest.mark.parametrize("given", [{}, {"mcpServers": None}, {"mcpServers": []}])
def test_servers_are_always_a_list(given: dict[str, Any]) -> None:
    assert new_params({"cwd": "/p", **given}) == {"cwd": "/p", "mcpServers": []}


def test_other_params_pass_in_order() -> None:
    given = {
        "_meta": {"traceparent": "t"},
        "sessionId": "s",
        "mcpServers": [{"type": "stdio", **STDIO}],
        "replayFrom": {"type": "start"},
        "cwd": "/p",
        "systemPrompt": {"mode": "append", "content": []},
        "vendor": None,
    }
    before = repr(given)
    out = new_params(given)
    assert out == {
        "_meta": {"traceparent": "t"},
        "sessionId": "s",
        "mcpServers": [{**STDIO, "args": [], "env": []}],
        "cwd": "/p",
        "systemPrompt": {"mode": "append", "content": []},
        "vendor": None,
    }
    assert isinstance(out, dict)
    assert list(out) == [key for key in given if key != "replayFrom"]
    assert repr(given) == before


@pytest.mark.parametrize("supported", [True, False])
@pytest.mark.parametrize("given", [{}, {"additionalDirectories": []}, {"additionalDirectories": None}])
def test_no_directories_are_not_mentioned(given: dict[str, Any], supported: bool) -> None:
    assert new_params({"cwd": "/p", **given}, additional_directories=supported) == {
        "cwd": "/p",
        "mcpServers": [],
    }


def test_directories_need_the_capability() -> None:
    given = {"cwd": "/p", "additionalDirectories": ["/q"]}
    assert new_params(given, additional_directories=True) == {**given, "mcpServers": []}
    refused = new_params(given)
    assert isinstance(refused, Refusal)
    assert refused.code == -32602


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_params_that_are_no_object_are_refused(given: Any) -> None:
    assert isinstance(new_params(given), Refusal)
