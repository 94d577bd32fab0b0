"""What the shipped profiles make of real traffic (RA-01, RA-02, RA-25), beside what is told without them."""

from __future__ import annotations

import pytest
from profile_captures import ASKS, extension_states, played, states

TURN = ["running", "idle end_turn"]
WOKEN = ["running", ASKS, "requires_action", "running", "idle"]


def test_background_work_of_claude_is_told_to_its_end_when_the_profile_is_named() -> None:
    driver = played("claude_background_permission", profile="claude-agent-acp")
    assert states(driver) == [*TURN, *WOKEN]
    assert driver.deadline is None


def test_the_same_for_a_v1_client_that_asks_for_states() -> None:
    driver = played("claude_background_permission", v1_client=True, profile="claude-agent-acp")
    assert extension_states(driver) == [*TURN, *WOKEN]


@pytest.mark.parametrize("profile", ["auto", "claude-agent-acp"])
def test_the_end_mark_is_known_to_whoever_infers(profile: str) -> None:
    options = {"agent_initiated": "infer", "explicit": ("inference.agent_initiated",)}
    driver = played("claude_background_permission", profile=profile, **options)
    assert states(driver) == [*TURN, *WOKEN]


def test_a_profile_that_was_found_by_itself_changes_no_state() -> None:
    driver = played("claude_background_permission")
    assert states(driver) == [*TURN, ASKS]


def test_explicit_configuration_beats_the_profile() -> None:
    driver = played(
        "claude_background_permission", profile="claude-agent-acp", explicit=("inference.agent_initiated",)
    )
    assert states(driver) == [*TURN, ASKS]


def test_without_the_mark_only_silence_ends_the_work() -> None:
    explicit = ("inference.end_markers",)
    driver = played("claude_background_permission", profile="claude-agent-acp", explicit=explicit)
    assert states(driver) == [*TURN, *WOKEN[:-1]]
    driver.advance(29.9)
    assert states(driver)[-1] == "running"
    driver.advance(0.2)
    assert states(driver)[-1] == "idle"


def test_told_as_unknown_the_work_is_waited_for_all_the_same() -> None:
    driver = played(
        "claude_background_permission",
        profile="claude-agent-acp",
        agent_initiated="unknown",
        explicit=("inference.agent_initiated",),
    )
    assert states(driver) == [*TURN, "unknown", ASKS, "requires_action", "unknown", "idle"]


def test_work_the_agent_began_itself_can_be_cancelled() -> None:
    driver = played("claude_background_cancel", profile="claude-agent-acp")
    assert states(driver) == [*TURN, "running", "idle cancelled", *TURN]


@pytest.mark.parametrize("profile", ["auto", "codex-acp"])
def test_a_tool_left_open_by_its_turn_is_no_new_work(profile: str) -> None:
    options = {"agent_initiated": "infer", "explicit": ("inference.agent_initiated",)}
    driver = played("codex_open_tool", profile=profile, **options)
    assert states(driver) == ["running", ASKS, "requires_action", "running", "idle end_turn"]


def test_a_failed_model_is_an_error_as_the_same_agent_tells_it_in_v2() -> None:
    driver = played("codex_model_failure", profile="codex-acp")
    assert states(driver) == ["running", "idle error", *TURN]
    [told] = [
        body["params"]
        for body in driver.outputs.client
        if body.get("params", {}).get("update", {}).get("stopReason") == "error"
    ]
    assert told["update"]["error"] == {"code": -32603, "message": "the agent reports a system error"}
    assert told["_meta"]["acp-proxy"] == {"synthetic": True, "orig": {"stopReason": "end_turn"}}


def test_a_failed_model_is_told_by_extension_and_the_answer_stays_the_agent_s() -> None:
    driver = played("codex_model_failure", v1_client=True, profile="codex-acp")
    assert extension_states(driver) == ["running", "idle error", *TURN]
    results = [body["result"] for body in driver.outputs.client if "stopReason" in body.get("result", {})]
    assert [one["stopReason"] for one in results] == ["end_turn", "end_turn"]


def test_found_by_itself_the_profile_leaves_the_wire_s_own_word() -> None:
    assert states(played("codex_model_failure")) == [*TURN, *TURN]
