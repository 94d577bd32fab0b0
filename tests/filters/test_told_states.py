"""Every state the client is told is reported, whoever found it out and whatever the dialects are."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.plugin import FrameReport, StateReport
from acp_proxy.relay.commands import Emit
from relay_driver import (
    Driver,
    Said,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    failure,
    initialize_v1,
    message,
    prompt,
    selected,
    update,
    v1_result,
)

TOLD = tuple[str, str, str, str | None]


def states(said: Said) -> list[TOLD]:
    """Session, old state, new state, stop reason of each report."""
    return [
        (command.report.session_id, command.report.old, command.report.new, command.report.stop_reason)
        for command in said.commands
        if isinstance(command, Emit) and isinstance(command.report, StateReport)
    ]


def turn(driver: Driver) -> list[TOLD]:
    driver.prompt(7)
    driver.agent_sends(message("hi"))
    driver.agent_sends(ask(90))
    driver.client_sends(selected(driver.client_id("session/request_permission")))
    driver.ends("max_tokens")
    return states(driver.outputs)


TURN: list[TOLD] = [
    ("s1", "idle", "running", None),
    ("s1", "running", "requires_action", None),
    ("s1", "requires_action", "running", None),
    ("s1", "running", "idle", "max_tokens"),
]


def test_inferred_states_of_a_bridged_session() -> None:
    driver = bridged(reporting=True)
    assert turn(driver) == TURN


def test_inferred_states_between_peers_of_version_1_are_reported_though_the_client_hears_nothing() -> None:
    driver = both_v1(reporting=True)
    assert turn(driver) == TURN
    assert all("state" not in str(body) for body in driver.outputs.client)


def test_inferred_states_told_over_the_extension_are_reported_once() -> None:
    driver = Driver(reporting=True)
    wish = {"_meta": {"acp-proxy": {"stateUpdates": True}}}
    driver.client_sends(initialize_v1(0, clientCapabilities=wish))
    driver.agent_sends(answer(0, v1_result()))
    assert turn(driver) == TURN
    told = [body for body in driver.outputs.client if body.get("method") == "_acp-proxy/state_update"]
    assert len(told) == len(TURN)


def test_states_that_a_v2_agent_reports_itself() -> None:
    driver = both_v2(reporting=True)
    for fields in (
        {"state": "running"},
        {"state": "_thinking"},
        {"state": "idle", "stopReason": "end_turn"},
        {"state": "idle", "stopReason": 3},
        {"state": 5},
        {},
    ):
        driver.agent_sends(update("state_update", **fields))
    assert states(driver.outputs) == [
        ("s1", "idle", "running", None),
        ("s1", "running", "_thinking", None),
        ("s1", "_thinking", "idle", "end_turn"),
        ("s1", "idle", "idle", None),
    ]


@pytest.mark.parametrize("params", [[], {"sessionId": 1}, {"sessionId": "s", "update": 1}, {"update": {}}])
def test_a_malformed_update_has_no_state(params: Any) -> None:
    driver = both_v2(reporting=True)
    driver.agent_sends({"jsonrpc": "2.0", "method": "session/update", "params": params})
    assert states(driver.outputs) == []


def test_sessions_are_told_apart() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(prompt(7, "a", "s1"), prompt(8, "b", "s2"))
    driver.agent_sends(failure(8, -32603))
    assert states(driver.outputs) == [
        ("s1", "idle", "running", None),
        ("s2", "idle", "running", None),
        ("s2", "running", "idle", "error"),
    ]


def test_a_state_told_again_is_reported_again() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(call(2, "session/load", {"sessionId": "s1", "cwd": "/p", "mcpServers": []}))
    driver.agent_sends(answer(2, {}))
    assert states(driver.outputs) == [("s1", "idle", "idle", None)]


def test_a_rewritten_stop_reason_is_reported_as_told() -> None:
    driver = bridged(reporting=True)
    driver.prompt(7)
    driver.client_sends(cancel())
    driver.ends("end_turn")
    assert states(driver.outputs)[-1] == ("s1", "running", "idle", "cancelled")


def test_a_state_put_off_is_reported_when_it_is_told() -> None:
    driver = bridged(reporting=True, settle=0.5)
    driver.prompt(7)
    driver.ends()
    assert [told[2] for told in states(driver.outputs)] == ["running"]
    later = driver.advance(1.0)
    assert states(later) == [("s1", "running", "idle", "end_turn")]
    [report] = [c.report for c in later.commands if isinstance(c, Emit) and isinstance(c.report, StateReport)]
    assert report.at == 100.5


def test_a_state_left_out_is_not_reported() -> None:
    driver = bridged(reporting=True, queue_boundary="merge")
    driver.prompt(7)
    driver.prompt(8)
    driver.ends()
    driver.ends()
    assert [told[2] for told in states(driver.outputs)] == ["running", "idle"]


def test_the_end_of_the_agent_is_reported() -> None:
    driver = bridged(reporting=True)
    driver.prompt(7)
    assert states(driver.agent_exits()) == [("s1", "running", "idle", "error")]


def test_a_report_comes_before_the_frame_that_tells_the_client() -> None:
    driver = bridged(reporting=True)
    reports = [c.report for c in driver.prompt(7).commands if isinstance(c, Emit)]
    kinds = [
        (one.leg.value, one.direction) if isinstance(one, FrameReport) else type(one).__name__
        for one in reports
    ]
    assert kinds == [("client", "in"), ("agent", "out"), "StateReport", ("client", "out")]


def test_without_reporting_there_is_no_such_stage() -> None:
    driver = bridged()
    assert turn(driver) == []
    reporting = bridged(reporting=True)
    assert len(reporting.relay._chain.filters) == len(driver.relay._chain.filters) + 1
