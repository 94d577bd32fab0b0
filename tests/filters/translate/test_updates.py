"""`session/update` variants of a v1 agent for a v2 client, row by row (bridge §6, §7, §9)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role, Version
from relay_driver import bridged, line, message, note, story, text_block, thought, update
from schema_cache import message_error

ENTRY = {"content": "c", "priority": "high", "status": "pending"}


def translated(given: dict[str, Any], **driver: Any) -> dict[str, Any] | None:
    """What the client gets of one update, its notification parameters; None for nothing. It fits the schema."""
    said = bridged(**driver).agent_sends(given)
    if not said.client:
        return None
    (body,) = said.client
    assert body["method"] == "session/update"
    assert message_error(Version.V2, body, sender=Role.AGENT) is None
    params: dict[str, Any] = body["params"]
    return params


def told(tag: str, **fields: Any) -> Any:
    """The translated update body."""
    params = translated(update(tag, **fields))
    return None if params is None else params["update"]


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("tag", "letter"),
    [("user_message_chunk", "u"), ("agent_message_chunk", "a"), ("agent_thought_chunk", "t")],
)
def test_chunks_get_a_message_id_or_keep_the_agents(tag: str, letter: str) -> None:
    block = {**text_block("x"), "_meta": {"m": 1}, "extra": 2}
    fields = {"content": block, "_meta": {"n": 3}, "x": 4}
    assert told(tag, **fields) == {"sessionUpdate": tag, **fields, "messageId": f"0-{letter}1"}
    assert told(tag, **fields, messageId="own")["messageId"] == "own"
    assert told(tag, **fields, messageId=None)["messageId"] == f"0-{letter}1"


def test_chunk_content_is_v2_content() -> None:
    link = {"type": "resource_link", "name": "a", "uri": "/p/a b", "size": -1}
    assert told("agent_message_chunk", content=link)["content"] == {
        "type": "resource_link",
        "name": "a",
        "uri": "file:///p/a%20b",
    }
    loud = {**text_block("x"), "annotations": {"priority": 7, "audience": ["user", "cat"]}}
    notes = told("agent_message_chunk", content=loud)["content"]["annotations"]
    assert notes == {"priority": 1, "audience": ["user", "cat"]}
    strange = {"type": "hologram", "data": [1]}
    assert told("agent_message_chunk", content=strange)["content"] == strange


@pytest.mark.parametrize("content", [None, "text", 5, {"type": "text"}, {}, [text_block("x")]])
def test_malformed_chunks_are_dropped_with_a_finding(content: Any) -> None:
    said = bridged().agent_sends(update("agent_message_chunk", content=content))
    assert (said.lines, said.rules) == ([], ["V42"])


# ---------------------------------------------------------------- tools


def test_a_tool_call_is_an_upsert_of_the_fields_it_has() -> None:
    fields = {"toolCallId": "k", "title": "t", "kind": "edit", "status": "pending", "rawInput": {"a": None}}
    assert told("tool_call", **fields) == {"sessionUpdate": "tool_call_update", **fields}
    assert told("tool_call_update", toolCallId="k", status="completed") == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "k",
        "status": "completed",
    }


def test_null_of_a_tool_call_means_unchanged() -> None:
    nulls = dict.fromkeys(
        ("title", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta")
    )
    for tag in ("tool_call", "tool_call_update"):
        assert told(tag, toolCallId="k", **nulls) == {"sessionUpdate": "tool_call_update", "toolCallId": "k"}


def test_tool_fields_are_repaired() -> None:
    update_ = told(
        "tool_call",
        toolCallId="k",
        title="t",
        status="inProgress",
        kind="Edit",
        locations=[{"path": "src/a", "line": 0}, {"path": "/b", "line": 3}],
        content=[
            text_block("bare"),
            {"type": "terminal", "terminalId": "T"},
            {"type": "diff", "path": "src/a", "oldText": "a\n", "newText": "b\n"},
        ],
    )
    assert (update_["status"], update_["kind"]) == ("in_progress", "edit")
    assert update_["locations"] == [{"path": "/p/src/a"}, {"path": "/b", "line": 3}]
    assert update_["content"][0] == {"type": "content", "content": text_block("bare")}
    assert update_["content"][1] == {"type": "content", "content": text_block("[terminal T]")}
    assert update_["content"][2]["changes"] == [
        {"operation": "modify", "path": "/p/src/a", "fileType": "text"},
    ]


@pytest.mark.parametrize("tool_id", [None, 5, [], "absent"])
def test_a_tool_call_without_an_id_is_dropped(tool_id: Any) -> None:
    fields = {} if tool_id == "absent" else {"toolCallId": tool_id}
    assert told("tool_call", title="t", **fields) is None


# ---------------------------------------------------------------- plans, commands, config, info, usage


def test_a_plan_is_the_one_plan() -> None:
    assert told("plan", entries=[ENTRY], _meta={"m": 1}) == {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": "acp-proxy", "entries": [ENTRY]},
        "_meta": {"m": 1},
    }
    spelled = told("plan", entries=[{**ENTRY, "status": "inProgress", "priority": "_mine"}])
    assert spelled["plan"]["entries"] == [{**ENTRY, "status": "in_progress", "priority": "_mine"}]


def test_commands_are_tagged() -> None:
    given = [
        {"name": "/plan", "description": "d", "input": {"hint": "h"}, "_meta": {"m": 1}},
        {"name": "plan", "description": "again"},
        {"name": "two words", "description": "d"},
    ]
    assert told("available_commands_update", availableCommands=given)["availableCommands"] == [
        {
            "type": "command",
            "name": "plan",
            "description": "d",
            "input": {"type": "text", "hint": "h"},
            "_meta": {"m": 1},
        }
    ]


def test_config_options_are_renamed() -> None:
    given = [
        {
            "id": "m",
            "name": "M",
            "type": "select",
            "currentValue": "a",
            "options": [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}],
        },
        {"id": "e", "name": "E", "type": "select", "currentValue": "", "options": []},
        {"id": "b", "name": "B", "type": "boolean", "currentValue": True},
    ]
    options = told("config_option_update", configOptions=given)["configOptions"]
    assert [option["configId"] for option in options] == ["m", "b"]
    assert options[0]["options"][0]["groupId"] == "g"


def test_a_mode_of_a_session_without_modes_changes_nothing() -> None:
    assert told("current_mode_update", currentModeId="x") is None


def test_session_info_passes_even_without_an_offset() -> None:
    for stamp in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", None):
        given = {"title": None, "updatedAt": stamp, "_meta": {"threadStatus": 1}, "x": 2}
        assert told("session_info_update", **given) == {"sessionUpdate": "session_info_update", **given}


def test_usage_passes_and_a_null_cost_clears_nothing() -> None:
    cost = {"amount": 1.5, "currency": "USD"}
    assert told("usage_update", used=1, size=2, cost=cost)["cost"] == cost
    assert told("usage_update", used=1, size=2, cost=None) == {
        "sessionUpdate": "usage_update",
        "used": 1,
        "size": 2,
    }
    assert told("usage_update", used=None, size=2) is None


def test_notice_and_compaction_pass() -> None:
    notice = {"severity": "warn", "title": "t", "description": "d"}
    assert told("notice", **notice)["title"] == "t"
    compaction = {"compactionId": "c", "status": "in_progress", "summary": [text_block("s")]}
    assert told("compaction_update", **compaction) == {"sessionUpdate": "compaction_update", **compaction}
    chunk = {"compactionId": "c", "content": {"type": "resource_link", "name": "n", "uri": "/a"}}
    assert told("compaction_summary_chunk", **chunk)["content"]["uri"] == "file:///a"


# ---------------------------------------------------------------- everything else


def test_unknown_updates_pass_unchanged() -> None:
    for tag in ("_vendor", "future_update"):
        fields = {"deep": {"a": [None, 1, {"b": "c"}]}, "_meta": {"m": 1}}
        assert told(tag, **fields) == {"sessionUpdate": tag, **fields}


def test_v2_updates_of_a_v1_agent_pass() -> None:
    items = {"plan": {"type": "items", "planId": "own", "entries": [ENTRY]}}
    assert told("plan_update", **items) == {"sessionUpdate": "plan_update", **items}
    native = bridged()
    state = update("state_update", state="running")
    assert native.agent_sends(state).client == [state]


def test_a_session_that_tells_its_states_itself_is_believed() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(update("state_update", state="running"))
    driver.agent_sends(message())
    assert story(driver.ends().client) == [], "no idle but the agent's own"
    idle = update("state_update", state="idle", stopReason="end_turn")
    assert story(driver.agent_sends(idle).client) == ["idle end_turn"]


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"sessionId": "s1"},
        {"sessionId": 5, "update": {"sessionUpdate": "plan", "entries": []}},
        {"sessionId": "s1", "update": []},
        {"sessionId": "s1", "update": {}},
        {"sessionId": "s1", "update": {"sessionUpdate": 5}},
    ],
)
def test_what_is_no_update_is_dropped(params: Any) -> None:
    said = bridged().agent_sends(note("session/update", params))
    assert (said.lines, said.rules) == ([], ["V42"])


def test_members_beside_the_update_travel() -> None:
    given = thought("x")
    given["params"]["_meta"] = {"traceparent": "00-1"}
    given["params"]["extra"] = 1
    given["vendor"] = True
    (body,) = bridged().agent_sends(given).client
    assert body["params"]["_meta"] == {"traceparent": "00-1"}
    assert (body["params"]["extra"], body["vendor"]) == (1, True)


def test_an_update_that_needs_no_change_keeps_its_bytes() -> None:
    driver = bridged()
    raw = line(message("x", messageId="m")).replace(b'"x"', b' "\\u0078" ')
    assert driver.lines(Role.AGENT, raw).raw(Role.CLIENT) == [raw]


def test_a_missing_jsonrpc_member_is_added() -> None:
    given = message("x", messageId="m")
    del given["jsonrpc"]
    (body,) = bridged().agent_sends(given).client
    assert body["jsonrpc"] == "2.0"


def test_an_update_of_an_unknown_session_is_forwarded() -> None:
    params = translated(message(session="child"))
    assert params is not None
    assert params["sessionId"] == "child"
    assert params["update"]["messageId"].startswith("tok"), "nobody saw this session from its start"
