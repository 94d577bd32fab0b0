"""Bridge §6, §7.4: the one plan of a v1 session."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.filters.translate.plans import plan

ENTRIES = [{"content": "c", "priority": "urgent", "status": "cancelled", "_meta": {"e": 1}, "x": None}, "odd"]


def test_entries_pass_and_the_rest_stays_on_the_update() -> None:
    update = {"sessionUpdate": "plan", "_meta": {"k": None}, "entries": ENTRIES, "vendor": 1}
    before = repr(update)
    translated = plan(update)
    assert translated == {
        "sessionUpdate": "plan_update",
        "_meta": {"k": None},
        "plan": {"type": "items", "planId": "acp-proxy", "entries": ENTRIES},
        "vendor": 1,
    }
    assert list(translated) == ["sessionUpdate", "_meta", "plan", "vendor"]
    assert repr(update) == before


@pytest.mark.parametrize("entries", [[], None, "x", {"a": 1}])
def test_entries_of_any_shape_pass(entries: Any) -> None:
    translated = plan({"sessionUpdate": "plan", "entries": entries})
    assert translated["plan"] == {"type": "items", "planId": "acp-proxy", "entries": entries}


def test_without_entries_none_are_made_up() -> None:
    translated = plan({"sessionUpdate": "plan"})
    assert translated == {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "acp-proxy"}}


def test_a_plan_of_v2_shape_beside_the_entries_gives_way() -> None:
    translated = plan({"sessionUpdate": "plan", "plan": {"type": "markdown"}, "entries": []})
    assert translated["plan"]["type"] == "items"


@pytest.mark.parametrize("update", [None, 5, "x", []])
def test_what_is_no_object_stays(update: Any) -> None:
    assert plan(update) is update
