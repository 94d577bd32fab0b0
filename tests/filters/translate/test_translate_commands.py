"""Bridge §7.5: commands get the tags of v2, and only names a user can type."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.commands import available_commands


def translated(*commands: Any) -> list[Any]:
    update = {
        "sessionUpdate": "available_commands_update",
        "availableCommands": list(commands),
        "_meta": {"k": 1},
    }
    before = repr(update)
    out = available_commands(update)
    assert repr(update) == before
    assert {**out, "availableCommands": update["availableCommands"]} == update
    return list(out["availableCommands"])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ({"name": "a", "description": "d"}, {"type": "command", "name": "a", "description": "d"}),
        (
            {"name": "/a", "description": "d", "input": None, "_meta": {}, "x": 1},
            {"type": "command", "name": "a", "description": "d", "input": None, "_meta": {}, "x": 1},
        ),
        (
            {"name": "a", "description": "d", "input": {"hint": "h", "_meta": {"k": 1}}},
            {
                "type": "command",
                "name": "a",
                "description": "d",
                "input": {"type": "text", "hint": "h", "_meta": {"k": 1}},
            },
        ),
        (
            {"name": "a", "type": "skill", "input": {"type": 1}},
            {"type": "command", "name": "a", "input": {"type": "text"}},
        ),
        ({"name": "//a"}, {"type": "command", "name": "/a"}),
        ({"name": "a", "input": "hint"}, {"type": "command", "name": "a", "input": "hint"}),
        ({"name": 5}, {"type": "command", "name": 5}),
        ({}, {"type": "command"}),
        ("a", "a"),
        (None, None),
    ],
)
def test_one_command(command: Any, expected: Any) -> None:
    assert translated(command) == [expected]


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\n", " a", "/ a", "a\u00a0b"])
def test_names_with_whitespace_are_left_out(name: str) -> None:
    assert translated({"name": name, "description": "d"}, {"name": "ok"}) == [
        {"type": "command", "name": "ok"}
    ]


def test_the_first_command_of_a_name_wins() -> None:
    out = translated({"name": "a", "description": "1"}, {"name": "/a", "description": "2"}, {"name": "b"})
    assert [(command["name"], command.get("description")) for command in out] == [("a", "1"), ("b", None)]


@pytest.mark.parametrize("update", [None, 5, [], {}, {"availableCommands": None}, {"availableCommands": "x"}])
def test_without_a_list_nothing_changes(update: Any) -> None:
    assert available_commands(update) is update
