"""Work that an agent begins itself, and what it hints at beside the protocol (lifecycle §2.5, RA-01, RA-25)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Version
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import Owner, Session, State
from acp_proxy.inference.triggers import Hint, is_marked
from lifecycle_wire import Wire

BUSY = Hint("_meta.bot.state=busy", "running")
ASKING = Hint("_meta.bot.state=asking", "requires_action")
RESTING = Hint("_meta.bot.state=resting", "idle")
BROKEN = Hint("_bot/broken", "error", "it broke")
HINTS = (BUSY, ASKING, RESTING, BROKEN)


def idle(option: str = "infer", **rules: Any) -> Wire:
    """A session `s` whose turn ended a minute ago."""
    wire = Wire(agent_initiated=option, hints=HINTS, **rules)
    wire.ask(1, "session/new")
    wire.done(1, {"sessionId": "s"})
    wire.prompt()
    wire.result()
    wire.now = 60.0
    return wire


def hint(wire: Wire, state: str) -> list[str]:
    """What an agent says in a key of its own."""
    return wire.update("session_info_update", _meta={"bot": {"state": state}})


def breaks(wire: Wire) -> list[str]:
    return wire.agent(method="_bot/broken", params={"sessionId": "s"})


def last(wire: Wire) -> Change:
    return wire.changes[-1]


# ---------------------------------------------------------------- marks


@pytest.mark.parametrize(
    ("mark", "body", "found"),
    [
        ("_meta.a.b=x", {"_meta": {"a": {"b": "x"}}}, True),
        ("_meta.a.b=x", {"update": {"_meta": {"a": {"b": "x"}}}}, True),
        ("_meta.a.b=x", {"_meta": {"a": {"b": ["w", "x"]}}}, True),
        ("_meta.a.b=x", {"_meta": {"a": {"b": []}}}, False),
        ("_meta.a.b=x", {"_meta": {"a": {"b": "y"}}, "update": {"_meta": {"a": {"b": "x"}}}}, True),
        ("_meta.a.b=x", {"_meta": {"a": "b"}}, False),
        ("_meta.a.b", {"_meta": {"a": {"b": {}}}}, True),
        ("_meta.a.b", {"_meta": {"a": {"b": False}}, "update": {"_meta": {"a": {"b": 0}}}}, True),
        ("_meta.a.b", {"_meta": {"a": {"b": None}}, "update": []}, False),
        ("_meta.a=true", {"_meta": {"a": True}}, True),
        ("_meta.a=true", {"_meta": {"a": 1}}, False),
        ("_meta.a=1", {"_meta": {"a": 1}}, True),
    ],
)
def test_a_mark_is_a_path_with_or_without_a_value(mark: str, body: dict[str, Any], found: bool) -> None:
    assert is_marked(mark, body, "session/update") is found


def test_a_mark_may_be_the_notification_itself() -> None:
    assert is_marked("_bot/done", {}, "_bot/done")
    assert not is_marked("_bot/done", {"_bot/done": True}, "_bot/done2")


# ---------------------------------------------------------------- when it begins and ends


def test_the_tail_of_a_replay_is_not_its_own_work() -> None:
    wire = idle()
    wire.ask(3, "session/load")
    wire.done(3)
    wire.now += 0.9
    assert wire.chunk() == []
    wire.now += 0.2
    assert wire.chunk() == ["running"]


def test_nothing_begins_while_the_session_is_being_closed() -> None:
    wire = idle()
    wire.ask(3, "session/close")
    assert wire.chunk() == []
    assert hint(wire, "busy") == []


def test_a_prompt_in_the_middle_of_it_goes_on_as_one_span() -> None:
    wire = idle(end_markers=("_bot/done",))
    assert wire.chunk() == ["running"]
    assert wire.prompt(8) == []
    assert wire.agent(method="_bot/done", params={"sessionId": "s"}) == []
    assert wire.result(8) == ["idle(end_turn)"]


def test_a_question_of_its_own_work_still_waits_when_a_prompt_comes() -> None:
    wire = idle()
    wire.tool("t", "in_progress", new=True)
    assert wire.permission(1, "p") == []
    assert wire.prompt(8) == ["requires_action"]
    assert wire.answer(1) == ["running"]


def test_silence_ends_it_at_the_very_moment_the_timer_was_set_for() -> None:
    wire = idle(quiet_time=0.1)
    wire.now = 1e6 + 0.3
    wire.chunk()
    due = wire.engine.quiet_at()
    assert due is not None
    assert due - wire.session().last_heard < 0.1  # the difference rounds down, and must not be compared
    assert [change.new for change in wire.engine.fall_quiet(due)] == [State.IDLE]
    assert wire.engine.quiet_at() is None


def test_what_ends_at_one_moment_is_told_in_the_order_it_began() -> None:
    wire = idle(quiet_time=1.0)
    names = [f"s{number}" for number in range(40)]
    for name in names:
        wire.ask(f"new {name}", "session/new", name)
        wire.done(f"new {name}", {"sessionId": name})
        wire.now += 61.0
    for name in names:
        wire.agent(
            method="session/update",
            params={
                "sessionId": name,
                "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}},
            },
        )
    ended = wire.engine.fall_quiet(wire.now + 1.0)
    assert [change.session.id for change in ended] == names


# ---------------------------------------------------------------- hints


def test_a_hint_begins_and_ends_work_where_that_is_wanted() -> None:
    wire = idle()
    assert hint(wire, "busy") == ["running"]
    assert hint(wire, "busy") == []
    assert hint(wire, "resting") == ["idle"]
    assert hint(wire, "resting") == []
    wire.now += 1
    assert hint(wire, "asking") == ["running"]
    assert breaks(wire) == ["idle(error)"]
    assert breaks(wire) == []


def test_by_default_a_hint_begins_nothing() -> None:
    wire = idle("ignore")
    assert hint(wire, "busy") == hint(wire, "asking") == hint(wire, "resting") == breaks(wire) == []


def test_where_it_is_told_as_unknown_so_is_a_hint() -> None:
    wire = idle("unknown")
    assert hint(wire, "busy") == ["unknown"]
    assert hint(wire, "resting") == ["idle"]


def test_a_hint_right_after_a_turn_does_not_take_its_end_back() -> None:
    wire = idle()
    wire.prompt(8)
    wire.result(8)
    assert hint(wire, "busy") == []
    assert wire.state() == "idle"


def test_no_hint_ends_a_turn() -> None:
    wire = idle()
    wire.prompt(8)
    assert hint(wire, "resting") == breaks(wire) == []
    assert wire.state() == "running"


def test_a_hint_in_a_replay_is_history() -> None:
    wire = idle()
    wire.ask(3, "session/load")
    assert hint(wire, "busy") == breaks(wire) == []
    wire.prompt(8)
    wire.done(3)
    assert wire.result(8) == ["idle(end_turn)"]


def test_a_hint_that_it_waits_stands_against_tools_that_claim_to_move() -> None:
    wire = idle()
    wire.prompt(8)
    wire.tool("t", "in_progress", new=True)
    assert wire.permission(1, "p") == []
    assert hint(wire, "asking") == ["requires_action"]
    assert hint(wire, "busy") == ["running"]
    assert hint(wire, "asking") == ["requires_action"]
    assert wire.answer(1) == ["running"]
    wire.result(8)
    wire.prompt(9)
    wire.tool("t2", "in_progress", new=True)
    assert wire.permission(2, "p2") == []


def test_a_hint_that_it_waits_is_nothing_without_a_question() -> None:
    wire = idle()
    wire.prompt(8)
    assert hint(wire, "asking") == []


@pytest.mark.parametrize("stop", ["end_turn", "endTurn", None])
def test_a_hinted_failure_is_how_the_turn_ended(stop: str | None) -> None:
    wire = idle()
    wire.prompt(8)
    breaks(wire)
    assert wire.result(8, stop, usage={"totalTokens": 1}) == ["idle(error)"]
    ending = last(wire).ending
    assert ending is not None
    assert (ending.error, ending.given, ending.hinted) == (
        {"code": -32603, "message": "it broke"},
        stop,
        True,
    )
    wire.prompt(9)
    assert wire.result(9) == ["idle(end_turn)"]


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "max_turn_requests", "cancelled", "_odd"])
def test_a_more_exact_end_stands_against_a_hinted_failure(stop: str) -> None:
    wire = idle()
    wire.prompt(8)
    breaks(wire)
    assert wire.result(8, stop) == [f"idle({stop})"]


def test_the_agent_s_own_error_stands_against_a_hinted_failure() -> None:
    wire = idle()
    wire.prompt(8)
    breaks(wire)
    wire.fail(8, -32000)
    ending = last(wire).ending
    assert ending is not None
    assert (ending.error, ending.hinted) == ({"code": -32000, "message": "no"}, False)


def test_a_failure_the_agent_got_over_is_none() -> None:
    wire = idle()
    wire.prompt(8)
    breaks(wire)
    hint(wire, "busy")
    assert wire.result(8) == ["idle(end_turn)"]


def test_a_cancel_is_told_as_one_whatever_is_hinted() -> None:
    wire = idle()
    wire.prompt(8)
    wire.cancel()
    breaks(wire)
    assert wire.result(8) == ["idle(cancelled)"]


def test_a_hint_without_words_of_its_own_gets_some() -> None:
    wire = Wire(hints=(Hint("_bot/broken", "error"),))
    wire.prompt(8)
    breaks(wire)
    wire.result(8)
    ending = last(wire).ending
    assert ending is not None
    assert ending.error == {"code": -32603, "message": "the agent reports an error"}


def test_hints_about_nobody_or_after_a_close_mean_nothing() -> None:
    wire = idle()
    assert wire.agent(method="_bot/broken", params={"sessionId": "other"}) == []
    assert wire.agent(method="_bot/broken", params={}) == []
    assert list(wire.engine.sessions) == ["s"]
    wire.ask(3, "session/close")
    wire.done(3)
    assert breaks(wire) == []
    assert wire.rules_broken() == []


def test_a_v2_agent_tells_its_states_itself() -> None:
    wire = Wire(Version.V2, agent_initiated="infer", hints=HINTS)
    wire.prompt(8)
    assert hint(wire, "busy") == breaks(wire) == []


def test_a_session_starts_without_hints() -> None:
    session = Session("s")
    assert (session.blocked, session.failure, session.auto) == (False, None, False)


def test_a_tool_of_its_own_work_is_background_once_that_is_over() -> None:
    wire = idle(end_markers=("_bot/done",))
    wire.tool("t", "in_progress", new=True)
    assert wire.session().tools["t"].owner is Owner.FOREGROUND
    assert wire.agent(method="_bot/done", params={"sessionId": "s"}) == ["idle"]
    assert wire.session().tools["t"].owner is Owner.BACKGROUND
    wire.now += 5
    assert wire.tool("t", "completed") == []
