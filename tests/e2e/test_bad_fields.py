"""Every field of every message a bridge reads, replaced by what does not belong there.

Whatever it is: each request is answered exactly once, what the client gets is valid v2, what the agent gets is
valid v1, and the next turn is as it should be. Source: bridge §0 (strictness), §9; lifecycle §2.5 (malformed).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from bridge_examples import (
    AGENT_NOTIFICATIONS,
    AGENT_REQUESTS,
    CAPABILITIES,
    CHECK,
    CLIENT_CAPABILITIES,
    CLIENT_NOTIFICATIONS,
    CLIENT_REQUESTS,
    ELICITATION_RESULT,
    ERROR,
    INITIALIZE,
    INITIALIZE_RESULT,
    JUNK,
    MODES,
    NATIVE_UPDATES,
    PERMISSION_RESULT,
    RESULTS,
    SELECT,
    UPDATES,
    broken,
    places,
)
from script_steps import raw
from side_by_side import together
from wrapped import Json, Wrapped, line, wrapped

from acp_proxy.acp.version import Role, Version
from schema_cache import message_error, response_error

WITHIN = 40.0
OPENED = {"sessionId": "s1", "modes": MODES, "configOptions": [SELECT, CHECK]}
TURN_ENDS = ["reply", {"stopReason": "end_turn"}]
HEALTHY = [["update", {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}]]
BASE = {"session/new": [["reply", OPENED]], "session/prompt healthy": [*HEALTHY, TURN_ENDS]}


def script(**on: Any) -> Json:
    return {"agent": CAPABILITIES, "on": {**BASE, **on}}


async def opened(run: Wrapped) -> str:
    return await run.open(**(CLIENT_CAPABILITIES if run.version == 2 else {}))


def longer(frames: list[Any], count: int) -> bool:
    return len(frames) > count


async def ends_well(run: Wrapped, session: str = "s1") -> None:
    """The last turn is as always, all that came is valid, and so is the end."""
    await run.healthy_turn(session)
    assert run.invalid() == [], "\n".join(run.invalid()[:10])
    await run.leave()


def request_token(body: Any) -> Any:
    """The id under which a message is to be answered: `...` when it is none that is."""
    if not isinstance(body, dict) or "method" not in body or "id" not in body:
        return ...
    token = body["id"]
    return token if type(token) in (int, str) else None


def invalid_v1(run: Wrapped) -> list[str]:
    """What the agent got that v1 does not allow, methods that v1 does not list left out."""
    found: list[str] = []
    for body in run.agent_messages():
        if body.get("method") in (None, "initialize"):
            continue
        wrong = message_error(Version.V1, body, sender=Role.CLIENT)
        if wrong and "that a client may send" not in wrong:
            found.append(f"{wrong} in {json.dumps(body)[:300]}")
    return found


# ---------------------------------------------------------------- the client errs


def client_messages() -> Iterator[tuple[str, Json]]:
    for number, (method, params) in enumerate(CLIENT_REQUESTS):
        for what, body in broken({"jsonrpc": "2.0", "id": f"c{number}", "method": method, "params": params}):
            yield f"{method}: {what}", body
    for method, params in CLIENT_NOTIFICATIONS:
        for what, body in broken({"jsonrpc": "2.0", "method": method, "params": params}):
            yield f"{method}: {what}", body


@pytest.mark.parametrize("version", [1, 2])
async def test_broken_messages_of_the_client_are_answered_once(version: int) -> None:
    """Toward a v1 agent they are translated or refused; between equals the agent judges them."""
    on = {} if version == 2 else {"session/new": [["reply", {"sessionId": "s1"}]]}
    async with wrapped(script(**on), version=version) as run:
        await opened(run)
        wrong: dict[str, Any] = {}
        for what, body in client_messages():
            seen = len(run.frames)
            token = request_token(body)
            if isinstance(body.get("method"), str) and type(token) in (int, str):
                run.asked[token] = body["method"]
            await run.send(body)
            barrier = await run.ask("_barrier", {}, f"b{seen}")
            await run.answer(barrier)
            answers = [f for f in run.frames[seen:] if "method" not in f and f["id"] != barrier]
            if token is None and version == 1 and isinstance(body["method"], str):
                continue  # ids that are none are the agent's to judge
            allowed: list[list[Any]] = (
                [[token]]
                if token is not ...
                else [[]]
                if isinstance(body.get("method"), str)
                else [[], [None]]
            )
            if [f["id"] for f in answers] not in allowed:
                wrong[what] = answers
            if version == 2 and (found := run.invalid(seen)):
                wrong[f"{what} (frames)"] = found
        assert wrong == {}, "\n".join(f"{what}: {answers}" for what, answers in wrong.items())
        if version == 2:
            assert invalid_v1(run) == [], "\n".join(invalid_v1(run)[:20])
        await run.healthy_turn("s1")
        await run.leave()


async def test_broken_initialize_of_the_client_is_answered_and_may_be_repeated() -> None:
    """The agent refuses every offer but a last one, so that all of them are read as the first is."""
    valid = {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": INITIALIZE}
    cases = [(what, body) for what, body in broken(valid) if body.get("method") == "initialize"]
    refused = [["fail", -32000, "not yet"]]
    on = {"initialize": {"each": [*[refused] * len(cases), [["reply"]]]}}

    async def case(some: list[tuple[str, Json]]) -> None:
        async with wrapped(script(**on)) as run:
            for what, body in some:
                seen = len(run.frames)
                await run.send(body)
                await run.until(partial(longer, run.frames, seen), what, 5)
                answer = run.frames[-1]
                assert len(run.frames) == seen + 1, what
                assert answer["id"] in (request_token(body), body["id"]), (what, answer)
                assert answer["error"]["code"] in (-32000, -32600, -32602, -32022), (what, answer)
            for _ in range(len(cases) + 1):  # an offer under no id never reached the agent
                if "result" in await run.initialize(**CLIENT_CAPABILITIES):
                    break
            answer = await run.call("session/new", {"cwd": "/p"})
            await ends_well(run, answer["result"]["sessionId"])

    whole = [(what, body) for what, body in cases if body.get("id") == "i"]
    odd = [(what, body) for what, body in cases if body.get("id", "i") != "i"]
    await together(
        {"fields": partial(case, whole), **{what: partial(case, [(what, body)]) for what, body in odd}}
    )


async def test_broken_answers_of_the_client_still_answer_the_agent_once() -> None:
    permissions = [body for _, body in broken({"jsonrpc": "2.0", "id": 0, "result": PERMISSION_RESULT})]
    forms = [body for _, body in broken({"jsonrpc": "2.0", "id": 0, "result": ELICITATION_RESULT})]
    for some in (permissions, forms):
        some += [body for _, body in broken({"jsonrpc": "2.0", "id": 0, "error": ERROR})]
        some.append({"jsonrpc": "2.0", "id": 0, "result": {}, "error": ERROR})
    plan = [(0, answer) for answer in permissions] + [(1, answer) for answer in forms]
    asks = [["call", *AGENT_REQUESTS[which], f"q{number}"] for number, (which, _) in enumerate(plan)]
    on = {"session/prompt go": [*asks, ["await", "_end"], TURN_ENDS]}
    async with wrapped(script(**on)) as run:
        left = [answer for _, answer in reversed(plan)]

        def answering(asked: Json) -> Json | None:
            return {key: value for key, value in left.pop().items() if key != "id" or value != 0}

        run.answering = answering
        session = await opened(run)
        await run.prompt(session)
        await run.until(lambda: not left, "all questions", WITHIN)
        await run.call("_barrier", {})
        await run.tell("_end", {})
        await run.until(lambda: run.states(session)[-1:] == ["idle(end_turn)"], "the end of the turn", WITHIN)
        await run.call("_barrier", {})
        wrong: list[str] = []
        got = [m for m in run.agent_messages() if "method" not in m]
        for number, (which, answer) in enumerate(plan):
            found = [m for m in got if m.get("id") == f"q{number}"]
            method = AGENT_REQUESTS[which][0]
            if len(found) != 1:
                wrong.append(f"{method} answered with {answer}: {found}")
            elif "result" in found[0]:
                misfit = response_error(
                    Version.V1, method, found[0]["result"], receiver_of_request=Role.CLIENT
                )
                if misfit:
                    wrong.append(f"{method} answered with {answer}: {misfit} in {found[0]}")
        assert wrong == [], "\n".join(wrong[:20])
        await ends_well(run)


# ---------------------------------------------------------------- the agent errs


def broken_updates(updates: list[Json], session: str) -> list[Json]:
    return [
        body
        for update in updates
        for _, body in broken(
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
        )
    ]


@pytest.mark.parametrize("when", ["in a turn", "before its acknowledgement", "out of turn"])
async def test_broken_updates_reach_the_client_valid_or_not_at_all(when: str) -> None:
    said = [update for update in broken_updates(UPDATES, "s1") if "id" not in update]
    head = HEALTHY if when == "in a turn" else []
    flood = [*head, raw(b"".join(map(line, said)))]
    event = "_flood" if when == "out of turn" else "session/prompt go"
    tail = [["reply"]] if when == "out of turn" else [TURN_ENDS]
    async with wrapped(script(**{event: [*flood, *tail]})) as run:
        session = await opened(run)
        if when == "out of turn":
            await run.ask("_flood", {"sessionId": session}, "f")
            await run.answer("f", WITHIN)
            assert run.states(session) == []
        else:
            await run.answer(await run.prompt(session), WITHIN)
            await run.until(lambda: len(run.states(session)) == 2, "the end of the turn", WITHIN)
            assert run.states(session) == ["running", "idle(end_turn)"]
        assert len(run.frames) > len(said) / 3, "hardly anything came through"
        await ends_well(run)


async def test_broken_updates_of_v2_reach_the_client_valid_or_not_at_all() -> None:
    said = broken_updates(NATIVE_UPDATES, "s2")
    async with wrapped(script(_flood=[raw(b"".join(map(line, said))), ["reply"]])) as run:
        session = await opened(run)
        await run.ask("_flood", {"sessionId": session}, "f")
        await run.answer("f", WITHIN)
        await ends_well(run)


async def test_broken_requests_of_the_agent_are_answered_once() -> None:
    said: list[Json] = []
    for method, params in AGENT_REQUESTS:
        valid = {"jsonrpc": "2.0", "id": "", "method": method, "params": params}
        for _, body in [("valid", copy.deepcopy(valid)), *broken(valid)]:
            if body.get("id") == "":
                body["id"] = f"q{len(said)}"
            said.append(body)
    for method, params in AGENT_NOTIFICATIONS:
        said += [body for _, body in broken({"jsonrpc": "2.0", "method": method, "params": params})]
    flood = [raw(b"".join(map(line, said))), ["await", "_end"], TURN_ENDS]
    async with wrapped(script(**{"session/prompt go": [*HEALTHY, *flood]})) as run:
        results = {"session/request_permission": PERMISSION_RESULT, "elicitation/create": ELICITATION_RESULT}
        run.answering = lambda asked: (
            {"result": results[asked["method"]]}
            if asked["method"] in results
            else {"error": {"code": -32601, "message": "no"}}
        )
        session = await opened(run)
        await run.prompt(session)
        last = f"q{max(n for n, body in enumerate(said) if body.get('id') == f'q{n}')}"
        await run.until(lambda: [m for m in run.agent_messages() if m.get("id") == last], "the last", WITHIN)
        await run.call("_barrier", {})
        await run.tell("_end", {})
        await run.until(lambda: run.states(session)[-1:] == ["idle(end_turn)"], "the end of the turn", WITHIN)
        got = [m for m in run.agent_messages() if "method" not in m]
        wrong: list[str] = []
        for number, body in enumerate(said):
            found = [m for m in got if m.get("id") == f"q{number}"]
            if len(found) != (body.get("id") == f"q{number}" and "method" in body):
                wrong.append(f"{json.dumps(body)[:300]}: {found}")
            for answer in found:
                listed = body.get("method") in ("session/request_permission", "elicitation/create")
                if "result" in answer and listed:
                    misfit = response_error(
                        Version.V1, body["method"], answer["result"], receiver_of_request=Role.CLIENT
                    )
                    if misfit:
                        wrong.append(f"{misfit} in {answer}")
        assert wrong == [], "\n".join(wrong[:20])
        assert len(run.requests("session/request_permission")) > 20
        assert len(run.requests("elicitation/create")) > 20
        await ends_well(run)


async def test_broken_results_of_the_agent_become_an_answer_all_the_same() -> None:
    async def case(method: str, params: Json, at_agent: str, result: Json) -> None:
        answers = [body for _, body in broken({"jsonrpc": "2.0", "id": "$id", "result": result})]
        answers += [body for _, body in broken({"jsonrpc": "2.0", "id": "$id", "error": ERROR})]
        answers += [{"jsonrpc": "2.0", "id": "$id", "result": result, "error": ERROR}]
        # One under a wrong id or none is no answer: the right one follows.
        lists = [
            [["send", body], *([["send", {"id": "$id", "result": result}]] if lost(body) else [])]
            for body in answers
        ]
        event = f"{at_agent} go" if at_agent == "session/prompt" else at_agent
        first = [BASE[at_agent]] if at_agent == "session/new" else []
        async with wrapped(script(**{event: {"each": [*first, *lists]}})) as run:
            session = await opened(run)
            for number in range(len(answers)):
                token = await run.ask(method, params, f"r{number}")
                await run.answer(token)
                states = run.states(session)
                if method == "session/prompt":
                    turn = [states[-2:-1], states[-1:]]
                    await run.until(lambda: run.states(session)[-1].startswith("idle"), f"{turn}")
            await run.call("_barrier", {})
            assert [len(run.answers(f"r{number}")) for number in range(len(answers))] == [1] * len(answers)
            await ends_well(run)

    def lost(body: Json) -> bool:
        return body.get("id") != "$id" or not ("result" in body or "error" in body)

    cases = [(f"{at_agent} for {method}", entry) for entry in RESULTS for method, _, at_agent, _ in [entry]]
    await together({name: partial(case, *entry) for name, entry in cases})


async def test_broken_initialize_result_of_the_agent_ends_in_an_answer() -> None:
    """One process for each kind of junk at each field of the result; deeper ones all at once."""

    async def case(result: Any) -> None:
        async with wrapped({"on": {"initialize": [["reply", result]]}}) as run:
            answer = await run.initialize(**CLIENT_CAPABILITIES)
            assert len(run.answers(answer["id"])) == 1
            if "result" in answer and answer["result"] == result:
                return  # no version in common: the agent's answer is none of ours
            if "result" in answer:
                opened_here = await run.call("session/new", {"cwd": "/p"})
                await run.healthy_turn(opened_here["result"]["sessionId"])
            assert run.invalid() == [], "\n".join(run.invalid())
            await run.leave()

    cases: dict[str, Any] = {f"result = {junk!r}": partial(case, junk) for junk in JUNK}
    for field in INITIALIZE_RESULT:
        for junk in JUNK:
            cases[f"{field} = {junk!r}"] = partial(case, {**INITIALIZE_RESULT, field: junk})
    for junk in JUNK:
        result = copy.deepcopy(INITIALIZE_RESULT)
        for path in [path for path in places(INITIALIZE_RESULT) if len(path) > 1]:
            holder: Any = result
            for key in path[:-1]:
                holder = holder[key] if isinstance(holder, dict | list) and len(holder) else {}
            if isinstance(holder, dict | list) and not any(
                len(other) > len(path) and other[: len(path)] == path for other in places(INITIALIZE_RESULT)
            ):
                holder[path[-1]] = copy.deepcopy(junk)
        cases[f"every leaf = {junk!r}"] = partial(case, result)
    await together(cases)
