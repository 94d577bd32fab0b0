"""Bridge §7.9: forms get what v2 requires, answers get what v1 can take."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.elicitation import request_to_v2, response_to_v1
from acp_proxy.filters.translate.refusal import Refusal


def form(schema: Any, **more: Any) -> dict[str, Any]:
    return {"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": schema, **more}


FULL = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    "given",
    [
        form(FULL, _meta={"k": None}, toolCallId="t"),
        form({"type": "custom", "properties": [], "required": None}),
        form("odd"),
        form(None),
        {"requestId": 4, "mode": "url", "message": "m", "url": "https://x", "elicitationId": "e"},
        {"requestId": 0, "sessionId": None, "mode": "form", "message": "m"},
        {"sessionId": "s", "mode": "_vendor/x", "requestedSchema": {}},
        {"sessionId": "s", "mode": ["form"]},
        {"sessionId": "s"},
        form({"type": "object", "properties": {"a": {"type": "_vendor/x", "y": 1}, "b": "odd", "c": {}}}),
        form(
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "_v", "enum": ["x"]}}}}
        ),
        form({"type": "object", "properties": {"a": {"type": "array", "items": []}, "b": {"type": "array"}}}),
        form({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"], "format": "odd"}}}),
    ],
)
def test_a_request_without_need_of_change_is_the_same_object(given: dict[str, Any]) -> None:
    assert request_to_v2(given) is given


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": None, "properties": None}, {"type": "object", "properties": {}}),
        (
            {"properties": {}, "title": "t", "_meta": {}},
            {"properties": {}, "title": "t", "_meta": {}, "type": "object"},
        ),
        ({"type": "object", "required": ["a"]}, {"type": "object", "required": ["a"], "properties": {}}),
        (
            {"type": "object", "properties": {"a": {"type": "string", "enum": [], "title": "t"}, "b": {}}},
            {"type": "object", "properties": {"a": {"type": "string", "title": "t"}, "b": {}}},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "oneOf": [], "enum": ["x"]}}},
            {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}},
        ),
    ],
)
def test_what_v2_requires_is_filled_in(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    given = form(schema, _meta={"k": 1})
    before = repr(given)
    assert request_to_v2(given) == form(expected, _meta={"k": 1})
    assert repr(given) == before


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "form", "message": "m", "requestedSchema": FULL},
        {"mode": "form", "sessionId": None, "requestId": None},
        {"mode": "form", "sessionId": "s", "requestId": 4},
        form({"properties": {"a": {"type": "array", "items": {"type": "string", "enum": []}}}}),
        form({"properties": {"a": {"type": "array", "items": {"anyOf": []}}}}),
        None,
        [],
        "x",
    ],
)
def test_refused(given: Any) -> None:
    refused = request_to_v2(given)
    assert isinstance(refused, Refusal)
    assert refused.code == -32602


@pytest.mark.parametrize(
    ("mode", "passes"), [("form", True), ("url", False), (None, False), (["form"], False)]
)
def test_only_modes_the_client_advertised(mode: Any, passes: bool) -> None:
    given = {"sessionId": "s", "mode": mode}
    assert isinstance(request_to_v2(given, {"form"}), Refusal) is not passes
    assert request_to_v2(given) is given


@pytest.mark.parametrize(
    "result",
    [
        {
            "action": "accept",
            "content": {"a": "x", "b": 1, "c": 1.5, "d": True, "e": ["x"], "f": []},
            "_meta": {},
        },
        {"action": "accept", "content": None},
        {"action": "accept"},
        {"action": "decline", "content": {"a": {"deep": 1}}},
        {"action": "cancel"},
        {"action": "Accept", "content": {"a": "x"}},
        {"action": "_vendor/later", "x": 1},
    ],
)
def test_an_answer_without_need_of_change_is_the_same_object(result: dict[str, Any]) -> None:
    assert response_to_v1(result) is result


def test_values_v1_cannot_take_are_dropped_and_kept_aside() -> None:
    result = {
        "action": "accept",
        "content": {"a": "x", "b": None, "c": {"d": 1}, "e": ["x", 1], "f": [["x"]]},
        "_meta": {"k": None},
    }
    before = repr(result)
    assert response_to_v1(result) == {
        "action": "accept",
        "content": {"a": "x"},
        "_meta": {
            "k": None,
            "acp-proxy": {"dropped": {"content": {"b": None, "c": {"d": 1}, "e": ["x", 1], "f": [["x"]]}}},
        },
    }
    assert repr(result) == before


@pytest.mark.parametrize("result", [None, [], "accept", 5, {}, {"action": None}, {"action": ["accept"]}])
def test_a_malformed_answer_is_a_cancel(result: Any) -> None:
    assert response_to_v1(result) == {"action": "cancel"}


def test_a_cancel_made_up_keeps_meta() -> None:
    assert response_to_v1({"action": 1, "content": {}, "_meta": {"k": 1}}) == {
        "action": "cancel",
        "_meta": {"k": 1},
    }
