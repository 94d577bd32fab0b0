"""Which of the offered options says no, and which says yes exactly once.

Nothing here guesses: a kind that is misspelt or unknown neither rejects nor approves (BR-37).
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.jsonrpc.message import Json

_REJECTING: Final = ("reject_once", "reject_always")


def rejection(options: Any) -> Json:
    """The outcome that rejects: an offered reject option, else `cancelled`; never an allow option."""
    for kind in _REJECTING:
        chosen = _first(options, kind)
        if chosen is not None:
            return chosen
    return {"outcome": {"outcome": "cancelled"}}


def approval(options: Any) -> Json | None:
    """The outcome that allows exactly once; None when no option of exactly that kind is offered."""
    return _first(options, "allow_once")


def _first(options: Any, kind: str) -> Json | None:
    """The first option of this kind; an id that options of two kinds share says neither."""
    given = [option for option in options if type(option) is dict] if type(options) is list else []
    for option in given:
        chosen = option.get("optionId")
        if option.get("kind") != kind or type(chosen) is not str:
            continue
        if all(other.get("kind") == kind for other in given if other.get("optionId") == chosen):
            return {"outcome": {"outcome": "selected", "optionId": chosen}}
    return None
