"""Bad input from the client: a clear outcome for each piece of it, and a session that works afterwards.

What is said: bridge §0 (framing), §12; lifecycle §2.5 (ids, arrays, malformed); transport §3 (guards).
"""

from __future__ import annotations

from typing import Any

from bad_lines import (
    BRIDGED,
    INVALID,
    MODES,
    NO_MESSAGE,
    UNANSWERED,
    Mode,
    answers_to,
    call,
    codes,
    every_mode,
    prompt,
)
from script_steps import chunk
from wrapped import line, wrapped

TURN_ENDS = ["reply", {"stopReason": "end_turn"}]


@every_mode
async def test_line_that_is_no_message_is_refused_once_and_harms_nothing(mode: Mode) -> None:
    async with wrapped(mode.script(), version=mode.client) as run:
        session = await run.open()
        wrong: dict[str, Any] = {}
        for name, (said, allowed) in NO_MESSAGE.items():
            answers = await answers_to(run, said)
            if [token for token, _ in codes(answers)] != [None] or codes(answers)[0][1] not in allowed:
                wrong[name] = answers
        for name, said in UNANSWERED.items():
            if answers := await answers_to(run, said):
                wrong[name] = answers
        assert wrong == {}
        await run.healthy_turn(session)
        assert {m.get("method") for m in run.agent_messages()} >= {"initialize", "session/new", "_barrier"}
        assert not [got for got in run.agent_got() if b"hello there" in got or got[:1] == b"["]
        await run.leave()


@every_mode
async def test_request_with_a_method_of_a_wrong_type_is_refused_under_its_id(mode: Mode) -> None:
    async with wrapped(mode.script(), version=mode.client) as run:
        session = await run.open()
        methods: list[Any] = [None, 5, [], {}, True]
        for method in methods:
            said = {"jsonrpc": "2.0", "id": 77, "method": method}
            assert codes(await answers_to(run, said)) == [(77, INVALID)], method
        await run.healthy_turn(session)
        await run.leave()


@every_mode
async def test_lines_come_in_any_pieces(mode: Mode) -> None:
    async with wrapped(mode.script(), version=mode.client) as run:
        session = await run.open()
        said = line(call("p1", "_echo", {"text": "a\u2028b\x0c"}))
        for byte in said[:-1]:
            await run.send(bytes([byte]))
        assert run.answers("p1") == []
        await run.send(b"\r\n", said.replace(b"p1", b"p2") + said.replace(b"p1", b"p3")[:20])
        await run.answer("p2")
        await run.send(said.replace(b"p1", b"p3")[20:], b"\xef\xbb\xbf", said.replace(b"p1", b"p4"))
        for token in ("p1", "p3", "p4"):
            assert "result" in await run.answer(token)
        await run.healthy_turn(session)
        await run.leave()


async def test_half_a_line_at_the_end_is_still_a_line() -> None:
    async with wrapped(BRIDGED.script(end=[["sleep", 0.3], ["exit", 0]])) as run:
        await run.open()
        await run.send(line({"jsonrpc": "2.0", "method": "_last", "params": {}}).rstrip())
        await run.close_stdin()
        assert await run.ended() == 0
        assert [m["method"] for m in run.agent_messages()][-1] == "_last"


# ---------------------------------------------------------------- ids


async def test_bridge_refuses_ids_that_v2_does_not_have() -> None:
    async with wrapped(BRIDGED.script()) as run:
        session = await run.open()
        odd: list[Any] = [None, 1.5, True, [], {}, [1]]
        good: list[Any] = [-1, 0, 2**53 + 1, "", "é\u2028", 10**25]
        for token in odd:
            for said in (call(token, "_x", {}), prompt(token), call(token, "initialize", {})):
                assert codes(await answers_to(run, said)) == [(None, INVALID)], (token, said)
        assert run.agent_heard("_x") == []
        for token in good:
            (answer,) = await answers_to(run, call(token, "_x", {}))
            assert answer["id"] == token
        await run.healthy_turn(session)
        assert run.invalid() == []
        await run.leave()


async def test_same_version_keeps_every_id_as_it_came() -> None:
    async with wrapped(MODES["v1"].script(), version=1) as run:
        session = await run.open()
        for token in (None, 1.5, -1, "", "1", 10**25):
            (answer,) = await answers_to(run, call(token, "_x", {}))
            assert (answer["id"], answer["result"]) == (token, {}), token
        await run.healthy_turn(session)
        await run.leave()


async def test_id_reused_in_flight_is_refused_and_the_first_request_lives() -> None:
    on = {
        "session/prompt go": [chunk(), ["await", "_end"], TURN_ENDS],
        "_slow": [["await", "_go"], ["reply"]],
    }
    async with wrapped(BRIDGED.script(**on)) as run:
        session = await run.open()
        await run.send(call(5, "_slow", {}), prompt(6))
        await run.answer(6)
        for said in (call(5, "_other", {}), prompt(5), call(5, "session/list", {}), call(5, "nonsense", {})):
            assert codes(await answers_to(run, said)) == [(None, INVALID)], said
        await run.send(prompt(7), prompt(7))
        await run.until(lambda: len(run.answers(None)) == 5, "the refusal of a held prompt's id")
        await run.tell("_go", {})
        assert (await run.answer(5))["result"] == {}
        await run.tell("_end", {})
        await run.answer(7)
        await run.tell("_end", {})
        await run.until(lambda: run.states(session) == ["running", "idle(end_turn)"] * 2, "both ends")
        assert [len(run.answers(token)) for token in (5, 6, 7)] == [1, 1, 1]
        await run.healthy_turn(session)
        await run.leave()


async def test_id_of_an_acknowledged_prompt_is_free_again_though_its_turn_goes_on() -> None:
    on = {"session/prompt go": [chunk(), ["await", "_end"], TURN_ENDS]}
    async with wrapped(BRIDGED.script(**on)) as run:
        session = await run.open()
        await run.send(prompt(6))
        await run.answer(6)
        assert codes(await answers_to(run, call(6, "nonsense", {}))) == [(6, -32601)]
        await run.tell("_end", {})
        await run.until(lambda: run.states(session) == ["running", "idle(end_turn)"], "the end of the turn")
        await run.leave()


@every_mode
async def test_ids_of_both_directions_never_meet(mode: Mode) -> None:
    """Client, agent and proxy all count from the same numbers."""
    asks = [["call", "_question", {"n": n}, n] for n in range(8)] + [["call", "_question", {"n": "1"}, "1"]]
    on = {"session/prompt go": [*asks, ["await", "_end"], TURN_ENDS]}
    if mode.agent == 2:
        on = {"session/prompt go": [["reply", {"messageId": "m"}], *asks]}
    async with wrapped(mode.script(**on), version=mode.client) as run:
        run.answering = lambda asked: {"result": {"answered": asked["params"]["n"]}}
        await run.open()
        first = await run.prompt("s1", request_id=0)
        await run.until(lambda: len(run.requests("_question")) == 9, "nine questions")
        for token in range(1, 8):
            assert (await run.call("_x", {}, token))["result"] == {}
        await run.tell("_end", {})
        assert "result" in await run.answer(first)
        got = [(m["id"], m["result"]) for m in run.agent_messages() if "result" in m]
        assert got == [(n, {"answered": n}) for n in [*range(8), "1"]]
        await run.leave()


# ---------------------------------------------------------------- methods and sessions nobody knows


async def test_unknown_methods_are_the_agents_to_refuse() -> None:
    for mode in (BRIDGED, MODES["v1"]):
        async with wrapped(mode.script(), version=mode.client) as run:
            session = await run.open()
            assert codes(await answers_to(run, call(1, "nonsense/at_all", {}))) == [(1, -32601)]
            assert len(run.agent_heard("nonsense/at_all")) == 1
            assert codes(await answers_to(run, call(2, "", None))) == [(2, -32601)]
            if mode is BRIDGED:
                for method in ("session/load", "session/set_mode", "authenticate", "fs/read_text_file"):
                    assert codes(await answers_to(run, call(3, method, {"sessionId": "s1"}))) == [(3, -32601)]
                    assert run.agent_heard(method) == []
            await run.healthy_turn(session)
            await run.leave()


@every_mode
async def test_unknown_sessions_are_refused_by_the_agent(mode: Mode) -> None:
    async with wrapped(mode.script(), version=mode.client) as run:
        session = await run.open()
        assert codes(await answers_to(run, prompt(1, "nowhere"))) == [(1, -32002)]
        close = await answers_to(run, call(2, "session/close", {"sessionId": "nowhere"}))
        assert codes(close) == [(2, -32002)] if mode.client == mode.agent else close[0]["result"] == {}
        await run.healthy_turn(session)
        if mode is BRIDGED:
            assert run.states("nowhere") in ([], ["running", "idle(error)"])
            assert run.invalid() == []
        await run.leave()
