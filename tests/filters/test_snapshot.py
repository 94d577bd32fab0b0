"""State snapshots: their parameters, and the extension notification for v1 clients (lifecycle §2.1)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.snapshot import EXTENSION_METHOD, Snapshot, snapshot_params
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import Session, State
from acp_proxy.inference.triggers import Ending
from acp_proxy.jsonrpc.message import notification
from relay_driver import (
    Driver,
    answer,
    ask,
    both_v1,
    call,
    cancel,
    message,
    note,
    selected,
    story,
    tell,
    tool,
)

MARK = {"acp-proxy": {"synthetic": True}}
WANTED = {"clientCapabilities": {"_meta": {"acp-proxy": {"stateUpdates": True}}}}


def change(new: State, ending: Ending | None = None, **more: Any) -> Change:
    return Change(Session("s1"), State.RUNNING, new, ending, **more)


@pytest.mark.parametrize("state", [State.RUNNING, State.REQUIRES_ACTION, State.UNKNOWN])
def test_a_busy_state_has_no_stop_reason(state: State) -> None:
    ending = Ending(7, "end_turn", {"totalTokens": 1}, None)
    assert snapshot_params(change(state, ending)) == {
        "sessionId": "s1",
        "update": {"sessionUpdate": "state_update", "state": state.value},
        "_meta": MARK,
    }


@pytest.mark.parametrize(
    ("ending", "more", "fields"),
    [
        (None, {}, {}),
        (None, {"after_cancel": True}, {"stopReason": "cancelled"}),
        (Ending(7, "end_turn", None, None), {}, {"stopReason": "end_turn"}),
        (Ending(7, None, None, None), {}, {}),
        (Ending(7, None, None, None), {"after_cancel": True}, {"stopReason": "cancelled"}),
        (Ending(7, "refusal", {"a": 1}, None), {}, {"stopReason": "refusal", "usage": {"a": 1}}),
        (Ending(7, "refusal", "many", None), {}, {"stopReason": "refusal"}),
        (
            Ending(None, None, None, {"code": 1, "message": "m"}),
            {},
            {"stopReason": "error", "error": {"code": 1, "message": "m"}},
        ),
        (
            Ending(7, None, None, {"code": 1, "message": "m"}),
            {"after_cancel": True},
            {"stopReason": "cancelled"},
        ),
        (Ending(7, "end_turn", {"a": 1}, None), {"resume": True}, {}),
    ],
)
def test_an_idle_tells_how_the_work_ended(ending: Ending | None, more: Any, fields: Any) -> None:
    assert snapshot_params(change(State.IDLE, ending, **more))["update"] == {
        "sessionUpdate": "state_update",
        "state": "idle",
        **fields,
    }


def test_a_rewritten_stop_reason_is_kept() -> None:
    ending = Ending(7, "end_turn", None, None)
    params = snapshot_params(change(State.IDLE, ending, after_cancel=True), original_stop="end_turn")
    assert params["update"]["stopReason"] == "cancelled"
    assert params["_meta"]["acp-proxy"] == {"synthetic": True, "orig": {"stopReason": "end_turn"}}


def test_a_filter_nobody_asked_lets_changes_end_and_messages_pass() -> None:
    stage = Snapshot()
    assert stage.back(change(State.RUNNING), 0.0) is None
    one = notification("_x/y", {})
    assert stage.back(one, 0.0) is one
    assert stage.forth(one, 0.0) is one


def asked(driver: Driver) -> list[str]:
    """The states told by the extension notification."""
    told = [body for body in driver.outputs.client if body.get("method") == EXTENSION_METHOD]
    return [tell({**body, "method": "session/update"}) for body in told]


def test_a_v1_client_that_asks_is_told_by_the_extension() -> None:
    driver = both_v1(client=WANTED)
    driver.prompt(7)
    driver.agent_sends(message(), tool("k", "pending"), ask(90, "k"))
    driver.client_sends(selected(90))
    driver.client_sends(cancel())
    said = driver.agent_sends(answer(7, {"stopReason": "cancelled"}))
    assert asked(driver) == ["running", "requires_action", "running", "idle cancelled"]
    assert story(said.client) == [EXTENSION_METHOD, "answer 7"], "the state precedes the answer"
    assert said.client[0]["params"]["_meta"] == MARK
    assert not [
        b for b in driver.outputs.client if b.get("params", {}).get("sessionUpdate") == "state_update"
    ]


def test_a_load_tells_the_state_before_its_answer() -> None:
    driver = both_v1(client=WANTED)
    driver.client_sends(call(5, "session/load", {"sessionId": "s9", "cwd": "/p", "mcpServers": []}))
    driver.agent_sends(tool("t", "in_progress", session="s9"))
    assert story(driver.agent_sends(answer(5, {})).client) == [EXTENSION_METHOD, "answer 5"]
    assert asked(driver) == ["idle"]


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"_meta": None},
        {"_meta": {"acp-proxy": True}},
        {"_meta": {"acp-proxy": {"stateUpdates": 1}}},
        {"_meta": {"acp-proxy": {"stateUpdates": "true"}}},
        {"_meta": {"acp-proxy": {"stateUpdates": False}}},
    ],
)
def test_a_v1_client_that_does_not_ask_is_told_nothing(capabilities: Any) -> None:
    driver = both_v1(client={"clientCapabilities": capabilities})
    driver.prompt(7)
    assert asked(driver) == []
    assert driver.agent_sends(note("_x/y", {})).client == [note("_x/y", {})]


def test_a_session_that_tells_its_states_itself_is_not_told_twice() -> None:
    driver = both_v1(client=WANTED)
    native = {"sessionUpdate": "state_update", "state": "running"}
    driver.agent_sends(note("session/update", {"sessionId": "s1", "update": native}))
    driver.prompt(7)
    driver.agent_sends(answer(7, {"stopReason": "end_turn"}))
    assert asked(driver) == []
