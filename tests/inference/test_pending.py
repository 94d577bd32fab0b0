"""Open requests are told apart by the JSON type and the value of their ids."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.inference.pending import Pending

TOKENS: list[Any] = [1, 1.0, True, "1", None, 0, False, "", "null", 10**30, [1], {"a": 1}]


def test_every_id_is_another_request() -> None:
    pending: Pending[int] = Pending()
    for number, token in enumerate(TOKENS):
        assert token not in pending
        pending.add(token, number)
    assert len(pending) == len(TOKENS)
    assert [pending.get(token) for token in TOKENS] == list(range(len(TOKENS)))
    assert [pending.pop(token) for token in TOKENS] == list(range(len(TOKENS)))
    assert len(pending) == 0


@pytest.mark.parametrize("token", TOKENS)
def test_a_request_is_answered_once(token: Any) -> None:
    pending: Pending[str] = Pending()
    assert (pending.get(token), pending.pop(token)) == (None, None)
    pending.add(token, "asked")
    assert token in pending
    assert pending.pop(token) == "asked"
    assert token not in pending
    assert pending.pop(token) is None


def test_an_id_used_twice_in_flight_keeps_the_later_entry() -> None:
    pending: Pending[str] = Pending()
    pending.add(1, "first")
    pending.add(1, "second")
    assert len(pending) == 1
    assert pending.pop(1) == "second"
    assert pending.pop(1) is None


def test_items_give_the_tokens_as_they_came_oldest_first() -> None:
    pending: Pending[str] = Pending()
    for token in ("b", 1, 1.0, "a"):
        pending.add(token, f"{token}!")
    pending.pop(1)
    assert list(pending.items()) == [("b", "b!"), (1.0, "1.0!"), ("a", "a!")]
    assert [type(token) for token, _ in pending.items()] == [str, float, str]


def test_items_may_be_changed_while_they_are_walked() -> None:
    pending: Pending[int] = Pending()
    for token in range(5):
        pending.add(token, token)
    for token, _ in pending.items():
        pending.pop(token)
        pending.add(str(token), token)
    assert [token for token, _ in pending.items()] == ["0", "1", "2", "3", "4"]
