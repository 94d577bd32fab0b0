"""The bridge for a v2 client and a v1 agent: ids, methods, errors (bridge §3, §9; LC-60, LC-70, LC-73, LC-86)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role
from relay_driver import (
    EVERYTHING,
    answer,
    ask,
    bridged,
    call,
    failure,
    initialize_v2,
    message,
    note,
    prompt,
    selected,
    story,
    v1_result,
    withdraw,
)

# ---------------------------------------------------------------- ids


@pytest.mark.parametrize("request_id", [0, -1, 2**53, "", "a", "1", "ü"])
def test_any_string_or_integer_comes_back_as_it_was(request_id: Any) -> None:
    driver = bridged()
    driver.client_sends(call(request_id, "_x/ask", {}))
    assert driver.answers("_x/ask", {"ok": 1}).client == [answer(request_id, {"ok": 1})]


@pytest.mark.parametrize("request_id", [None, 1.5, True, [], {}])
def test_other_ids_are_refused(request_id: Any) -> None:
    said = bridged().client_sends(call(request_id, "session/list", {}))
    assert said.both == ["C error None -32600"]
    assert said.rules == ["V31"]


def test_ids_of_the_two_hops_do_not_collide() -> None:
    driver = bridged()
    driver.client_sends(call("1", "_x/a", {}), call(1, "_x/b", {}), call(2, "_x/c", {}))
    own = [body["id"] for body in driver.said[-1].agent]
    assert len(set(own)) == 3
    driver.agent_sends(ask(own[0]))
    assert driver.client_sends(selected(driver.client_id("session/request_permission"))).agent == [
        selected(own[0])
    ]
    said = driver.agent_sends(*(answer(token, {"n": n}) for n, token in enumerate(reversed(own))))
    assert said.client == [answer(2, {"n": 0}), answer(1, {"n": 1}), answer("1", {"n": 2})]


def test_an_id_in_use_is_refused() -> None:
    driver = bridged()
    driver.client_sends(call(5, "_x/a", {}))
    said = driver.client_sends(call(5, "_x/b", {}))
    assert (said.both, said.rules) == (["C error None -32600"], ["V31"])
    assert driver.answers("_x/a", {}).client == [answer(5, {})]
    assert story(driver.client_sends(call(5, "_x/b", {})).agent)[0].startswith("_x/b")


def test_the_id_of_a_held_prompt_is_in_use() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.prompt(8)
    assert driver.client_sends(call(8, "session/list", {})).both == ["C error None -32600"]


def test_the_id_of_an_acknowledged_prompt_is_free_again() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    assert story(driver.outputs.client)[-2:] == ["answer 7", "agent_message_chunk"]
    assert driver.client_sends(call(7, "session/list", {})).both == ["C answer 7"]
    assert driver.client_sends(call(7, "_x/ask", {})).client == []
    assert driver.client_sends(withdraw(7)).agent == [withdraw(driver.agent_id("_x/ask"))]
    assert story(driver.ends().client) == ["idle end_turn"]
    assert driver.answers("_x/ask", {}).client == [answer(7, {})]


@pytest.mark.parametrize("own_id", [99, "1", None, 7, 2.0, True])
def test_an_answer_of_the_agent_to_nothing_goes_nowhere(own_id: Any) -> None:
    driver = bridged()
    driver.client_sends(call(7, "_x/ask", {}))
    said = driver.agent_sends(answer(own_id, {}))
    assert said.lines == []
    assert said.rules in (["V29"], ["V51"])


def test_cancel_request_is_mapped_or_ignored() -> None:
    driver = bridged()
    driver.client_sends(call("a", "_x/ask", {}))
    given = note("$/cancel_request", {"requestId": "a", "_meta": {"m": 1}})
    assert driver.client_sends(given).agent == [
        note("$/cancel_request", {"requestId": driver.agent_id("_x/ask"), "_meta": {"m": 1}})
    ]
    for unknown in ("b", 0, None, driver.agent_id("_x/ask")):
        assert driver.client_sends(withdraw(unknown)).lines == []
    assert driver.fails("_x/ask", -32800).client == [failure("a", -32800)]


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize(
    "method", ["authenticate", "logout", "session/load", "session/set_mode", "fs/read_text_file"]
)
def test_methods_of_v1_alone_do_not_exist(method: str) -> None:
    params = {"sessionId": "s1", "methodId": "m", "modeId": "m", "path": "/p", "cwd": "/p", "mcpServers": []}
    assert bridged(agent=EVERYTHING).client_sends(call(5, method, params)).both == ["C error 5 -32601"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tool_call/cancel", {"sessionId": "s1", "toolCallId": "k"}),
        ("terminal/cancel", {"sessionId": "s1", "terminalId": "t"}),
    ],
)
def test_nothing_of_a_v1_agent_can_be_cancelled_by_its_id(method: str, params: Any) -> None:
    assert bridged().client_sends(call(5, method, params)).both == ["C error 5 -32602"]


def test_login_is_authenticate() -> None:
    driver = bridged()
    params = {"methodId": "m", "_meta": {"a": 1}}
    said = driver.client_sends(call(5, "auth/login", params))
    assert said.agent == [call(driver.agent_id("authenticate"), "authenticate", params)]
    assert driver.answers("authenticate", None).client == [answer(5, {})]


def test_logout_needs_the_agents_logout() -> None:
    assert bridged().client_sends(call(5, "auth/logout", {})).both == ["C error 5 -32601"]
    driver = bridged(agent={"auth": {"logout": {}}})
    assert driver.client_sends(call(5, "auth/logout", {})).agent[0]["method"] == "logout"
    assert driver.answers("logout", None).client == [answer(5, {})]


@pytest.mark.parametrize("method", ["_vendor/ask", "craft/ask", "session/teleport"])
@pytest.mark.parametrize("params", [{"sessionId": "s1", "deep": {"a": [None]}}, [1, 2], "absent"])
def test_what_nobody_lists_is_the_agents_to_answer(method: str, params: Any) -> None:
    driver = bridged()
    request = {"jsonrpc": "2.0", "id": 5, "method": method, "vendor": 1}
    if params != "absent":
        request["params"] = params
    (body,) = driver.client_sends(request).agent
    assert body == {**request, "id": body["id"]}
    result = {"any": ["thing"], "_meta": None}
    reply = {**answer(body["id"], result), "extra": 1}
    assert driver.agent_sends(reply).client == [{**reply, "id": 5}]


def test_unstable_methods_count_as_unknown_unless_enabled() -> None:
    driver = bridged()
    params = {"sessionId": "s1", "title": "t"}
    assert driver.client_sends(call(5, "session/set_title", params)).agent[0]["params"] == params
    assert driver.fails("session/set_title", -32601).both == ["C error 5 -32601"]


def test_a_fork_opens_a_session_like_new() -> None:
    driver = bridged(agent={"sessionCapabilities": {"fork": {}}}, unstable=True)
    servers = [{"type": "stdio", "name": "m", "command": "/m"}]
    params = {"sessionId": "s1", "cwd": "/p", "mcpServers": servers}
    said = driver.client_sends(call(5, "session/fork", params))
    assert said.agent[0]["params"]["mcpServers"] == [{"name": "m", "command": "/m", "args": [], "env": []}]
    option = {"id": "b", "name": "B", "type": "boolean", "currentValue": True}
    said = driver.answers("session/fork", {"sessionId": "s2", "configOptions": [option]})
    assert said.client[0]["result"]["configOptions"][0]["configId"] == "b"


@pytest.mark.parametrize("method", ["_x/updated", "mcp/message", "craft/said"])
def test_notifications_of_the_client_pass(method: str) -> None:
    given = note(method, {"serverId": "a", "method": "m", "params": {}, "x": 1})
    assert bridged().client_sends(given).agent == [given]


@pytest.mark.parametrize("method", ["_x/updated", "elicitation/complete", "craft/said"])
def test_notifications_of_the_agent_pass(method: str) -> None:
    given = note(method, {"elicitationId": "e", "x": 1})
    assert bridged().agent_sends(given).client == [given]


def test_a_malformed_notification_of_the_agent_is_dropped() -> None:
    said = bridged().agent_sends(note("elicitation/complete", {"elicitationId": 5}))
    assert (said.lines, said.rules) == ([], ["V42"])


@pytest.mark.parametrize("params", [None, {}, [], {"sessionId": 5}])
def test_a_malformed_cancel_is_dropped(params: Any) -> None:
    said = bridged().client_sends(note("session/cancel", params))
    assert (said.lines, said.rules) == ([], ["V42"])


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", []),
        ("session/new", {}),
        ("session/prompt", {"prompt": []}),
        ("session/prompt", {"sessionId": "s1"}),
        ("session/prompt", {"sessionId": "s1", "content": "go"}),
        ("session/prompt", {"sessionId": "s1", "prompt": "go"}),
        ("session/prompt", {"sessionId": "s1", "prompt": [{"type": "text"}]}),
        ("session/resume", {"cwd": "/p"}),
        ("session/close", {}),
        ("session/close", {"sessionId": None}),
        ("auth/login", {}),
        ("session/set_config_option", {"sessionId": "s1", "configId": "m", "type": "id"}),
    ],
)
def test_malformed_requests_are_refused(method: str, params: Any) -> None:
    assert bridged().client_sends(call(5, method, params)).both == ["C error 5 -32602"]


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, 400, 0])
def test_errors_pass_with_their_data(code: int) -> None:
    driver = bridged()
    driver.client_sends(call(5, "session/new", {"cwd": "/p"}))
    said = driver.fails("session/new", code, "why", {"deep": [1], "x": None})
    assert said.client == [failure(5, code, "why", {"deep": [1], "x": None})]


@pytest.mark.parametrize("error", [None, "boom", {}, {"code": "x", "message": 5}, {"code": 1.5}, [1]])
def test_malformed_errors_become_well_formed(error: Any) -> None:
    driver = bridged()
    driver.client_sends(call(5, "session/new", {"cwd": "/p"}))
    reply = {"jsonrpc": "2.0", "id": driver.agent_id("session/new"), "error": error}
    (body,) = driver.agent_sends(reply).client
    assert body["id"] == 5
    assert (body["error"]["code"], type(body["error"]["message"])) == (-32603, str)


def test_entries_of_a_list_that_do_not_fit_are_left_out() -> None:
    driver = bridged(agent=EVERYTHING)
    good = {"sessionId": "a", "cwd": "/p"}
    for number, given in ((5, "many"), (6, [{"sessionId": 1}, good])):
        driver.client_sends(call(number, "session/list", {}))
        said = driver.answers("session/list", {"sessions": given})
        assert said.client == [answer(number, {"sessions": [] if given == "many" else [good]})]


def test_a_missing_jsonrpc_member_is_added_on_both_legs() -> None:
    driver = bridged()
    driver.client_sends({"id": 5, "method": "_x/ask", "params": {}})
    assert driver.outputs.agent[-1]["jsonrpc"] == "2.0"
    driver.agent_sends({"id": driver.agent_id("_x/ask"), "result": {}})
    assert driver.outputs.client[-1]["jsonrpc"] == "2.0"
    driver.agent_sends({"method": "_x/updated"})
    assert driver.outputs.client[-1]["jsonrpc"] == "2.0"


# ---------------------------------------------------------------- initialize again


def test_an_equal_initialize_replays_the_answer_until_the_first_request() -> None:
    driver = bridged(session=False)
    first = driver.outputs.client[0]["result"]
    said = driver.client_sends(initialize_v2("again"))
    assert said.client == [answer("again", first)]
    assert said.agent == []
    driver.client_sends(call(5, "session/list", {}))
    assert driver.client_sends(initialize_v2("late")).both == ["C error late -32600"]


def test_another_initialize_is_refused() -> None:
    driver = bridged(session=False)
    assert driver.client_sends(initialize_v2(9, elicitation={"form": {}})).both == ["C error 9 -32600"]
    assert driver.client_sends(initialize_v2(9, version=3)).both == ["C error 9 -32600"]


def test_the_answer_to_initialize_is_v2() -> None:
    driver = bridged(session=False, agent=EVERYTHING)
    result = driver.outputs.client[0]["result"]
    assert result["protocolVersion"] == 2
    assert result["capabilities"]["session"]["prompt"] == {"image": {}, "audio": {}, "embeddedContext": {}}
    assert (
        result["_meta"]["acp-proxy"]["orig"]["agentCapabilities"]
        == v1_result(**EVERYTHING)["agentCapabilities"]
    )


# ---------------------------------------------------------------- ends


def test_the_agents_end_answers_all_and_withdraws_once() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message(), ask(90))
    driver.prompt(8)
    driver.client_sends(call(9, "_x/ask", {}))
    said = driver.agent_exits("the agent exited with status 3", {"exitCode": 3})
    told = story(said.client)
    assert sorted(told) == ["error 8 -32603", "error 9 -32603", "idle error", "withdraw 1"]
    errors = [body["error"] for body in said.client if "error" in body]
    assert all(
        e == {"code": -32603, "message": "the agent exited with status 3", "data": {"exitCode": 3}}
        for e in errors
    )
    assert said.closed == [Role.CLIENT]


def test_the_agents_end_before_insertion_fails_the_prompt() -> None:
    driver = bridged()
    driver.prompt(7)
    assert story(driver.agent_exits().client) == ["idle error", "error 7 -32603"]


def test_the_agents_end_while_an_idle_settles() -> None:
    driver = bridged(settle=5.0)
    driver.prompt(7)
    driver.ends()
    driver.client_sends(prompt(8))
    assert sorted(story(driver.agent_exits().client)) == ["error 8 -32603", "idle end_turn"]
    assert driver.advance(100).lines == []


def test_requests_to_an_agent_that_is_gone_fail_at_once() -> None:
    driver = bridged()
    driver.agent_exits("gone", {"exitCode": 1})
    said = driver.client_sends(call(9, "session/new", {"cwd": "/p"}))
    assert said.client == [failure(9, -32603, "gone", {"exitCode": 1})]


def test_a_prompt_to_an_agent_that_is_gone_does_not_look_busy() -> None:
    driver = bridged()
    driver.agent_exits("gone")
    told = story(driver.prompt(9).client)
    assert [word for word in told if word.startswith("error 9")] == ["error 9 -32603"]
    assert "running" not in told or told.index("running") < told.index("idle error")
