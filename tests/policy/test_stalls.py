"""Turns that stall or take too long, on a clock that only the test moves (V46, BR-01, BR-28, BR-40)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.relay.events import DeadlinePassed
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
    form,
    message,
    selected,
    story,
    tool,
    tool_update,
    update,
    usage,
    withdraw,
)

PERMISSION = "session/request_permission"
MODES = {"v1": both_v1, "bridged": bridged}


@pytest.fixture(params=MODES)
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = MODES[request.param]
    return found


def test_silence_in_an_open_turn_is_noted_once(make: Callable[..., Driver]) -> None:
    driver = make(stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    assert driver.advance(59).rules == []
    said = driver.advance(2)
    assert (said.rules, said.findings[0].session) == (["V46"], "s1")
    assert said.client == []
    assert driver.advance(1000).rules == []


@pytest.mark.parametrize("heard", [message(), usage(), tool("k", "completed"), tool_update("k", "failed")])
def test_anything_heard_puts_it_off(make: Callable[..., Driver], heard: dict[str, Any]) -> None:
    driver = make(stall_after=60.0)
    driver.prompt(7)
    for _ in range(5):
        driver.advance(50)
        driver.agent_sends(heard)
    assert driver.outputs.rules == []
    assert driver.advance(61).rules == ["V46"]


@pytest.mark.parametrize("request_", [ask(90, "k"), form(91)])
def test_a_waiting_person_is_never_a_stall(make: Callable[..., Driver], request_: dict[str, Any]) -> None:
    client = {"client": {"elicitation": {"form": {}}}} if make is bridged else {}
    driver = make(stall_after=60.0, **client)
    driver.prompt(7)
    driver.agent_sends(message(), request_)
    assert driver.advance(7 * 24 * 3600).rules == []


def test_an_open_tool_is_no_stall(make: Callable[..., Driver]) -> None:
    driver = make(stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"))
    assert driver.advance(3600).rules == []
    driver.agent_sends(tool_update("k", "completed"))
    assert driver.advance(121).rules == ["V46"]


def test_an_idle_session_does_not_stall(make: Callable[..., Driver]) -> None:
    driver = make(stall_after=60.0, turn_timeout=60.0)
    driver.prompt(7)
    driver.ends()
    assert driver.advance(3600).rules == []


def test_a_turn_over_its_limit_is_noted_whatever_it_does(make: Callable[..., Driver]) -> None:
    driver = make(turn_timeout=100.0)
    driver.prompt(7)
    for _ in range(9):
        driver.advance(11)
        driver.agent_sends(message())
    assert driver.outputs.rules == []
    assert driver.advance(2).rules == ["V46"]
    assert driver.advance(1000).rules == []
    driver.ends()
    driver.prompt(8)
    assert driver.advance(101).rules == ["V46"]


def test_nothing_is_timed_by_default(make: Callable[..., Driver]) -> None:
    driver = make()
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    driver.client_sends(selected(driver.client_id(PERMISSION)), cancel())
    assert driver.deadline is None
    assert driver.advance(10**6).commands == []


@pytest.mark.parametrize("key", ["stall_after", "turn_timeout", "tool_timeout"])
def test_the_client_is_not_told(make: Callable[..., Driver], key: str) -> None:
    driver = make(**{key: 60.0})
    driver.prompt(7)
    driver.agent_sends(message(), *([tool("k", "in_progress")] if key == "tool_timeout" else []))
    said = driver.advance(61)
    assert (said.rules, said.findings[0].action, said.lines) == (["V46"], "noted", [])
    assert said.findings[0].frames != ()


# ---------------------------------------------------------------- what a person does


@pytest.mark.parametrize("request_", [ask(90, "k"), form(91), call(92, "_x/ask", {"sessionId": "s1"})])
def test_no_clock_runs_while_somebody_is_asked(make: Callable[..., Driver], request_: Json) -> None:
    client = {"client": {"elicitation": {"form": {}}}} if make is bridged else {}
    driver = make(stall_after=60.0, turn_timeout=100.0, tool_timeout=80.0, **client)
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"))
    driver.advance(50)
    driver.agent_sends(request_)
    assert driver.advance(100_000).rules == []
    driver.client_sends(answer(driver.client_id(request_["method"]), {"action": "cancel"}))
    assert driver.advance(29).rules == []
    assert driver.advance(2).rules == ["V46"], "the tool has run for 80 s now"
    assert driver.advance(20).rules == ["V46"], "the turn has run for 100 s now"


def test_one_of_two_answered_leaves_the_clocks_stopped() -> None:
    driver = both_v1(turn_timeout=100.0)
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"), ask(91, "l"))
    driver.client_sends(selected(90))
    assert driver.advance(1000).rules == []
    driver.agent_sends(withdraw(91))
    assert driver.advance(101).rules == ["V46"]


def test_a_question_left_open_by_an_earlier_turn_is_no_excuse() -> None:
    driver = both_v1(stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    driver.ends()
    driver.prompt(8)
    assert driver.advance(61).rules == ["V46"]


# ---------------------------------------------------------------- tools


def test_a_tool_over_its_limit_is_noted(make: Callable[..., Driver]) -> None:
    driver = make(tool_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(tool("k", "pending"))
    driver.advance(40)
    driver.agent_sends(tool_update("k", "in_progress"), tool("l", "in_progress"))
    assert driver.advance(21).rules == ["V46"]
    driver.agent_sends(tool_update("l", "failed"))
    assert driver.advance(1000).rules == []


def test_a_tool_the_turn_left_behind_is_not_timed(make: Callable[..., Driver]) -> None:
    driver = make(tool_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"))
    driver.ends()
    assert driver.advance(1000).rules == []


def test_content_of_a_finished_tool_does_not_open_it_again(make: Callable[..., Driver]) -> None:
    driver = make(stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"), tool_update("k", "completed"))
    driver.agent_sends(update("tool_call_update", toolCallId="k", title="done"))
    assert driver.advance(61).rules == ["V46"]


def test_machine_work_is_no_stall_but_has_a_ceiling() -> None:
    driver = both_v1(stall_after=60.0, turn_timeout=300.0)
    driver.prompt(7)
    driver.agent_sends(call(92, "terminal/wait_for_exit", {"sessionId": "s1", "terminalId": "t"}))
    assert driver.advance(299).rules == []
    assert driver.advance(2).rules == ["V46"]


# ---------------------------------------------------------------- agents that report their states


def state(name: str, **more: Any) -> Json:
    return update("state_update", state=name, **more)


def native(**options: Any) -> Driver:
    driver = both_v2(**options)
    driver.prompt(7)
    driver.agent_sends(state("running"), answer(7, {"messageId": "m"}))
    return driver


def test_reported_work_that_goes_quiet_is_noted() -> None:
    driver = native(stall_after=60.0)
    assert driver.advance(61).rules == ["V46"]


def test_reported_waiting_is_no_stall_even_without_a_request() -> None:
    driver = native(stall_after=60.0, turn_timeout=100.0)
    driver.agent_sends(state("requires_action"))
    assert "V46" not in driver.advance(10_000).rules
    driver.agent_sends(state("running"))
    assert driver.advance(61).rules == ["V46"]


def test_reported_idle_ends_the_clocks() -> None:
    driver = native(stall_after=60.0, turn_timeout=60.0, tool_timeout=60.0)
    driver.agent_sends(state("idle", stopReason="end_turn"))
    assert driver.deadline is None


def test_work_the_agent_began_itself_is_watched() -> None:
    driver = native(turn_timeout=60.0)
    driver.agent_sends(state("idle", stopReason="end_turn"))
    driver.advance(50)
    driver.agent_sends(state("running"))
    assert driver.advance(59).rules == []
    assert driver.advance(2).rules == ["V46"]


# ---------------------------------------------------------------- ladders


def test_the_first_step_is_a_cancel_to_the_agent(make: Callable[..., Driver]) -> None:
    driver = make(stall_after=60.0, stall_action=("cancel",))
    driver.prompt(7)
    driver.agent_sends(message())
    said = driver.advance(61)
    assert (said.agent, said.client) == ([cancel()], [])
    assert [(finding.rule, finding.action) for finding in said.findings] == [("V46", "repaired")]
    assert driver.advance(1000).lines == []
    assert story(driver.ends("cancelled").client)[-1] in ("answer 7", "idle cancelled")


def test_prompts_that_wait_in_the_bridge_are_not_cancelled_with_the_turn() -> None:
    driver = bridged(stall_after=60.0, stall_action=("cancel",))
    driver.prompt(7)
    driver.agent_sends(message())
    driver.prompt(8, "next")
    driver.advance(61)
    assert "session/prompt" in story(driver.ends("cancelled").agent)[0]


def test_one_cancel_for_many_breaches() -> None:
    driver = both_v1(tool_timeout=60.0, turn_timeout=60.0, stall_action=("cancel", "restart"))
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"), tool("l", "in_progress"))
    said = driver.advance(61)
    assert (said.rules, said.agent, said.restarts) == (["V46"] * 3, [cancel()], 0)


def test_restart_waits_for_the_cancel_to_be_confirmed() -> None:
    driver = both_v1(stall_after=60.0, stall_action=("cancel", "restart"), cancel_timeout=10.0)
    driver.prompt(7)
    assert driver.advance(61).agent == [cancel()]
    said = driver.advance(10)
    assert (story(said.client), said.restarts) == (["answer 7"], 1)


def test_restart_waits_a_while_where_no_time_is_set() -> None:
    driver = both_v1(stall_after=60.0, stall_action=("cancel", "restart"))
    driver.prompt(7)
    assert driver.advance(61).agent == [cancel()]
    assert driver.advance(13).commands == []
    assert driver.advance(2).restarts == 1


@pytest.mark.parametrize("times", [{}, {"cancel_timeout": 10.0}])
def test_no_restart_behind_a_cancel_that_was_confirmed(
    make: Callable[..., Driver], times: dict[str, float]
) -> None:
    driver = make(stall_after=60.0, stall_action=("cancel", "restart"), **times)
    driver.prompt(7)
    driver.agent_sends(message())
    driver.advance(61)
    driver.ends("cancelled")
    assert driver.advance(1000).restarts == 0


def test_restart_alone_does_not_ask_first(make: Callable[..., Driver]) -> None:
    driver = make(stall_after=60.0, stall_action=("restart",))
    driver.prompt(7)
    driver.agent_sends(message())
    said = driver.advance(61)
    assert (said.agent, said.restarts) == ([], 1)
    assert story(said.client)[-1] in ("error 7 -32603", "idle error")


def test_a_clients_cancel_that_nobody_confirms_restarts_too() -> None:
    driver = both_v1(stall_action=("cancel", "restart"), cancel_timeout=10.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    said = driver.advance(11)
    assert (story(said.client), said.restarts) == (["answer 7"], 1)


def test_the_clocks_end_with_client_and_agent(make: Callable[..., Driver]) -> None:
    for end in (Driver.client_leaves, Driver.agent_exits):
        driver = make(stall_after=60.0, stall_action=("cancel",))
        driver.prompt(7)
        driver.agent_sends(message())
        end(driver)
        assert driver.advance(1000).lines == []


@pytest.mark.parametrize("status", [[], {}, 5, None, True])
def test_a_status_of_no_use_is_none(make: Callable[..., Driver], status: Any) -> None:
    driver = make(stall_after=60.0, tool_timeout=30.0)
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"), update("tool_call_update", toolCallId="k", status=status))
    assert driver.advance(29).rules == []
    assert driver.advance(2).rules == ["V46"]


@pytest.mark.parametrize("after", [0.1, 0.3, 0.5, 3.3, 30.0, 300.0])
def test_an_alarm_put_off_always_moves_on(after: float) -> None:
    """What is left of a wait may round to nothing, and an alarm at the present moment would ring for ever."""
    for part in range(17):
        driver = both_v1(stall_after=after)
        driver.prompt(7)
        driver.at += after * part / 17
        driver.agent_sends(message())
        rung = 0
        while driver.deadline is not None:
            driver.at, driver.deadline = driver.deadline, None
            driver._handle(DeadlinePassed(driver.at))
            rung += 1
            assert rung < 5
        assert driver.outputs.rules == ["V46"]


@pytest.mark.parametrize("mode", ["enforce", "strict"])
def test_the_clocks_go_on_when_a_question_was_answered_in_the_clients_name(mode: str) -> None:
    """The answer of V40 is given nearer the agent than the clocks stand."""
    driver = both_v1(lifecycle=mode, stall_after=3.0, turn_timeout=9.0, stall_action=("cancel", "restart"))
    driver.prompt(7)
    driver.agent_sends(ask(90))
    driver.client_sends(cancel())
    said = driver.advance(600)
    assert "V46" in said.rules
    assert said.restarts == 1
