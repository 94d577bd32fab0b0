"""Opening, resuming, listing and configuring sessions of a v1 agent (bridge §3.1, §4, §7.6, §7.7)."""

from __future__ import annotations

from typing import Any

import pytest

from relay_driver import (
    EVERYTHING,
    Driver,
    answer,
    bridged,
    call,
    echo,
    failure,
    message,
    note,
    story,
    thought,
    tool,
    update,
    usage,
)

LOAD_ONLY = {"loadSession": True}
RESUME_ONLY = {"sessionCapabilities": {"resume": {}}}
START = {"replayFrom": {"type": "start"}}
STDIO = {"type": "stdio", "name": "m", "command": "/bin/m"}
SELECT_V1 = {
    "id": "model",
    "name": "Model",
    "type": "select",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
}
SELECT_V2 = {("configId" if key == "id" else key): value for key, value in SELECT_V1.items()}
MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}


def resume(driver: Driver, request_id: Any = 5, session: str = "s9", **more: Any) -> Any:
    return driver.client_sends(
        call(request_id, "session/resume", {"sessionId": session, "cwd": "/p", **more})
    )


def values(body: dict[str, Any]) -> dict[str, Any]:
    """Option id to current value, of a result or an update."""
    holder = body["result"] if "result" in body else body["params"]["update"]
    return {option["configId"]: option["currentValue"] for option in holder["configOptions"]}


# ---------------------------------------------------------------- new


def test_new_gives_the_agent_what_v1_requires() -> None:
    driver = bridged(session=False)
    said = driver.client_sends(call(3, "session/new", {"cwd": "/p", "_meta": {"a": 1}, "x": 2}))
    assert said.agent[0]["params"] == {"cwd": "/p", "_meta": {"a": 1}, "x": 2, "mcpServers": []}
    said = driver.client_sends(call(4, "session/new", {"cwd": "/p", "mcpServers": [STDIO]}))
    assert said.agent[0]["params"]["mcpServers"] == [
        {"name": "m", "command": "/bin/m", "args": [], "env": []}
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"cwd": "/p", "mcpServers": [{"type": "sse", "name": "m", "url": "https://e", "headers": []}]},
        {"cwd": "/p", "mcpServers": [{"type": "carrier_pigeon", "name": "m"}]},
        {"cwd": "/p", "additionalDirectories": ["/q"]},
        {"mcpServers": []},
        {"cwd": 7},
    ],
)
def test_new_refuses_what_the_agent_cannot_have(params: Any) -> None:
    assert bridged(session=False).client_sends(call(3, "session/new", params)).both == ["C error 3 -32602"]


def test_drop_sse_leaves_such_servers_out() -> None:
    driver = bridged(session=False, drop_sse=True)
    servers = [{"type": "sse", "name": "m", "url": "https://e", "headers": []}, STDIO]
    said = driver.client_sends(call(3, "session/new", {"cwd": "/p", "mcpServers": servers}))
    assert [server["name"] for server in said.agent[0]["params"]["mcpServers"]] == ["m"]
    assert "url" not in said.agent[0]["params"]["mcpServers"][0]


def test_directories_pass_where_the_agent_has_the_capability() -> None:
    driver = bridged(session=False, agent=EVERYTHING)
    said = driver.client_sends(call(3, "session/new", {"cwd": "/p", "additionalDirectories": ["/q"]}))
    assert said.agent[0]["params"]["additionalDirectories"] == ["/q"]


def test_the_result_of_new_is_v2() -> None:
    driver = bridged(session=False)
    driver.client_sends(call(3, "session/new", {"cwd": "/p"}))
    given = {
        "sessionId": "s1",
        "configOptions": [SELECT_V1],
        "modes": MODES,
        "models": [1],
        "_meta": {"a": 1},
    }
    result = driver.answers("session/new", given).client[0]["result"]
    made_up = result["configOptions"][1]
    assert result["configOptions"][0] == SELECT_V2
    assert (made_up["configId"], made_up["category"], made_up["currentValue"]) == ("mode", "mode", "ask")
    assert [choice["value"] for choice in made_up["options"]] == ["ask", "code"]
    assert "modes" not in result
    assert (result["models"], result["_meta"]["a"]) == ([1], 1)
    assert result["_meta"]["acp-proxy"]["dropped"] == {"modes": MODES}


@pytest.mark.parametrize("options", [None, "absent"])
def test_no_options_are_no_options(options: Any) -> None:
    driver = bridged(session=False)
    driver.client_sends(call(3, "session/new", {"cwd": "/p"}))
    given = {"sessionId": "s1"} if options == "absent" else {"sessionId": "s1", "configOptions": options}
    assert driver.answers("session/new", given).client == [answer(3, {"sessionId": "s1"})]


@pytest.mark.parametrize("result", [{}, {"sessionId": 5}, None])
def test_a_result_of_new_without_an_id_is_an_error(result: Any) -> None:
    driver = bridged(session=False)
    driver.client_sends(call(3, "session/new", {"cwd": "/p"}))
    assert driver.answers("session/new", result).both == ["C error 3 -32603"]


def test_updates_may_precede_the_result_of_new() -> None:
    driver = bridged(session=False)
    driver.client_sends(call(3, "session/new", {"cwd": "/p"}))
    assert story(driver.agent_sends(usage()).client) == ["usage_update"]
    assert story(driver.answers("session/new", {"sessionId": "s1"}).client) == ["answer 3"]


# ---------------------------------------------------------------- resume


@pytest.mark.parametrize(
    ("agent", "params", "method"),
    [
        (RESUME_ONLY, {}, "session/resume"),
        ({**LOAD_ONLY, **RESUME_ONLY}, {}, "session/resume"),
        (LOAD_ONLY, {}, "session/load"),
        (LOAD_ONLY, START, "session/load"),
        ({**LOAD_ONLY, **RESUME_ONLY}, START, "session/load"),
        (LOAD_ONLY, {"replayFrom": None}, "session/load"),
    ],
)
def test_which_method_resumes(agent: Any, params: Any, method: str) -> None:
    driver = bridged(agent=agent)
    sent = resume(driver, _meta={"a": 1}, mcpServers=[STDIO], **params).agent
    assert [body["method"] for body in sent] == [method]
    assert "replayFrom" not in sent[0]["params"]
    assert sent[0]["params"]["_meta"] == {"a": 1}
    assert sent[0]["params"]["mcpServers"][0]["env"] == []
    assert story(driver.answers(method, None).client) == ["idle", "answer 5"]
    assert driver.said[-1].client[1]["result"] == {}


@pytest.mark.parametrize(
    ("agent", "params", "code"),
    [
        ({}, {}, -32002),
        ({}, START, -32602),
        (RESUME_ONLY, START, -32602),
        (LOAD_ONLY, {"replayFrom": {"type": "bookmark"}}, -32602),
        (EVERYTHING, {"replayFrom": {"type": "_vendor", "at": 3}}, -32602),
        (EVERYTHING, {"mcpServers": [{"type": "sse", "name": "m", "url": "u"}]}, -32602),
    ],
)
def test_what_cannot_be_resumed(agent: Any, params: Any, code: int) -> None:
    said = resume(bridged(agent=agent), **params)
    assert said.both == [f"C error 5 {code}"]
    if code == -32002:
        assert said.client[0]["error"]["data"] == {"sessionId": "s9"}


def test_a_session_that_never_left_is_resumed_here() -> None:
    driver = bridged(result={"configOptions": [SELECT_V1]})
    said = resume(driver, session="s1")
    assert said.both == ["C idle", "C answer 5"]
    assert values(said.client[1]) == {"model": "a"}
    driver.prompt()
    assert resume(driver, 6, "s1").both == ["C running", "C answer 6"]


def test_a_replay_that_was_asked_for_is_forwarded_and_tells_no_work() -> None:
    driver = bridged(agent=LOAD_ONLY)
    resume(driver, **START)
    replay = [echo("q", session="s9"), message("a", session="s9"), tool("t9", "in_progress", session="s9")]
    assert story(driver.agent_sends(*replay).client) == [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call_update",
    ]
    said = driver.answers("session/load", {})
    assert story(said.client) == ["idle", "answer 5"]
    assert "stopReason" not in said.client[0]["params"]["update"]


def test_a_replay_nobody_asked_for_is_swallowed_but_seeds_the_tables() -> None:
    driver = bridged(agent=LOAD_ONLY)
    resume(driver)
    replay = [
        echo("q", session="s9"),
        thought("h", session="s9"),
        message("a", session="s9"),
        tool("t9", "completed", session="s9", title="Old title"),
        update("plan", session="s9", entries=[]),
        update("available_commands_update", session="s9", availableCommands=[]),
        update("session_info_update", session="s9", title="T"),
        usage(session="s9"),
        update("config_option_update", session="s9", configOptions=[SELECT_V1]),
    ]
    assert story(driver.agent_sends(*replay).client) == [
        "available_commands_update",
        "session_info_update",
        "usage_update",
        "config_option_update",
    ]
    said = driver.answers("session/load", {})
    assert story(said.client) == ["idle", "answer 5"]
    assert values(said.client[1]) == {"model": "a"}
    assert story(driver.agent_sends(message("live", session="s9")).client) == ["agent_message_chunk"]
    asked = {"toolCallId": "t9"}
    params = {"sessionId": "s9", "toolCall": asked, "options": [{"optionId": "o", "name": "n", "kind": "k"}]}
    said = driver.agent_sends(call(90, "session/request_permission", params))
    assert said.client[0]["params"]["title"] == "Old title"


def test_a_failed_load_is_an_error_and_swallows_nothing_more() -> None:
    driver = bridged(agent=LOAD_ONLY)
    resume(driver)
    assert driver.fails("session/load", -32002, data={"sessionId": "s9"}).client == [
        failure(5, -32002, data={"sessionId": "s9"})
    ]
    assert story(driver.agent_sends(message(session="s9")).client) == ["agent_message_chunk"]


def test_a_session_that_failed_to_load_is_not_listed() -> None:
    driver = bridged(agent=LOAD_ONLY)
    resume(driver)
    driver.fails("session/load", -32002)
    listed = driver.client_sends(call(6, "session/list", {})).client[0]["result"]["sessions"]
    assert [entry["sessionId"] for entry in listed] == ["s1"]


def test_a_load_during_a_turn_tells_the_turns_state() -> None:
    driver = bridged(agent=LOAD_ONLY)
    driver.prompt()
    resume(driver, session="s1", **START)
    assert story(driver.answers("session/load", {}).client) == ["running", "answer 5"]


def test_load_settle_holds_state_and_result_until_the_tail_is_quiet() -> None:
    driver = bridged(agent=LOAD_ONLY, load_settle=0.5)
    resume(driver, **START)
    assert driver.answers("session/load", {}).client == []
    assert driver.advance(0.4).lines == []
    assert story(driver.agent_sends(message("late", session="s9")).client) == ["agent_message_chunk"]
    assert driver.advance(0.4).lines == []
    assert story(driver.advance(0.2).client) == ["idle", "answer 5"]
    assert driver.advance(10).lines == []


def test_load_settle_is_bounded_and_swallows_late_replay() -> None:
    driver = bridged(agent=LOAD_ONLY, load_settle=0.5)
    resume(driver)
    driver.answers("session/load", {})
    told: list[str] = []
    for _ in range(20):
        told += story(driver.agent_sends(message("late", session="s9")).client)
        told += story(driver.advance(0.4).client)
        if told:
            break
    assert told[:2] == ["idle", "answer 5"], "nothing of a replay nobody asked for"


# ---------------------------------------------------------------- list


def test_list_without_the_agents_help() -> None:
    driver = bridged()
    driver.client_sends(call(2, "session/new", {"cwd": "/q", "mcpServers": []}))
    driver.answers("session/new", {"sessionId": "s2"})
    driver.agent_sends(usage(session="stranger"))
    everything = driver.client_sends(call(3, "session/list", {}))
    assert everything.agent == []
    assert everything.client[0]["result"] == {
        "sessions": [{"sessionId": "s1", "cwd": "/p"}, {"sessionId": "s2", "cwd": "/q"}]
    }
    there = driver.client_sends(call(4, "session/list", {"cwd": "/q"})).client[0]["result"]["sessions"]
    assert [entry["sessionId"] for entry in there] == ["s2"]
    assert driver.client_sends(call(5, "session/list", {"cwd": "/q/"})).client[0]["result"] == {
        "sessions": []
    }


def test_list_by_the_agent() -> None:
    driver = bridged(agent=EVERYTHING)
    said = driver.client_sends(call(3, "session/list", {"cwd": "/p", "cursor": "c"}))
    assert said.agent[0]["params"] == {"cwd": "/p", "cursor": "c"}
    entry = {"sessionId": "a", "cwd": "/p", "updatedAt": "2026-01-01T00:00:00Z", "x": 1, "_meta": {"m": 1}}
    given = {"sessions": [entry], "nextCursor": "", "y": 2}
    assert driver.answers("session/list", given).client == [answer(3, given)]
    driver.client_sends(call(4, "session/list", {}))
    assert driver.answers("session/list", None).client == [answer(4, {"sessions": []})]


# ---------------------------------------------------------------- config options


def configured(**result: Any) -> Driver:
    return bridged(result=result)


def set_option(driver: Driver, config_id: str, value: Any, kind: str = "id", request_id: int = 5) -> Any:
    params = {"sessionId": "s1", "configId": config_id, "type": kind, "value": value}
    return driver.client_sends(call(request_id, "session/set_config_option", params))


def test_setting_an_option_returns_the_full_list() -> None:
    driver = configured(configOptions=[SELECT_V1], modes=MODES)
    said = set_option(driver, "model", "b")
    assert said.agent[0]["method"] == "session/set_config_option"
    assert said.agent[0]["params"] == {"sessionId": "s1", "configId": "model", "value": "b"}
    told = driver.answers(
        "session/set_config_option", {"configOptions": [{**SELECT_V1, "currentValue": "b"}]}
    )
    assert values(told.client[0]) == {"model": "b", "mode": "ask"}


@pytest.mark.parametrize("result", [None, {}])
def test_an_agent_that_confirms_only_still_gets_the_full_list_told(result: Any) -> None:
    driver = configured(configOptions=[SELECT_V1])
    set_option(driver, "model", "b")
    assert values(driver.answers("session/set_config_option", result).client[0]) == {"model": "b"}


def test_the_made_up_mode_option_sets_the_mode() -> None:
    driver = configured(configOptions=[SELECT_V1], modes=MODES)
    said = set_option(driver, "mode", "code")
    assert said.agent[0]["method"] == "session/set_mode"
    assert said.agent[0]["params"] == {"sessionId": "s1", "modeId": "code"}
    told = driver.answers("session/set_mode", {})
    assert values(told.client[0]) == {"model": "a", "mode": "code"}


def test_a_refused_mode_changes_nothing() -> None:
    driver = configured(modes=MODES)
    set_option(driver, "mode", "code")
    assert driver.fails("session/set_mode", -32602).both == ["C error 5 -32602"]
    assert values(resume(driver, 6, "s1").client[1]) == {"mode": "ask"}


def test_an_option_of_category_mode_hides_the_modes() -> None:
    own = {**SELECT_V1, "id": "mode", "category": "mode"}
    driver = configured(configOptions=[own], modes=MODES)
    set_option(driver, "mode", "b")
    assert driver.outputs.agent[-1]["method"] == "session/set_config_option"


def test_options_that_cannot_be_set() -> None:
    driver = configured(configOptions=[SELECT_V1])
    for kind, value in (("slider", 3), ("id", True), ("boolean", "x")):
        assert set_option(driver, "model", value, kind).both == ["C error 5 -32602"]
    assert set_option(bridged(), "model", "b").both == ["C error 5 -32602"], "before the first list"


def test_a_mode_of_the_agents_own_choice_tells_the_full_list() -> None:
    driver = configured(configOptions=[SELECT_V1], modes=MODES)
    for key in ("currentModeId", "modeId"):
        said = driver.agent_sends(update("current_mode_update", **{key: "code"}, _meta={"a": 1}))
        assert story(said.client) == ["config_option_update"]
        assert values(said.client[0]) == {"model": "a", "mode": "code"}
        assert said.client[0]["params"]["update"]["_meta"] == {"a": 1}
        assert driver.agent_sends(update("current_mode_update", **{key: "code"})).lines == []
        driver.agent_sends(update("current_mode_update", currentModeId="ask"))


def test_an_update_of_some_options_keeps_the_mode() -> None:
    driver = configured(configOptions=[SELECT_V1], modes=MODES)
    said = driver.agent_sends(
        note(
            "session/update",
            {"sessionId": "s1", "update": {"sessionUpdate": "config_option_update", "configOptions": []}},
        )
    )
    assert values(said.client[0]) == {"mode": "ask"}
