"""Random v1 agents and clients: after every message the engine and the model say the same.

The model is `lifecycle_model`, written from the specification. Where the text leaves a case open
nothing is generated for it: a load within a close, a close of what is closed, a close that fails under
an open turn, and in a replay under an open turn news of its own tools, or of finished ones of a turn
before it.

HYPOTHESIS_PROFILE=deep searches long and at random; otherwise it takes seconds and always tries the
same conversations, so that it never fails for one change in place of another.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from lifecycle_model import ModelSession

from acp_proxy.acp.version import Role
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog
from acp_proxy.inference.foreground import Change, Rules
from acp_proxy.jsonrpc.message import classify
from lifecycle_wire import words

SLOW_IS_FINE = [HealthCheck.too_slow]
PROFILE = "deep" if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else "lifecycle"
settings.register_profile(
    "lifecycle",
    derandomize=True,
    deadline=None,
    max_examples=200,
    stateful_step_count=50,
    suppress_health_check=SLOW_IS_FINE,
)
settings.register_profile(
    "deep", deadline=None, max_examples=2000, stateful_step_count=80, suppress_health_check=SLOW_IS_FINE
)
pytestmark = [pytest.mark.slow] if PROFILE == "deep" else []

SESSIONS = ("s1", "s2", "native")
TOOLS = ("t1", "t2")
HELPERS = ("fs/read_text_file", "terminal/output")
STATUSES = (
    None,
    "pending",
    "in_progress",
    "in_progress",
    "completed",
    "completed",
    "failed",
    "cancelled",
    "warming_up",
)
STOPS = ("end_turn", "max_tokens", "cancelled", "refusal", "_x")
TAGS = ("agent_message_chunk", "plan", "user_message_chunk", "usage_update", "new_kind")
# How often each side does what, as far as it can.
CLIENT = {
    "prompt": 8,
    "prompt_more": 1,
    "cancel": 1,
    "load": 1,
    "close": 1,
    "other_request": 1,
    "answer": 6,
    "serve": 4,
}
AGENT = {
    "tool": 6,
    "permission": 6,
    "elicitation": 2,
    "helper": 1,
    "end_turn": 3,
    "fail_turn": 1,
    "finish_load": 2,
    "finish_close": 1,
    "noise": 1,
}


class Conversation(RuleBasedStateMachine):
    """A client and an agent that may do anything the wire allows."""

    @initialize()
    def start(self) -> None:
        self.engine = Engine(Rules(), FindingLog())
        self.model = {name: ModelSession() for name in SESSIONS}
        self.at = 0.0
        self.script: list[str] = []
        self.tokens = {Role.CLIENT: 0, Role.AGENT: 0}
        # What is open on the wire, whatever the lifecycle makes of it: token -> (what, session)
        self.asked: dict[Role, dict[Any, tuple[str, str]]] = {Role.CLIENT: {}, Role.AGENT: {}}
        self.old_states = dict.fromkeys(SESSIONS, "idle")

    # ------------------------------------------------------------ saying things

    def say(self, sender: Role, body: dict[str, Any], told: dict[str, list[str]]) -> None:
        """Let the engine observe a message, and compare what it tells with what was to be told."""
        self.at += 0.5
        message = classify({"jsonrpc": "2.0", **body})
        assert message is not None
        self.script.append(f"{sender.value:>6} > {body}")
        self.compare(self.engine.observe(message, sender, self.at), told)

    def compare(self, changes: Sequence[Change], told: dict[str, list[str]]) -> None:
        script = "\n".join(self.script)
        got: dict[str, list[str]] = {}
        for change in changes:
            name = change.session.id
            assert change.old.value == self.old_states[name], script
            self.old_states[name] = change.new.value
            got.setdefault(name, []).append(words(change))
        assert got == {name: list(texts) for name, texts in told.items() if texts}, script

    def token(self, sender: Role) -> Any:
        """A fresh id; every second one is the text of the number before it."""
        self.tokens[sender] += 1
        number, is_text = divmod(self.tokens[sender], 2)
        return str(number) if is_text else number

    def ask(
        self, sender: Role, what: str, session: str, method: str, params: dict[str, Any], told: list[str]
    ) -> None:
        """Send the request whose id is the next fresh one."""
        token = self.token(sender)
        self.asked[sender][token] = (what, session)
        body = {"id": token, "method": method, "params": {"sessionId": session, **params}}
        self.say(sender, body, {session: told})

    def next_key(self, sender: Role) -> Hashable:
        """The key of the request that comes next; type and value, as the model wants it."""
        number, is_text = divmod(self.tokens[sender] + 1, 2)
        return (str(number), str) if is_text else (number, int)

    def take(self, data: st.DataObject, asker: Role, *kinds: str) -> tuple[Any, Hashable, str, str]:
        """Some request of the asker that is open, its key, what it was and its session."""
        tokens = [token for token, (what, _) in self.asked[asker].items() if what in kinds]
        token = data.draw(st.sampled_from(tokens))
        what, session = self.asked[asker].pop(token)
        return token, (token, type(token)), what, session

    def any_open(self, asker: Role, *kinds: str) -> bool:
        return any(what in kinds for what, _ in self.asked[asker].values())

    def has(self, session: str, *kinds: str) -> bool:
        return any(what in kinds and name == session for what, name in self.asked[Role.CLIENT].values())

    # ------------------------------------------------------------ who acts

    @rule(data=st.data())
    def client(self, data: st.DataObject) -> None:
        self.act(CLIENT, data)

    @rule(data=st.data())
    def agent(self, data: st.DataObject) -> None:
        self.act(AGENT, data)

    def act(self, weights: dict[str, int], data: st.DataObject) -> None:
        possible = {
            "prompt": not self.model["s1"].open,
            "answer": self.any_open(Role.AGENT, "wait", "other"),
            "serve": self.any_open(Role.AGENT, "helper"),
            "end_turn": self.any_open(Role.CLIENT, "prompt"),
            "fail_turn": self.any_open(Role.CLIENT, "prompt"),
            "finish_load": self.any_open(Role.CLIENT, "load"),
            "finish_close": self.any_open(Role.CLIENT, "close"),
        }
        names = [name for name, weight in weights.items() for _ in range(weight) if possible.get(name, True)]
        getattr(self, data.draw(st.sampled_from(names)))(data)

    # Most of it happens in one session, so that things meet there.
    def session(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from(("s1",) * 6 + ("s2",))))

    # ------------------------------------------------------------ the client

    def prompt(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(("s1",) * 6 + ("s2", "native")))
        told = self.model[session].prompt(self.next_key(Role.CLIENT))
        self.ask(Role.CLIENT, "prompt", session, "session/prompt", {"prompt": []}, told)

    prompt_more = prompt

    def cancel(self, data: st.DataObject) -> None:
        session = self.session(data)
        told = self.model[session].cancel()
        self.say(Role.CLIENT, {"method": "session/cancel", "params": {"sessionId": session}}, {session: told})

    def load(self, data: st.DataObject) -> None:
        session = self.session(data)
        if self.has(session, "close"):
            return
        told = self.model[session].load(self.next_key(Role.CLIENT))
        method = data.draw(st.sampled_from(("session/load", "session/resume")))
        self.ask(Role.CLIENT, "load", session, method, {}, told)

    def close(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(("s2", "s2", "s1")))
        if self.has(session, "close", "load") or self.model[session].phase == "closed":
            return
        method = data.draw(st.sampled_from(("session/close", "session/delete", "session/archive")))
        self.ask(Role.CLIENT, "close", session, method, {}, self.model[session].close())

    def other_request(self, data: st.DataObject) -> None:
        method = data.draw(st.sampled_from(("session/set_mode", "session/fork", "_vendor/ask")))
        self.ask(Role.CLIENT, "other", self.session(data), method, {}, [])
        token, _ = self.asked[Role.CLIENT].popitem()
        self.say(Role.AGENT, {"id": token, "result": {}}, {})

    def answer(self, data: st.DataObject) -> None:
        """In time or late: what was asked in an ended turn is still open on the wire."""
        token, key, what, session = self.take(data, Role.AGENT, "wait", "other")
        told = self.model[session].answered(key) if what == "wait" else []
        fails = data.draw(st.booleans())
        answer: dict[str, Any] = {"error": {"code": -32603, "message": "no"}} if fails else {"result": {}}
        self.say(Role.CLIENT, {"id": token, **answer}, {session: told})

    def serve(self, data: st.DataObject) -> None:
        token, key, _, session = self.take(data, Role.AGENT, "helper")
        told = self.model[session].answered(key)
        self.say(Role.CLIENT, {"id": token, "result": {}}, {session: told})

    # ------------------------------------------------------------ the agent

    def end_turn(self, data: st.DataObject) -> None:
        token, key, _, session = self.take(data, Role.CLIENT, "prompt")
        stop = data.draw(st.sampled_from(STOPS))
        told = self.model[session].prompt_result(key, stop)
        self.say(Role.AGENT, {"id": token, "result": {"stopReason": stop}}, {session: told})
        self.say(Role.AGENT, {"id": token, "result": {"stopReason": "end_turn"}}, {})

    def fail_turn(self, data: st.DataObject) -> None:
        token, key, _, session = self.take(data, Role.CLIENT, "prompt")
        code = data.draw(st.sampled_from((-32603, -32000, -32800)))
        told = self.model[session].prompt_error(key, code)
        self.say(Role.AGENT, {"id": token, "error": {"code": code, "message": "no"}}, {session: told})

    def tool(self, data: st.DataObject) -> None:
        session, name = self.session(data), data.draw(st.sampled_from(TOOLS))
        status, announced = data.draw(st.sampled_from(STATUSES)), data.draw(st.booleans())
        model = self.model[session]
        if model.replays and model.open and name in model.tools:
            known = model.tools[name]
            if known.foreground and known.epoch != model.epoch:
                return
            status = known.status
        told = model.tool(name, status, announced=announced)
        body = {"toolCallId": name, **({} if status is None else {"status": status})}
        self.update(session, "tool_call" if announced else "tool_call_update", body, told)

    def update(self, session: str, tag: str, body: dict[str, Any], told: list[str]) -> None:
        params = {"sessionId": session, "update": {"sessionUpdate": tag, **body}}
        self.say(Role.AGENT, {"method": "session/update", "params": params}, {session: told})

    def permission(self, data: st.DataObject) -> None:
        session, name = self.session(data), data.draw(st.sampled_from(TOOLS))
        status = data.draw(st.sampled_from(STATUSES))
        told = self.model[session].permission(self.next_key(Role.AGENT), name, status)
        call = {"toolCallId": name, **({} if status is None else {"status": status})}
        params = {"toolCall": call, "options": []}
        self.ask(Role.AGENT, "wait", session, "session/request_permission", params, told)

    def elicitation(self, data: st.DataObject) -> None:
        session, name = self.session(data), data.draw(st.sampled_from((None, *TOOLS)))
        told = self.model[session].elicitation(self.next_key(Role.AGENT), name)
        params = {"mode": "form", **({} if name is None else {"toolCallId": name})}
        self.ask(Role.AGENT, "wait", session, "elicitation/create", params, told)

    def helper(self, data: st.DataObject) -> None:
        session = self.session(data)
        told = self.model[session].helper(self.next_key(Role.AGENT))
        self.ask(Role.AGENT, "helper", session, data.draw(st.sampled_from(HELPERS)), {}, told)

    def finish_load(self, data: st.DataObject) -> None:
        token, key, _, session = self.take(data, Role.CLIENT, "load")
        answer: dict[str, Any] = {"result": {}}
        if data.draw(st.booleans()):
            told = self.model[session].load_result(key)
        else:
            told, answer = self.model[session].load_error(key), {"error": {"code": -32002, "message": "no"}}
        self.say(Role.AGENT, {"id": token, **answer}, {session: told})

    def finish_close(self, data: st.DataObject) -> None:
        token, _, _, session = self.take(data, Role.CLIENT, "close")
        # What becomes of a turn whose close fails is left open by the text.
        codes = (None, -32002) if self.model[session].open else (None, -32002, -32601)
        code = data.draw(st.sampled_from(codes))
        told = self.model[session].close_error() if code == -32601 else self.model[session].close_result()
        answer: dict[str, Any] = (
            {"result": {}} if code is None else {"error": {"code": code, "message": "no"}}
        )
        self.say(Role.AGENT, {"id": token, **answer}, {session: told})

    def noise(self, data: st.DataObject) -> None:
        """What means nothing, and a session that tells its state itself."""
        kind = data.draw(st.sampled_from(("update", "elicitation", "report")))
        if kind == "update":
            self.update(self.session(data), data.draw(st.sampled_from(TAGS)), {}, [])
        elif kind == "elicitation":
            params = {"mode": "form", "requestId": data.draw(st.sampled_from((0, "0", 99)))}
            self.ask(Role.AGENT, "other", self.session(data), "elicitation/create", params, [])
        else:
            state = data.draw(st.sampled_from(("idle", "running", "_busy")))
            self.update("native", "state_update", {"state": state}, self.model["native"].report())

    # ------------------------------------------------------------ always

    @invariant()
    def states_agree(self) -> None:
        for name, record in self.engine.sessions.items():
            model = self.model[name]
            assert record.native == model.native
            assert record.phase.name.lower() == model.phase
            assert record.foreground == model.open
            if not model.native:
                assert record.state.value == model.state == self.old_states[name]

    def teardown(self) -> None:
        """The agent ends: whatever was open is an error now, and nothing else is told."""
        told = {name: self.model[name].agent_gone() for name in self.engine.sessions}
        self.compare(self.engine.agent_gone({"code": -32603, "message": "gone"}, self.at), told)
        assert all(not session.busy for session in self.engine.sessions.values() if not session.native)


TestConversation = Conversation.TestCase
TestConversation.settings = settings.get_profile(PROFILE)


def test_the_model_tells_what_the_golden_traces_tell() -> None:
    """The model is held to the specification's own examples, without the engine."""
    model = ModelSession()
    assert model.prompt(1) == ["running"]
    assert model.permission("a", "t1", None) == ["requires_action"]
    assert model.permission("b", "t2", None) == []
    assert model.answered("a") == []
    assert model.tool("t1", "in_progress", announced=False) == ["running"]
    assert model.tool("t1", "completed", announced=False) == ["requires_action"]
    assert model.answered("b") == ["running"]
    assert model.prompt_result(1, "end_turn") == ["idle(end_turn)"]
    assert model.tool("t0", "in_progress", announced=True) == []
    assert model.permission("c", "t0", None) == []
    assert model.answered("c") == []


@pytest.mark.parametrize("helper_first", [False, True])
def test_the_model_counts_machine_work_as_progress(helper_first: bool) -> None:
    model = ModelSession()
    assert model.prompt(1) == ["running"]
    if helper_first:
        assert model.helper("h") == []
        assert model.permission("a", "t1", None) == []
        assert model.answered("h") == ["requires_action"]
    else:
        assert model.permission("a", "t1", None) == ["requires_action"]
        assert model.helper("h") == ["running"]
    assert model.cancel() == []
