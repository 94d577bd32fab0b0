"""Which option says no and which says yes: a guess is neither (BR-37)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.policy.verdicts import approval, rejection


def option(kind: Any, option_id: Any = "o") -> dict[str, Any]:
    return {"optionId": option_id, "name": "n", "kind": kind}


def test_a_reject_option_is_chosen_once_before_always() -> None:
    options = [option("allow_once", "a"), option("reject_always", "b"), option("reject_once", "c")]
    assert rejection(options)["outcome"] == {"outcome": "selected", "optionId": "c"}
    assert rejection(options[:2])["outcome"] == {"outcome": "selected", "optionId": "b"}


@pytest.mark.parametrize(
    "options",
    [
        [],
        None,
        "reject_once",
        [option("allow_once"), option("allow_always")],
        [option("vendor_reject")],
        [option("Reject_Once")],
        [option("reject_once", 5)],
        [option(["reject_once"])],
        [None, 5, {}],
    ],
)
def test_without_one_it_is_cancelled(options: Any) -> None:
    assert rejection(options) == {"outcome": {"outcome": "cancelled"}}


kinds = st.sampled_from(["allow_once", "allow_always", "reject_once", "reject_always", "x", None, 5])


@given(st.lists(st.builds(option, kinds, st.sampled_from(["a", "b", "c", None])), max_size=5))
def test_an_allow_option_is_never_chosen(options: list[dict[str, Any]]) -> None:
    outcome = rejection(options)["outcome"]
    if outcome["outcome"] == "selected":
        chosen = [each for each in options if each["optionId"] == outcome["optionId"]]
        assert {each["kind"] for each in chosen} in ({"reject_once"}, {"reject_always"})


@given(st.lists(st.builds(option, kinds, st.sampled_from(["a", "b", "c", None])), max_size=5))
def test_nothing_but_allow_once_approves(options: list[dict[str, Any]]) -> None:
    outcome = approval(options)
    others = {each["optionId"] for each in options if each["kind"] != "allow_once"} | {None}
    offered = [each for each in options if each["optionId"] not in others]
    if not offered:
        assert outcome is None
    else:
        assert outcome == {"outcome": {"outcome": "selected", "optionId": offered[0]["optionId"]}}


@pytest.mark.parametrize("kind", ["allow_always", "allowOnce", "Allow_Once", "allow", "_allow_once", None, 5])
def test_what_merely_sounds_like_it_does_not(kind: Any) -> None:
    assert approval([option(kind), option("reject_once")]) is None


def test_an_id_that_both_says_yes_and_no_says_neither() -> None:
    shared = [option("allow_always", "x"), option("reject_once", "x"), option("allow_once", "x")]
    assert rejection(shared) == {"outcome": {"outcome": "cancelled"}}
    assert approval(shared) is None
    own = {"outcome": {"outcome": "selected", "optionId": "y"}}
    assert rejection([*shared, option("reject_always", "y")]) == own
