"""The means of testing: what a playbook feeds, keeps and complains of, and the memory transports."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from acp_proxy.acp.version import Role
from acp_proxy.errors import PeerGoneError
from acp_proxy.filters.base import Filter, Outcome, Step, ToClient
from acp_proxy.jsonrpc.message import Message, notification
from acp_proxy.relay.commands import FrameReport
from acp_proxy.relay.events import AgentRestarted
from acp_proxy.testing import Playbook, matches, memory_transports
from acp_proxy.transport.base import Transport

INFO = {"name": "c", "version": "1"}
INITIALIZE: dict[int, dict[str, Any]] = {
    1: {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
    2: {
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": 2, "capabilities": {}, "info": INFO},
    },
}
PROMPT: dict[str, Any] = {
    "id": 7,
    "method": "session/prompt",
    "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]},
}
CANCEL: dict[str, Any] = {"method": "session/cancel", "params": {"sessionId": "s"}}


def update(**body: Any) -> dict[str, Any]:
    return {"method": "session/update", "params": {"sessionId": "s", "update": body}}


def chunk(text: str) -> dict[str, Any]:
    return update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def connected(client: int, **options: Any) -> Playbook:
    """A playbook whose legs have shaken hands; the agent speaks v1, nothing of it is left unread."""
    play = Playbook(**options)
    play.client_sends(INITIALIZE[client])
    play.agent_answers("initialize", {"protocolVersion": 1, "agentCapabilities": {}})
    play.take(Role.CLIENT)
    play.take(Role.AGENT)
    return play


def test_a_bridged_turn_reads_as_a_script() -> None:
    play = connected(2)
    play.client_sends(PROMPT)
    play.agent_gets({"method": "session/prompt", "params": {"sessionId": "s"}})
    play.agent_sends(chunk("a"))
    play.agent_answers("session/prompt", {"stopReason": "max_tokens"})
    assert play.states("s") == ["running", "idle(max_tokens)"]
    assert play.states("other") == []
    play.client_gets(
        update(sessionUpdate="state_update", state="running"),
        update(sessionUpdate="user_message"),
        {"id": 7, "result": {"messageId": ...}},
        chunk("a"),
        update(sessionUpdate="state_update", state="idle", stopReason="max_tokens"),
    )
    play.client_gets()
    play.agent_gets()


def test_states_told_over_the_extension_count_too() -> None:
    play = Playbook()
    asking = {"_meta": {"acp-proxy": {"stateUpdates": True}}}
    play.client_sends(
        {
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": 1, "clientCapabilities": asking},
        }
    )
    play.agent_answers("initialize", {"protocolVersion": 1})
    play.client_sends(PROMPT)
    play.agent_answers("session/prompt", error={"code": -32603, "message": "quota"})
    assert play.states("s") == ["running", "idle(error)"]


def test_raw_bytes_stay_as_they_are_and_cut_into_lines() -> None:
    play = connected(1)
    line = b'{"method":"_x/y", "jsonrpc":"2.0" ,"params":{"n":1e2}}'
    play.client_sends(line + b"\n" + line)
    assert [sent.raw for sent in play.sent[Role.AGENT][-2:]] == [line, line]
    assert play.sent[Role.AGENT][-1].body["params"] == {"n": 100.0}
    assert repr(play.sent[Role.AGENT][-1]) == f"<Sent at 0: {line.decode()}>"


def test_lines_the_relay_recognizes_together_are_kept_one_by_one() -> None:
    play = connected(1)
    text = json.dumps({"jsonrpc": "2.0", **chunk("a")}).encode() + b"\n"
    assert play.relay.recognize(text, 0) == len(text)
    play.agent_sends(chunk("a"), chunk("b"), {"method": "_x/y", "params": {}}, chunk("c"))
    play.client_gets(chunk("a"), chunk("b"), {"method": "_x/y"}, chunk("c"))


def test_items_of_one_call_come_as_one_batch_at_one_time() -> None:
    play = connected(1)
    play.advance(2.5)
    play.client_sends(PROMPT, CANCEL)
    assert [sent.at for sent in play.sent[Role.AGENT][-2:]] == [2.5, 2.5]
    play.agent_gets(PROMPT, CANCEL)


class _Ticker(Filter):
    """Says something every second, or at one moment for ever."""

    def __init__(self, step: float) -> None:
        self._due = 1.0
        self._step = step

    def next_deadline(self) -> float:
        return self._due

    def expire(self, at: float) -> Sequence[Step]:
        self._due += self._step
        return [ToClient(notification("_tick", {"at": at}))]


def test_a_deadline_comes_exactly_when_it_is_due() -> None:
    play = Playbook(filters=[_Ticker(9.0)])
    play.agent_sends({"method": "_x"})
    assert play.deadline == 1.0
    play.advance(0.999)
    play.client_gets({"method": "_x"})
    play.advance(5.0)
    play.client_gets({"method": "_tick", "params": {"at": 1.0}})
    assert play.sent[Role.CLIENT][-1].at == 1.0
    assert play.now == pytest.approx(5.999)
    assert play.deadline == 10.0


def test_every_deadline_on_the_way_is_delivered_through_a_filter_of_the_test() -> None:
    play = Playbook(filters=[_Ticker(1.0)])
    play.agent_sends({"method": "_x"})
    play.advance(3.5)
    play.client_gets({"method": "_x"}, *({"method": "_tick", "params": {"at": at}} for at in (1.0, 2.0, 3.0)))


def test_a_relay_that_asks_for_the_same_moment_for_ever_is_stopped() -> None:
    play = Playbook(filters=[_Ticker(0.0)])
    play.agent_sends({"method": "_x"})
    with pytest.raises(AssertionError, match="keeps asking to be woken at 1\n"):
        play.advance(2.0)


def test_the_agent_leaves_and_its_open_requests_fail() -> None:
    play = connected(1)
    play.client_sends(PROMPT)
    play.agent_leaves("agent exited: code 3", {"exitStatus": 3})
    error = {"code": -32603, "message": "agent exited: code 3", "data": {"exitStatus": 3}}
    play.client_gets({"id": 7, "error": error})
    assert play.closed == {Role.CLIENT}
    with pytest.raises(AssertionError, match="the agent has left"):
        play.agent_sends(chunk("late"))


def test_the_client_leaves_and_what_is_written_after_the_end_is_lost() -> None:
    play = connected(1)
    play.client_sends(PROMPT)
    play.take(Role.AGENT)
    play.client_leaves()
    play.agent_gets(CANCEL)
    assert play.closed == {Role.AGENT}
    play.agent_sends({"id": 1, "method": "session/request_permission", "params": {"sessionId": "s"}})
    play.agent_gets()
    with pytest.raises(AssertionError, match="the client has left"):
        play.client_sends(PROMPT)


def test_findings_reports_and_diverted_lines_are_kept() -> None:
    play = Playbook(reporting=True)
    play.agent_sends(b"Starting up ...", {"id": None, "error": {"code": -32601, "message": "no"}})
    assert [finding.rule for finding in play.findings] == ["V45", "V51"]
    assert play.diverted == [b"Starting up ..."]
    frames = [report for report in play.reports if isinstance(report, FrameReport)]
    assert [(report.leg, report.direction) for report in frames] == [(Role.AGENT, "in")] * 2


def test_a_restart_forgets_the_old_agents_open_requests() -> None:
    play = Playbook()
    play.client_sends(INITIALIZE[2])
    play.agent_answers("initialize", error={"code": -32602, "message": "what is version 2?"})
    assert play.restarts == 1
    play.agent_gets({"params": {"protocolVersion": 2}}, {"params": {"protocolVersion": 1}})
    play.agent_answers("initialize", {"protocolVersion": 1})
    play.client_gets({"id": 0, "result": {"protocolVersion": 2}})


def test_anything_else_happens_and_is_in_the_script() -> None:
    play = Playbook()
    play.happens(AgentRestarted(play.now))
    with pytest.raises(AssertionError, match=r"\n    0\.000  AgentRestarted$"):
        play.client_gets({})


def test_a_restarted_agent_may_speak_again() -> None:
    play = connected(1, restart="always")
    play.agent_leaves("killed")
    assert play.restarts == 1
    play.happens(AgentRestarted(play.now))
    play.agent_answers("initialize", {"protocolVersion": 1})


def test_answers_go_to_the_oldest_open_request() -> None:
    play = connected(1)
    asked = {"method": "session/request_permission", "params": {"sessionId": "s", "options": []}}
    play.agent_sends({"id": 1, **asked}, {"id": 2, **asked}, {"id": 3, **asked})
    play.client_sends({"id": 1, "result": {}})
    play.client_answers("session/request_permission", {"outcome": {"outcome": "cancelled"}})
    play.agent_gets({"id": 1}, {"id": 2, "result": {"outcome": {"outcome": "cancelled"}}})
    with pytest.raises(AssertionError, match="the client has no open fs/read_text_file to answer"):
        play.client_answers("fs/read_text_file", {})


def test_a_mismatch_shows_both_sides_and_the_script() -> None:
    play = connected(1)
    play.client_sends(PROMPT, CANCEL)
    with pytest.raises(AssertionError) as caught:
        play.agent_gets({"method": "session/prompt"}, {"method": "session/close", "params": ...})
    text = str(caught.value)
    assert "what the agent got (+) is not what was wanted (-):" in text
    assert '\n    {"jsonrpc": "2.0", "id": 7, "method": "session/prompt"' in text
    assert '\n  - {"method": "session/close", "params": "..."}' in text
    assert '\n  + {"jsonrpc": "2.0", "method": "session/cancel"' in text
    assert "the script so far:" in text
    assert text.splitlines()[-1].split(None, 2)[:2] == ["0.000", ">"]


@pytest.mark.parametrize("wanted", [[], [PROMPT], [PROMPT, CANCEL, CANCEL]])
def test_too_many_and_too_few_are_mismatches(wanted: list[dict[str, Any]]) -> None:
    play = connected(1)
    play.client_sends(PROMPT, CANCEL)
    with pytest.raises(AssertionError, match="is not what was wanted"):
        play.agent_gets(*wanted)


@pytest.mark.parametrize(
    ("wanted", "got", "expected"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": {"b": ...}}, {"a": {"b": None}}, True),
        ({"a": ...}, {}, False),
        ([{"a": 1}], [{"a": 1, "b": 2}], True),
        ([1], [1, 2], False),
        (1, True, False),
        (1, 1.0, False),
        ({}, [], False),
        ("x", "x", True),
        (None, None, True),
    ],
)
def test_what_matches(wanted: Any, got: Any, expected: bool) -> None:
    assert matches(wanted, got) is expected


def test_a_filter_under_test_sees_the_clients_messages() -> None:
    class Deaf(Filter):
        def forth(self, message: Message, at: float) -> Outcome:
            return None

    play = Playbook(filters=[Deaf()])
    play.client_sends(PROMPT)
    play.agent_gets()


def test_the_same_script_gives_the_same_bytes() -> None:
    def run() -> list[bytes]:
        play = connected(2)
        play.agent_sends(chunk("before anything"))
        play.client_sends(PROMPT)
        play.agent_sends(chunk("a"))
        return [sent.raw for sent in play.sent[Role.CLIENT]]

    assert run() == run()


@asynccontextmanager
async def _pair() -> AsyncIterator[tuple[Transport, Transport]]:
    near, far = memory_transports()
    yield near, far
    await near.aclose()
    await far.aclose()


async def test_memory_transports_carry_bytes_both_ways() -> None:
    async with _pair() as (near, far), trio.open_nursery() as nursery:
        nursery.start_soon(near.send_all, b"to far")
        assert await far.receive_some() == b"to far"
        nursery.start_soon(far.send_all, b"to near")
        assert await near.receive_some() == b"to near"


async def test_a_writer_waits_until_the_other_end_reads(autojump_clock: trio.testing.MockClock) -> None:
    async with _pair() as (near, _):
        with trio.move_on_after(1) as scope:
            await near.send_all(b"x" * 10)
        assert scope.cancelled_caught
        with pytest.raises(PeerGoneError):
            await near.send_all(b"after a cancelled write")


async def test_an_end_is_read_as_an_end() -> None:
    async with _pair() as (near, far):
        await near.send_eof()
        assert await far.receive_some() == b""
        await far.aclose()
        assert await near.receive_some() == b""
        with pytest.raises(PeerGoneError):
            await near.send_all(b"x")
