"""The proxy's own marks: one key under `_meta`, nothing of others lost."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.meta import marked


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        ({"a": 1}, {"a": 1, "_meta": {"acp-proxy": {"orig": {"x": 1}}}}),
        ({"_meta": None}, {"_meta": {"acp-proxy": {"orig": {"x": 1}}}}),
        ({"_meta": [1]}, {"_meta": {"acp-proxy": {"orig": {"x": 1}}}}),
        (
            {"_meta": {"traceparent": "t"}, "a": 1},
            {"_meta": {"traceparent": "t", "acp-proxy": {"orig": {"x": 1}}}, "a": 1},
        ),
        (
            {"_meta": {"acp-proxy": {"synthetic": True, "orig": {"y": 2}}}},
            {"_meta": {"acp-proxy": {"synthetic": True, "orig": {"y": 2, "x": 1}}}},
        ),
        ({"_meta": {"acp-proxy": 3}}, {"_meta": {"acp-proxy": {"orig": {"x": 1}}}}),
        ({"_meta": {"acp-proxy": {"orig": 3}}}, {"_meta": {"acp-proxy": {"orig": {"x": 1}}}}),
    ],
)
def test_marks_are_merged_under_one_key(holder: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(holder)
    assert marked(holder, "orig", {"x": 1}) == expected
    assert repr(holder) == before
