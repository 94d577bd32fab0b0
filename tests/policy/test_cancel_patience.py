"""Cancels that nobody confirms, on a clock that only the test moves (BR-23, LC-12, LC-40; lifecycle §2.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relay_driver import (
    Driver,
    Json,
    answer,
    both_v1,
    both_v2,
    bridged,
    cancel,
    message,
    prompt,
    story,
    update,
)

MODES = {"v1": both_v1, "bridged": bridged}


@pytest.fixture(params=MODES)
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = MODES[request.param]
    return found


def test_a_cancel_the_agent_ignores_ends_the_turn() -> None:
    driver = both_v1(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    assert driver.advance(59).client == []
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


def test_the_cancel_is_said_once_more_at_half_the_time(make: Callable[..., Driver]) -> None:
    driver = make(cancel_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    assert driver.client_sends(cancel()).agent == [cancel()]
    assert driver.advance(29).lines == []
    assert driver.advance(2).agent == [cancel()]
    assert driver.advance(1000).agent == []


def test_the_end_and_the_late_end_are_findings(make: Callable[..., Driver]) -> None:
    driver = make(cancel_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    assert [(f.rule, f.action, f.session) for f in driver.advance(61).findings] == [("V57", "repaired", "s1")]
    assert [f.rule for f in driver.ends("cancelled").findings if f.rule == "V58"] == ["V58"]


def test_a_cancel_said_again_covers_what_came_since() -> None:
    driver = both_v1(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    driver.advance(40)
    driver.client_sends(prompt(8), cancel())
    assert story(driver.advance(21).client) == ["answer 7"]
    assert story(driver.advance(40).client) == ["answer 8"]


def test_one_session_is_not_ended_for_another() -> None:
    driver = both_v1(cancel_timeout=60.0)
    driver.prompt(7)
    driver.prompt(8, session="s2")
    driver.client_sends(cancel("s2"))
    assert story(driver.advance(61).client) == ["answer 8"]


def test_after_the_client_left_no_end_is_told(make: Callable[..., Driver]) -> None:
    driver = make(cancel_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_leaves()
    assert driver.advance(1000).lines == []


# ---------------------------------------------------------------- agents that report their states


def state(name: str, stop: str | None = None, **more: Any) -> Json:
    return update("state_update", state=name, **({"stopReason": stop} if stop else {}), **more)


def running(**options: Any) -> Driver:
    driver = both_v2(cancel_timeout=60.0, **options)
    driver.prompt(7)
    driver.agent_sends(state("running"), answer(7, {"messageId": "m7"}))
    return driver


def test_a_reported_turn_is_ended_by_a_marked_snapshot() -> None:
    driver = running()
    driver.client_sends(cancel())
    ended = driver.advance(61).client
    assert story(ended) == ["idle cancelled"]
    assert ended[0]["params"]["_meta"] == {"acp-proxy": {"synthetic": True}}
    assert driver.agent_sends(state("idle", "cancelled")).client == []
    assert driver.advance(1000).lines == []


def test_a_reported_end_in_time_is_the_agents() -> None:
    driver = running()
    driver.client_sends(cancel())
    assert story(driver.agent_sends(state("idle", "cancelled")).client) == ["idle cancelled"]
    assert driver.advance(1000).lines == []


def test_background_is_reported_again_with_the_end() -> None:
    driver = running()
    work = [{"type": "terminal", "terminalId": "t"}]
    driver.agent_sends(state("running", background=work))
    driver.client_sends(cancel())
    assert driver.advance(61).client[0]["params"]["update"]["background"] == work


def test_a_prompt_the_agent_never_took_is_answered_as_cancelled() -> None:
    driver = both_v2(cancel_timeout=60.0)
    driver.prompt(7)
    driver.client_sends(cancel())
    assert story(driver.advance(61).client) == ["error 7 -32800"]
    assert driver.agent_sends(answer(7, {"messageId": "m7"})).client == []


@pytest.mark.parametrize("again", [True, False])
def test_the_next_turns_end_is_not_taken_for_the_late_one(again: bool) -> None:
    """Whether the agent says `running` again for the next prompt or not."""
    driver = running()
    driver.client_sends(cancel())
    driver.advance(61)
    driver.prompt(8)
    driver.agent_sends(answer(8, {"messageId": "m8"}), *([state("running")] if again else []))
    assert story(driver.agent_sends(state("idle", "end_turn")).client) == ["idle end_turn"]


def test_a_late_end_behind_the_next_prompt_is_dropped() -> None:
    driver = running()
    driver.client_sends(cancel())
    driver.advance(61)
    driver.prompt(8)
    driver.agent_sends(answer(8, {"messageId": "m8"}))
    assert driver.agent_sends(state("idle", "cancelled")).client == []
    assert story(driver.agent_sends(state("running"), state("idle", "end_turn")).client) == [
        "running",
        "idle end_turn",
    ]


def test_a_cancel_of_an_idle_session_starts_no_clock() -> None:
    driver = running()
    driver.agent_sends(state("idle", "end_turn"))
    driver.client_sends(cancel())
    assert driver.deadline is None
