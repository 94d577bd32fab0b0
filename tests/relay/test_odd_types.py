"""Values of a type that nobody expects, where nothing has looked at them yet: each once ended the proxy."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role
from lifecycle_scripts import opened, said
from relay_driver import (
    V2_RESULT,
    Driver,
    Json,
    answer,
    both_v1,
    bridged,
    call,
    cancel,
    failure,
    initialize_v1,
    initialize_v2,
    line,
    note,
    prompt,
    update,
    v1_result,
)

ODD: list[Any] = [[], {}, [["x"]]]


def alive(driver: Driver) -> bool:
    return bool(driver.client_sends(call("alive", "_x/alive", {})).agent)


@pytest.mark.parametrize("odd", ODD)
def test_a_member_that_a_request_does_not_have(odd: Any) -> None:
    driver = bridged()
    driver.client_sends(call(3, "session/new", {"cwd": "/p", "mcpServers": [], "sessionId": odd}))
    assert driver.agent_id("session/new")
    assert alive(driver)


@pytest.mark.parametrize("odd", ODD)
def test_the_code_of_an_error(odd: Any) -> None:
    driver = both_v1()
    driver.client_sends(prompt(7), cancel())
    assert "V12" in driver.agent_sends(failure(7, odd)).rules
    assert alive(driver)
    early = Driver()
    early.client_sends(initialize_v2(0))
    assert early.agent_sends(failure(0, odd)).restarts == 0
    assert early.client_sends(initialize_v2(1)).agent


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_message_id_before_anybody_has_agreed(odd: Any, method: str) -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0), call(3, method, {"sessionId": "s1", "cwd": "/p", "mcpServers": []}))
    driver.client_sends(prompt(7))
    for tag in ("user_message_chunk", "user_message", "agent_message_chunk"):
        driver.agent_sends(update(tag, messageId=odd, content=odd))
    driver.agent_sends(answer(0, v1_result()))
    assert alive(driver)


@pytest.mark.parametrize("odd", ODD)
def test_a_kind_of_update_while_a_repair_is_kept_up(odd: Any) -> None:
    driver = opened("22", lifecycle="enforce")
    driver.client_sends(prompt(7))
    driver.agent_sends(answer(7, {}))
    assert driver.agent_sends(
        note("session/update", {"sessionId": "s1", "update": {"sessionUpdate": odd}})
    ).rules
    assert alive(driver)


def test_output_after_an_answer_without_a_frame_of_its_own() -> None:
    """In a batch that was taken apart, or written anew, an answer has no number to show."""
    for options in ({"batch": "split"}, {"lifecycle": "enforce"}):
        driver = opened("22", **options)
        driver.client_sends(prompt(7))
        raw = line(answer(7, {"messageId": "m7"}))
        driver.lines(Role.AGENT, b"[" + raw + b"]" if "batch" in options else raw.replace(b'"m7"', b"1e400"))
        assert "V03" in driver.agent_sends(said()).rules
        assert alive(driver)


@pytest.mark.parametrize("second", [initialize_v1(2), initialize_v2(2)])
def test_a_second_initialize_before_the_first_is_answered_is_not_the_first(second: Json) -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(1))
    driver.client_sends(second)
    driver.agent_sends(answer(2, {}))
    driver.client_sends(note("_x/between", {}), call(5, "_x/early", {}))
    driver.agent_sends(answer(1, V2_RESULT))
    assert alive(driver)


def test_the_first_answer_is_kept_though_a_second_was_asked_for_too_soon() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(1), initialize_v2(2))
    driver.agent_sends(answer(1, V2_RESULT))
    assert driver.client_sends(initialize_v2(3)).client == [answer(3, V2_RESULT)]
