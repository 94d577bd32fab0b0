"""The record of a violation, and a log that no peer can flood."""

from __future__ import annotations

import re

import pytest

from acp_proxy.inference.findings import MAX_PER_RULE, SEVERITIES, Finding, FindingLog


def finding(rule: str = "V24", text: str = "what happened") -> Finding:
    return Finding(1.23456, rule, "agent", text)


def test_a_finding_as_json_has_every_member() -> None:
    full = Finding(
        1.23456,
        "V29",
        "client",
        "response to an id that is not open",
        session="s",
        frames=[3, 9],
        action="repaired",
        source="LC-70",
    )
    assert full.as_json() == {
        "t": 1.235,
        "rule": "V29",
        "severity": "error",
        "session": "s",
        "leg": "client",
        "frames": [3, 9],
        "source": "LC-70",
        "action": "repaired",
        "text": "response to an id that is not open",
    }
    assert repr(full) == "<Finding V29 repaired 'response to an id that is not open'>"


def test_what_is_not_said_is_null_or_noted() -> None:
    told = finding().as_json()
    assert (told["session"], told["source"], told["frames"], told["action"]) == (None, None, [], "noted")


@pytest.mark.parametrize(
    ("rule", "given", "severity"),
    [("V12", None, "error"), ("V34", "info", "info"), ("V49", None, "info"), ("V99", None, "warning")],
)
def test_the_severity_is_the_rule_s_unless_it_is_said(rule: str, given: str | None, severity: str) -> None:
    assert Finding(0.0, rule, "agent", "x", severity=given).severity == severity


@pytest.mark.parametrize(("rule", "severity"), sorted(SEVERITIES.items()))
def test_severities_are_known_words_for_rules_with_numbers(rule: str, severity: str) -> None:
    assert re.fullmatch(r"V\d\d", rule)
    assert severity in ("error", "warning", "info")


@pytest.mark.parametrize(
    ("rule", "severity"),
    [
        ("V12", "error"),
        ("V19", "error"),
        ("V24", "error"),
        ("V29", "error"),
        ("V30", "warning"),
        ("V31", "error"),
        ("V32", "error"),
        ("V33", "error"),
        ("V34", "error"),
        ("V39", "warning"),
        ("V42", "error"),
        ("V44", "error"),
        ("V45", "warning"),
        ("V46", "warning"),
        ("V47", "warning"),
    ],
)
def test_the_specification_s_severities(rule: str, severity: str) -> None:
    assert SEVERITIES[rule] == severity


def test_findings_are_handed_out_once_in_order() -> None:
    log = FindingLog()
    assert log.take() == []
    first, second = finding(), finding("V30")
    log.note(first)
    log.note(second)
    assert log.take() == [first, second]
    assert log.take() == []
    assert log.counts == {"V24": 1, "V30": 1}


def test_a_noisy_rule_is_only_counted_in_the_end() -> None:
    log = FindingLog()
    for _ in range(MAX_PER_RULE + 50):
        log.note(finding())
    log.note(finding("V30"))
    fresh = log.take()
    assert [one.rule for one in fresh] == ["V24"] * MAX_PER_RULE + ["V30"]
    assert log.counts == {"V24": MAX_PER_RULE + 50, "V30": 1}
    assert fresh[MAX_PER_RULE - 1].text == "what happened (further findings of V24 are only counted)"
    assert fresh[MAX_PER_RULE - 2].text == "what happened"


def test_the_limit_holds_over_many_takes() -> None:
    log = FindingLog()
    handed_out = 0
    for _ in range(2 * MAX_PER_RULE):
        log.note(finding())
        handed_out += len(log.take())
    assert handed_out == MAX_PER_RULE


def test_frames_are_kept_as_they_were() -> None:
    frames = [1, 2]
    one = Finding(0.0, "V24", "agent", "x", frames=frames)
    frames.append(3)
    assert one.frames == (1, 2)
