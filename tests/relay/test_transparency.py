"""Peers of one version get each other's bytes, whatever they say (bridge §0, §12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.acp.version import Role
from relay_driver import Driver, both_v1, both_v2, story

CLIENT, AGENT = Role.CLIENT, Role.AGENT

_METHODS = """
initialize session/new session/prompt session/cancel session/update session/request_permission session/load
session/close session/list fs/read_text_file terminal/create elicitation/create $/cancel_request _vendor/x
state_update authenticate auth/login
"""
_TAGS = """
agent_message_chunk tool_call tool_call_update plan state_update usage_update user_message _vendor
"""

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
session_ids = st.sampled_from(["s1", "s2"])
methods = st.sampled_from(
    [
        "initialize",
        "session/new",
        "session/prompt",
        "session/cancel",
        "session/update",
        "session/request_permission",
        "session/load",
        "session/close",
        "session/list",
        "fs/read_text_file",
        "terminal/create",
        "elicitation/create",
        "$/cancel_request",
        "_vendor/x",
        "state_update",
        "authenticate",
        "auth/login",
    ]
) | st.text(max_size=6)
tags = st.sampled_from(
    [
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "state_update",
        "usage_update",
        "user_message",
        "_vendor",
    ]
)
updates = st.fixed_dictionaries(
    {"sessionUpdate": tags},
    optional={
        "toolCallId": st.sampled_from(["k", "l"]) | leaves,
        "status": st.sampled_from(["pending", "in_progress", "completed"]) | leaves,
        "state": st.sampled_from(["idle", "running", "requires_action"]) | leaves,
        "content": values,
        "_meta": values,
    },
)
params = (
    st.fixed_dictionaries({"sessionId": session_ids, "update": updates | values})
    | st.fixed_dictionaries(
        {"sessionId": session_ids, "prompt": values, "toolCall": updates, "options": values}
    )
    | st.dictionaries(st.text(max_size=6), values, max_size=3)
    | values
)
ids = st.integers(0, 5) | st.sampled_from(["0", "a", ""]) | st.floats(0, 1)
extras = st.dictionaries(st.sampled_from(["_meta", "x"]), values, max_size=1)
bodies = st.builds(
    lambda extra, core: {**extra, **core},
    extras,
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "method": methods, "params": params})
    | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": ids, "method": methods, "params": params})
    | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": ids, "result": values})
    | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": ids, "error": values}),
)
spellings = st.sampled_from(
    [
        lambda body: json.dumps(body),
        lambda body: json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        lambda body: "  " + json.dumps(body, separators=(" , ", " : ")) + "\t\r",
        lambda body: json.dumps(dict(reversed(body.items()))),
    ]
)


def written(spelling: Callable[[Any], str], body: Any) -> bytes:
    return spelling(body).encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("make", [both_v1, both_v2])
@given(data=st.data())
@settings(deadline=None, max_examples=150)
def test_random_traffic_passes_byte_for_byte(make: Callable[..., Driver], data: st.DataObject) -> None:
    driver = make()
    for _ in range(data.draw(st.integers(1, 12))):
        leg = data.draw(st.sampled_from(list(Role)))
        raw = written(data.draw(spellings), data.draw(bodies))
        assert driver.lines(leg, raw).lines == [(leg.other, raw)]


@pytest.mark.parametrize("make", [both_v1, both_v2])
@pytest.mark.parametrize("leg", Role)
def test_many_lines_at_once_keep_their_order(make: Callable[..., Driver], leg: Role) -> None:
    driver = make()
    lines = [
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"}}}}' % number
        if number % 3
        else b'{"jsonrpc":"2.0","method":"_x/y","params":[%d]}' % number
        for number in range(50)
    ]
    said = driver.lines(leg, *lines)
    assert said.raw(leg.other) == lines
    assert said.raw(leg) == []


def test_time_passes_without_a_word() -> None:
    for driver in (both_v1(), both_v2()):
        driver.prompt(7)
        assert driver.deadline is None
        assert driver.advance(10_000).commands == []


def test_state_is_never_told_to_a_v1_client_that_did_not_ask() -> None:
    driver = both_v1()
    driver.prompt(7)
    driver.agent_sends({"jsonrpc": "2.0", "id": 7, "result": {"stopReason": "end_turn"}})
    assert story(driver.outputs.client) == ["answer 0", "answer 1", "answer 7"]
