"""Prompts while a turn runs, between peers of one version (RA-04, LC-33, LC-40, LC-42)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from relay_driver import (
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
    form,
    message,
    note,
    prompt,
    selected,
    story,
    update,
    withdraw,
)

MODES = {"v1": both_v1, "v2": both_v2}


@pytest.fixture(params=MODES)
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = MODES[request.param]
    return found


def state(name: str, stop: str | None = None, session: str = "s1") -> Json:
    return update("state_update", session, state=name, **({"stopReason": stop} if stop else {}))


def begin(driver: Driver, request_id: Any = 7, session: str = "s1") -> None:
    """A turn begins, in the agent's way."""
    driver.prompt(request_id, session=session)
    if driver.relay.engine.version.value == 2:
        driver.agent_sends(state("running", session=session), answer(request_id, {"messageId": "m"}))


def end(driver: Driver, request_id: Any = 7, reason: str = "end_turn") -> Any:
    """It ends, in the agent's way."""
    if driver.relay.engine.version.value == 2:
        return driver.agent_sends(state("idle", reason))
    return driver.agent_sends(answer(request_id, {"stopReason": reason}))


def open_turn(make: Callable[..., Driver], busy: str, **options: Any) -> Driver:
    driver = make(busy=busy, **options)
    begin(driver)
    return driver


# ---------------------------------------------------------------- queue


def test_by_default_nothing_is_held(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "pass")
    assert driver.prompt(8).agent == [prompt(8)]


def test_a_queued_prompt_follows_the_end_of_the_turn(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    assert driver.prompt(8, "later").lines == []
    said = end(driver)
    assert len(said.client) >= 1
    assert said.both[-1] == "A session/prompt #8"
    assert said.agent == [prompt(8, "later")]


def test_the_bytes_of_what_is_held_are_not_touched() -> None:
    driver = open_turn(both_v1, "queue")
    raw = b'{ "id":8,"method":"session/prompt","jsonrpc":"2.0","params":{"sessionId":"s1","x":1.0,"prompt":[]} }'
    driver.lines(Role.CLIENT, raw)
    assert raw in end(driver).raw(Role.AGENT)


def test_first_in_first_out_one_at_a_time(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    driver.client_sends(prompt(8, "b"), prompt(9, "c"))
    assert end(driver).agent == [prompt(8, "b")]
    if make is both_v2:
        assert driver.agent_sends(state("running"), answer(8, {"messageId": "m8"})).agent == []
    assert end(driver, 8).agent == [prompt(9, "c")]


def test_sessions_do_not_wait_for_each_other(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    assert driver.prompt(8, session="s2").agent == [prompt(8, session="s2")]


def test_an_idle_session_takes_a_prompt_at_once(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    end(driver)
    assert driver.prompt(8).agent == [prompt(8)]


@pytest.mark.parametrize(
    "last_word",
    [
        cancel(),
        call(30, "session/close", {"sessionId": "s1"}),
        call(30, "session/delete", {"sessionId": "s1"}),
    ],
)
def test_a_cancel_or_close_answers_what_is_held(make: Callable[..., Driver], last_word: Json) -> None:
    driver = open_turn(make, "queue")
    driver.prompt(8)
    said = driver.client_sends(last_word)
    assert story(said.client) == ["error 8 -32800"]
    assert said.agent == [last_word]
    assert "session/prompt #8" not in story(end(driver).agent)


def test_a_withdrawn_prompt_is_answered_here(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    driver.prompt(8)
    said = driver.client_sends(withdraw(8))
    assert (story(said.client), said.agent) == (["error 8 -32800"], [])
    assert driver.client_sends(withdraw(7)).agent == [withdraw(7)]
    assert end(driver).agent == []


def test_too_many_are_refused(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue", max_held=1)
    driver.prompt(8)
    assert story(driver.prompt(9).client) == ["error 9 -32603"]


def test_a_prompt_behind_a_failed_turn_runs(make: Callable[..., Driver]) -> None:
    driver = make(busy="queue")
    driver.prompt(7)
    driver.prompt(8)
    assert driver.agent_sends(failure(7, -32603)).agent == [prompt(8)]


def test_held_prompts_fail_with_the_agent(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    driver.prompt(8)
    told = story(driver.agent_exits().client)
    assert told.count("error 8 -32603") == 1


def test_held_prompts_are_not_sent_for_a_client_that_left(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    driver.prompt(8)
    driver.client_leaves()
    assert "session/prompt #8" not in story(end(driver).agent)


# ---------------------------------------------------------------- what a v2 agent reports


def test_a_v2_prompt_not_taken_yet_is_a_turn() -> None:
    driver = both_v2(busy="queue")
    driver.prompt(7)
    assert driver.prompt(8).agent == []


def test_an_earlier_idle_does_not_end_a_prompt_just_sent() -> None:
    driver = open_turn(both_v2, "queue")
    end(driver)
    driver.prompt(8)
    driver.prompt(9)
    assert driver.agent_sends(state("idle")).agent == []
    assert driver.agent_sends(state("running"), answer(8, {"messageId": "m8"})).agent == []
    assert end(driver).agent == [prompt(9)]


def test_work_that_is_over_before_the_prompt_is_answered() -> None:
    driver = open_turn(both_v2, "queue")
    end(driver)
    driver.prompt(8)
    driver.prompt(9)
    assert driver.agent_sends(state("running"), state("idle", "end_turn")).agent == []
    assert driver.agent_sends(answer(8, {"messageId": "m8"})).agent == [prompt(9)]


def test_work_the_agent_began_itself_is_waited_for() -> None:
    driver = both_v2(busy="queue")
    driver.agent_sends(state("running"))
    assert driver.prompt(8).agent == []
    assert driver.agent_sends(state("idle")).agent == [prompt(8)]


def test_an_agent_that_reports_no_states_is_not_waited_for_for_ever() -> None:
    driver = both_v2(busy="queue")
    driver.prompt(7)
    driver.prompt(8)
    assert driver.agent_sends(answer(7, {"messageId": "m"})).agent == [prompt(8)]


# ---------------------------------------------------------------- reject


def test_a_rejected_prompt_never_reaches_the_agent(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "reject")
    said = driver.prompt(8)
    assert (story(said.client), said.agent) == (["error 8 -32600"], [])
    end(driver)
    assert driver.prompt(9).agent == [prompt(9)]


# ---------------------------------------------------------------- steer


def test_a_steering_prompt_cancels_and_follows(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "steer")
    assert driver.prompt(8, "rather this").agent == [cancel()]
    assert end(driver, reason="cancelled").agent == [prompt(8, "rather this")]


def test_one_turn_is_cancelled_once(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "steer")
    driver.prompt(8)
    assert driver.prompt(9).agent == []
    assert story(end(driver, reason="cancelled").agent) == ["session/prompt #8"]


def test_steering_in_an_idle_session_cancels_nothing(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "steer")
    end(driver)
    assert driver.prompt(8).agent == [prompt(8)]


@pytest.mark.parametrize(
    ("asked", "answered"), [(ask(90, "k"), dismissed(90)), (form(90), answer(90, {"action": "cancel"}))]
)
def test_what_a_v1_turn_asked_is_ended_with_it(asked: Json, answered: Json) -> None:
    """The client did not cancel: it would go on asking, and many agents wait for the answer (RA-10)."""
    driver = open_turn(both_v1, "steer")
    driver.agent_sends(asked)
    said = driver.prompt(8)
    assert said.agent == [cancel(), answered]
    assert said.client == [withdraw(90)]
    assert driver.client_sends(selected(90)).agent == []


def test_a_late_yes_does_not_approve_what_the_next_turn_asks() -> None:
    driver = open_turn(both_v1, "steer")
    driver.agent_sends(ask(90, "k"))
    driver.prompt(8)
    end(driver, reason="cancelled")
    asked = driver.agent_sends(ask(90, "l")).client[0]
    assert driver.client_sends(selected(90)).agent == []
    assert driver.client_sends(selected(asked["id"], "no")).agent == [selected(90, "no")]


def test_a_v2_agent_withdraws_what_it_asked_itself() -> None:
    driver = open_turn(both_v2, "steer")
    driver.agent_sends(ask(90, "k"))
    said = driver.prompt(8)
    assert (said.agent, said.client) == ([cancel()], [])


# ---------------------------------------------------------------- elsewhere


@pytest.mark.parametrize("busy", ["reject", "steer"])
def test_the_bridge_holds_prompts_for_reasons_of_its_own(busy: str) -> None:
    driver = bridged(busy=busy)
    driver.prompt(7)
    driver.agent_sends(message())
    assert driver.prompt(8).lines == []


def test_other_traffic_passes(make: Callable[..., Driver]) -> None:
    driver = open_turn(make, "queue")
    driver.prompt(8)
    listing = call(31, "session/list", {})
    mode = note("_x/hint", {"sessionId": "s1"})
    assert driver.client_sends(listing, mode).agent == [listing, mode]
