"""An agent that is started anew comes back to where the old one stood (BR-05, BR-06)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from relay_driver import (
    V2_RESULT,
    Driver,
    Json,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    dismissed,
    failure,
    initialize_v1,
    initialize_v2,
    line,
    message,
    note,
    prompt,
    selected,
    story,
    tell,
    update,
    v1_result,
    withdraw,
)

LOADING: Json = {"loadSession": True}
RESUMING: Json = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
NOTICES: Json = {"clientCapabilities": {"session": {"notices": {}}}}


def opened(
    make: Callable[..., Driver], agent: Json | None = None, client: Json | None = None, **options: Any
) -> Driver:
    """A pair with session `s1`, whose agent will be started anew whatever happens."""
    options = {"restart": "always", **options}
    if make is bridged:
        return bridged(agent=agent, **options)
    driver = Driver(**options)
    if make is both_v1:
        driver.client_sends(initialize_v1(0, **(client or {})))
        driver.agent_sends(answer(0, v1_result(**(agent or {}))))
    else:
        driver.client_sends(initialize_v2(0))
        driver.agent_sends(answer(0, V2_RESULT))
    driver.client_sends(call(1, "session/new", {"cwd": "/p", "mcpServers": []}))
    driver.agent_sends(answer(1, {"sessionId": "s1"}))
    return driver


def greet(driver: Driver, result: Json | None = None) -> Any:
    """The new process runs, is greeted, and answers."""
    greeting = driver.agent_returns().agent
    assert [body["method"] for body in greeting] == ["initialize"]
    known = result if result is not None else v1_result()
    return driver.agent_sends(answer(greeting[0]["id"], known))


def come_back(driver: Driver, result: Json | None = None) -> Any:
    """It takes all sessions up again."""
    said = greet(driver, result)
    return driver.agent_sends(*(answer(body["id"], {}) for body in said.agent))


@pytest.fixture(params={"v1": both_v1, "v2": both_v2, "bridged": bridged})
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = {"v1": both_v1, "v2": both_v2, "bridged": bridged}[request.param]
    return found


def result_of(make: Callable[..., Driver], agent: Json | None = None) -> Json:
    return V2_RESULT if make is both_v2 else v1_result(**(agent or {}))


# ---------------------------------------------------------------- whether


def test_by_default_the_end_is_the_end(make: Callable[..., Driver]) -> None:
    driver = opened(make, restart="never")
    said = driver.agent_exits()
    assert (said.restarts, said.closed) == (0, [Role.CLIENT])


def test_an_agent_that_ends_is_started_again(make: Callable[..., Driver]) -> None:
    driver = opened(make)
    said = driver.agent_exits()
    assert (said.delays, said.closed) == ([0.2], [])
    assert [(finding.rule, finding.action) for finding in said.findings] == [("V59", "repaired")]


def test_one_that_never_answered_initialize_is_not() -> None:
    driver = Driver(restart="always")
    driver.client_sends(initialize_v1(0))
    said = driver.agent_exits()
    assert (said.restarts, said.closed) == (0, [Role.CLIENT])
    assert story(said.client) == ["error 0 -32603"]


@pytest.mark.parametrize(("restart", "count"), [("idle", 0), ("always", 1)])
def test_only_always_starts_it_again_in_a_turn(make: Callable[..., Driver], restart: str, count: int) -> None:
    driver = opened(make, restart=restart)
    driver.prompt(7)
    assert driver.agent_exits().restarts == count


def test_idle_starts_it_again_between_turns(make: Callable[..., Driver]) -> None:
    driver = opened(make, restart="idle")
    assert driver.agent_exits().restarts == 1


def test_not_for_a_client_that_left(make: Callable[..., Driver]) -> None:
    driver = opened(make)
    driver.client_leaves()
    assert driver.agent_exits().restarts == 0


def test_too_many_deaths_are_the_end(make: Callable[..., Driver]) -> None:
    driver = opened(make, restart_limit=2)
    delays = []
    for _ in range(2):
        delays += driver.agent_exits().delays
        driver.agent_returns()
    assert delays == [0.2, 0.4]
    said = driver.agent_exits()
    assert (said.restarts, said.closed) == (0, [Role.CLIENT])
    assert [(finding.rule, finding.action) for finding in said.findings] == [("V59", "noted")]


# ---------------------------------------------------------------- what ends with the old one


def test_the_turn_ends_in_an_error_first() -> None:
    driver = opened(bridged)
    driver.prompt(7)
    driver.agent_sends(message())
    told = driver.agent_exits().client
    assert story(told) == ["idle error"]
    assert told[0]["params"]["update"]["error"]["code"] == -32603


def test_a_turn_a_v2_agent_reported_is_ended_for_it() -> None:
    driver = opened(both_v2)
    driver.prompt(7)
    driver.agent_sends(update("state_update", state="running"), answer(7, {"messageId": "m"}))
    told = driver.agent_exits().client
    assert story(told) == ["idle error"]
    assert told[0]["params"]["_meta"] == {"acp-proxy": {"synthetic": True}}


def test_open_requests_fail_and_questions_are_withdrawn() -> None:
    driver = opened(both_v1)
    driver.client_sends(prompt(7), call(8, "session/list", {}))
    driver.agent_sends(ask(90, "k"))
    assert sorted(story(driver.agent_exits().client)) == ["error 7 -32603", "error 8 -32603", "withdraw 90"]


# ---------------------------------------------------------------- the way back


def test_the_first_greeting_is_said_again_and_its_answer_kept(make: Callable[..., Driver]) -> None:
    driver = opened(make)
    first = next(body for body in driver.outputs.agent if body["method"] == "initialize")
    driver.agent_exits()
    again = driver.agent_returns().agent
    assert [body["params"] for body in again] == [first["params"]]
    assert again[0]["id"] != first["id"]
    told = driver.agent_sends(answer(again[0]["id"], result_of(make))).client
    assert not any("result" in body for body in told)


@pytest.mark.parametrize(("agent", "method"), [(LOADING, "session/load"), (RESUMING, "session/resume")])
@pytest.mark.parametrize("mode", [both_v1, bridged])
def test_sessions_are_taken_up_unseen(mode: Callable[..., Driver], agent: Json, method: str) -> None:
    driver = opened(mode, agent=agent)
    driver.agent_exits()
    said = greet(driver, v1_result(**agent))
    assert said.client == []
    assert [(body["method"], body["params"]) for body in said.agent] == [
        (method, {"cwd": "/p", "mcpServers": [], "sessionId": "s1"})
    ]
    assert driver.agent_sends(message("old"), update("current_mode_update", currentModeId="x")).client == []
    told = driver.agent_sends(answer(said.agent[0]["id"], {})).client
    assert all(tell(body) == "notice" for body in told)
    driver.prompt(9)
    assert "agent_message_chunk" in story(driver.agent_sends(message("new")).client)


def test_a_v2_session_is_resumed() -> None:
    driver = opened(both_v2)
    driver.agent_exits()
    said = greet(driver, V2_RESULT)
    assert [body["method"] for body in said.agent] == ["session/resume"]
    assert driver.agent_sends(update("state_update", state="idle")).client == []
    told = driver.agent_sends(answer(said.agent[0]["id"], {})).client
    assert [body["params"]["update"]["severity"] for body in told] == ["warning"]


@pytest.mark.parametrize(
    ("opening", "kept"),
    [
        (("session/load", {"sessionId": "s2", "cwd": "/q", "mcpServers": []}, {}), ["s1", "s2"]),
        (("session/load", {"sessionId": "s2", "cwd": "/q", "mcpServers": []}, None), ["s1"]),
        (("session/close", {"sessionId": "s1"}, {}), []),
        (("session/close", {"sessionId": "s1"}, None), ["s1"]),
    ],
)
def test_only_what_is_open_is_taken_up(opening: tuple[str, Json, Json | None], kept: list[str]) -> None:
    driver = opened(both_v1, agent=LOADING)
    method, params, result = opening
    driver.client_sends(call(5, method, params))
    driver.agent_sends(answer(5, result) if result is not None else failure(5, -32603))
    driver.agent_exits()
    assert [body["params"]["sessionId"] for body in greet(driver, v1_result(**LOADING)).agent] == kept


def test_what_the_client_had_set_is_told_as_it_is_now() -> None:
    driver = opened(both_v1, agent=LOADING)
    driver.agent_exits()
    said = greet(driver, v1_result(**LOADING))
    result = {"modes": {"currentModeId": "ask", "availableModes": []}, "configOptions": []}
    told = driver.agent_sends(answer(said.agent[0]["id"], result)).client
    assert story(told) == ["current_mode_update", "config_option_update"]


# ---------------------------------------------------------------- notices


def test_a_v1_client_hears_a_notice_only_if_it_wants_them() -> None:
    for client, count in ((None, 0), (NOTICES, 1)):
        driver = opened(both_v1, agent=LOADING, client=client)
        driver.agent_exits()
        told = come_back(driver, v1_result(**LOADING)).client
        assert story(told) == ["notice"] * count


def test_a_lost_session_is_told_and_unknown_from_then_on() -> None:
    driver = opened(bridged)
    driver.agent_exits()
    told = greet(driver).client
    assert [body["params"]["update"]["severity"] for body in told] == ["error"]
    assert "error 9 -32002" in story(driver.prompt(9).client)
    assert driver.client_sends(call(10, "session/new", {"cwd": "/p", "mcpServers": []})).agent != []


def test_what_is_said_of_a_lost_session() -> None:
    driver = opened(both_v1)
    driver.agent_exits()
    greet(driver)
    assert story(driver.prompt(9).client) == ["error 9 -32002"]
    assert driver.client_sends(cancel()).agent == []
    load = call(10, "session/load", {"sessionId": "s1", "cwd": "/p", "mcpServers": []})
    assert driver.client_sends(load).agent == [load]
    assert driver.client_sends(call(11, "session/close", {"sessionId": "s1"})).client == [answer(11, {})]


def test_a_session_loaded_again_is_lost_no_more() -> None:
    driver = opened(both_v1)
    driver.agent_exits()
    greet(driver)
    driver.client_sends(call(10, "session/load", {"sessionId": "s1", "cwd": "/p", "mcpServers": []}))
    driver.agent_sends(answer(10, {}))
    assert driver.prompt(11).agent == [prompt(11)]


def test_a_session_the_agent_does_not_find_again_is_lost() -> None:
    driver = opened(both_v1, agent=LOADING)
    driver.agent_exits()
    said = greet(driver, v1_result(**LOADING))
    driver.agent_sends(failure(said.agent[0]["id"], -32002))
    assert story(driver.prompt(9).client) == ["error 9 -32002"]


# ---------------------------------------------------------------- meanwhile


def test_requests_wait_until_the_agent_is_back(make: Callable[..., Driver]) -> None:
    driver = opened(make)
    driver.agent_exits()
    opening = call(9, "session/new", {"cwd": "/q", "mcpServers": []})
    assert driver.client_sends(opening).agent == []
    come_back(driver, result_of(make))
    sent = [body for body in driver.outputs.agent if body.get("params", {}).get("cwd") == "/q"]
    assert [body["method"] for body in sent] == ["session/new"]


def test_a_prompt_waits_for_its_session() -> None:
    driver = opened(both_v1, agent=LOADING)
    driver.agent_exits()
    driver.prompt(9)
    said = greet(driver, v1_result(**LOADING))
    assert [body["method"] for body in said.agent] == ["session/load"]
    assert driver.agent_sends(answer(said.agent[0]["id"], {})).agent == [prompt(9)]


def test_no_request_waits_for_ever() -> None:
    driver = opened(both_v1)
    driver.agent_exits()
    driver.client_sends(call(9, "session/list", {}))
    assert driver.advance(29).lines == []
    assert story(driver.advance(2).client) == ["error 9 -32603"]
    assert "session/list #9" not in story(greet(driver).agent)


def test_not_too_many_wait() -> None:
    driver = opened(both_v1, max_held=1)
    driver.agent_exits()
    driver.client_sends(call(9, "session/list", {}))
    assert story(driver.client_sends(call(10, "session/list", {})).client) == ["error 10 -32603"]


def test_what_waits_can_be_withdrawn() -> None:
    driver = opened(both_v1, agent=LOADING)
    driver.agent_exits()
    driver.client_sends(call(9, "session/list", {}), prompt(10), prompt(11, session="s2"))
    assert story(driver.client_sends(withdraw(9)).client) == ["error 9 -32800"]
    assert driver.client_sends(cancel()).client == [answer(10, {"stopReason": "cancelled"})]
    come_back(driver, v1_result(**LOADING))
    assert [b["method"] for b in driver.outputs.agent if b["id"] in (9, 10, 11)] == ["session/prompt"]


def test_notifications_wait_in_their_place() -> None:
    driver = opened(both_v1)
    driver.agent_exits()
    hint = note("_x/hint", {})
    driver.client_sends(hint, call(9, "session/list", {}))
    assert [tell(body) for body in greet(driver).agent] == ["_x/hint", "session/list #9"]


# ---------------------------------------------------------------- answers to the old one


@pytest.mark.parametrize("mode", [both_v1, both_v2, bridged])
def test_an_answer_to_the_old_process_reaches_nobody(mode: Callable[..., Driver]) -> None:
    driver = opened(mode)
    driver.prompt(7)
    if mode is both_v2:
        params = {
            "sessionId": "s1",
            "title": "?",
            "options": [],
            "subject": {"type": "command", "command": "x"},
        }
        driver.agent_sends(call(90, "session/request_permission", params))
    else:
        driver.agent_sends(ask(90, "k"))
    own = driver.client_id("session/request_permission")
    driver.agent_exits()
    come_back(driver, result_of(mode))
    assert driver.client_sends(selected(own)).agent == []


@pytest.mark.parametrize("mode", [both_v1, bridged])
def test_a_late_yes_is_not_taken_for_one_to_the_new_process(mode: Callable[..., Driver]) -> None:
    driver = opened(mode, agent=LOADING)
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    old = driver.client_id("session/request_permission")
    driver.agent_exits()
    come_back(driver, v1_result(**LOADING))
    driver.prompt(9)
    driver.agent_sends(ask(90, "delete everything"))
    new = driver.client_id("session/request_permission")
    assert new != old
    assert driver.client_sends(selected(old, "ok")).agent == []
    assert driver.client_sends(dismissed(new)).agent == [dismissed(90)]


# ---------------------------------------------------------------- ways that fail


def test_another_death_on_the_way_starts_another() -> None:
    driver = opened(both_v1, agent=LOADING)
    driver.agent_exits()
    driver.client_sends(call(9, "session/list", {}))
    driver.agent_returns()
    said = driver.agent_exits()
    assert (story(said.client), said.restarts) == (["error 9 -32603"], 1)
    come_back(driver, v1_result(**LOADING))
    assert driver.prompt(10).agent == [prompt(10)]


def test_a_death_while_idle_is_none_of_a_turn_that_waits() -> None:
    driver = opened(both_v1, restart="idle")
    driver.agent_exits()
    driver.prompt(9)
    driver.agent_returns()
    assert driver.agent_exits().restarts == 1


@pytest.mark.parametrize(
    "reply", [lambda token: failure(token, -32603), lambda token: answer(token, {"protocolVersion": 7})]
)
def test_an_agent_that_is_another_now_is_no_use(reply: Callable[[Any], Json]) -> None:
    driver = opened(both_v1, restart_limit=2)
    driver.agent_exits()
    driver.client_sends(call(9, "session/list", {}))
    said = driver.agent_sends(reply(driver.agent_returns().agent[0]["id"]))
    assert (story(said.client), said.restarts) == (["error 9 -32603"], 1)
    said = driver.agent_sends(reply(driver.agent_returns().agent[0]["id"]))
    assert (said.restarts, said.closed) == (0, [Role.AGENT])


def test_an_agent_that_does_not_greet_back_is_replaced() -> None:
    driver = opened(both_v1)
    driver.agent_exits()
    driver.agent_returns()
    assert driver.advance(29).restarts == 0
    assert driver.advance(2).restarts == 1


def test_a_session_that_is_not_back_in_time_is_lost() -> None:
    driver = opened(both_v1, agent=LOADING)
    driver.agent_exits()
    said = greet(driver, v1_result(**LOADING))
    driver.advance(31)
    assert story(driver.prompt(9).client) == ["error 9 -32002"]
    assert driver.agent_sends(answer(said.agent[0]["id"], {})).lines == []


# ---------------------------------------------------------------- replaced though it runs


def test_a_stalled_agent_is_replaced_and_comes_back() -> None:
    driver = opened(both_v1, agent=LOADING, restart="never", stall_after=60.0, stall_action=("restart",))
    driver.prompt(7)
    said = driver.advance(61)
    assert (story(said.client), said.delays) == (["error 7 -32603"], [0.2])
    come_back(driver, v1_result(**LOADING))
    assert driver.prompt(8).agent == [prompt(8)]


def test_two_stalls_at_once_are_one_restart() -> None:
    driver = opened(both_v1, restart="never", stall_after=60.0, stall_action=("restart",))
    driver.client_sends(prompt(7), prompt(8, session="s2"))
    said = driver.advance(61)
    assert (sorted(story(said.client)), said.restarts) == (["error 7 -32603", "error 8 -32603"], 1)


def test_chunks_pass_whole_again_once_all_is_well() -> None:
    driver = opened(both_v1, agent=LOADING)
    chunk = line(message("x")) + b"\n"
    assert driver.relay.recognize(chunk, 0) == len(chunk)
    driver.agent_exits()
    assert driver.relay.recognize(chunk, 0) == 0
    come_back(driver, v1_result(**LOADING))
    assert driver.relay.recognize(chunk, 0) == len(chunk)


def test_a_prompt_held_for_the_new_process_is_not_acknowledged_by_the_clock() -> None:
    driver = opened(bridged, LOADING, ack_timeout=5.0)
    driver.agent_exits()
    driver.prompt(7)
    assert story(driver.advance(12).client) == []
    came = come_back(driver, v1_result(**LOADING))
    assert "session/prompt" in [body["method"] for body in came.agent]
    assert "answer 7" in story(driver.advance(5).client)


def test_the_new_process_may_withdraw_what_it_asks() -> None:
    driver = opened(bridged, LOADING)
    driver.agent_exits()
    come_back(driver, v1_result(**LOADING))
    driver.prompt(7)
    driver.agent_sends(message())
    asked = driver.agent_sends(ask(90)).client
    (question,) = [body for body in asked if body.get("method") == "session/request_permission"]
    assert story(driver.agent_sends(withdraw(90)).client) == [f"withdraw {question['id']}"]
    said = driver.client_sends(dismissed(question["id"]))
    assert [body["id"] for body in said.agent] == [90]
