"""The engine's place in the chain: which side of its cause a state change is told on (lifecycle §2.3)."""

from __future__ import annotations

from typing import Any

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import Step, ToAgent, ToClient
from acp_proxy.filters.observe import Observe
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog
from acp_proxy.inference.foreground import Change, Rules
from acp_proxy.jsonrpc.message import Message, classify
from relay_driver import answer, ask, call, failure, message, note, prompt, selected, tool


def made(body: dict[str, Any]) -> Message:
    found = classify(body)
    assert found is not None
    return found


def observer(**rules: Any) -> Observe:
    return Observe(Engine(Rules(**rules), FindingLog()))


def told(steps: Any) -> list[str]:
    """Steps in words: `A`/`C` for where they lead, the new state or `message`."""
    words = []
    for step in steps:
        assert isinstance(step, Step)
        to = "A" if isinstance(step, ToAgent) else "C"
        assert isinstance(step, (ToAgent, ToClient))
        words.append(f"{to} {step.message.new.value if isinstance(step.message, Change) else 'message'}")
    return words


def test_what_changes_nothing_passes_as_the_same_object() -> None:
    stage = observer()
    for body in (call(5, "session/list", {}), note("_x/y", {}), answer(3, {})):
        one = made(body)
        assert stage.forth(one, 0.0) is one
    for body in (message(), note("_x/y", {}), call(5, "_x/ask", {}), answer(3, {}), failure(5, -1)):
        one = made(body)
        assert stage.back(one, 0.0) is one


def test_a_change_follows_what_is_said_to_the_agent() -> None:
    stage = observer()
    assert told(stage.forth(made(prompt(7)), 0.0)) == ["A message", "C running"]
    assert told(stage.back(made(ask(90)), 0.0)) == ["C message", "C requires_action"]
    assert told(stage.forth(made(selected(90)), 0.0)) == ["A message", "C running"]


def test_a_change_follows_the_agents_update_and_precedes_its_answer() -> None:
    stage = observer()
    stage.forth(made(prompt(7)), 0.0)
    stage.back(made(tool("l", "in_progress")), 0.0)
    stage.back(made(ask(90, "k")), 0.0)
    assert told(stage.back(made(tool("l", "completed")), 0.0)) == ["C message", "C requires_action"]
    assert told(stage.back(made(answer(7, {"stopReason": "end_turn"})), 0.0)) == ["C idle", "C message"]


def test_a_resume_tells_its_state_before_the_answer() -> None:
    stage = observer()
    stage.forth(made(call(5, "session/resume", {"sessionId": "s1"})), 0.0)
    assert told(stage.back(made(answer(5, {})), 0.0)) == ["C idle", "C message"]


def test_the_agents_end() -> None:
    stage = observer()
    stage.forth(made(prompt(7)), 0.0)
    stage.forth(made(call("l", "session/list", {})), 0.0)
    stage.back(made(ask(90)), 0.0)
    error = {"code": -32603, "message": "gone", "data": {"exitCode": 1}}
    steps = stage.agent_gone(error, 1.0)
    assert told(steps) == ["C message", "C idle", "C message", "C message"]
    bodies = [
        step.message.body
        for step in steps
        if isinstance(step, ToClient) and isinstance(step.message, Message)
    ]
    assert bodies[0] == note("$/cancel_request", {"requestId": 90})
    assert bodies[1:] == [
        {"jsonrpc": "2.0", "id": 7, "error": error},
        {"jsonrpc": "2.0", "id": "l", "error": error},
    ]


def test_inferred_work_ends_when_it_falls_quiet() -> None:
    stage = observer(agent_initiated="infer", quiet_time=30.0)
    assert stage.next_deadline() is None
    assert told(stage.back(made(message()), 5.0)) == ["C running", "C message"]
    assert stage.next_deadline() == 35.0
    stage.back(made(message()), 20.0)
    assert stage.next_deadline() == 50.0
    assert list(stage.expire(49.0)) == []
    assert told(stage.expire(50.0)) == ["C idle"]
    assert stage.next_deadline() is None


def test_roles_are_told_apart() -> None:
    engine = Engine(Rules(), FindingLog())
    stage = Observe(engine)
    stage.forth(made(prompt(7)), 0.0)
    stage.back(made(ask(7)), 0.0)
    assert (len(engine.from_client), len(engine.from_agent)) == (1, 1)
    stage.forth(made(selected(7)), 0.0)
    assert (len(engine.from_client), len(engine.from_agent)) == (1, 0)
    assert Role.CLIENT.other is Role.AGENT
