"""Bad output of the agent, and lines of any size from either side: clear outcomes, and a session that lives on.

What is said: bridge §0 (framing), §8, §12; lifecycle §2.5 (ids, arrays); limits of the command line.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any

from bad_lines import (
    BRIDGED,
    INVALID,
    NO_MESSAGE,
    PARSE,
    UNANSWERED,
    Mode,
    answers_to,
    call,
    codes,
    every_mode,
)
from script_steps import PERMISSION, chunk, raw
from side_by_side import together
from wrapped import Wrapped, line, wrapped

MIB = 1 << 20
SMALL_LIMIT = ("--set", "limits.message_bytes=100000")
SELECTED = {"result": {"outcome": {"outcome": "selected", "optionId": "ok"}}}
TURN_ENDS = ["reply", {"stopReason": "end_turn"}]


# ---------------------------------------------------------------- the agent's turn to err


def has_refusal(run: Wrapped, refusal: tuple[Any, int]) -> bool:
    """Whether the agent has received an error with this id and code."""
    return refusal in [(m["id"], m["error"]["code"]) for m in run.agent_messages() if "error" in m]


@every_mode
async def test_what_is_no_message_from_the_agent_never_reaches_the_client(mode: Mode) -> None:
    noise = [said for said, _ in NO_MESSAGE.values() if len(said) < 200 and said[:1] != b"["]
    asked = b'{"jsonrpc":"2.0","id":77,"method":5}\n[{"jsonrpc":"2.0","method":"_in_a_batch"}]\n'
    unasked = [said for name, said in UNANSWERED.items() if "cancel" not in name and "unknown" not in name]
    if mode.client == mode.agent:
        # Same-version mode forwards what is a message at all; nobody but the client can judge these.
        unasked = [said for said in unasked if b'"id":4711' not in said and b'"id":"1"' not in said]
    out = [raw(b"".join([*noise, *unasked, asked])), chunk("between"), ["mark", "said"]]
    async with wrapped(mode.script(_say=out), version=mode.client) as run:
        session = await run.open()
        seen = len(run.raw)
        await run.tell("_say", {"sessionId": session})
        await run.until(lambda: run.chunks(session) == ["between"], "what is good in between")
        assert len(run.raw) == seen + 1, run.story()
        await run.until(lambda: b"hello there" in run.stderr, "the noise on stderr")
        for token in (77, None):
            refusal = (token, INVALID)
            await run.until(
                partial(has_refusal, run, refusal), f"the agent to be refused its request {token}"
            )
        await run.leave()


async def test_answers_nobody_asked_the_agent_for_are_dropped_by_the_bridge() -> None:
    twice = [["reply", {"first": True}], ["reply", {"first": False}], ["fail", -32603]]
    tokens: list[Any] = [99, "1", None, 1.5, [], {}]
    stray = [["send", {"id": token, "result": {}}] for token in tokens]
    async with wrapped(BRIDGED.script(_x=[*stray, *twice, *stray])) as run:
        session = await run.open()
        seen = len(run.frames)
        assert (await run.call("_x", {}))["result"] == {"first": True}
        await run.healthy_turn(session)
        assert len([f for f in run.frames[seen:] if "method" not in f]) == 2, run.story()
        await run.leave()


async def test_every_request_of_the_agent_is_answered_once_under_its_id() -> None:
    tokens = [0, -5, "", "q", 10**20, None, 1.5]
    asks = [["call", "session/request_permission", PERMISSION, token] for token in tokens]
    same = [["call", "session/request_permission", PERMISSION, "same"]] * 2
    host = [["call", method, {"sessionId": "s1", "path": "/p"}, method] for method in HOST_METHODS]
    other = [["call", "nonsense/at_all", {}, "n"], ["notify", "nonsense/too", {}]]
    ends = [["await", "_end"], TURN_ENDS]
    async with wrapped(BRIDGED.script(**{"session/prompt go": [*asks, *same, *host, *other, *ends]})) as run:
        run.answering = lambda asked: (
            SELECTED if "permission" in asked["method"] else {"error": {"code": -32601, "message": "no"}}
        )
        session = await run.open()
        await run.prompt(session)
        await run.until(
            lambda: [m for m in run.agent_messages() if m.get("id") == "n"], "the answer to the last question"
        )
        await run.tell("_end", {})
        await run.until(lambda: run.states(session)[-1:] == ["idle(end_turn)"], "the end of the turn")
        for token in tokens:
            found = [m for m in run.agent_messages() if "method" not in m and m.get("id") == token]
            found = [m for m in found if type(m["id"]) is type(token)]
            assert [m.get("result") for m in found] == [SELECTED["result"]], (token, found)
        said = [m for m in run.agent_messages() if m.get("id") == "same"]
        assert len(said) == 2, said
        for token in (*HOST_METHODS, "n"):
            refused = [m["error"]["code"] for m in run.agent_messages() if m.get("id") == token]
            assert refused == [-32601], (token, refused)
        assert run.invalid() == []
        assert [f for f in run.frames if f.get("method") == "nonsense/too"]
        await run.healthy_turn(session)
        await run.leave()


HOST_METHODS = ("fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output")


async def test_half_a_line_before_the_agent_ends_is_not_lost_and_not_forwarded_when_it_is_none() -> None:
    whole = line({"jsonrpc": "2.0", "method": "_last", "params": {}}).rstrip()

    async def case(end: bytes, wanted: list[str]) -> None:
        async with wrapped(BRIDGED.script(_x=[raw(end), ["exit", 0]])) as run:
            await run.open()
            token = await run.ask("_x", {})
            assert await run.ended() == 0
            assert codes(run.answers(token)) == [(token, -32603)]
            assert [frame["method"] for frame in run.frames if "method" in frame] == wanted

    await together({"whole": partial(case, whole, ["_last"]), "half": partial(case, whole[:-3], [])})


# ---------------------------------------------------------------- size


@every_mode
async def test_five_mebibytes_pass_both_ways(mode: Mode) -> None:
    text = "é" * (5 * MIB // 2)
    update = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": text},
    }
    async with wrapped(mode.script(_big=[["update", update], ["reply"]]), version=mode.client) as run:
        session = await run.open()
        await run.call("_big", {"sessionId": session})
        assert run.chunks(session) == [text]
        assert "result" in await run.call("_take", {"text": text}, "t")
        (entry,) = [entry for entry in run.journal() if entry.get("size", 0) > 5 * MIB]
        if mode.client == mode.agent:
            said = line(call("t", "_take", {"text": text})).rstrip()
            assert entry["sha256"] == hashlib.sha256(said).hexdigest()
        await run.leave()


@every_mode
async def test_request_over_the_limit_is_refused_under_its_id(mode: Mode) -> None:
    async with wrapped(mode.script(), *SMALL_LIMIT, version=mode.client) as run:
        session = await run.open()
        params = json.dumps({"text": "x" * 300_000})
        for token in (5, '"five"'):
            said = f'{{"jsonrpc":"2.0","id":{token},"method":"_x","params":{params}}}\n'.encode()
            assert codes(await answers_to(run, said)) == [(json.loads(str(token)), INVALID)]
        assert run.agent_heard("_x") == []
        assert all("size" not in entry for entry in run.journal())
        await run.healthy_turn(session)
        await run.leave()


async def test_request_over_the_limit_whose_id_comes_last_is_not_passed_over_in_silence() -> None:
    async with wrapped(BRIDGED.script(), *SMALL_LIMIT) as run:
        session = await run.open()
        params = json.dumps({"text": "x" * 300_000})
        said = f'{{"jsonrpc":"2.0","method":"_x","params":{params},"id":6}}\n'.encode()
        answers = codes(await answers_to(run, said))
        assert answers in ([(6, INVALID)], [(None, INVALID)], [(None, PARSE)])
        await run.healthy_turn(session)
        await run.leave()


@every_mode
async def test_lines_of_the_agent_over_the_limit_leave_nobody_waiting(mode: Mode) -> None:
    big = {"text": "x" * 300_000}
    tools = [["update", {"sessionUpdate": "agent_message_chunk", "messageId": "m", **big}], chunk("after")]
    on = {"_x": [["reply", big]], "_ask": [["call", "_q", big, "q"], ["reply"]], "_tell": [*tools, ["reply"]]}
    async with wrapped(mode.script(**on), *SMALL_LIMIT, version=mode.client) as run:
        session = await run.open()
        assert codes([await run.call("_x", {}, 5)]) == [(5, -32603)]
        await run.call("_tell", {"sessionId": session})
        assert run.chunks(session) == ["after"]
        await run.call("_ask", {})
        await run.until(lambda: [m for m in run.agent_messages() if m.get("id") == "q"], "the refusal")
        assert [m["error"]["code"] for m in run.agent_messages() if m.get("id") == "q"] == [INVALID]
        assert run.requests("_q") == []
        await run.call("_barrier", {})
        await run.leave()


async def test_default_limit_is_32_mebibytes() -> None:
    async with wrapped(BRIDGED.script()) as run:
        session = await run.open()
        head = b'{"jsonrpc":"2.0","id":5,"method":"_x","params":{"text":"'
        await run.send(head, b"x" * (33 * MIB), b'"}}\n')
        assert codes([await run.answer(5)]) == [(5, INVALID)]
        await run.healthy_turn(session)
        await run.leave()
