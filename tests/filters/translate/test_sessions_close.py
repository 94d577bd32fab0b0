"""Closing and deleting sessions of a v1 agent (bridge §4, §12; LC-50 to LC-53)."""

from __future__ import annotations

from typing import Any

import pytest

from relay_driver import (
    Driver,
    Said,
    answer,
    ask,
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
)

CLOSE = {"sessionCapabilities": {"close": {}, "delete": {}}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def close(driver: Driver, request_id: Any = 5, session: str = "s1") -> Said:
    return driver.client_sends(call(request_id, "session/close", {"sessionId": session}))


# ---------------------------------------------------------------- emulated


def test_a_quiet_session_closes_at_once() -> None:
    driver = bridged()
    said = close(driver)
    assert said.client == [answer(5, {})]
    assert said.agent == []


def test_an_open_turn_is_cancelled_and_awaited() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message(), ask(90))
    driver.prompt(8)
    said = close(driver)
    assert sorted(said.both) == ["A answer 90", "A session/cancel", "C error 8 -32800", "C withdraw 1"]
    assert story(said.agent) == ["session/cancel", "answer 90"]
    assert story(driver.agent_sends(message("tail")).client) == ["agent_message_chunk"]
    assert story(driver.ends("cancelled").client) == ["idle cancelled", "answer 5"]
    assert driver.advance(100).lines == []


def test_a_turn_that_fails_on_close_is_cancelled() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    assert story(driver.fails("session/prompt", -32603).client) == ["idle cancelled", "answer 5"]


def test_an_agent_that_does_not_end_the_turn_is_not_awaited_for_ever() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    assert driver.advance(9.9).lines == []
    assert story(driver.advance(0.2).client) == ["idle cancelled", "answer 5"]
    said = driver.ends("end_turn")
    assert said.lines == []


def test_an_uninserted_prompt_is_withdrawn_when_the_close_gives_up() -> None:
    driver = bridged(ack_timeout=0.0)
    driver.prompt()
    close(driver)
    assert sorted(story(driver.advance(10).client)) == ["answer 5", "error 7 -32800", "idle cancelled"]


def test_the_cancel_timeout_counts_before_the_close_timeout() -> None:
    driver = bridged(cancel_timeout=2.0)
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    assert story(driver.advance(2.1).client) == ["idle cancelled", "answer 5"]


def test_nothing_of_a_closed_session_reaches_the_client() -> None:
    driver = bridged()
    close(driver)
    said = driver.agent_sends(message(), usage(), tool("k", "pending"))
    assert said.lines == []
    assert set(said.rules) == {"V24"}
    assert driver.agent_sends(ask(90)).agent == [answer(90, CANCELLED)]


@pytest.mark.parametrize("request_", [form(91), call(91, "_x/ask", {"sessionId": "s1"})])
def test_other_requests_of_a_closed_session_find_none(request_: dict[str, Any]) -> None:
    driver = bridged(client={"elicitation": {"form": {}}})
    close(driver)
    assert driver.agent_sends(request_).both == ["A error 91 -32002"]


@pytest.mark.parametrize("method", ["session/prompt", "session/set_config_option"])
def test_requests_about_a_closed_session_find_none(method: str) -> None:
    driver = bridged()
    close(driver)
    params = {**prompt(7)["params"], "configId": "m", "type": "id", "value": "v"}
    said = driver.client_sends(call(7, method, params))
    assert said.both == ["C error 7 -32002"]
    assert said.client[0]["error"]["data"] == {"sessionId": "s1"}


def test_a_closed_session_is_not_listed_and_cannot_be_resumed_here() -> None:
    driver = bridged()
    close(driver)
    assert driver.client_sends(call(6, "session/list", {})).client[0]["result"] == {"sessions": []}
    resumed = driver.client_sends(call(8, "session/resume", {"sessionId": "s1", "cwd": "/p"}))
    assert resumed.both == ["C error 8 -32002"]


def test_two_closes_get_two_answers() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    close(driver, 5)
    close(driver, 6)
    driver.ends("cancelled")
    told = story(driver.outputs.client)
    assert (told.count("answer 5"), told.count("answer 6")) == (1, 1)


def test_a_prompt_behind_a_close_does_not_keep_the_session_open() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    driver.prompt(8, "too late")
    driver.ends("cancelled")
    told = story(driver.outputs.client)
    assert told.count("answer 5") == 1
    assert [word for word in told if word.startswith("error 8")], "the prompt is answered"
    assert story(driver.outputs.agent).count("session/prompt #2") == 1
    assert sum(word.startswith("session/prompt") for word in story(driver.outputs.agent)) == 1


def test_closing_while_the_idle_settles_tells_it_before_the_answer() -> None:
    driver = bridged(settle=0.5)
    driver.prompt()
    driver.ends()
    told = story(close(driver).client) + story(driver.advance(10).client)
    assert told == ["idle end_turn", "answer 5"]


def test_the_agent_ending_while_a_close_waits() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    assert story(driver.agent_exits().client) == ["idle cancelled", "answer 5"]


def test_closing_what_is_not_open_succeeds_or_finds_none() -> None:
    driver = bridged()
    close(driver, 5)
    for number, session in ((6, "s1"), (7, "never-seen")):
        body = close(driver, number, session).client[0]
        assert body.get("result") == {} or body["error"]["code"] == -32002


# ---------------------------------------------------------------- the agent's own


def test_the_agents_own_close() -> None:
    driver = bridged(agent=CLOSE)
    driver.prompt()
    driver.agent_sends(message(), ask(90))
    driver.prompt(8)
    said = close(driver)
    assert [words for words in said.both if words != "C running"] == [
        "A answer 90",
        "C withdraw 1",
        "C error 8 -32800",
        f"A session/close #{driver.agent_id('session/close')}",
    ]
    assert said.agent[0] == answer(90, CANCELLED)
    assert story(driver.answers("session/close", None).client) == ["idle cancelled", "answer 5"]
    assert driver.said[-1].client[-1] == answer(5, {})
    assert driver.ends("cancelled").client == []
    assert driver.client_sends(selected(1)).lines == []


def test_the_agent_may_end_the_turn_before_it_answers_the_close() -> None:
    driver = bridged(agent=CLOSE)
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    assert story(driver.ends("cancelled").client) == ["idle cancelled"]
    assert story(driver.answers("session/close", {}).client) == ["answer 5"]


def test_closing_an_uninserted_prompt_withdraws_it() -> None:
    driver = bridged(agent=CLOSE, ack_timeout=0.0)
    driver.prompt()
    close(driver)
    said = driver.answers("session/close", {})
    assert sorted(story(said.client)) == ["answer 5", "error 7 -32800", "idle cancelled"]


def test_a_close_that_finds_no_session_has_closed_it() -> None:
    driver = bridged(agent=CLOSE)
    close(driver, 5, "gone")
    assert driver.fails("session/close", -32002).client == [answer(5, {})]


def test_a_close_that_fails_leaves_the_session_open() -> None:
    driver = bridged(agent=CLOSE)
    close(driver)
    assert driver.fails("session/close", -32603).both == ["C error 5 -32603"]
    assert story(driver.prompt().client) == ["running"]
    assert story(driver.ends().client)[-1] == "idle end_turn"


def test_a_close_that_fails_cancels_nothing() -> None:
    driver = bridged(agent=CLOSE)
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    driver.fails("session/close", -32603)
    assert story(driver.ends("end_turn").client) == ["idle end_turn"]


def test_a_malformed_error_of_a_close_is_made_well_formed() -> None:
    driver = bridged(agent=CLOSE)
    close(driver)
    said = driver.agent_sends(
        {"jsonrpc": "2.0", "id": driver.agent_id("session/close"), "error": {"code": "x"}}
    )
    error = said.client[0]["error"]
    assert (type(error["code"]), type(error["message"])) == (int, str)


def test_a_closed_session_can_be_resumed_where_the_agent_can() -> None:
    driver = bridged(agent={"sessionCapabilities": {"close": {}, "resume": {}}})
    close(driver)
    driver.answers("session/close", {})
    driver.client_sends(call(6, "session/resume", {"sessionId": "s1", "cwd": "/p"}))
    assert story(driver.answers("session/resume", {}).client) == ["idle", "answer 6"]
    driver.prompt()
    assert story(driver.agent_sends(message()).client)[-1] == "agent_message_chunk"
    assert story(driver.ends().client) == ["idle end_turn"]


# ---------------------------------------------------------------- delete, cancel


def delete(driver: Driver) -> Said:
    return driver.client_sends(call(5, "session/delete", {"sessionId": "s1"}))


def test_delete_is_the_agents_or_nobodys() -> None:
    assert delete(bridged()).both == ["C error 5 -32601"]
    driver = bridged(agent=CLOSE)
    assert delete(driver).agent[0]["method"] == "session/delete"
    assert driver.answers("session/delete", None).client == [answer(5, {})]


def test_deleting_a_missing_session_succeeds() -> None:
    driver = bridged(agent=CLOSE)
    delete(driver)
    assert driver.fails("session/delete", -32002).client == [answer(5, {})]


def test_deleting_a_busy_session_ends_its_turn() -> None:
    driver = bridged(agent=CLOSE)
    driver.prompt()
    driver.agent_sends(message())
    delete(driver)
    assert story(driver.answers("session/delete", {}).client) == ["idle cancelled", "answer 5"]


def test_a_cancel_after_permission_and_tool_news() -> None:
    driver = bridged()
    driver.prompt()
    driver.agent_sends(ask(90, "k"))
    driver.client_sends(cancel())
    driver.agent_sends(tool_update("k", "failed"))
    assert story(driver.ends("cancelled").client) == ["idle cancelled"]
    assert driver.client_sends(dismissed(1)).lines == []


def test_an_open_that_settles_is_answered_before_the_close_behind_it() -> None:
    driver = bridged(agent={**CLOSE, "loadSession": True}, load_settle=0.5)
    driver.client_sends(call(3, "session/resume", {"sessionId": "s1", "cwd": "/p"}))
    close(driver, 4)
    said = driver.answers("session/load", {})
    assert said.client == []
    assert story(driver.answers("session/close", {}).client)[-2:] == ["answer 3", "answer 4"]
    assert driver.advance(10).client == []


def test_a_resume_right_behind_a_close_opens_the_session() -> None:
    driver = bridged(agent={"sessionCapabilities": {"close": {}, "resume": {}}})
    close(driver, 4)
    driver.client_sends(call(5, "session/resume", {"sessionId": "s1", "cwd": "/p"}))
    assert driver.answers("session/close", {}).client == [answer(4, {})]
    assert story(driver.answers("session/resume", {}).client) == ["idle", "answer 5"]
    driver.prompt()
    told = story(driver.agent_sends(message()).client)
    assert told == ["user_message", "answer 7", "agent_message_chunk"]


def test_a_session_whose_close_waits_cannot_be_resumed() -> None:
    driver = bridged(agent={"loadSession": True})
    driver.prompt()
    driver.agent_sends(message())
    close(driver)
    said = driver.client_sends(call(6, "session/resume", {"sessionId": "s1", "cwd": "/p"}))
    assert said.both == ["C error 6 -32002"]
    assert story(driver.ends("cancelled").client) == ["idle cancelled", "answer 5"]


def test_a_deleted_session_leaves_no_question_open() -> None:
    driver = bridged(agent=CLOSE)
    driver.prompt()
    driver.agent_sends(message(), ask(90))
    driver.client_sends(call(5, "session/delete", {"sessionId": "s1"}))
    said = driver.answers("session/delete", {})
    assert "withdraw 1" in story(said.client)
    assert story(said.client)[-1] == "answer 5"
    assert said.agent == [answer(90, CANCELLED)]
