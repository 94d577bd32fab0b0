"""A refusal becomes the error object of a JSON-RPC response."""

from __future__ import annotations

from acp_proxy.filters.translate.refusal import INVALID_PARAMS, Refusal


def test_error_without_data_has_code_and_message_only() -> None:
    assert Refusal(INVALID_PARAMS, "no").error() == {"code": -32602, "message": "no"}


def test_error_with_data_carries_it_even_when_it_is_falsy() -> None:
    assert Refusal(-32002, "gone", {}).error() == {"code": -32002, "message": "gone", "data": {}}


def test_repr_tells_what_was_refused() -> None:
    assert repr(Refusal(-32602, "no", [1])) == "Refusal(-32602, 'no', [1])"
