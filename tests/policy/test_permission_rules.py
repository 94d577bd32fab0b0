"""Permission rules: reading the table, reading requests of both versions, the first fit."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.errors import ConfigError
from acp_proxy.policy.permission_rules import Asked, first_fit, read_request, read_rules


def asked(**given: Any) -> Asked:
    fields: dict[str, Any] = {
        "kind": None,
        "title": None,
        "command": None,
        "paths": (),
        "cwd": None,
        "option_kinds": (),
    }
    return Asked(**{**fields, **given})


def decision(tables: list[Any], request: Asked) -> str | None:
    rule = first_fit(read_rules(tables), request)
    return None if rule is None else rule.decision


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({}, "permissions.rules[1].decision"),
        ({"decision": "allow"}, "permissions.rules[1].decision"),
        ({"decision": "allow_always"}, "permissions.rules[1].decision"),
        ({"decision": ["ask"]}, "permissions.rules[1].decision"),
        ({"decision": "ask", "tool": "x"}, "unknown key 'tool'"),
        ({"decision": "ask", "kind": 3}, "permissions.rules[1].kind"),
        ({"decision": "ask", "kind": []}, "permissions.rules[1].kind"),
        ({"decision": "ask", "title": "/(/"}, "permissions.rules[1].title: not a regular expression"),
        ("ask", "permissions.rules[1]: expected a table"),
    ],
)
def test_mistake_in_a_rule_is_named(table: Any, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules([table])
    assert named in str(caught.value)


def test_second_rule_is_named_by_its_number() -> None:
    with pytest.raises(ConfigError, match=r"permissions\.rules\[2\]"):
        read_rules([{"decision": "ask"}, {"decision": "yes"}])


def test_first_match_wins() -> None:
    tables = [
        {"decision": "ask", "kind": "edit"},
        {"decision": "reject", "kind": ["edit", "delete"]},
        {"decision": "allow_once"},
    ]
    assert decision(tables, asked(kind="edit")) == "ask"
    assert decision(tables, asked(kind="delete")) == "reject"
    assert decision(tables, asked(kind="read")) == "allow_once"
    assert decision(tables[:2], asked(kind="read")) is None


def test_rule_with_kind_does_not_match_a_request_without_one() -> None:
    tables = [{"decision": "reject", "kind": "*"}, {"decision": "ask"}]
    assert decision(tables, asked()) == "ask"


@pytest.mark.parametrize(
    ("pattern", "title", "fits"),
    [
        ("Edit *", "Edit a", True),
        ("edit *", "Edit a", False),
        ("/^Edit/", "Edit a", True),
        ("/dit a$/", "Edit a", True),
        ("/^dit/", "Edit a", False),
        ("Edit ?", "Edit ab", False),
        ("Edit [ab]", "Edit b", True),
    ],
)
def test_patterns_are_globs_or_expressions(pattern: str, title: str, fits: bool) -> None:
    assert (decision([{"decision": "reject", "title": pattern}], asked(title=title)) == "reject") is fits


def test_allowing_rule_must_cover_every_path() -> None:
    inside, outside = "/p/a.py", "/etc/passwd"
    allow = [{"decision": "allow_once", "path": "/p/*"}]
    assert decision(allow, asked(paths=[inside])) == "allow_once"
    assert decision(allow, asked(paths=[inside, outside])) is None
    assert decision(allow, asked()) is None
    reject = [{"decision": "reject", "path": "/etc/*"}]
    assert decision(reject, asked(paths=[inside, outside])) == "reject"


@pytest.mark.parametrize(
    "command", ["git log; rm -rf .", "git log && x", "git log | sh", "git $(x)", "git log\nrm x", "git `x`"]
)
def test_allowing_glob_does_not_cover_a_second_command(command: str) -> None:
    assert decision([{"decision": "allow_once", "command": "git *"}], asked(command=command)) is None
    assert decision([{"decision": "reject", "command": "git *"}], asked(command=command)) == "reject"


def test_allowing_glob_may_spell_what_it_allows() -> None:
    assert decision([{"decision": "allow_once", "command": "git * | head"}], asked(command="git log | head"))
    assert decision([{"decision": "allow_once", "command": r"/^git .*;/"}], asked(command="git log; x"))


OPTIONS = [
    {"optionId": "a", "name": "A", "kind": "allow_once"},
    {"optionId": "r", "name": "R", "kind": "reject_once"},
]


def test_v1_request_is_read_with_what_was_said_of_the_tool_before() -> None:
    known = {"kind": "edit", "title": "Edit a", "rawInput": {"command": ["git", "log"]}}
    params = {
        "toolCall": {
            "toolCallId": "t",
            "title": None,
            "locations": [{"path": "/p/b"}, {"line": 1}, "odd"],
            "content": [{"type": "diff", "path": "/p/a", "newText": ""}, {"type": "content"}],
        },
        "options": [*OPTIONS, "odd", {"kind": 3}],
    }
    request = read_request(params, known, "/p")
    assert (request.kind, request.title, request.command) == ("edit", "Edit a", "git log")
    assert list(request.paths) == ["/p/b", "/p/a"]
    assert (request.cwd, list(request.option_kinds)) == ("/p", ["allow_once", "reject_once"])


def test_v2_request_is_read_by_its_subject() -> None:
    tool = {
        "toolCallId": "t",
        "kind": "move",
        "content": [{"type": "diff", "changes": [{"path": "/n", "oldPath": "/o"}]}],
    }
    request = read_request(
        {"title": "Move?", "subject": {"type": "tool_call", "toolCall": tool}, "options": OPTIONS}, {}, None
    )
    assert (request.kind, request.title, list(request.paths)) == ("move", "Move?", ["/n", "/o"])
    command = {"type": "command", "command": "make", "cwd": "/w"}
    request = read_request({"title": "Run?", "subject": command, "options": OPTIONS}, {}, "/p")
    assert (request.kind, request.command, request.cwd) == ("execute", "make", "/w")


@pytest.mark.parametrize(
    "odd",
    [
        None,
        3,
        "x",
        [],
        {},
        {"toolCall": 7},
        {"subject": 7},
        {"options": 7},
        {"toolCall": {"locations": 7, "content": 7}},
    ],
)
def test_odd_request_is_read_as_saying_nothing(odd: Any) -> None:
    request = read_request(odd if isinstance(odd, dict) else {}, {}, None)
    assert (request.kind, request.command, list(request.paths)) == (None, None, [])
