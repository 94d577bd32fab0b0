"""What is put off until a tail is quiet, and what else may happen meanwhile (`bridge.settle`, `bridge.load_settle`)."""

from __future__ import annotations

from relay_driver import Driver, bridged, call, message, story

LOAD = {"loadSession": True}


def load(driver: Driver, request_id: int) -> None:
    params = {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}
    driver.client_sends(call(request_id, "session/resume", params))


def told(driver: Driver) -> list[str]:
    return story(driver.outputs.client)[2:]


def test_two_loads_that_settle_get_two_answers() -> None:
    driver = bridged(agent=LOAD, load_settle=0.5)
    load(driver, 5)
    load(driver, 6)
    first, second = [body["id"] for body in driver.outputs.agent if body["method"] == "session/load"]
    driver.agent_sends({"jsonrpc": "2.0", "id": first, "result": {}})
    driver.agent_sends({"jsonrpc": "2.0", "id": second, "result": {}})
    driver.advance(10)
    assert sorted(word for word in told(driver) if word.startswith("answer")) == ["answer 5", "answer 6"]


def test_a_load_behind_a_turn_that_settles_loses_no_idle() -> None:
    driver = bridged(agent=LOAD, load_settle=0.5, settle=0.5)
    driver.prompt(7)
    driver.ends("max_tokens")
    load(driver, 8)
    driver.answers("session/load", {})
    driver.advance(10)
    words = told(driver)
    assert "idle max_tokens" in words
    assert "answer 8" in words


def test_a_turn_that_ends_while_a_load_settles_loses_no_answer() -> None:
    driver = bridged(agent=LOAD, load_settle=0.5, settle=0.5)
    driver.prompt(7)
    driver.agent_sends(message())
    load(driver, 8)
    driver.answers("session/load", {})
    driver.ends()
    driver.advance(10)
    words = told(driver)
    assert words.count("answer 8") == 1
    assert words[-1].startswith("idle") or words[-1] == "answer 8"
    assert "idle end_turn" in words


def test_a_load_that_settles_is_answered_when_the_agent_ends() -> None:
    driver = bridged(agent=LOAD, load_settle=5.0)
    load(driver, 5)
    driver.answers("session/load", {})
    assert story(driver.agent_exits().client) == ["idle", "answer 5"]
