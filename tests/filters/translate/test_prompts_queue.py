"""The queue of prompts before a v1 agent, and what a cancel does to it (bridge §5, step 2; LC-42)."""

from __future__ import annotations

from relay_driver import Driver, bridged, call, cancel, message, story, withdraw

ACKNOWLEDGED = ["user_message", "answer 7"]


def prompts_at_agent(driver: Driver) -> list[str]:
    """The texts of the prompts that reached the agent."""
    return [
        body["params"]["prompt"][0]["text"]
        for body in driver.outputs.agent
        if body.get("method") == "session/prompt"
    ]


def test_prompts_wait_first_in_first_out() -> None:
    driver = bridged()
    driver.prompt(7, "one")
    for number, text in ((8, "two"), (9, "three")):
        assert driver.prompt(number, text).lines == []
    assert prompts_at_agent(driver) == ["one"]
    assert story(driver.ends("max_tokens").client) == [*ACKNOWLEDGED, "idle max_tokens", "running"]
    assert prompts_at_agent(driver) == ["one", "two"]
    assert story(driver.ends("refusal").client) == ["user_message", "answer 8", "idle refusal", "running"]
    assert story(driver.ends().client) == ["user_message", "answer 9", "idle end_turn"]
    assert prompts_at_agent(driver) == ["one", "two", "three"]


def test_sessions_do_not_wait_for_each_other() -> None:
    driver = bridged()
    driver.client_sends(call(2, "session/new", {"cwd": "/q", "mcpServers": []}))
    driver.answers("session/new", {"sessionId": "s2"})
    driver.prompt(7)
    assert story(driver.prompt(8, session="s2").client) == ["running"]


def test_a_held_prompt_runs_after_a_failed_one() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.prompt(8, "two")
    assert story(driver.fails("session/prompt", -32603).client) == ["idle error", "error 7 -32603", "running"]
    assert prompts_at_agent(driver) == ["go", "two"]


def test_too_many_held_prompts_are_refused() -> None:
    driver = bridged(max_held=2)
    for number in (7, 8, 9):
        driver.prompt(number)
    assert driver.prompt(10).both == ["C error 10 -32603"]
    driver.ends()
    assert driver.prompt(11).lines == []


def test_by_default_thirty_two_prompts_may_wait() -> None:
    driver = bridged()
    assert not [s for s in (driver.prompt(n).client for n in range(7, 40)) if story(s) != ["running"] and s]
    assert driver.prompt(40).both == ["C error 40 -32603"]


def test_a_held_prompt_can_be_withdrawn() -> None:
    driver = bridged()
    for number in (7, 8, 9):
        driver.prompt(number, str(number))
    assert driver.client_sends(withdraw(8)).both == ["C error 8 -32800"]
    driver.ends()
    assert prompts_at_agent(driver) == ["7", "9"]


def test_withdrawing_a_dispatched_prompt_reaches_the_agent_under_its_own_id() -> None:
    driver = bridged()
    driver.prompt(7)
    assert driver.client_sends(withdraw(7)).agent == [withdraw(driver.agent_id("session/prompt"))]
    assert story(driver.fails("session/prompt", -32800).client) == ["idle cancelled", "error 7 -32800"]


def test_an_inserted_prompt_cannot_be_withdrawn() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    assert driver.client_sends(withdraw(7)).lines == []
    assert story(driver.ends().client) == ["idle end_turn"]


def test_a_prompt_held_while_another_is_only_settling() -> None:
    driver = bridged(settle=0.5)
    driver.prompt(7)
    driver.ends()
    assert driver.prompt(8, "two").lines == []
    assert story(driver.advance(0.6).client) == ["idle end_turn", "running"]
    assert prompts_at_agent(driver) == ["go", "two"]


def test_merging_tells_one_span_for_queued_prompts() -> None:
    driver = bridged(queue_boundary="merge")
    driver.prompt(7)
    driver.prompt(8)
    assert story(driver.ends("max_tokens").client) == ACKNOWLEDGED
    assert story(driver.ends().client) == ["user_message", "answer 8", "idle end_turn"]


def test_merging_does_not_hide_a_failure_or_a_cancel() -> None:
    driver = bridged(queue_boundary="merge")
    driver.prompt(7)
    driver.prompt(8)
    assert story(driver.fails("session/prompt", -32603).client) == ["idle error", "error 7 -32603", "running"]


# ---------------------------------------------------------------- cancel


def test_a_cancelled_turn_that_says_end_turn_is_told_cancelled() -> None:
    driver = bridged()
    driver.prompt()
    driver.client_sends(cancel())
    said = driver.ends("end_turn")
    assert story(said.client) == [*ACKNOWLEDGED, "idle cancelled"]
    assert said.rules == ["V12"]
    assert said.client[-1]["params"]["_meta"]["acp-proxy"]["orig"] == {"stopReason": "end_turn"}


def test_a_cancel_flushes_what_waits_and_later_prompts_wait_for_the_old_result() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.prompt(8)
    assert driver.client_sends(cancel()).both == ["A session/cancel", "C error 8 -32800"]
    assert driver.prompt(9, "after").lines == []
    assert story(driver.ends("cancelled").client) == [*ACKNOWLEDGED, "idle cancelled", "running"]
    assert prompts_at_agent(driver) == ["go", "after"]
    assert story(driver.ends().client) == ["user_message", "answer 9", "idle end_turn"]


def test_cancel_with_nothing_to_cancel_is_forwarded_and_changes_nothing() -> None:
    driver = bridged()
    assert driver.client_sends(cancel()).both == ["A session/cancel"]
    driver.prompt()
    assert story(driver.ends().client)[-1] == "idle end_turn"
