"""Answers in a silent peer's name, on a clock that only the test moves (BR-33, BR-37; lifecycle §2.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.filters.patience import rejection
from relay_driver import (
    Driver,
    answer,
    ask,
    both_v1,
    bridged,
    call,
    cancel,
    dismissed,
    form,
    message,
    prompt,
    selected,
    story,
    tool,
    tool_update,
    usage,
    withdraw,
)

PERMISSION = "session/request_permission"
MODES = {"v1": both_v1, "bridged": bridged}


@pytest.fixture(params=MODES)
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = MODES[request.param]
    return found


def option(kind: Any, option_id: Any = "o") -> dict[str, Any]:
    return {"optionId": option_id, "name": "n", "kind": kind}


# ---------------------------------------------------------------- rejecting


def test_a_reject_option_is_chosen_once_before_always() -> None:
    options = [option("allow_once", "a"), option("reject_always", "b"), option("reject_once", "c")]
    assert rejection(options)["outcome"] == {"outcome": "selected", "optionId": "c"}
    assert rejection(options[:2])["outcome"] == {"outcome": "selected", "optionId": "b"}


@pytest.mark.parametrize(
    "options",
    [
        [],
        None,
        "reject_once",
        [option("allow_once"), option("allow_always")],
        [option("vendor_reject")],
        [option("Reject_Once")],
        [option("reject_once", 5)],
        [option(["reject_once"])],
        [None, 5, {}],
    ],
)
def test_without_one_it_is_cancelled(options: Any) -> None:
    assert rejection(options) == {"outcome": {"outcome": "cancelled"}}


kinds = st.sampled_from(["allow_once", "allow_always", "reject_once", "reject_always", "x", None, 5])


@given(st.lists(st.builds(option, kinds, st.sampled_from(["a", "b", "c", None])), max_size=5))
def test_an_allow_option_is_never_chosen(options: list[dict[str, Any]]) -> None:
    outcome = rejection(options)["outcome"]
    if outcome["outcome"] == "selected":
        chosen = [each for each in options if each["optionId"] == outcome["optionId"]]
        assert any(each["kind"] in ("reject_once", "reject_always") for each in chosen)


# ---------------------------------------------------------------- permissions


def waiting(make: Callable[..., Driver], **options: Any) -> Driver:
    driver = make(permission_timeout=30.0, **options)
    driver.prompt(7)
    driver.agent_sends(message(), ask(90, "k"))
    return driver


def test_a_permission_left_unanswered_is_rejected_and_withdrawn(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    own = driver.client_id(PERMISSION)
    assert driver.advance(29.9).lines == []
    said = driver.advance(0.2)
    assert said.agent == [selected(90, "no")]
    assert withdraw(own) in said.client
    assert driver.client_sends(selected(own, "ok")).agent == []
    assert driver.advance(1000).lines == []


def test_an_answer_in_time_stops_the_clock(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    driver.advance(29)
    assert driver.client_sends(selected(driver.client_id(PERMISSION))).agent == [selected(90)]
    assert driver.advance(1000).lines == []


def test_each_permission_has_its_own_clock(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    driver.advance(20)
    driver.agent_sends(ask(91, "l"))
    assert driver.advance(15).agent == [selected(90, "no")]
    assert driver.client_sends(selected(driver.client_id(PERMISSION))).agent == [selected(91)]


def test_a_permission_the_agent_withdrew_is_not_rejected(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    driver.agent_sends(withdraw(90))
    assert driver.advance(1000).lines == []
    assert driver.client_sends(dismissed(driver.client_id(PERMISSION))).agent == [dismissed(90)]


def test_a_permission_that_a_cancel_answered_is_not_rejected_again() -> None:
    driver = waiting(bridged)
    driver.client_sends(cancel())
    assert driver.advance(1000).lines == []


def test_a_permission_answered_for_a_client_that_left_is_not_answered_again(
    make: Callable[..., Driver],
) -> None:
    driver = make(permission_timeout=30.0)
    driver.agent_sends(ask(90, "k"))
    assert driver.client_leaves().agent == [dismissed(90)]
    assert driver.advance(1000).lines == []


def test_an_id_used_again_is_a_new_question() -> None:
    driver = waiting(both_v1)
    driver.advance(31)
    driver.agent_sends(ask(90, "k"))
    assert driver.client_sends(selected(90)).agent == [selected(90)]


def test_elicitations_and_other_requests_wait_for_ever() -> None:
    driver = both_v1(permission_timeout=30.0)
    driver.prompt(7)
    driver.agent_sends(form(91), call(92, "_x/ask", {}))
    assert driver.advance(1000).lines == []


def test_the_state_follows_a_rejection() -> None:
    driver = waiting(bridged)
    assert "running" in story(driver.advance(31).client)
    assert story(driver.ends().client) == ["idle end_turn"]


# ---------------------------------------------------------------- cancel


def test_a_cancel_the_agent_ignores_ends_the_turn() -> None:
    driver = both_v1(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    assert driver.advance(59).lines == []
    assert driver.advance(2).client == [answer(7, {"stopReason": "cancelled"})]
    assert driver.agent_sends(answer(7, {"stopReason": "end_turn"})).lines == []
    assert driver.advance(1000).lines == []


def test_a_v2_client_is_told_by_the_state() -> None:
    driver = bridged(cancel_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    assert story(driver.advance(61).client) == ["idle cancelled"]
    assert driver.ends("cancelled").lines == []


def test_an_answer_in_time_is_the_agents(make: Callable[..., Driver]) -> None:
    driver = make(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    driver.advance(30)
    driver.ends("cancelled")
    assert driver.advance(1000).lines == []


def test_a_cancel_with_nothing_open_starts_no_clock(make: Callable[..., Driver]) -> None:
    driver = make(cancel_timeout=60.0)
    driver.client_sends(cancel())
    driver.prompt(7)
    driver.agent_sends(message())
    assert driver.advance(1000).lines == []


def test_a_prompt_behind_the_cancel_is_not_cancelled_with_it() -> None:
    driver = both_v1(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    driver.client_sends(prompt(8))
    assert story(driver.advance(61).client) == ["answer 7"]
    late = answer(8, {"stopReason": "end_turn"})
    assert driver.agent_sends(late).client == [late]


def test_an_id_used_again_after_the_timeout_is_answered(make: Callable[..., Driver]) -> None:
    driver = make(cancel_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    driver.advance(61)
    driver.prompt(7, "again")
    driver.ends()
    told = story(driver.outputs.client)
    assert told[-1] in ("answer 7", "idle end_turn")


def test_cancelling_twice_does_not_put_the_end_off() -> None:
    driver = both_v1(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    driver.advance(50)
    driver.client_sends(cancel())
    assert story(driver.advance(11).client) == ["answer 7"]


# ---------------------------------------------------------------- stalls


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
