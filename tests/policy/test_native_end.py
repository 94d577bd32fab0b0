"""Ends told in the name of an agent that reports its states itself (LC-12, LC-20)."""

from __future__ import annotations

import pytest

from acp_proxy.acp.version import Role, Version
from acp_proxy.jsonrpc.message import Json
from acp_proxy.policy.native_end import NativeStates, idle_update
from schema_cache import message_error

CANCELLED: Json = {"stopReason": "cancelled"}
IDLE: Json = {"sessionUpdate": "state_update", "state": "idle"}
RUNNING: Json = {"sessionUpdate": "state_update", "state": "running"}


@pytest.mark.parametrize(
    "ending", [CANCELLED, {"stopReason": "error", "error": {"code": -32603, "message": "gone"}}]
)
@pytest.mark.parametrize("background", [None, [], [{"type": "terminal", "terminalId": "t"}]])
def test_an_end_of_ours_fits_the_schema(ending: Json, background: list[Json] | None) -> None:
    told = idle_update("s1", ending, background)
    assert message_error(Version.V2, told.body, sender=Role.AGENT) is None
    assert told.params["_meta"] == {"acp-proxy": {"synthetic": True}}


def test_the_agents_own_end_is_late_once() -> None:
    states = NativeStates()
    states.end("s1", CANCELLED)
    assert not states.is_late_end("s2", IDLE)
    assert states.is_late_end("s1", IDLE)
    assert not states.is_late_end("s1", IDLE)


def test_work_reported_since_makes_its_end_a_new_one() -> None:
    states = NativeStates()
    states.end("s1", CANCELLED)
    assert not states.is_late_end("s1", RUNNING)
    assert not states.is_late_end("s1", IDLE)


@pytest.mark.parametrize(("stop", "late"), [("cancelled", True), ("end_turn", False)])
def test_behind_a_prompt_taken_since_only_cancelled_is_late(stop: str, late: bool) -> None:
    states = NativeStates()
    states.end("s1", CANCELLED)
    states.inserted("s1")
    assert states.is_late_end("s1", {**IDLE, "stopReason": stop}) is late


def test_background_stays_reported_until_another_process_reports() -> None:
    states = NativeStates()
    states.is_late_end("s1", {**RUNNING, "background": []})
    states.is_late_end("s1", {**RUNNING, "background": "broken"})
    assert states.end("s1", CANCELLED).params["update"]["background"] == []
    states.clear()
    assert "background" not in states.end("s1", CANCELLED).params["update"]
