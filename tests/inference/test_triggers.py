"""What messages mean: the tables against the schemas, tool calls, endings and vendor marks."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.methods import method_info
from acp_proxy.acp.version import Role, Version
from acp_proxy.acp.vocabulary import known_values
from acp_proxy.inference.triggers import (
    CLIENT_REQUESTS,
    HELPER_PREFIXES,
    UPDATES,
    WAIT_METHODS,
    Kind,
    ends_by_mark,
    prompt_ending,
    tool_news,
)

# ---------------------------------------------------------------- the tables


@pytest.mark.parametrize("version", list(Version))
def test_the_updates_named_are_updates_of_that_version(version: Version) -> None:
    extra = set(UPDATES[version]) - known_values(version, "SessionUpdate")
    # v1 has no state updates, yet agents that send them are believed (§2.1).
    assert extra == ({"state_update"} if version is Version.V1 else set())


def test_what_the_updates_mean() -> None:
    v1, v2 = UPDATES[Version.V1], UPDATES[Version.V2]
    assert {tag for tag, kind in v1.items() if kind is Kind.TOOL} == {"tool_call", "tool_call_update"}
    assert {tag for tag, kind in v2.items() if kind is Kind.TOOL} == {"tool_call_update"}
    assert {tag for tag, kind in v1.items() if kind is Kind.OUTPUT} == {
        "agent_message_chunk",
        "agent_thought_chunk",
        "plan",
        "plan_update",
    }
    for table in (v1, v2):
        assert table["state_update"] is Kind.STATE
        assert not {"user_message_chunk", "user_message", "usage_update", "notice"} & set(table)
        assert not {"available_commands_update", "session_info_update", "compaction_update"} & set(table)


@pytest.mark.parametrize("method", sorted(CLIENT_REQUESTS))
def test_the_client_s_methods_are_requests_to_agents(method: str) -> None:
    infos = [method_info(version, method, "request") for version in Version]
    assert any(info is not None and Role.AGENT in info.receivers for info in infos)


@pytest.mark.parametrize("method", sorted(WAIT_METHODS))
def test_the_wait_methods_are_requests_to_clients(method: str) -> None:
    for version in Version:
        info = method_info(version, method, "request")
        assert info is not None
        assert info.receivers == {Role.CLIENT}


@pytest.mark.parametrize(
    ("method", "kinds"),
    [
        ("session/prompt", (Kind.PROMPT, Kind.PROMPT_ENDED, Kind.PROMPT_ENDED)),
        ("session/load", (Kind.REPLAY, Kind.REPLAY_DONE, Kind.REPLAY_FAILED)),
        ("session/resume", (Kind.REPLAY, Kind.REPLAY_DONE, Kind.REPLAY_FAILED)),
        ("session/close", (Kind.CLOSE, Kind.CLOSE_DONE, Kind.CLOSE_FAILED)),
        ("session/delete", (Kind.CLOSE, Kind.CLOSE_DONE, Kind.CLOSE_FAILED)),
        ("session/archive", (Kind.CLOSE, Kind.CLOSE_DONE, Kind.CLOSE_FAILED)),
        ("session/new", (None, Kind.ATTACHED, None)),
        ("session/fork", (None, Kind.ATTACHED, None)),
        ("session/list", None),
        ("session/status", None),
        ("session/set_mode", None),
    ],
)
def test_what_the_client_s_requests_mean(method: str, kinds: Any) -> None:
    assert CLIENT_REQUESTS.get(method) == kinds


def test_machine_work_is_files_and_terminals() -> None:
    assert HELPER_PREFIXES == ("fs/", "terminal/")


# ---------------------------------------------------------------- tool calls


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("in_progress", "in_progress"),
        ("pending", "pending"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("inProgress", "in_progress"),
        ("IN-PROGRESS", "in_progress"),
        (" Completed ", "completed"),
        ("running", "running"),
        ("done", "done"),
        ("canceled", "canceled"),
        ("_in_progress", "_in_progress"),
        ("", ""),
        (None, None),
        (5, None),
        (["completed"], None),
    ],
)
def test_a_status_is_read_by_its_spelling_and_never_by_its_sense(given: Any, status: str | None) -> None:
    news = tool_news({"toolCallId": "t", "status": given}, announced=True)
    assert news is not None
    assert (news.tool_id, news.status, news.announced) == ("t", status, True)


def test_a_tool_call_without_a_status_says_nothing_of_it() -> None:
    news = tool_news({"toolCallId": ""}, announced=False)
    assert news is not None
    assert (news.tool_id, news.status, news.announced) == ("", None, False)


@pytest.mark.parametrize("body", [{}, {"toolCallId": None}, {"toolCallId": 5}, {"toolCallId": ["t"]}])
def test_a_tool_call_without_a_name_is_none(body: dict[str, Any]) -> None:
    assert tool_news(body, announced=True) is None


# ---------------------------------------------------------------- endings


@pytest.mark.parametrize(
    ("body", "stop", "usage", "error"),
    [
        ({"result": {"stopReason": "end_turn"}}, "end_turn", None, None),
        ({"result": {"stopReason": "endTurn", "usage": {"a": 1}}}, "end_turn", {"a": 1}, None),
        ({"result": {"stopReason": "stop"}}, "stop", None, None),
        ({"result": {"stopReason": "_x"}}, "_x", None, None),
        ({"result": {"stopReason": 5}}, None, None, None),
        ({"result": {}}, None, None, None),
        ({"result": None}, None, None, None),
        ({"result": [1]}, None, None, None),
        ({"error": {"code": 1, "message": "m"}}, None, None, {"code": 1, "message": "m"}),
        ({"error": None}, None, None, {}),
        ({"error": "x"}, None, None, {}),
        ({"result": {"stopReason": "end_turn"}, "error": {"code": 1}}, None, None, {"code": 1}),
    ],
)
def test_how_a_prompt_ended(body: dict[str, Any], stop: str | None, usage: Any, error: Any) -> None:
    ending = prompt_ending(7, body)
    assert (ending.key, ending.stop_reason, ending.usage, ending.error) == (7, stop, usage, error)


# ---------------------------------------------------------------- vendor marks


@pytest.mark.parametrize(
    ("marker", "meta", "ends"),
    [
        ("_meta.endOfTurn", {"endOfTurn": True}, True),
        ("_meta.endOfTurn", {"endOfTurn": 0}, True),
        ("_meta.endOfTurn", {"endOfTurn": ""}, True),
        ("_meta.endOfTurn", {"endOfTurn": False}, False),
        ("_meta.endOfTurn", {"endOfTurn": None}, False),
        ("_meta.endOfTurn", {}, False),
        ("_meta.endOfTurn", None, False),
        ("_meta.endOfTurn", [True], False),
        ("_meta.endOfTurn=true", {"endOfTurn": True}, True),
        ("_meta.endOfTurn=true", {"endOfTurn": "true"}, True),
        ("_meta.endOfTurn=true", {"endOfTurn": 1}, False),
        ("_meta.endOfTurn=false", {"endOfTurn": False}, True),
        ("_meta.a.b=1", {"a": {"b": 1}}, True),
        ("_meta.a.b=1", {"a": {"b": True}}, False),
        ("_meta.a.b=x=y", {"a": {"b": "x=y"}}, True),
        ("_meta.a.b", {"a": 5}, False),
        ("_meta.a.b=idle", {"a": {"b": "running"}}, False),
        ("_meta", {"a": 1}, False),
    ],
)
@pytest.mark.parametrize("place", ["notification", "update"])
def test_marks_in_meta(marker: str, meta: Any, ends: bool, place: str) -> None:
    params: dict[str, Any] = {"sessionId": "s", "update": {"sessionUpdate": "usage_update"}}
    (params if place == "notification" else params["update"])["_meta"] = meta
    assert ends_by_mark((marker,), params, "session/update") is ends


@pytest.mark.parametrize(
    ("markers", "ends"),
    [
        (("_session/turn_ended",), True),
        (("_other", "_session/turn_ended"), True),
        (("_session/turn",), False),
        (("_meta.x",), False),
        ((), False),
    ],
)
def test_marks_that_are_methods(markers: tuple[str, ...], ends: bool) -> None:
    assert ends_by_mark(markers, {"sessionId": "s"}, "_session/turn_ended") is ends


def test_any_one_of_several_marks_ends() -> None:
    params = {"update": None, "_meta": {"b": 1}}
    assert ends_by_mark(("_x", "_meta.a", "_meta.b"), params, "session/update")
