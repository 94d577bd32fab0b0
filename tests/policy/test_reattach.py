"""What a restarted agent must be told, by what the first one answered (BR-06)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role, Version
from acp_proxy.jsonrpc.message import error, request, result
from acp_proxy.policy.reattach import Attached, notice, same_version, settings_after, way_back
from schema_cache import message_error


@pytest.mark.parametrize(
    ("version", "given", "method"),
    [
        (Version.V1, {"agentCapabilities": {"loadSession": True}}, "session/load"),
        (
            Version.V1,
            {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}},
            "session/resume",
        ),
        (Version.V1, {"agentCapabilities": {"sessionCapabilities": {"resume": None}}}, None),
        (Version.V1, {"agentCapabilities": {"loadSession": {}}}, None),
        (Version.V1, {"agentCapabilities": []}, None),
        (Version.V1, {}, None),
        (Version.V2, {"capabilities": {"session": {}}}, "session/resume"),
        (Version.V2, {"capabilities": {}}, None),
    ],
)
def test_the_way_back_is_what_the_agent_can(version: Version, given: Any, method: str | None) -> None:
    assert way_back(version, given) == method


def test_a_session_keeps_its_folder_and_servers_but_no_replay() -> None:
    known = Attached()
    params = {"sessionId": "s1", "cwd": "/p", "mcpServers": [], "replayFrom": {"type": "start"}, "x": 1}
    known.sent(request(1, "session/resume", params))
    known.answered(result(1, {}))
    assert known.sessions == {"s1": {"cwd": "/p", "mcpServers": [], "x": 1}}


def test_a_fork_is_a_session_of_its_own() -> None:
    known = Attached()
    known.sent(request(1, "session/fork", {"sessionId": "s1", "cwd": "/p"}))
    known.answered(result(1, {"sessionId": "s2"}))
    assert known.sessions == {"s2": {"cwd": "/p"}}


def test_only_a_success_counts() -> None:
    known = Attached()
    known.sent(request(1, "initialize", {"protocolVersion": 1}))
    known.answered(error(1, -32603, "no"))
    known.sent(request(2, "session/new", {"cwd": "/p"}))
    known.answered(result(2, None))
    assert (known.greeting, known.result, known.sessions) == (None, None, {})


def test_what_was_asked_last_of_the_old_process_is_not_answered_by_the_new() -> None:
    known = Attached()
    known.sent(request(1, "session/new", {"cwd": "/p"}))
    known.forget_open()
    known.answered(result(1, {"sessionId": "s1"}))
    assert known.sessions == {}


def test_versions_are_compared_as_they_were_given() -> None:
    assert same_version({"protocolVersion": 1}, {"protocolVersion": 1, "more": 2})
    assert not same_version({"protocolVersion": 1}, {"protocolVersion": 2})


@pytest.mark.parametrize("version", list(Version))
def test_what_is_said_in_the_agents_name_fits_the_schema(version: Version) -> None:
    said = [notice("s1", "warning", "Restarted", "It ended.")]
    if version is Version.V1:
        said += settings_after("s1", {"modes": {"currentModeId": "ask"}, "configOptions": []})
    else:
        said += settings_after("s1", {"configOptions": []})
    assert [message_error(version, message.body, sender=Role.AGENT) for message in said] == [None] * len(said)


@pytest.mark.parametrize("given", [{}, {"modes": None}, {"modes": []}, {"configOptions": None}])
def test_what_the_agent_does_not_say_is_not_told(given: Any) -> None:
    assert settings_after("s1", given) == []
