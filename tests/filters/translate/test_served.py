"""`fs/*` and `terminal/*` of a v1 agent that the proxy serves itself (bridge §8), without the host."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role, Version
from acp_proxy.jsonrpc.message import METHOD_NOT_FOUND
from relay_driver import (
    EVERYTHING,
    Driver,
    Said,
    answer,
    ask,
    bridged,
    call,
    cancel,
    failure,
    note,
    selected,
    story,
    tool,
    update,
    v1_result,
    withdraw,
)
from schema_cache import message_error

BOTH = ("fs", "terminal")
T = "terminal-1"
READ = {"sessionId": "s1", "path": "/p/a"}
CREATE = {"sessionId": "s1", "command": "make"}


def serving(**more: Any) -> Driver:
    return bridged(**{"serve": BOTH, **more})


def opened(session: str = "s1", terminal_id: str = T) -> dict[str, Any]:
    """What the host says of a terminal that it has opened."""
    fields = {"command": "make", "cwd": "/p", "capabilities": {"cancel": {}}}
    return update("terminal_update", session, terminalId=terminal_id, **fields)


def output(terminal_id: str = T) -> dict[str, Any]:
    return update("terminal_output_chunk", terminalId=terminal_id, data="aGk=")


def exited(terminal_id: str = T) -> dict[str, Any]:
    return update("terminal_update", terminalId=terminal_id, exitStatus={"exitCode": 0}, capabilities=None)


def creates(driver: Driver, request_id: Any = 50, **params: Any) -> Any:
    """Let the agent ask for a terminal and get it; the id the host was asked under."""
    own = (
        driver.agent_sends(call(request_id, "terminal/create", {**CREATE, **params}))
        .served[0]
        .message.body["id"]
    )
    driver.host_says(opened())
    driver.host_says(answer(own, {"terminalId": T}))
    return own


def told_to_host(said: Said) -> list[tuple[str, Any]]:
    return [(command.message.body["method"], command.message.params) for command in said.served]


# ---------------------------------------------------------------- what the agent is offered


@pytest.mark.parametrize("serve", [(), ("fs",), ("terminal",), BOTH])
@pytest.mark.parametrize("version", ["auto", "1"])
def test_the_agent_is_offered_exactly_what_is_served(serve: tuple[str, ...], version: str) -> None:
    driver = bridged(serve=serve, agent_version=version)
    offered = driver.outputs.agent[0]["params"]["clientCapabilities"]
    assert offered["fs"] == {"readTextFile": "fs" in serve, "writeTextFile": "fs" in serve}
    assert offered["terminal"] is ("terminal" in serve)


def test_the_second_offer_says_the_same() -> None:
    driver = Driver(serve=BOTH)
    driver.client_sends(call(0, "initialize", {"protocolVersion": 2, "info": {"name": "c", "version": "1"}}))
    said = driver.agent_sends(failure(0, -32602))
    assert said.agent[0]["params"]["clientCapabilities"]["terminal"] is True


@pytest.mark.parametrize(
    ("serve", "method"),
    [
        ((), "fs/read_text_file"),
        (("terminal",), "fs/read_text_file"),
        (("fs",), "terminal/create"),
        (BOTH, "fs/remove"),
        (BOTH, "terminal/resize"),
    ],
)
def test_what_was_not_offered_is_refused_with_a_finding(serve: tuple[str, ...], method: str) -> None:
    said = serving(serve=serve).agent_sends(call(50, method, READ))
    assert said.agent[0]["error"]["code"] == METHOD_NOT_FOUND
    assert said.rules == ["V52"]
    assert not said.served


def test_between_equal_versions_everything_passes() -> None:
    driver = Driver(serve=BOTH)
    driver.client_sends(call(0, "initialize", {"protocolVersion": 1}))
    driver.agent_sends(answer(0, v1_result()))
    said = driver.agent_sends(call(50, "fs/read_text_file", READ))
    assert said.both == ["C fs/read_text_file #50"]
    assert not said.served


# ---------------------------------------------------------------- requests


def test_a_request_goes_to_the_host_with_the_directories_of_its_session() -> None:
    driver = serving(agent=EVERYTHING, session=False)
    params = {"cwd": "/p", "additionalDirectories": ["/q", "/r"], "mcpServers": []}
    driver.client_sends(call(1, "session/new", params))
    driver.answers("session/new", {"sessionId": "s1"})
    said = driver.agent_sends(call("x", "fs/read_text_file", {**READ, "line": 2, "own": 1}))
    assert said.lines == []
    (serve,) = said.served
    assert (serve.cwd, list(serve.directories)) == ("/p", ["/p", "/q", "/r"])
    assert serve.message.body["method"] == "fs/read_text_file"
    assert serve.message.params == {**READ, "line": 2, "own": 1}


def test_a_session_opened_again_is_bounded_by_what_it_was_opened_with_last() -> None:
    driver = serving(agent=EVERYTHING)
    driver.client_sends(call(2, "session/resume", {"sessionId": "s1", "cwd": "/other", "mcpServers": []}))
    driver.answers("session/resume", {})
    (serve,) = driver.agent_sends(call(50, "fs/read_text_file", READ)).served
    assert (serve.cwd, list(serve.directories)) == ("/other", ["/other"])


def test_answers_reach_the_agent_under_its_own_ids_in_any_order() -> None:
    driver = serving()
    first = driver.agent_sends(call(7, "fs/read_text_file", READ)).served[0].message.body["id"]
    second = driver.agent_sends(call("7", "fs/write_text_file", {**READ, "content": ""})).served[0]
    assert driver.host_says(answer(second.message.body["id"], {})).agent == [answer("7", {})]
    assert driver.host_says(answer(first, {"content": "a"})).agent == [answer(7, {"content": "a"})]
    assert driver.host_says(answer(first, {"content": "b"})).lines == []


def test_the_hosts_refusals_reach_the_agent_whole() -> None:
    driver = serving()
    own = driver.agent_sends(call(7, "fs/read_text_file", READ)).served[0].message.body["id"]
    refused = failure(own, -32002, "no such file: /p/a", {"path": "/p/a"})
    assert driver.host_says(refused).agent == [{**refused, "id": 7}]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {"sessionId": "s1"}),
        ("fs/read_text_file", {**READ, "line": -1}),
        ("fs/read_text_file", {**READ, "limit": "all"}),
        ("fs/write_text_file", READ),
        ("terminal/create", {"sessionId": "s1", "command": ["ls"]}),
        ("terminal/create", {**CREATE, "args": "-l"}),
        ("terminal/create", {**CREATE, "outputByteLimit": -1}),
        ("terminal/output", {"sessionId": "s1"}),
        ("terminal/kill", None),
    ],
)
def test_malformed_params_never_reach_the_host(method: str, params: Any) -> None:
    said = serving().agent_sends(call(50, method, params))
    assert said.agent[0]["error"]["code"] == -32602
    assert said.rules == ["V42"]
    assert not said.served


def test_null_lists_are_absent_to_the_host() -> None:
    said = serving().agent_sends(call(50, "terminal/create", {**CREATE, "args": None, "env": None}))
    assert told_to_host(said) == [("terminal/create", CREATE)]


@pytest.mark.parametrize("session", ["s2", ""])
def test_a_session_that_the_client_did_not_open_has_no_directories(session: str) -> None:
    said = serving().agent_sends(call(50, "fs/read_text_file", {"sessionId": session, "path": "/p/a"}))
    missing = said.agent[0]["error"]
    assert (missing["code"], missing["data"]) == (-32002, {"sessionId": session})
    assert not said.served


def test_only_the_wait_for_an_exit_can_be_withdrawn() -> None:
    driver = serving()
    creates(driver)
    named = {"sessionId": "s1", "terminalId": T}
    waiting = driver.agent_sends(call(51, "terminal/wait_for_exit", named)).served[0].message.body["id"]
    reading = driver.agent_sends(call(52, "fs/read_text_file", READ)).served[0].message.body["id"]
    assert driver.agent_sends(withdraw(51)).agent[0]["error"]["code"] == -32800
    assert driver.host_says(answer(waiting, {"exitCode": 0, "signal": None})).lines == []
    assert driver.agent_sends(withdraw(52)).lines == []
    assert driver.host_says(answer(reading, {"content": ""})).agent == [answer(52, {"content": ""})]
    crossed = driver.agent_sends(withdraw(52))
    assert (crossed.lines, crossed.rules) == ([], []), "it crossed with the answer (LC-70)"
    assert driver.agent_sends(withdraw(53)).rules == ["V30"]


# ---------------------------------------------------------------- the turn


def test_a_request_is_evidence_that_the_prompt_was_taken() -> None:
    driver = serving()
    driver.prompt()
    said = driver.agent_sends(call(50, "terminal/create", CREATE))
    assert story(said.client) == ["user_message", "answer 7"]
    assert [type(command).__name__ for command in said.commands][:2] == ["SendFrames", "Serve"]


def test_a_refused_request_is_evidence_as_well() -> None:
    driver = serving()
    driver.prompt()
    said = driver.agent_sends(call(50, "fs/write_text_file", READ))
    assert said.both == ["C user_message", "C answer 7", "A error 50 -32602"]


def test_terminals_of_an_earlier_turn_are_no_evidence_for_the_next() -> None:
    driver = serving()
    driver.prompt(7)
    creates(driver)
    driver.agent_sends(answer(driver.agent_id("session/prompt"), {"stopReason": "end_turn"}))
    driver.prompt(8)
    assert story(driver.host_says(output()).client) == ["terminal_output_chunk"]
    assert story(driver.host_says(exited()).client) == ["terminal_update"]
    assert story(driver.agent_sends(tool("k", "pending")).client) == [
        "user_message",
        "answer 8",
        "tool_call_update",
    ]


def test_a_request_under_way_is_progress_while_a_person_is_asked() -> None:
    """Lifecycle §2.5: machine work, never user action; the session waits once it is answered."""
    driver = serving()
    driver.prompt()
    own = driver.agent_sends(call(50, "fs/read_text_file", READ)).served[0].message.body["id"]
    assert story(driver.agent_sends(ask(90)).client) == ["session/request_permission #1"]
    said = driver.host_says(answer(own, {"content": ""}))
    assert said.both == ["A answer 50", "C requires_action"]
    assert story(driver.client_sends(selected(1)).client) == ["running"]


# ---------------------------------------------------------------- terminals


def test_the_client_is_told_of_a_terminal_from_its_opening_to_its_exit() -> None:
    driver = serving()
    driver.prompt()
    own = driver.agent_sends(call(50, "terminal/create", CREATE)).served[0].message.body["id"]
    heard = [opened(), answer(own, {"terminalId": T}), output(), output(), exited()]
    said = [driver.host_says(body) for body in heard]
    assert [one.client for one in said] == [[opened()], [], [output()], [output()], [exited()]]
    assert said[1].agent == [answer(50, {"terminalId": T})]
    for one in driver.outputs.client:
        if "method" in one:
            assert message_error(Version.V2, one, sender=Role.AGENT) is None, one


def test_nothing_is_told_of_terminals_that_were_not_opened_or_have_ended() -> None:
    driver = serving()
    assert driver.host_says(output()).lines == []
    creates(driver)
    driver.host_says(exited())
    assert driver.host_says(output()).lines == []
    assert driver.host_says(exited()).lines == []
    assert driver.host_says(opened("s9", "terminal-9")).lines == []


@pytest.mark.parametrize("ended", [False, True])
def test_a_tool_call_shows_served_terminals_and_names_others(ended: bool) -> None:
    driver = serving()
    creates(driver)
    if ended:
        driver.host_says(exited())
    items = [{"type": "terminal", "terminalId": T}, {"type": "terminal", "terminalId": "other"}]
    shown = [
        {"type": "terminal", "terminalId": T},
        {"type": "content", "content": {"type": "text", "text": "[terminal other]"}},
    ]
    said = driver.agent_sends(tool("k", "in_progress", content=items))
    assert said.client[0]["params"]["update"]["content"] == shown
    said = driver.agent_sends(ask(90, toolCall={"toolCallId": "k", "content": items}))
    assert said.client[0]["params"]["subject"]["toolCall"]["content"] == shown


def test_a_terminal_belongs_to_one_session() -> None:
    driver = serving()
    driver.client_sends(call(2, "session/new", {"cwd": "/p2", "mcpServers": []}))
    driver.answers("session/new", {"sessionId": "s2"})
    creates(driver)
    item = {"type": "terminal", "terminalId": T}
    said = driver.agent_sends(update("tool_call", "s2", toolCallId="k", title="t", content=[item]))
    assert said.client[0]["params"]["update"]["content"][0]["type"] == "content"
    refused = driver.client_sends(call(3, "terminal/cancel", {"sessionId": "s2", "terminalId": T}))
    assert refused.both == ["C error 3 -32602"]


# ---------------------------------------------------------------- terminal/cancel


def test_a_running_terminal_can_be_cancelled_until_its_exit() -> None:
    driver = serving()
    named = {"sessionId": "s1", "terminalId": T}
    request = call(3, "terminal/cancel", named)
    assert driver.client_sends(request).both == ["C error 3 -32602"]
    creates(driver)
    said = driver.client_sends(request)
    assert said.client == [answer(3, {})]
    assert told_to_host(said) == [("terminal/kill", named)]
    assert "id" not in said.served[0].message.body
    assert driver.host_says(exited()).client[0]["params"]["update"]["capabilities"] is None
    assert driver.client_sends(request).both == ["C error 3 -32602"]


def test_cancelling_the_turn_leaves_its_terminals_to_the_agent() -> None:
    driver = serving()
    driver.prompt()
    creates(driver)
    said = driver.client_sends(cancel())
    assert said.both == ["A session/cancel"]
    assert not said.served


# ---------------------------------------------------------------- ends


def ended_for(driver: Driver, said: Said) -> None:
    """The client was told the exit of the terminal, the host to kill it, and nothing follows."""
    told = [body for body in said.client if body.get("params", {}).get("update", {}).get("terminalId") == T]
    assert [body["params"]["update"]["exitStatus"] for body in told] == [{}]
    assert all(message_error(Version.V2, body, sender=Role.AGENT) is None for body in told)
    assert ("session/close", {"sessionId": "s1"}) in told_to_host(said)
    assert driver.host_says(output()).lines == []
    assert driver.host_says(exited()).lines == []


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_a_close_by_the_agent_ends_the_sessions_terminals_first(method: str) -> None:
    driver = serving(agent=EVERYTHING)
    creates(driver)
    driver.client_sends(call(9, method, {"sessionId": "s1"}))
    said = driver.answers(method, {})
    assert story(said.client) == ["terminal_update", "answer 9"]
    ended_for(driver, said)


def test_a_close_without_the_agents_help_ends_them_too() -> None:
    driver = serving()
    driver.prompt()
    creates(driver)
    driver.client_sends(call(9, "session/close", {"sessionId": "s1"}))
    said = driver.ends("cancelled")
    assert story(said.client) == ["idle cancelled", "terminal_update", "answer 9"]
    ended_for(driver, said)


def test_after_the_close_the_session_is_missing_but_open_requests_are_answered() -> None:
    driver = serving()
    creates(driver)
    named = {"sessionId": "s1", "terminalId": T}
    own = driver.agent_sends(call(51, "terminal/wait_for_exit", named)).served[0].message.body["id"]
    driver.client_sends(call(9, "session/close", {"sessionId": "s1"}))
    status = {"exitCode": None, "signal": "SIGTERM"}
    assert driver.host_says(answer(own, status)).agent == [answer(51, status)]
    said = driver.agent_sends(call(52, "terminal/output", named))
    assert said.agent[0]["error"]["code"] == -32002
    assert not said.served


def test_a_terminal_that_opens_while_its_session_closes_is_never_told_of() -> None:
    driver = serving()
    driver.agent_sends(call(50, "terminal/create", CREATE))
    said = driver.client_sends(call(9, "session/close", {"sessionId": "s1"}))
    assert told_to_host(said) == [("session/close", {"sessionId": "s1"})]
    assert driver.host_says(opened()).lines == []


def test_the_agents_end_ends_its_terminals_before_the_state() -> None:
    driver = serving()
    driver.prompt()
    creates(driver)
    said = driver.agent_exits()
    assert story(said.client)[-2:] == ["terminal_update", "idle error"]
    ended_for(driver, said)


def test_when_the_client_has_left_open_requests_are_answered_once() -> None:
    driver = serving()
    own = driver.agent_sends(call(50, "fs/read_text_file", READ)).served[0].message.body["id"]
    assert driver.client_leaves().both == ["A error 50 -32603"]
    assert driver.host_says(answer(own, {"content": "a"})).lines == []
    late = driver.agent_sends(call(51, "fs/read_text_file", READ))
    assert late.both == ["A error 51 -32603"]
    assert not late.served


def test_nothing_is_handed_to_the_host_unless_terminals_are_served() -> None:
    driver = serving(serve=("fs",))
    assert not driver.client_sends(call(9, "session/close", {"sessionId": "s1"})).served
    assert not driver.agent_sends(note("_x/y", {})).served
