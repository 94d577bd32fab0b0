"""Bridge §6, §7.2, §9: tool calls of a v1 agent become upserts of which no field is null."""

from __future__ import annotations

import time
from typing import Any

import pytest

from acp_proxy.filters.translate.tools import (
    permission_tool_call,
    tool_call,
    tool_call_update,
    tool_content,
)

UPDATE: dict[str, Any] = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "t1",
    "status": "in_progress",
    "content": [{"type": "content", "content": {"type": "text", "text": "x"}}],
    "locations": [{"path": "/p/a", "line": 3}],
    "rawOutput": {"nested": None},
    "_meta": {"kept": None},
    "vendor": [None],
}
PATCH_FIELDS = ("title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput")


def test_a_tool_call_becomes_an_update_with_all_its_fields() -> None:
    call = {**UPDATE, "sessionUpdate": "tool_call", "title": "t", "kind": "banana"}
    translated = tool_call(call, "/p")
    assert translated == {**call, "sessionUpdate": "tool_call_update"}
    assert list(translated) == list(call)
    assert call["sessionUpdate"] == "tool_call"


def test_nothing_is_filled_in() -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "t"}
    assert tool_call(call, "/p") == {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "t"}


def test_an_update_without_need_of_change_is_the_same_object() -> None:
    assert tool_call_update(UPDATE, "/p") is UPDATE


@pytest.mark.parametrize("field", [*PATCH_FIELDS, "_meta", "vendor"])
@pytest.mark.parametrize("tag", ["tool_call", "tool_call_update"])
def test_null_is_unchanged_and_does_not_pass(tag: str, field: str) -> None:
    update = {"sessionUpdate": tag, "toolCallId": "t1", "title": "t", field: None}
    translated = (tool_call if tag == "tool_call" else tool_call_update)(update, "/p")
    assert field not in translated
    assert translated["toolCallId"] == "t1"


@pytest.mark.parametrize("field", PATCH_FIELDS)
def test_falsy_values_other_than_null_pass(field: str) -> None:
    for value in (False, 0, "", [], {}):
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", field: value}
        assert tool_call_update(update, "/p") == update


def test_a_missing_tag_is_added() -> None:
    assert tool_call_update({"toolCallId": "t1"}, None)["sessionUpdate"] == "tool_call_update"


def test_in_a_permission_there_is_no_tag() -> None:
    fields = {"toolCallId": "t1", "kind": None, "locations": [{"path": "a"}]}
    assert permission_tool_call(fields, "/p") == {"toolCallId": "t1", "locations": [{"path": "/p/a"}]}
    assert permission_tool_call({"toolCallId": "t1"}, "/p") == {"toolCallId": "t1"}


DIFF = {"type": "diff", "path": "a", "oldText": "x\n", "newText": "y\n"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {"type": "content", "content": {"type": "resource_link", "name": "n", "uri": "/a"}, "_meta": {}},
            {
                "type": "content",
                "content": {"type": "resource_link", "name": "n", "uri": "file:///a"},
                "_meta": {},
            },
        ),
        (
            DIFF,
            {
                "type": "diff",
                "changes": [{"operation": "modify", "path": "/p/a", "fileType": "text"}],
                "patch": {
                    "format": "git_patch",
                    "text": "diff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -1 +1 @@\n-x\n+y\n",
                },
            },
        ),
        (
            {"type": "terminal", "terminalId": "term-1", "_meta": {"k": 1}, "vendor": 2},
            {
                "type": "content",
                "content": {"type": "text", "text": "[terminal term-1]"},
                "_meta": {"k": 1},
                "vendor": 2,
            },
        ),
        ({"type": "text", "text": "bare"}, {"type": "content", "content": {"type": "text", "text": "bare"}}),
        (
            {"type": "resource_link", "name": "n", "uri": "/a"},
            {"type": "content", "content": {"type": "resource_link", "name": "n", "uri": "file:///a"}},
        ),
    ],
    ids=["content", "diff", "terminal", "bare text", "bare link"],
)
def test_content_items(item: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(item)
    assert tool_content([item], "/p") == [expected]
    assert repr(item) == before


@pytest.mark.parametrize(
    "item",
    [
        {"type": "chart", "points": [1, 2]},
        {"type": "_vendor/x"},
        {"type": "terminal", "terminalId": "served"},
        {"type": "terminal", "terminalId": 4},
        {"type": "terminal"},
        {"type": "diff", "path": "/p"},
        {"type": "content"},
        {"type": "content", "content": "text"},
        {"type": 5},
        {"type": ["content"]},
        {},
        "text",
        None,
        [],
    ],
)
def test_unknown_and_malformed_items_stay(item: Any) -> None:
    items = [item]
    assert tool_content(items, "/p", frozenset({"served"})) is items


def test_only_the_proxys_own_terminals_stay() -> None:
    items = [{"type": "terminal", "terminalId": "theirs"}, {"type": "terminal", "terminalId": "ours"}]
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "content": items}
    translated = tool_call_update(update, "/p", frozenset({"ours"}))["content"]
    assert [item["type"] for item in translated] == ["content", "terminal"]
    assert translated[1] is items[1]


@pytest.mark.parametrize("value", ["text", 5, {"type": "text", "text": "x"}, True])
def test_content_and_locations_that_are_no_list_stay(value: Any) -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "content": value, "locations": value}
    assert tool_call_update(update, "/p") is update


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ({"path": "/a", "line": 1}, {"path": "/a", "line": 1}),
        ({"path": "a"}, {"path": "/p/a"}),
        ({"path": "/a", "line": 0}, {"path": "/a"}),
        ({"path": "/a", "line": None}, {"path": "/a"}),
        ({"line": 0, "path": "a", "_meta": {"k": None}}, {"path": "/p/a", "_meta": {"k": None}}),
        ({"path": "/a", "line": -1}, {"path": "/a", "line": -1}),
        ({"path": "/a", "line": "0"}, {"path": "/a", "line": "0"}),
        ({"path": 5}, {"path": 5}),
        ({}, {}),
        ("a", "a"),
        (None, None),
    ],
)
def test_locations(location: Any, expected: Any) -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "locations": [location]}
    before = repr(update)
    assert tool_call_update(update, "/p")["locations"] == [expected]
    assert repr(update) == before


@pytest.mark.parametrize("update", [None, 5, "x", [], [{}]])
def test_what_is_no_object_stays(update: Any) -> None:
    assert tool_call(update, "/p") is update
    assert tool_call_update(update, "/p") is update
    assert permission_tool_call(update, "/p") is update


def test_a_usual_update_is_cheap() -> None:
    call = {**UPDATE, "sessionUpdate": "tool_call", "title": None}
    rounds = 2_000
    best = min(_seconds(call, rounds) for _ in range(5))
    assert best / rounds < 50e-6, "a few microseconds; ten times that on a loaded machine"


def _seconds(call: dict[str, Any], rounds: int) -> float:
    started = time.process_time()
    for _ in range(rounds):
        tool_call(call, "/p")
        tool_call_update(UPDATE, "/p")
    return time.process_time() - started
