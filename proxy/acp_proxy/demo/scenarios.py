"""The turns the demo plays and the states a v2 client has to be told in each of them."""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    """One prompt of the demo; `prompt` is also the name of the script the bundled agent runs for it.

    `states` are written as the timeline prints them: the state, for an idle that ends a turn followed by its
    stop reason in parentheses. Source: lifecycle §2.6.
    """

    prompt: str
    about: str
    states: tuple[str, ...]
    cancels: bool = False


SCENARIOS = (
    Scenario("text", "it answers and stops", ("running", "idle (end_turn)")),
    Scenario(
        "permission",
        "a tool needs a yes",
        ("running", "requires_action", "running", "idle (end_turn)"),
    ),
    Scenario(
        "parallel",
        "one tool needs a yes while another one still works",
        ("running", "requires_action", "running", "idle (end_turn)"),
    ),
    Scenario("cancel", "the user stops it", ("running", "idle (cancelled)"), cancels=True),
    Scenario("error", "the model fails halfway", ("running", "idle (error)")),
)
