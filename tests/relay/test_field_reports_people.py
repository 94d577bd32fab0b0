"""Field reports on cancel and on permissions (groups C and D)."""

from __future__ import annotations

from acp_proxy.acp.version import Role
from relay_driver import (
    EVERYTHING,
    Driver,
    answer,
    ask,
    both_v1,
    bridged,
    call,
    cancel,
    dismissed,
    failure,
    message,
    selected,
    story,
    tool,
)

PERMISSION = "session/request_permission"
ALLOWS = [
    {"optionId": "a", "name": "Yes", "kind": "allow_once"},
    {"optionId": "b", "name": "Always", "kind": "allow_always"},
    {"optionId": "c", "name": "?", "kind": "vendor_kind"},
]


def states(driver: Driver) -> list[str]:
    """The states told so far."""
    words = ("idle", "running", "requires_action")
    return [told for told in story(driver.outputs.client) if told.split(" ")[0] in words]


def prompts_at_agent(driver: Driver) -> int:
    return sum(body.get("method") == "session/prompt" for body in driver.outputs.agent)


# ---------------------------------------------------------------- C


def test_br23_a_cancel_never_confirmed_keeps_the_next_prompt() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    assert driver.prompt(8).lines == []
    driver.advance(3600)
    assert states(driver) == ["running"]
    driver.ends("cancelled")
    assert states(driver) == ["running", "idle cancelled", "running"]
    assert prompts_at_agent(driver) == 2


def test_br23_a_cancel_timeout_ends_the_wait_and_drops_the_late_result() -> None:
    driver = bridged(cancel_timeout=60.0)
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    driver.prompt(8)
    late = driver.agent_id("session/prompt")
    waited = driver.advance(59)
    assert (waited.client, waited.agent) == ([], [cancel()])
    said = driver.advance(1.5)
    assert story(said.client) == ["idle cancelled", "running"]
    assert prompts_at_agent(driver) == 2
    assert driver.agent_sends(answer(late, {"stopReason": "cancelled"})).client == []
    assert driver.ends().client[-1]["params"]["update"]["stopReason"] == "end_turn"


def test_br24_an_empty_turn_right_behind_a_cancel_is_passed_and_noted() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    driver.ends("cancelled")
    driver.prompt(8)
    said = driver.ends("end_turn")
    assert story(said.client) == ["user_message", "answer 8", "idle end_turn"]
    assert "V47" in said.rules


def test_br26_of_two_prompts_a_cancel_ends_the_first_and_withdraws_the_second() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    driver.prompt(8)
    assert driver.client_sends(cancel()).both == ["A session/cancel", "C error 8 -32800"]
    assert story(driver.ends("cancelled").client) == ["idle cancelled"]
    assert prompts_at_agent(driver) == 1


def test_br27_an_agent_that_rejects_the_cancel_bothers_nobody() -> None:
    for driver in (bridged(), both_v1()):
        driver.prompt(7)
        driver.client_sends(cancel())
        said = driver.agent_sends(failure(None, -32601))
        assert (said.lines, said.rules) == ([], ["V51"])


def test_br30_what_comes_between_cancel_and_result_comes_before_the_idle() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    driver.client_sends(cancel())
    said = [*driver.agent_sends(message("tail")).client, *driver.ends("cancelled").client]
    assert story(said) == ["agent_message_chunk", "idle cancelled"]
    assert story(driver.prompt(8).client) == ["running"]
    assert story(driver.ends().client) == ["user_message", "answer 8", "idle end_turn"]


# ---------------------------------------------------------------- D


def test_br32_a_permission_waits_for_its_person() -> None:
    driver = bridged()
    driver.prompt(7)
    assert story(driver.agent_sends(ask(90, "k")).client)[-2:] == [f"{PERMISSION} #1", "requires_action"]
    assert driver.advance(7 * 24 * 3600).lines == []
    assert driver.client_sends(selected(1)).both == ["A answer 90", "C running"]


def test_br33_a_timeout_rejects_and_does_not_cancel() -> None:
    driver = bridged(permission_timeout=30.0)
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    assert driver.advance(29).lines == []
    said = driver.advance(2)
    assert said.agent == [selected(90, "no")]
    assert "running" in story(said.client)
    assert "withdraw 1" in story(said.client)


def test_br33_the_late_answer_is_dropped_with_a_finding() -> None:
    driver = bridged(permission_timeout=30.0)
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    driver.advance(31)
    said = driver.client_sends(selected(1, "ok"))
    assert said.lines == []
    assert len(said.rules) == 1


def test_br34_a_cancel_answers_what_the_client_leaves_open() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    assert driver.client_sends(cancel()).agent[-1] == dismissed(90)
    driver.ends("cancelled")
    assert states(driver) == ["running", "requires_action", "idle cancelled"]
    assert driver.client_sends(selected(1, "ok")).agent == []


def test_br36_a_request_of_a_child_session_is_never_lost() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    said = driver.agent_sends(ask(92, "k", session="child"))
    assert said.client[0]["params"]["sessionId"] == "child"
    assert "requires_action" not in story(said.client), "the child's wait is not the parent's"
    assert driver.client_sends(selected(1)).agent == [selected(92)]


def test_br37_denying_never_allows() -> None:
    for mode in (bridged, both_v1):
        driver = mode(permission_timeout=30.0)
        driver.prompt(7)
        driver.agent_sends(ask(90, "k", options=ALLOWS))
        assert driver.advance(31).agent == [dismissed(90)]


def test_br37_an_option_nobody_offered_is_no_approval() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(ask(90, "k", options=ALLOWS))
    assert driver.client_sends(selected(1, "allow")).agent == [dismissed(90)]


def test_br40_a_waiting_person_blocks_nothing_and_is_no_stall() -> None:
    driver = bridged(agent=EVERYTHING, stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(tool("k", "pending"), ask(90, "k"))
    assert driver.advance(200).rules == []
    assert story(driver.client_sends(call(3, "session/list", {})).agent)[0].startswith("session/list")
    assert driver.answers("session/list", {"sessions": []}).client == [answer(3, {"sessions": []})]
    assert driver.advance(200).rules == []
    assert driver.client_sends(selected(1)).both == ["A answer 90", "C running"]


def test_br40_in_same_version_mode_as_well() -> None:
    driver = both_v1(stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(ask(90, "k"))
    assert driver.advance(400).rules == []
    driver.client_sends(call(3, "session/list", {}))
    assert driver.agent_sends(answer(3, {"sessions": []})).raw(Role.CLIENT)
