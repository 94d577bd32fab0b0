"""Laws of the bridge that hold for every conversation between a v2 client and a v1 agent."""

from __future__ import annotations

import random
from typing import Any

from conversation import AGENTS, Conversation
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.acp.version import Role, Version
from relay_driver import answer, bridged, call, note, story
from schema_cache import package_dir
from schema_instances import InstanceMaker

CLIENT, AGENT = Role.CLIENT, Role.AGENT
seeds = st.integers(0, 2**32)
options = st.fixed_dictionaries(
    {},
    optional={
        "settle": st.just(0.5),
        "load_settle": st.just(0.5),
        "queue_boundary": st.just("merge"),
        "max_held": st.just(1),
        "ack_timeout": st.just(0.0),
        "cancel_timeout": st.just(5.0),
        "permission_timeout": st.just(5.0),
        "unstable": st.just(True),
    },
)


def held(seed: int, agent: dict[str, Any], length: int, more: dict[str, Any]) -> Conversation:
    talk = Conversation(seed, agent, **more)
    for _ in range(length):
        talk.step()
    return talk


def unanswered(talk: Conversation, role: Role) -> dict[Any, int]:
    """The requests of a peer that did not get exactly one answer."""
    return {
        token: talk.answered[role][token] for token in talk.asked[role] if talk.answered[role][token] != 1
    }


def strangers(talk: Conversation, role: Role) -> list[Any]:
    """Answers to ids the peer never used since the books were opened; null answers nothing."""
    return [token for token in talk.answered[role] if token not in talk.asked[role]]


@given(seeds, st.sampled_from(AGENTS), st.integers(1, 40), options)
@settings(deadline=None, max_examples=100)
def test_every_request_is_answered_exactly_once(
    seed: int, agent: dict[str, Any], length: int, more: dict[str, Any]
) -> None:
    package_dir()
    talk = held(seed, agent, length, more)
    talk.finish()
    assert unanswered(talk, CLIENT) == {}
    assert unanswered(talk, AGENT) == {}
    assert strangers(talk, CLIENT) == []
    assert strangers(talk, AGENT) == []


@given(seeds, st.sampled_from(AGENTS), st.integers(1, 40), options)
@settings(deadline=None, max_examples=100)
def test_everything_said_fits_the_schema_of_its_hearer_and_no_id_is_used_twice(
    seed: int, agent: dict[str, Any], length: int, more: dict[str, Any]
) -> None:
    talk = held(seed, agent, length, more)
    talk.finish()
    assert talk.problems == []


@given(seeds, st.sampled_from(AGENTS), st.integers(1, 30), options)
@settings(deadline=None, max_examples=60)
def test_the_agents_end_answers_the_client_exactly_once(
    seed: int, agent: dict[str, Any], length: int, more: dict[str, Any]
) -> None:
    talk = held(seed, agent, length, more)
    talk.take(talk.driver.agent_exits("gone", {"exitCode": 1}))
    talk.take(talk.driver.advance(1000))
    assert unanswered(talk, CLIENT) == {}
    assert talk.problems == []


@given(seeds, st.sampled_from(AGENTS), st.integers(1, 30), options)
@settings(deadline=None, max_examples=60)
def test_the_clients_end_answers_the_agent_exactly_once(
    seed: int, agent: dict[str, Any], length: int, more: dict[str, Any]
) -> None:
    talk = held(seed, agent, length, more)
    talk.take(talk.driver.client_leaves())
    for token in list(talk.at_agent.open):
        talk.agent_answers(token)
    talk.take(talk.driver.advance(1000))
    assert unanswered(talk, AGENT) == {}
    assert [problem for problem in talk.problems if "toward the agent" in problem] == []


@given(seeds, st.sampled_from(AGENTS), st.integers(1, 40), options)
@settings(deadline=None, max_examples=60)
def test_states_alternate_and_end_idle(
    seed: int, agent: dict[str, Any], length: int, more: dict[str, Any]
) -> None:
    talk = held(seed, agent, length, more)
    talk.finish()
    for session in ("s1", "s2"):
        told = [
            body["params"]
            for body in talk.driver.outputs.client
            if body.get("method") == "session/update"
            and body["params"]["sessionId"] == session
            and body["params"]["update"].get("sessionUpdate") == "state_update"
        ]
        if any("synthetic" not in str(params.get("_meta")) for params in told):
            continue  # the agent told states itself: from then on nothing is made up
        assert not told or told[-1]["update"]["state"] == "idle"


# ---------------------------------------------------------------- what nobody here knows survives

metas = st.dictionaries(
    st.sampled_from(["traceparent", "tracestate", "baggage", "vendor/key"]),
    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.booleans(), max_size=2),
    min_size=1,
    max_size=3,
)
FOREIGN = "x_foreign"


def carries(body: dict[str, Any], meta: dict[str, Any]) -> bool:
    """Whether params or result still have the `_meta` keys and the foreign member."""
    holder = body.get("params", body.get("result"))
    assert isinstance(holder, dict)
    kept = holder.get("_meta") or {}
    return holder.get(FOREIGN) == 1 and all(kept.get(key, "absent") == value for key, value in meta.items())


CLIENT_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("session/new", {"cwd": "/p"}),
    ("session/resume", {"sessionId": "s1", "cwd": "/p"}),
    ("session/resume", {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}),
    ("session/list", {}),
    ("session/close", {"sessionId": "s1"}),
    ("session/delete", {"sessionId": "s1"}),
    ("session/prompt", {"sessionId": "s1", "prompt": [{"type": "text", "text": "t"}]}),
    ("auth/login", {"methodId": "m"}),
]


@given(st.sampled_from(CLIENT_CALLS), metas)
@settings(deadline=None)
def test_meta_and_unknown_members_of_requests_and_results_survive(
    request: tuple[str, dict[str, Any]], meta: dict[str, Any]
) -> None:
    driver = bridged(agent=AGENTS[1])
    method, params = request
    (sent,) = driver.client_sends(call(5, method, {**params, "_meta": meta, FOREIGN: 1})).agent
    assert carries(sent, meta)
    if method != "session/prompt":
        result = {"sessionId": "s2", "sessions": [], "_meta": meta, FOREIGN: 1}
        told = driver.agent_sends(answer(sent["id"], result)).client[-1]
        assert told["id"] == 5
        assert carries(told, meta)


@given(seeds, metas)
@settings(deadline=None, max_examples=200)
def test_meta_and_unknown_members_of_updates_survive(seed: int, meta: dict[str, Any]) -> None:
    update = InstanceMaker(Version.V1, random.Random(seed)).make("SessionUpdate")
    if not isinstance(update, dict):
        return
    update = {key: value for key, value in update.items() if key != "_meta"}
    update = {**update, "_meta": meta, FOREIGN: 1}
    driver = bridged()
    said = driver.agent_sends(
        note("session/update", {"sessionId": "s1", "update": update, "_meta": meta, FOREIGN: 1})
    )
    for body in said.client:
        assert carries(body, meta)
        told = body["params"]["update"]
        assert told[FOREIGN] == 1
        nulls_mean_unchanged = told["sessionUpdate"] == "tool_call_update"
        expected = {k: v for k, v in meta.items() if v is not None} if nulls_mean_unchanged else meta
        assert {key: told["_meta"].get(key) for key in expected} == expected


@given(metas)
@settings(deadline=None)
def test_meta_and_unknown_members_of_questions_survive(meta: dict[str, Any]) -> None:
    driver = bridged(client={"elicitation": {"form": {}}})
    permission = {
        "sessionId": "s1",
        "toolCall": {"toolCallId": "k"},
        "options": [{"optionId": "o", "name": "n", "kind": "allow_once"}],
    }
    form = {
        "sessionId": "s1",
        "mode": "form",
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    results = ({"outcome": {"outcome": "selected", "optionId": "o"}}, {"action": "decline"})
    calls = (("session/request_permission", permission), ("elicitation/create", form))
    for (method, params), result in zip(calls, results, strict=True):
        (asked,) = driver.agent_sends(call("q", method, {**params, "_meta": meta, FOREIGN: 1})).client
        assert carries(asked, meta)
        (told,) = driver.client_sends(answer(asked["id"], {**result, "_meta": meta, FOREIGN: 1})).agent
        assert carries(told, meta)
    assert story(driver.outputs.agent)[-1] == "answer q"
