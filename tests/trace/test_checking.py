"""Recorded conversations judged anew: which findings come out, whose fault, at which frame, and which states."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.inference.findings import Finding
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay
from acp_proxy.trace.checking import Check, Judged, StateChange, tokens
from acp_proxy.trace.traffic import Over, Said, Traffic

CLIENT, AGENT = Role.CLIENT, Role.AGENT
Json = dict[str, Any]
INIT_V1: Json = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
V1: Json = {"id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}}
INIT_V2: Json = {
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 2, "info": {"name": "c", "version": "1"}, "capabilities": {}},
}
V2: Json = {
    "id": 0,
    "result": {
        "protocolVersion": 2,
        "info": {"name": "a", "version": "1"},
        "capabilities": {"session": {}},
        "authMethods": [],
    },
}
NEW: Json = {"id": 1, "method": "session/new", "params": {"cwd": "/p", "mcpServers": []}}
NEW_IS: Json = {"id": 1, "result": {"sessionId": "s"}}
END: Json = {"id": 2, "result": {"stopReason": "end_turn"}}
OPTIONS: list[Json] = [{"optionId": "ok", "name": "Yes", "kind": "allow_once"}]
ASK: Json = {
    "id": 7,
    "method": "session/request_permission",
    "params": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": OPTIONS},
}
ALLOW: Json = {"id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "ok"}}}


def prompt(token: int = 2) -> Json:
    content = [{"type": "text", "text": "go"}]
    return {"id": token, "method": "session/prompt", "params": {"sessionId": "s", "prompt": content}}


def update(**body: Any) -> Json:
    return {"method": "session/update", "params": {"sessionId": "s", "update": body}}


CHUNK = update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "hi"})
OPENING = [(CLIENT, INIT_V1), (AGENT, V1), (CLIENT, NEW), (AGENT, NEW_IS)]


def raw(body: Json | bytes) -> bytes:
    return body if isinstance(body, bytes) else json.dumps({"jsonrpc": "2.0", **body}).encode()


class Script:
    """Writes traffic down as it would be recorded, a second a frame."""

    def __init__(self) -> None:
        self.items: list[Traffic] = []
        self.at = 0.0
        self.number = 0

    def said(self, sender: Role, body: Json | bytes, *, after: float = 1.0) -> Script:
        """One frame of a capture."""
        self.at += after
        self.number += 1
        self.items.append(Said(self.at, None, sender, raw(body), self.number))
        return self

    def passed(self, sender: Role, body: Json | bytes, leg: Role | None = None) -> Script:
        """One frame that a recording proxy received, and passed on where no leg is given."""
        self.at += 1.0
        self.number += 1
        for place in (sender, sender.other) if leg is None else (leg,):
            self.items.append(Said(self.at, place, sender, raw(body), self.number))
        return self

    def made(self, leg: Role, body: Json) -> Script:
        """One frame that a recording proxy made and sent to a leg."""
        self.items.append(Said(self.at, leg, leg.other, raw(body), None))
        return self

    def over(self, after: float = 1.0) -> Script:
        self.at += after
        self.items.append(Over(self.at))
        return self

    def all(self, frames: Iterable[tuple[Role, Json]]) -> Script:
        for sender, body in frames:
            self.said(sender, body)
        return self


def check(items: Iterable[Traffic], *, limit: int = 1 << 20, **options: Any) -> list[Judged]:
    def make() -> Relay:
        return Relay(RelayOptions(bridge="off", **options), token=tokens(), reporting=True)

    return list(Check(make, limit).run(items))


def findings(judged: Iterable[Judged]) -> list[tuple[Any, ...]]:
    return [(f.rule, f.leg, f.session, f.frames) for f in judged if isinstance(f, Finding)]


def states(judged: Iterable[Judged]) -> list[tuple[Any, ...]]:
    return [(s.at, s.new, s.cause, s.frame) for s in judged if isinstance(s, StateChange)]


def test_a_sound_conversation_has_states_and_no_findings() -> None:
    script = Script().all(OPENING)
    script.said(CLIENT, prompt()).said(AGENT, CHUNK).said(AGENT, ASK).said(CLIENT, ALLOW)
    script.said(AGENT, update(sessionUpdate="tool_call", toolCallId="u", title="t", status="in_progress"))
    script.said(AGENT, update(sessionUpdate="tool_call_update", toolCallId="u", status="completed"))
    judged = check(script.said(AGENT, END).over().items)
    assert findings(judged) == []
    assert states(judged) == [
        (5, "running", "session/prompt", 5),
        (7, "requires_action", "session/request_permission", 7),
        (8, "running", "answer to session/request_permission", 8),
        (11, "idle", "answer to session/prompt", 11),
    ]
    assert [s.stop_reason for s in judged if isinstance(s, StateChange)] == [None, None, None, "end_turn"]
    assert all(s.inferred and s.leg is None for s in judged if isinstance(s, StateChange))


def test_a_native_agents_states_are_its_own() -> None:
    script = Script().all([(CLIENT, INIT_V2), (AGENT, V2), (CLIENT, NEW), (AGENT, NEW_IS)])
    script.said(AGENT, update(sessionUpdate="state_update", state="running"))
    script.said(AGENT, update(sessionUpdate="state_update", state="running"))
    script.said(AGENT, update(sessionUpdate="state_update", state="idle", stopReason="end_turn"))
    judged = check(script.items)
    assert states(judged) == [(5, "running", "state_update", 5), (7, "idle", "state_update", 7)]
    assert not any(s.inferred for s in judged if isinstance(s, StateChange))


def test_settings_of_the_inference_count() -> None:
    script = (
        Script().all(OPENING).said(CLIENT, prompt()).said(AGENT, END).said(AGENT, CHUNK, after=5).over(60)
    )
    assert len(states(check(script.items))) == 2
    assert states(check(script.items, agent_initiated="infer", quiet_time=10.0))[2:] == [
        (11, "running", "agent_message_chunk", 7),
        (21, "idle", "time", None),
    ]


def test_rules_can_be_turned_off() -> None:
    script = Script().all(OPENING).said(AGENT, {"id": 99, "result": {}})
    assert findings(check(script.items)) == [("V29", "agent", None, (5,))]
    assert findings(check(script.items, rules={"V29": "off"})) == []


def test_deadlines_pass_between_frames_at_the_recorded_times() -> None:
    """V46: quiet is measured on the recording's clock, and told at its time, not at the next frame's."""
    script = Script().all(OPENING).said(CLIENT, prompt()).said(AGENT, END, after=100)
    [found] = [one for one in check(script.items, stall_after=30.0) if isinstance(one, Finding)]
    assert (found.rule, found.at) == ("V46", 35.0)


def test_time_never_goes_back() -> None:
    script = Script().all(OPENING).said(CLIENT, prompt()).said(AGENT, END, after=-3)
    assert [at for at, *_ in states(check(script.items))] == [5, 5]


def test_every_initialize_of_a_capture_begins_anew() -> None:
    script = Script().all(OPENING).said(CLIENT, prompt()).said(AGENT, CHUNK)
    script.all(OPENING).said(CLIENT, prompt()).said(AGENT, END)
    judged = check(script.items)
    assert findings(judged) == []
    assert states(judged) == [
        (5, "running", "session/prompt", 5),
        (7, "idle", "the end of the agent", None),
        (11, "running", "session/prompt", 11),
        (12, "idle", "answer to session/prompt", 12),
    ]


def test_a_session_of_an_earlier_process_is_not_open_in_the_next() -> None:
    script = Script().all(OPENING).over()
    script.said(CLIENT, INIT_V1).said(AGENT, V1).said(CLIENT, prompt())
    assert findings(check(script.items)) == [("V44", "client", "s", (7,))]


def test_a_file_that_just_stops_leaves_open_what_is_open() -> None:
    script = Script().all(OPENING).said(CLIENT, prompt())
    assert [state for _, state, *_ in states(check(script.items))] == ["running"]
    [_, ended] = [one for one in check(script.over().items) if isinstance(one, StateChange)]
    assert (ended.at, ended.new, ended.stop_reason) == (6, "idle", "error")
    assert (ended.cause, ended.frame) == ("the end of the agent", None)


def test_a_frame_over_the_limit_is_one_of_the_limit() -> None:
    big = update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "x" * 1000})
    assert findings(check(Script().all(OPENING).said(AGENT, big).items, limit=900)) == [
        ("V48", "agent", None, (5,))
    ]


def test_an_answer_to_what_the_relay_would_refuse_is_no_answer_to_nothing() -> None:
    """The recorded agent got a batch, or a second initialize, and answered; to the relay it never went out."""
    script = Script().said(CLIENT, {"id": 5, "method": "initialize", "params": {}})
    script.said(AGENT, {"id": 5, "error": {"code": -32602, "message": "no"}})
    assert findings(check(script.items)) == []
    script.said(AGENT, {"id": 5, "error": {"code": -32602, "message": "no"}})
    assert findings(check(script.items)) == [("V29", "agent", None, (3,))]


def test_nothing_in_a_frame_breaks_the_check() -> None:
    script = Script().all(OPENING)
    for junk in (b"", b"\xff\xfe", b"[]", b"null", b'{"id":null}', b'{"method":5}', b"[" * 10000):
        script.said(CLIENT, junk).said(AGENT, junk)
    script.said(CLIENT, prompt()).said(AGENT, END)
    judged = check(script.items)
    assert {rule for rule, *_ in findings(judged)} >= {"V31", "V45"}
    assert [state for _, state, *_ in states(judged)] == ["running", "idle"]


# ---------------------------------------------------------------- recordings


def test_each_leg_answers_for_its_own_peer() -> None:
    """Agent and client both answer to nothing; both faults pass through, and each is told once."""
    script = Script()
    for sender, body in OPENING:
        script.passed(sender, body)
    script.passed(CLIENT, {"id": 98, "result": {}}).passed(AGENT, {"id": 99, "result": {}})
    assert findings(check(script.items)) == [("V29", "client", None, (5,)), ("V29", "agent", None, (6,))]


def test_what_the_proxy_itself_says_is_nobodys_fault() -> None:
    script = Script()
    for sender, body in OPENING:
        script.passed(sender, body)
    script.made(CLIENT, {"id": 99, "result": {}}).made(AGENT, {"id": 98, "result": {}})
    assert check(script.over().items) == []


def test_states_of_equal_legs_are_told_once() -> None:
    script = Script()
    for sender, body in OPENING:
        script.passed(sender, body)
    script.passed(CLIENT, prompt()).passed(AGENT, END)
    judged = check(script.over().items)
    assert states(judged) == [(5, "running", "session/prompt", 5), (6, "idle", "answer to session/prompt", 6)]
    assert [s.leg for s in judged if isinstance(s, StateChange)] == [AGENT, AGENT]


def bridged() -> Script:
    """A v2 client in front of a v1 agent, up to the open session."""
    script = Script().passed(CLIENT, INIT_V2, CLIENT).made(AGENT, INIT_V2).passed(AGENT, V1, AGENT)
    script.made(CLIENT, V2).passed(CLIENT, NEW, CLIENT).made(AGENT, NEW)
    return script.passed(AGENT, NEW_IS, AGENT).made(CLIENT, NEW_IS)


def test_the_legs_of_a_bridge_are_judged_in_their_own_dialects() -> None:
    script = bridged().passed(CLIENT, prompt(), CLIENT).made(AGENT, prompt())
    script.made(CLIENT, update(sessionUpdate="state_update", state="running"))
    script.made(CLIENT, {"id": 2, "result": {"messageId": "m"}})
    script.passed(AGENT, {"id": 2, "result": {"stopReason": "end_turn"}}, AGENT)
    script.made(CLIENT, update(sessionUpdate="state_update", state="idle", stopReason="end_turn"))
    script.passed(CLIENT, {"id": None, "method": "session/list", "params": {}}, CLIENT)
    judged = check(script.over().items)
    assert findings(judged) == [("V31", "client", None, (7,))]
    told = [(s.leg, s.new, s.inferred, s.frame) for s in judged if isinstance(s, StateChange)]
    assert told == [
        (AGENT, "running", True, None),
        (CLIENT, "running", False, None),
        (AGENT, "idle", True, 6),
        (CLIENT, "idle", False, None),
    ]


def test_an_agent_that_the_proxy_started_anew_begins_anew() -> None:
    script = bridged().passed(CLIENT, prompt(), CLIENT).made(AGENT, prompt())
    script.made(AGENT, INIT_V1).passed(AGENT, V1, AGENT)
    judged = check(script.items)
    assert findings(judged) == []
    assert [(s.leg, s.new) for s in judged if isinstance(s, StateChange)] == [
        (AGENT, "running"),
        (AGENT, "idle"),
    ]


def test_a_clients_second_initialize_is_no_new_process() -> None:
    script = Script()
    for sender, body in OPENING:
        script.passed(sender, body)
    script.passed(CLIENT, prompt()).passed(CLIENT, {**INIT_V1, "id": 9}).passed(AGENT, END)
    assert states(check(script.items))[1:] == [(7, "idle", "answer to session/prompt", 7)]


def test_a_frame_that_the_proxy_made_has_no_number_to_show() -> None:
    script = bridged().passed(CLIENT, prompt(), CLIENT).made(AGENT, prompt()).over(after=100)
    judged = [one for one in check(script.items, turn_timeout=30.0) if isinstance(one, Finding)]
    assert [(one.rule, one.leg, one.frames) for one in judged] == [("V46", "agent", ())]


def test_the_end_of_a_busy_agent_is_no_cancel_by_its_client() -> None:
    """To cancel this child would be a fault (V38), and nobody did."""
    script = Script().all([(CLIENT, INIT_V2), (AGENT, V2), (CLIENT, NEW), (AGENT, NEW_IS)])
    script.said(AGENT, update(sessionUpdate="state_update", state="running"))
    child = {"sessionId": "child", "title": "c", "state": {"state": "running"}}
    script.said(AGENT, update(sessionUpdate="subagent_update", **child))
    assert findings(check(script.over().items)) == []


@pytest.mark.parametrize("sender", [CLIENT, AGENT])
def test_the_head_of_a_line_over_the_limit_is_known_by_its_size(sender: Role) -> None:
    head = raw(update(sessionUpdate="x", text="y" * 5000))[:4096]
    script = Script()
    for peer, body in OPENING:
        script.passed(peer, body)
    assert findings(check(script.passed(sender, head, sender).items)) == [("V48", sender.value, None, (5,))]


def test_memory_does_not_grow_with_the_traffic() -> None:
    """Chunks come out as nothing, and nothing of them is kept."""
    import tracemalloc

    def many(count: int) -> Iterable[Traffic]:
        yield from Script().all(OPENING).said(CLIENT, prompt()).items
        for number in range(count):
            yield Said(10.0 + number, None, AGENT, chunk, 6 + number)

    chunk = raw(CHUNK)
    check(many(100))
    tracemalloc.start()
    check(many(1000))
    _, small = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    check(many(8000))
    _, large = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert large < small + 30_000
