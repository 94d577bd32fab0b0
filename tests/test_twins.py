"""One agent, recorded twice in the same scenario: once in v1, once in v2 with the states it tells itself.

What the bridge tells from the first agrees with the second, but for the differences below, each with its reason.
"""

from __future__ import annotations

import pytest

from schema_cache import package_dir
from traces_player import TRACES, entries, native_states, play, sessions

# The v2 trace's scenario, and the v1 trace's.
TWINS = {
    "bg": "bg",
    "bgperm": "bgperm",
    "busy": "second-prompt",
    "errmid": "errmid",
    "error401": "error401",
    "error500": "error500",
    "parallel-hold": "parallel-hold",
    "parallel-mixed": "parallel-mixed-answer",
    "perm-cancel": "cancel-perm",
    "permission": "permission-allow",
    "permission-reject": "permission-reject",
    "refusal": "refusal",
    "resume": "load",
    "slow-cancel": "cancel-stream",
    "text": "text",
    "tool-cancel": "cancel-tool",
}

SYSTEM_ERROR = (
    "The v1 result says end_turn; that the model failed stands only in a hint of the vendor's (threadStatus "
    "systemError), and no hint overrules the wire's own end of a turn."
)
# What we tell, what the agent tells, and why: in the first turns, as many as the v2 trace has.
DIFFERENCES: dict[str, tuple[str, str, str]] = {
    "busy": (
        "running, idle cancelled",
        "running, idle end_turn, running, idle end_turn",
        "The v1 client lost patience and cancelled, which withdraws the held prompt; the v2 client waited.",
    ),
    "errmid": ("running, idle end_turn", "running, idle error", SYSTEM_ERROR),
    "error500": ("running, idle end_turn", "running, idle error", SYSTEM_ERROR),
    "refusal": ("running, idle end_turn", "running, idle error", SYSTEM_ERROR),
    "parallel-hold": (
        "running, requires_action, running, requires_action, running, idle end_turn",
        "running, requires_action, running, requires_action, running, requires_action, running, idle end_turn",
        "The v1 client answered its second question before the tool of the first had ended; nothing was left to "
        "wait for. The agent has the tool move at once when its question is answered; by the v1 wire it is pending "
        "since it asked.",
    ),
    "parallel-mixed": (
        "running, requires_action, running, requires_action, idle cancelled",
        "running, requires_action, running, requires_action, running, requires_action, idle cancelled",
        "The agent reports a moment of running between the rejection and the failure of its tool; by the v1 wire "
        "the tool is pending since it asked, and one of two answers changes nothing.",
    ),
    "perm-cancel": (
        "running, requires_action, idle cancelled",
        "running, requires_action, running, idle cancelled",
        "The agent counts its clearing up as progress; a cancelled turn that does not resume need not say so.",
    ),
}


def first_turns(states: list[str], turns: int) -> list[str]:
    """The states up to the end of so many turns; the later prompts of a v1 trace have no twin."""
    taken: list[str] = []
    for state in states:
        if turns == 0:
            break
        taken.append(state)
        turns -= state.startswith("idle")
    return taken


@pytest.mark.parametrize("scenario", TWINS)
def test_states_inferred_from_v1_are_those_the_agent_tells_in_v2(scenario: str) -> None:
    package_dir()
    name = f"codex2-{TWINS[scenario]}"
    native = native_states(f"codex2v2-{scenario}")
    (session,) = sessions(entries(name))
    players, _ = play(name)
    ours = players[0].states(session)
    if "resume" in native:
        # The v1 trace has a turn more before it, and is loaded by another process.
        at = native.index("resume")
        assert players[1].states(session)[: len(native) - at - 1] == native[at + 1 :]
        native, ours = native[:at], ours[-at:]
    ours = first_turns(ours, sum(state.startswith("idle") for state in native))
    if scenario in DIFFERENCES:
        we_tell, it_tells, _ = DIFFERENCES[scenario]
        assert (", ".join(ours), ", ".join(native)) == (we_tell, it_tells)
        assert ours != native
    else:
        assert ours == native


def test_every_native_trace_has_its_twin() -> None:
    native = {path.stem.removeprefix("codex2v2-") for path in TRACES.glob("codex2v2-*.jsonl")}
    assert set(TWINS) == native
    assert set(DIFFERENCES) <= native
