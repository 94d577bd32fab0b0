"""Bridge §7.3: questions to the user, and never an approval nobody gave."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.filters.translate.permissions import offered_options, outcome_to_v1, request_to_v2
from acp_proxy.filters.translate.refusal import Refusal

OPTIONS = [
    {"optionId": "ok", "name": "Yes", "kind": "allow_once", "_meta": {"o": 1}},
    {"optionId": "odd", "name": "Odd", "kind": "_vendor/kind"},
]


def params(**tool: Any) -> dict[str, Any]:
    return {
        "sessionId": "s",
        "toolCall": {"toolCallId": "t", **tool},
        "options": OPTIONS,
        "_meta": {"k": None},
        "vendor": 1,
    }


def translated(given: dict[str, Any], stored_title: str | None) -> dict[str, Any]:
    before = repr(given)
    out = request_to_v2(given, stored_title=stored_title, cwd="/p")
    assert repr(given) == before
    assert isinstance(out, dict)
    return out


def test_the_tool_call_becomes_the_subject() -> None:
    out = translated(params(title="Edit a", kind=None, locations=[{"path": "a", "line": 0}]), None)
    assert out == {
        "sessionId": "s",
        "title": "Edit a",
        "subject": {
            "type": "tool_call",
            "toolCall": {"toolCallId": "t", "title": "Edit a", "locations": [{"path": "/p/a"}]},
        },
        "options": OPTIONS,
        "_meta": {"k": None},
        "vendor": 1,
    }
    assert list(out) == ["sessionId", "title", "subject", "options", "_meta", "vendor"]


@pytest.mark.parametrize(
    ("asked", "stored", "title", "tool_title"),
    [
        ({"title": "Allow?"}, None, "Allow?", "Allow?"),
        ({"title": "Allow?"}, "Edit a", "Allow?", None),
        ({"title": "Edit a"}, "Edit a", "Edit a", "Edit a"),
        ({}, "Edit a", "Edit a", None),
        ({}, None, "Permission required", None),
        ({"title": None}, "Edit a", "Edit a", None),
        ({"title": None}, None, "Permission required", None),
        ({"title": ""}, "Edit a", "Edit a", None),
        ({"title": 5}, "Edit a", "Edit a", None),
        ({"title": "Allow?"}, "", "Allow?", None),
        ({}, "", "Permission required", None),
    ],
)
def test_titles(asked: dict[str, Any], stored: str | None, title: str, tool_title: str | None) -> None:
    out = translated(params(**asked), stored)
    assert out["title"] == title
    assert out["subject"]["toolCall"].get("title") == tool_title


def test_v2_fields_of_the_agent_do_not_speak_for_the_bridge() -> None:
    given = {"title": "theirs", "subject": {"type": "command"}, **params(title="T"), "description": "kept"}
    out = translated(given, None)
    assert out["title"] == "T"
    assert out["subject"]["type"] == "tool_call"
    assert out["description"] == "kept"


@pytest.mark.parametrize(
    "options",
    [
        None,
        [],
        {},
        "ok",
        5,
        ["ok"],
        [None],
        [{}],
        [{"optionId": "ok"}],
        [{"optionId": 1, "name": "Y", "kind": "allow_once"}],
        [{"optionId": "a", "name": None, "kind": "allow_once"}],
        [{"optionId": "a", "name": "A", "kind": ["allow_once"]}],
    ],
)
def test_nothing_to_choose_is_refused(options: Any) -> None:
    refused = request_to_v2({**params(), "options": options}, stored_title=None, cwd=None)
    assert isinstance(refused, Refusal)
    assert "option" in refused.message


def test_options_pass_as_they_are_beside_a_malformed_one() -> None:
    options = [None, *OPTIONS, {"optionId": 5}]
    out = translated({**params(), "options": options}, None)
    assert out["options"] is options


@pytest.mark.parametrize("tool", [None, "t", [], 5])
def test_nothing_to_approve_is_refused(tool: Any) -> None:
    assert isinstance(request_to_v2({**params(), "toolCall": tool}, stored_title=None, cwd=None), Refusal)
    assert isinstance(request_to_v2({"options": OPTIONS}, stored_title=None, cwd=None), Refusal)
    assert isinstance(request_to_v2(tool, stored_title=None, cwd=None), Refusal)


@pytest.mark.parametrize(
    ("given_params", "expected"),
    [
        ({"options": OPTIONS}, {"ok", "odd"}),
        ({"options": [None, {"optionId": 1}, {"optionId": "x"}]}, {"x"}),
        ({"options": {"optionId": "x"}}, set()),
        ({}, set()),
        (None, set()),
    ],
)
def test_offered_options(given_params: Any, expected: set[str]) -> None:
    assert offered_options(given_params) == expected


OFFERED = frozenset({"ok", "no"})


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": {"outcome": "selected", "optionId": "ok"}},
        {
            "outcome": {"outcome": "selected", "optionId": "no", "_meta": {"o": None}},
            "_meta": {"r": 1},
            "x": 1,
        },
        {"outcome": {"outcome": "cancelled", "_meta": {"o": None}}, "_meta": {"r": 1}},
    ],
)
def test_an_answer_v1_knows_passes(result: dict[str, Any]) -> None:
    out, why = outcome_to_v1(result, OFFERED)
    assert out is result
    assert why is None


@pytest.mark.parametrize(
    "outcome",
    [
        {"outcome": "selected", "optionId": "invented"},
        {"outcome": "selected", "optionId": "OK"},
        {"outcome": "selected", "optionId": None},
        {"outcome": "selected", "optionId": ["ok"]},
        {"outcome": "selected"},
        {"outcome": "Selected", "optionId": "ok"},
        {"outcome": "approved", "optionId": "ok"},
        {"outcome": "_vendor/later"},
        {"outcome": "canceled"},
        {"outcome": None},
        {"outcome": ["selected"], "optionId": "ok"},
        {},
        "selected",
        None,
        ["selected"],
    ],
)
def test_any_other_answer_is_cancelled(outcome: Any) -> None:
    out, why = outcome_to_v1({"outcome": outcome, "_meta": {"r": None}, "optionId": "ok"}, OFFERED)
    assert out == {"outcome": {"outcome": "cancelled"}, "_meta": {"r": None}}
    assert why


@pytest.mark.parametrize("result", [None, [], "selected", 5, True])
def test_a_result_that_is_no_object_is_cancelled(result: Any) -> None:
    out, why = outcome_to_v1(result, OFFERED)
    assert out == {"outcome": {"outcome": "cancelled"}}
    assert why


def test_meta_survives_and_the_clients_word_does_not() -> None:
    out, _ = outcome_to_v1({"outcome": {"outcome": "approved", "_meta": {"o": 1}}}, OFFERED)
    assert out == {"outcome": {"outcome": "cancelled", "_meta": {"o": 1}}}
    assert "approved" not in json.dumps(out)


WORDS = st.sampled_from(["selected", "cancelled", "SELECTED", "allow", "ok", 1, None])
OPTION_IDS = st.sampled_from(["ok", "no", "OK", "maybe", "", None, ["ok"]])


@given(
    st.fixed_dictionaries({"outcome": WORDS}, optional={"optionId": OPTION_IDS}),
    st.frozensets(st.text(max_size=2)),
)
def test_only_an_offered_option_is_ever_selected(outcome: dict[str, Any], others: frozenset[str]) -> None:
    offered = others | OFFERED
    out, why = outcome_to_v1({"outcome": outcome}, offered)
    chosen = outcome["outcome"] == "selected" and outcome.get("optionId") in [*offered]
    assert (out["outcome"]["outcome"] == "selected") is chosen
    assert (why is None) is (chosen or outcome["outcome"] == "cancelled")
