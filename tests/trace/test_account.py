"""What a check found, in lines for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.inference.findings import Finding
from acp_proxy.relay.commands import StateReport
from acp_proxy.trace.account import Account
from acp_proxy.trace.checking import StateChange

FINDING = Finding(
    1.23456, "V12", "agent", "ended otherwise", session="s\x1b[2J1", frames=(9, 4), source="LC-17"
)
BARE = Finding(2.0, "V41", "client", "left open", severity="info")
CHANGE = StateChange(
    StateReport(3.00049, "s1", "running", "idle", "end_turn"), Role.AGENT, True, "answer to session/prompt", 7
)
TIMED = StateChange(StateReport(4.0, "s1", "idle", "running", None), None, True, "time", 0)


def written(**options: Any) -> tuple[Account, str]:
    out: list[str] = []
    account = Account(out.append, **options)
    account.add("a.jsonl", FINDING)
    account.add("a.jsonl", CHANGE)
    account.add("b\n.jsonl", BARE)
    account.add("b\n.jsonl", TIMED)
    account.summary(2, 1)
    return account, "".join(out)


def test_people_get_a_line_each_and_a_summary() -> None:
    assert written(as_json=False, states=False)[1].splitlines() == [
        "a.jsonl:9: error V12 s1 ended otherwise",
        "b .jsonl:-: info V41 - left open",
        "2 files, 1 frame: 1 error, 0 warnings, 1 info",
    ]


def test_states_stand_between_the_findings() -> None:
    lines = written(as_json=False, states=True)[1].splitlines()
    assert lines[1] == (
        "a.jsonl:7: 3.000 s1 running -> idle (end_turn) at the agent by answer to session/prompt"
    )
    assert lines[3] == "b .jsonl:-: 4.000 s1 idle -> running by time"


def test_programs_get_the_findings_form_and_the_file() -> None:
    lines = [json.loads(line) for line in written(as_json=True, states=False)[1].splitlines()]
    assert lines == [{"file": "a.jsonl", **FINDING.as_json()}, {"file": "b\n.jsonl", **BARE.as_json()}]
    assert lines[0]["session"] == "s\x1b[2J1"


def test_programs_get_states_too() -> None:
    lines = [json.loads(line) for line in written(as_json=True, states=True)[1].splitlines()]
    assert lines[1] == {
        "file": "a.jsonl",
        "t": 3.0,
        "session": "s1",
        "leg": "agent",
        "from": "running",
        "state": "idle",
        "stopReason": "end_turn",
        "inferred": True,
        "frame": 7,
        "cause": "answer to session/prompt",
    }
    assert (lines[3]["leg"], lines[3]["frame"], lines[3]["stopReason"]) == (None, None, None)


@pytest.mark.parametrize(
    ("severity", "failing"),
    [("error", {"error", "warning", "info"}), ("warning", {"warning", "info"}), ("info", {"info"})],
)
def test_a_severity_counts_for_itself_and_what_is_less(severity: str, failing: set[str]) -> None:
    account = Account(lambda text: None, as_json=False, states=False)
    account.add("f", Finding(0.0, "V01", "agent", "", severity=severity))
    assert {one for one in ("error", "warning", "info") if account.at_least(one)} == failing


def test_states_are_no_failure() -> None:
    account = Account(lambda text: None, as_json=False, states=True)
    account.add("f", CHANGE)
    assert not account.at_least("info")
