"""Bridge §7.6: settings, and modes as a setting."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.config_options import (
    current_mode,
    has_mode,
    mode_option,
    mode_request,
    options,
    set_request,
    with_value,
)
from acp_proxy.filters.translate.refusal import Refusal

CHOICE = {"value": "a", "name": "A", "description": None, "_meta": {"k": 1}, "x": 1}
MODES: dict[str, Any] = {
    "currentModeId": "ask",
    "availableModes": [
        {"id": "ask", "name": "Ask", "description": "d", "_meta": {"m": None}},
        {"id": "code", "name": "Code"},
    ],
    "_meta": {"all": 1},
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {
                "id": "m",
                "name": "M",
                "type": "select",
                "currentValue": "a",
                "options": [CHOICE],
                "_meta": {"k": 1},
            },
            {
                "configId": "m",
                "name": "M",
                "type": "select",
                "currentValue": "a",
                "options": [CHOICE],
                "_meta": {"k": 1},
            },
        ),
        (
            {
                "type": "select",
                "id": "m",
                "options": [{"group": "g", "name": "G", "options": [CHOICE], "x": 1}],
            },
            {
                "type": "select",
                "configId": "m",
                "options": [{"groupId": "g", "name": "G", "options": [CHOICE], "x": 1}],
            },
        ),
        (
            {
                "id": "m",
                "type": "select",
                "options": [
                    {"group": "g", "options": []},
                    {"group": "h", "options": [CHOICE]},
                    {"group": "i"},
                ],
            },
            {"configId": "m", "type": "select", "options": [{"groupId": "h", "options": [CHOICE]}]},
        ),
        (
            {"id": "b", "type": "boolean", "currentValue": False, "category": "model"},
            {"configId": "b", "type": "boolean", "currentValue": False, "category": "model"},
        ),
        (
            {"id": "x", "type": "_vendor/slider", "options": [], "min": 1},
            {"configId": "x", "type": "_vendor/slider", "options": [], "min": 1},
        ),
        ({"configId": "v2", "type": "boolean"}, {"configId": "v2", "type": "boolean"}),
        ({"configId": "lost", "id": "won", "type": "boolean"}, {"configId": "won", "type": "boolean"}),
        (
            {"id": "m", "type": "select", "options": "odd"},
            {"configId": "m", "type": "select", "options": "odd"},
        ),
        (
            {"id": "m", "type": "select", "options": ["odd", None]},
            {"configId": "m", "type": "select", "options": ["odd"]},
        ),
        ({}, {}),
        ("odd", "odd"),
        (None, None),
    ],
    ids=range(12),
)
def test_one_option(given: Any, expected: Any) -> None:
    before = repr(given)
    out = options([given])
    assert out == [expected]
    if isinstance(given, dict):
        renamed = {"id": "configId"}
        assert list(out[0]) == [
            renamed.get(key, key) for key in given if key != "configId" or "id" not in given
        ]
    assert repr(given) == before


@pytest.mark.parametrize(
    "choices", [[], None, [{"group": "g", "options": []}], [{"groupId": "g", "options": None}]]
)
def test_a_select_left_without_options_is_left_out(choices: Any) -> None:
    kept = {"id": "b", "type": "boolean"}
    assert options([{"id": "m", "type": "select", "options": choices}, kept]) == [
        {"configId": "b", "type": "boolean"}
    ]
    assert options([{"id": "m", "type": "select"}]) == []


@pytest.mark.parametrize("given", [None, "x", 5, {}, {"id": "m"}])
def test_what_is_no_list_is_an_empty_one(given: Any) -> None:
    assert options(given) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([{"category": "mode", "type": "select"}], True),
        ([{"category": "mode", "type": "_other"}], True),
        ([{"category": "model"}, {"id": "mode"}, "mode", None], False),
        ([], False),
        (None, False),
        ("mode", False),
        ({"category": "mode"}, False),
    ],
)
def test_has_mode(given: Any, expected: bool) -> None:
    assert has_mode(given) is expected


def test_modes_become_a_select() -> None:
    before = repr(MODES)
    assert mode_option(MODES, ()) == {
        "configId": "mode",
        "name": "Mode",
        "category": "mode",
        "type": "select",
        "currentValue": "ask",
        "options": [
            {"value": "ask", "name": "Ask", "description": "d", "_meta": {"m": None}},
            {"value": "code", "name": "Code"},
        ],
        "_meta": {"all": 1},
    }
    assert repr(MODES) == before


@pytest.mark.parametrize(("taken", "config_id"), [({"model"}, "mode"), ({"mode", "model"}, "acp-proxy-mode")])
def test_a_taken_id_gives_way(taken: set[str], config_id: str) -> None:
    option = mode_option(MODES, taken)
    assert option is not None
    assert option["configId"] == config_id


def test_unusable_modes_are_left_out_and_a_nameless_one_shows_its_id() -> None:
    option = mode_option(
        {"currentModeId": "b", "availableModes": ["a", {"name": "x"}, {"id": 5}, {"id": "b"}]}, ()
    )
    assert option is not None
    assert option["options"] == [{"value": "b", "name": "b"}]


@pytest.mark.parametrize(
    "modes",
    [
        None,
        [],
        "ask",
        {},
        {"availableModes": None},
        {"availableModes": []},
        {"availableModes": [{"id": None}]},
    ],
)
def test_no_usable_mode_no_option(modes: Any) -> None:
    assert mode_option(modes, ()) is None


LIST: list[Any] = [
    "odd",
    {"configId": "a", "currentValue": 1},
    {"configId": "b", "currentValue": "x", "_meta": {}},
]


def test_with_value_copies_what_changes() -> None:
    before = repr(LIST)
    out = with_value(LIST, "b", "y")
    assert out == [
        "odd",
        {"configId": "a", "currentValue": 1},
        {"configId": "b", "currentValue": "y", "_meta": {}},
    ]
    assert out[1] is LIST[1]
    assert repr(LIST) == before


@pytest.mark.parametrize(("config_id", "value"), [("b", "x"), ("a", 1), ("c", "z"), (None, "z")])
def test_with_value_that_changes_nothing_is_the_same_list(config_id: Any, value: Any) -> None:
    assert with_value(LIST, config_id, value) is LIST


def test_with_value_tells_true_from_one() -> None:
    assert with_value(LIST, "a", True)[1]["currentValue"] is True


@pytest.mark.parametrize(
    ("update", "mode"),
    [
        ({"currentModeId": "a"}, "a"),
        ({"modeId": "a"}, "a"),
        ({"modeId": "b", "currentModeId": "a"}, "a"),
        ({"currentModeId": None, "modeId": "b"}, "b"),
        ({"currentModeId": 5}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_current_mode(update: Any, mode: str | None) -> None:
    assert current_mode(update) == mode


PARAMS = {"sessionId": "s", "configId": "c", "_meta": {"k": None}, "x": 1}


def test_setting_an_id_loses_the_tag() -> None:
    given = {"type": "id", **PARAMS, "value": "v"}
    before = repr(given)
    assert set_request(given) == {**PARAMS, "value": "v"}
    assert repr(given) == before


@pytest.mark.parametrize("value", [True, False])
def test_setting_a_boolean_passes(value: bool) -> None:
    given = {**PARAMS, "type": "boolean", "value": value}
    assert set_request(given) == given


@pytest.mark.parametrize(
    "given",
    [
        {**PARAMS, "value": "v"},
        {**PARAMS, "type": "_vendor/x", "value": "v"},
        {**PARAMS, "type": None, "value": "v"},
        {**PARAMS, "type": ["id"], "value": "v"},
        {**PARAMS, "type": "id", "value": True},
        {**PARAMS, "type": "id"},
        {**PARAMS, "type": "boolean", "value": "true"},
        {**PARAMS, "type": "boolean", "value": 1},
        None,
        [],
    ],
)
def test_setting_anything_else_is_refused(given: Any) -> None:
    refused = set_request(given)
    assert isinstance(refused, Refusal)
    assert refused.code == -32602


def test_setting_the_made_up_option_sets_the_mode() -> None:
    given = {"sessionId": "s", "configId": "mode", "value": "code", "_meta": {"k": 1}}
    assert mode_request(given) == {"sessionId": "s", "modeId": "code", "_meta": {"k": 1}}
