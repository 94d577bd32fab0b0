"""Message ids for chunks that come without one (bridge §5)."""

from __future__ import annotations

from typing import Any

from acp_proxy.filters.translate.message_ids import MessageIds
from relay_driver import Driver, ask, bridged, call, echo, message, thought, tool, tool_update, update

A, T, U = "agent_message_chunk", "agent_thought_chunk", "user_message_chunk"


def ids_told(driver: Driver) -> list[str]:
    """The message ids the client was told, one for each message update, in order."""
    updates = [
        body["params"]["update"] for body in driver.outputs.client if body.get("method") == "session/update"
    ]
    return [each["messageId"] for each in updates if "messageId" in each]


# ---------------------------------------------------------------- the counter


def test_ids_are_counted_by_type_and_stay_until_a_boundary() -> None:
    ids = MessageIds("0")
    assert [ids.of_chunk(tag) for tag in (A, A, T, T, A, U, A)] == [
        "0-a1", "0-a1", "0-t1", "0-t1", "0-a2", "0-u1", "0-a3",
    ]  # fmt: skip
    ids.boundary()
    assert ids.of_chunk(A) == "0-a4"


def test_a_prompts_message_is_nobodys_to_continue() -> None:
    ids = MessageIds("e")
    assert ids.of_prompt() == "e-u1"
    assert ids.of_chunk(U) == "e-u2"


def test_a_replay_counts_from_the_start_again() -> None:
    ids = MessageIds("tok")
    assert ids.of_chunk(A) == "tok-a1"
    ids.restart()
    assert (ids.of_chunk(A), ids.epoch) == ("0-a1", "0")


def test_an_id_of_the_agents_that_looks_like_ours_is_not_made_again() -> None:
    ids = MessageIds("0")
    ids.given(A, "0-a1")
    assert ids.of_chunk(A) == "0-a2"
    assert ids.of_chunk(A) == "0-a2"


def test_a_named_message_ends_the_nameless_one() -> None:
    ids = MessageIds("0")
    assert ids.of_chunk(A) == "0-a1"
    ids.given(A, "own")
    assert ids.of_chunk(A) == "0-a2"


# ---------------------------------------------------------------- boundaries on the wire


def test_boundaries() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(
        message("1"),
        message("1"),
        thought("t"),
        message("2"),
        tool("k", "pending"),
        message("3"),
        tool_update("k", "completed"),
        message("3"),
        tool("k", "completed"),
        message("3"),
        ask(90, "k"),
        message("3"),
        ask(91, "unseen"),
        message("4"),
    )
    driver.ends()
    driver.agent_sends(message("5"))
    driver.prompt(8)
    driver.agent_sends(message("6"))
    assert ids_told(driver) == [
        "0-u1", "0-a1", "0-a1", "0-t1", "0-a2", "0-a3", "0-a3", "0-a3", "0-a3", "0-a4", "0-a5", "0-u2", "0-a6",
    ]  # fmt: skip


def test_updates_that_are_no_messages_are_no_boundaries() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(
        message("1"),
        update("usage_update", used=1, size=2),
        update("plan", entries=[]),
        update("session_info_update", title="t"),
        message("1"),
    )
    assert ids_told(driver) == ["0-u1", "0-a1", "0-a1"]


def test_ids_of_the_agent_pass_and_null_is_missing() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message("1", messageId="x"), message("2", messageId=None), message("3", messageId=5))
    assert ids_told(driver) == ["0-u1", "x", "0-a1", "0-a1"]


def test_sessions_count_apart() -> None:
    driver = bridged()
    driver.client_sends(call(2, "session/new", {"cwd": "/q", "mcpServers": []}))
    driver.answers("session/new", {"sessionId": "s2"})
    driver.agent_sends(message("1"), message("1", session="s2"), thought("2", session="s2"), message("1"))
    assert ids_told(driver) == ["0-a1", "0-a1", "0-t1", "0-a1"]


# ---------------------------------------------------------------- epochs, replay


def turn(driver: Driver, number: int) -> None:
    driver.prompt(number, f"q{number}")
    driver.agent_sends(message("x"), tool(f"k{number}", "completed"), message("y"))
    driver.ends()


REPLAY: list[dict[str, Any]] = [
    body
    for number in (7, 8)
    for body in (echo(f"q{number}"), message("x"), tool(f"k{number}", "completed"), message("y"))
]


def load(driver: Driver) -> None:
    params = {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}
    driver.client_sends(call(20, "session/resume", params))
    driver.agent_sends(*REPLAY)
    driver.answers("session/load", {})


def test_replayed_ids_equal_live_ones_on_another_connection() -> None:
    live = bridged()
    turn(live, 7)
    turn(live, 8)
    later = bridged(agent={"loadSession": True}, session=False)
    load(later)
    assert ids_told(later) == ids_told(live) == ["0-u1", "0-a1", "0-a2", "0-u2", "0-a3", "0-a4"]


def test_replayed_ids_equal_live_ones_on_the_same_connection() -> None:
    driver = bridged(agent={"loadSession": True})
    turn(driver, 7)
    turn(driver, 8)
    live = ids_told(driver)
    load(driver)
    assert ids_told(driver)[len(live) :] == live


def test_ids_go_on_behind_a_replay() -> None:
    driver = bridged(agent={"loadSession": True}, session=False)
    load(driver)
    turn(driver, 9)
    assert ids_told(driver)[-3:] == ["0-u3", "0-a5", "0-a6"]


def test_a_session_taken_up_midway_has_an_epoch_of_its_own() -> None:
    driver = bridged(agent={"sessionCapabilities": {"resume": {}}})
    driver.client_sends(call(5, "session/resume", {"sessionId": "s9", "cwd": "/p"}))
    driver.answers("session/resume", {})
    driver.agent_sends(message("x", session="s9"), message("y", session="child"))
    first, second = ids_told(driver)
    assert (first.split("-")[0], second.split("-")[0]) == ("tok1", "tok2")
