"""Which session a message is about, which request an answer belongs to, and what time makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role, Version
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog
from acp_proxy.inference.foreground import Rules
from acp_proxy.inference.session import Phase
from acp_proxy.jsonrpc.message import notification, request
from lifecycle_wire import Wire, begun


def test_a_session_is_provisional_at_first_sight() -> None:
    wire = Wire()
    wire.update("available_commands_update", "new")
    assert repr(wire.session("new")) == "<Session 'new' PROVISIONAL idle>"
    assert wire.engine.session("new") is wire.session("new")


@pytest.mark.parametrize("session_id", [None, 5, True, ["s"], {}])
def test_a_session_id_that_is_no_text_names_no_session(session_id: Any) -> None:
    wire = Wire()
    wire.agent(
        method="session/update",
        params={"sessionId": session_id, "update": {"sessionUpdate": "agent_message_chunk"}},
    )
    wire.client(id=1, method="session/prompt", params={"sessionId": session_id})
    wire.agent(id=1, method="session/request_permission", params={"sessionId": session_id})
    wire.agent(id=2, method="fs/read_text_file", params={"sessionId": session_id})
    wire.client(method="session/cancel", params={"sessionId": session_id})
    wire.client(id=1, result={})
    wire.done(1)
    assert wire.engine.sessions == {}
    assert len(wire.engine.from_client) == 0
    assert [token for token, _ in wire.engine.from_agent.items()] == [2]


@pytest.mark.parametrize("params", [None, [], "x", {}, {"update": {}}, {"sessionId": "s", "update": []}])
def test_an_update_without_its_parts_means_nothing(params: Any) -> None:
    wire = Wire()
    assert wire.agent(method="session/update", params=params) == []
    assert wire.engine.sessions == {}


@pytest.mark.parametrize("tag", [None, 5, ["tool_call"], {}])
def test_an_update_whose_tag_is_no_text_is_some_update(tag: Any) -> None:
    wire = begun()
    assert (
        wire.agent(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": tag}}) == []
    )
    assert wire.session().tools == {}


def test_the_same_id_in_both_directions_is_two_requests() -> None:
    wire = Wire()
    wire.prompt(1)
    assert wire.permission(1, "t1") == ["requires_action"]
    assert wire.answer(1) == ["running"]
    assert wire.result(1) == ["idle(end_turn)"]


@pytest.mark.parametrize(("asked", "answered"), [(1, "1"), ("1", 1), (1, 1.0), (1, True), (None, "null")])
def test_an_answer_with_an_id_of_another_type_answers_nothing(asked: Any, answered: Any) -> None:
    wire = Wire()
    wire.prompt(asked)
    assert wire.result(answered) == []
    assert wire.result(asked) == ["idle(end_turn)"]


def test_a_null_id_is_an_id_between_v1_peers() -> None:
    wire = Wire()
    assert wire.prompt(None) == ["running"]
    assert wire.result(None) == ["idle(end_turn)"]


def test_a_second_answer_means_nothing() -> None:
    wire = begun()
    wire.permission(1, "t1")
    wire.permission(2, "t2")
    assert wire.answer(1) == []
    assert wire.answer(1) == []
    assert wire.state() == "requires_action"


def test_what_is_kept_of_open_requests() -> None:
    wire = Wire()
    wire.now = 3.5
    wire.prompt(7)
    wire.client(id="n", method="session/new", params={"cwd": "/"})
    calls = dict(wire.engine.from_client.items())
    assert (calls[7].method, calls[7].session_id, calls[7].at, calls[7].number) == (
        "session/prompt",
        "s",
        3.5,
        1,
    )
    assert (calls["n"].session_id, calls["n"].number) == (None, 2)
    wire.permission(1, "t1")
    asked = wire.engine.from_agent.get(1)
    assert asked is not None
    assert (asked.method, asked.session_id) == ("session/request_permission", "s")
    wire.answer(1)
    wire.result(7)
    wire.done("n", {"sessionId": "n"})
    assert (len(wire.engine.from_client), len(wire.engine.from_agent)) == (0, 0)


def test_a_message_of_our_own_has_no_frame_to_name() -> None:
    findings = FindingLog()
    engine = Engine(Rules(), findings)
    engine.observe(request(7, "session/prompt", {"sessionId": "s"}), Role.CLIENT, 0.0)
    call = engine.from_client.get(7)
    assert call is not None
    assert call.number == 0
    engine.session("s").phase = Phase.CLOSED
    update = {"sessionId": "s", "update": {"sessionUpdate": "plan"}}
    engine.observe(notification("session/update", update), Role.AGENT, 2.0)
    assert [finding.frames for finding in findings.take()] == [()]


def test_sessions_do_not_touch_each_other() -> None:
    wire = Wire()
    assert wire.prompt(1, "a") == ["running"]
    assert wire.prompt(2, "b") == ["running"]
    assert wire.permission(1, "t", session_id="a") == ["requires_action"]
    assert wire.tool("t", "in_progress", session_id="b") == []
    assert wire.result(2) == ["idle(end_turn)"]
    assert (wire.state("a"), wire.state("b")) == ("requires_action", "idle")
    assert [session.id for session in wire.engine.busy_sessions()] == ["a"]


def test_a_fork_attaches_the_new_session_and_leaves_its_source() -> None:
    wire = begun()
    wire.ask(3, "session/fork", "s")
    assert wire.done(3, {"sessionId": "fork"}) == []
    assert (wire.session().phase, wire.session("fork").phase) == (Phase.PROVISIONAL, Phase.ATTACHED)
    assert wire.state() == "running"


def test_a_known_update_of_the_other_version_is_read_in_the_agent_s_own() -> None:
    v1, v2 = Wire(agent_initiated="infer"), Wire(Version.V2)
    assert v1.update("agent_message", messageId="m") == []
    assert v2.update("tool_call", toolCallId="t1", status="in_progress") == []
    assert v2.session().tools == {}
    assert (v1.engine.version, v2.engine.version) == (Version.V1, Version.V2)


# ---------------------------------------------------------------- time


def test_nothing_is_due_unless_an_agent_works_by_itself() -> None:
    wire = Wire(agent_initiated="infer", quiet_time=5.0)
    assert wire.engine.quiet_at() is None
    wire.prompt()
    assert wire.engine.quiet_at() is None
    assert wire.engine.fall_quiet(1e9) == []


def test_the_session_heard_longest_ago_is_due_first() -> None:
    wire = Wire(agent_initiated="infer", quiet_time=5.0)
    wire.now = 10.0
    wire.chunk("a")
    wire.now = 12.0
    wire.chunk("b")
    assert wire.engine.quiet_at() == 15.0
    wire.now = 13.0
    wire.chunk("a")
    assert wire.engine.quiet_at() == 17.0
    told = wire.engine.fall_quiet(17.0)
    assert [change.session.id for change in told] == ["b"]
    assert wire.engine.quiet_at() == 18.0
    assert wire.quiet(10.0) == ["idle"]
    assert wire.engine.quiet_at() is None


def test_waking_too_early_ends_nothing() -> None:
    wire = Wire(agent_initiated="infer", quiet_time=5.0)
    wire.chunk()
    assert wire.engine.fall_quiet(4.999) == []
    assert wire.engine.quiet_at() == 5.0


def test_an_end_mark_may_stand_on_an_update_the_version_does_not_know() -> None:
    wire = Wire(agent_initiated="infer", end_markers=("_meta.done",))
    wire.chunk()
    assert wire.update("invented", _meta={"done": 1}) == ["idle"]


def test_an_end_mark_on_the_output_that_begins_work_ends_it_at_once() -> None:
    wire = Wire(agent_initiated="infer", end_markers=("_meta.done",))
    wire.chunk("other")
    told = wire.update("agent_message_chunk", content={}, _meta={"done": True})
    assert told == ["running", "idle"]


def test_an_end_mark_of_another_session_ends_nothing() -> None:
    wire = Wire(agent_initiated="infer", end_markers=("_session/turn_ended",))
    wire.chunk("a")
    assert wire.agent(method="_session/turn_ended", params={"sessionId": "b"}) == []
    assert wire.agent(method="_session/turn_ended", params={"sessionId": 5}) == []
    assert wire.agent(method="_session/turn_ended") == []
    assert wire.agent(method="_session/turn_ended", params={"sessionId": "a"}) == ["idle"]


# ---------------------------------------------------------------- holes


def test_a_hole_becomes_a_finding_with_its_frame() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    wire.done(3)
    wire.now = 4.25
    wire.chunk()
    (finding,) = wire.findings.take()
    assert finding.as_json() == {
        "t": 4.25,
        "rule": "V24",
        "severity": "error",
        "session": "s",
        "leg": "agent",
        "frames": [wire.frames],
        "source": "LC-50",
        "action": "noted",
        "text": "the lifecycle has no output while closed",
    }


def test_a_wait_after_the_close_can_be_answered_without_harm() -> None:
    wire = begun()
    wire.ask(3, "session/close")
    wire.done(3)
    wire.permission(1, "t1")
    assert wire.answer(1) == []
    assert wire.rules_broken() == ["V24"]
    assert len(wire.engine.from_agent) == 0
