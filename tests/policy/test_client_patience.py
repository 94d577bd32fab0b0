"""Answers in a silent client's name, on a clock that only the test moves (BR-32, BR-33, LC-12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.jsonrpc.message import METHOD_NOT_FOUND
from acp_proxy.policy.client_patience import is_extension
from relay_driver import (
    Driver,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    dismissed,
    form,
    message,
    selected,
    story,
    withdraw,
)

PERMISSION = "session/request_permission"
MODES = {"v1": both_v1, "bridged": bridged}


@pytest.fixture(params=MODES)
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = MODES[request.param]
    return found


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


def test_a_late_answer_is_not_taken_for_that_to_a_new_question_under_the_same_id() -> None:
    driver = waiting(both_v1)
    driver.advance(31)
    asked = driver.agent_sends(ask(90, "l")).client[0]
    assert asked["id"] != 90
    assert driver.client_sends(selected(90)).agent == []
    assert driver.client_sends(dismissed(asked["id"])).agent == [dismissed(90)]
    assert driver.agent_sends(ask(90, "m")).client == [ask(90, "m")]


def test_elicitations_and_other_requests_wait_for_ever() -> None:
    driver = both_v1(permission_timeout=30.0)
    driver.prompt(7)
    driver.agent_sends(form(91), call(92, "_x/ask", {}))
    assert driver.advance(1000).lines == []


def test_the_state_follows_a_rejection() -> None:
    driver = waiting(bridged)
    assert "running" in story(driver.advance(31).client)
    assert story(driver.ends().client) == ["idle end_turn"]


def test_timeout_and_late_answer_are_findings(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    own = driver.client_id(PERMISSION)
    said = driver.advance(31)
    assert [(finding.rule, finding.action, finding.session) for finding in said.findings] == [
        ("V57", "repaired", "s1")
    ]
    late = driver.client_sends(selected(own)).findings
    assert [(finding.rule, finding.leg, finding.severity) for finding in late] == [("V58", "client", "info")]


def test_a_v2_permission_is_rejected_too() -> None:
    driver = both_v2(permission_timeout=30.0)
    driver.agent_sends(ask(90, "k"))
    said = driver.advance(31)
    assert (said.agent, said.client) == ([selected(90, "no")], [withdraw(90)])
    assert driver.client_sends(selected(90, "ok")).agent == []


def test_the_clock_stops_for_a_client_that_left_while_asked(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    assert dismissed(90) in driver.client_leaves().agent
    assert driver.advance(1000).lines == []


def test_the_clock_stops_with_the_agent(make: Callable[..., Driver]) -> None:
    driver = waiting(make)
    driver.agent_exits()
    assert driver.advance(1000).commands == []


# ---------------------------------------------------------------- extensions


def extending(make: Callable[..., Driver]) -> Driver:
    driver = make(extension_timeout=5.0)
    driver.agent_sends(call(60, "_x/ask", {"sessionId": "s1"}))
    return driver


def test_an_extension_request_nobody_answers_is_refused(make: Callable[..., Driver]) -> None:
    driver = extending(make)
    own = driver.client_id("_x/ask")
    assert driver.advance(4.9).lines == []
    said = driver.advance(0.2)
    assert [(body["id"], body["error"]["code"]) for body in said.agent] == [(60, METHOD_NOT_FOUND)]
    assert said.client == [withdraw(own)]
    assert said.rules == ["V57"]
    assert driver.client_sends(answer(own, {"late": True})).agent == []
    assert driver.advance(1000).lines == []


def test_an_answered_extension_request_is_not_refused(make: Callable[..., Driver]) -> None:
    driver = extending(make)
    sent = driver.client_sends(answer(driver.client_id("_x/ask"), {"ok": True}))
    assert sent.agent == [answer(60, {"ok": True})]
    assert driver.advance(1000).lines == []


def test_people_are_not_extensions() -> None:
    driver = both_v1(extension_timeout=5.0)
    driver.prompt(7)
    files = call(92, "fs/read_text_file", {"sessionId": "s1", "path": "/p/a"})
    driver.agent_sends(ask(90, "k"), form(91), files)
    assert driver.advance(1000).lines == []


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("_x/ask", True),
        ("vendor/ask", True),
        ("session/request_permission", False),
        ("elicitation/create", False),
        ("fs/read_text_file", False),
        ("terminal/create", False),
        ("mcp/message", False),
    ],
)
def test_an_extension_is_what_no_version_lists(method: str, expected: bool) -> None:
    assert is_extension(method) is expected


def test_both_clocks_run_apart() -> None:
    driver = both_v1(extension_timeout=5.0, permission_timeout=10.0)
    driver.agent_sends(ask(90, "k"), call(60, "_x/ask", {}))
    assert story(driver.advance(6).agent) == ["error 60 -32601"]
    assert driver.advance(6).agent == [selected(90, "no")]
