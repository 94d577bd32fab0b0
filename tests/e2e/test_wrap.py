"""`acp-proxy wrap` as a whole: what passes unchanged, what goes where, and which settings count.

Source: design of the command line; bridge §0, §12 (byte identity); transport §3 (forwarding); production §2.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from script_steps import chunk, raw
from side_by_side import together
from wrapped import line, wrapped

from acp_proxy.trace.format import read

MIB = 1 << 20
BIG = 10**40

# Whatever a JSON writer may do, with `ID` for a fresh id; all of it is one line.
ODD = [
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{}}',
    b'  {"params" : { "b":1 , "a":[ ] },"method":"_x", "id" :ID ,"jsonrpc":"2.0"}  ',
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{"cr":1}}\r',
    b'{"jsonrpc":"2.0","id":ID,"method":"\\u005fx","params":{"\\u0061":"\\/\\u00e9\\ud83d\\ude00\\u2028"}}',
    '{"jsonrpc":"2.0","id":ID,"method":"_x","params":{"é":"日本\u2028\u2029\x7f\U0001f600"}}'.encode(),
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{"big":%d,"small":-%d}}' % (BIG, BIG),
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{"f":[1e2,1E+2,-0,-0.0,0.1,1.0,123456789.123456789012]}}',
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{"twice":1,"twice":2}}',
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{"lone":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":ID,"method":"_x","params":{},"more":null,"_meta":{"a":1}}',
    b'{"jsonrpc":"2.0","id":ID,"method":"_x"}',
    b'{\t"jsonrpc":\t"2.0",\t"id":ID,"method":"_x","params":[1,2]}',
]
NOTES = [odd.replace(b'"id":ID,', b"").replace(b', "id" :ID ', b"") for odd in ODD]
SPOKEN = [
    b'{ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s1", "update": UPDATE } }',
    b'{"method":"session/update","params":{"update":UPDATE,"sessionId":"s1"},"jsonrpc":"2.0"}\r',
]
CONTENT = (
    b'{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"\\u00e9 \\/ "}}'
)


# ---------------------------------------------------------------- byte identity


@pytest.mark.parametrize("version", [1, 2])
async def test_equal_versions_pass_each_others_bytes(version: int) -> None:
    asked = [odd.replace(b"ID", b'"c%d"' % n) for n, odd in enumerate(ODD)]
    spoken = [text.replace(b"UPDATE", CONTENT) for text in SPOKEN]
    told = [odd.replace(b"ID", b'"a%d"' % n) for n, odd in enumerate(ODD)] + NOTES + spoken
    on = {"_say": [raw(b"\n".join([*told, b""])), ["reply"]], "_x": [["reply"]]}
    async with wrapped({"version": version, "on": on}, version=version) as run:
        await run.open()
        heard = len(run.raw)
        await run.call("_say", {})
        assert run.raw[heard:-1] == told
        before = len(run.agent_got())
        await run.send(b"\n".join([*asked, *NOTES, b""]))
        await run.call("_barrier", {})
        assert run.agent_got()[before:-1] == [*asked, *NOTES]
        answers = [b'{"jsonrpc":"2.0","id":"a%d","result":{"n":%d.0e0}}' % (n, n) for n in range(len(ODD))]
        await run.send(b"\n".join([*answers, b""]))
        await run.call("_barrier", {})
        assert run.agent_got()[-1 - len(answers) : -1] == answers
        await run.leave()


@pytest.mark.parametrize("version", [1, 2])
async def test_equal_versions_pass_answers_byte_by_byte(version: int) -> None:
    results = [b'{"x" : 1e2}', b'{"y":"\\u00e9\\/"}', b"{}", b"%d" % BIG, b"null", b"[ ]"]
    lines = [b'{ "jsonrpc":"2.0","result":%s, "id":"c%d" }' % (text, n) for n, text in enumerate(results)]
    lines += [b'{"jsonrpc":"2.0","id":"c6","error":{ "code":-1,"message":"\\u00e9","data":1e2}}\r']
    on = {"_x": {"each": [[raw(text + b"\n")] for text in lines]}}
    async with wrapped({"version": version, "on": on}, version=version) as run:
        await run.open()
        seen = len(run.raw)
        for number in range(len(lines)):
            await run.call("_x", {}, f"c{number}")
        assert run.raw[seen:] == lines
        await run.leave()


async def test_bridge_carries_numbers_and_text_through_its_own_encoding() -> None:
    params = {"big": BIG, "text": "é日\u2028\U0001f600\x7f", "float": 0.1, "deep": [[[[{}]]]], "null": None}
    async with wrapped({"on": {"_x": [["reply", params]]}}) as run:
        await run.open()
        assert (await run.call("_x", params))["result"] == params
        assert run.agent_heard("_x")[0]["params"] == params
        await run.send(b'{"jsonrpc":"2.0","id":"lone","method":"_y","params":{"lone":"\\ud800"}}\n')
        assert (await run.answer("lone"))["result"] == {}
        assert run.agent_heard("_y")[0]["params"] == {"lone": "\ud800"}
        await run.leave()


# ---------------------------------------------------------------- what goes where


async def test_stdout_is_the_protocol_and_stderr_all_the_rest() -> None:
    noise = ["stderr", "agent says é\n\x1b[31mred\n"]
    say = [noise, raw(b"banner on stdout\n"), raw(b"\xff\xfe broken\n"), chunk("real"), ["reply"]]
    async with wrapped({"on": {"start": [noise], "_say": say}}, "--log-level", "debug") as run:
        session = await run.open()
        await run.call("_say", {"sessionId": session})
        await run.healthy_turn(session)
        await run.until(lambda: b"broken" in run.stderr, "the agent's noise")
        await run.leave()
        assert all(isinstance(frame, dict) and frame["jsonrpc"] == "2.0" for frame in run.frames)
        assert run.chunks(session) == ["real", "hello"]
        assert run.stderr.count("agent says é".encode()) == 2
        assert b"banner on stdout" in run.stderr


async def test_quiet_run_says_nothing_on_stderr() -> None:
    async with wrapped() as run:
        await run.healthy_turn(await run.open())
        await run.leave()
        assert run.stderr == b""


async def test_agent_inherits_the_environment_but_not_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_PROXY_TOKEN", "canary")
    monkeypatch.setenv("OTHER_TOKEN", "kept")
    show = "import os, json; print(json.dumps({'method': '_env', 'params': dict(os.environ)}), flush=True)"
    agent = [sys.executable, "-S", "-E", "-c", show + "; input()"]
    async with wrapped(agent=agent, version=1) as run:
        await run.until(lambda: run.frames, "the agent's environment")
        shown = run.frames[0]["params"]
        assert shown["OTHER_TOKEN"] == "kept"
        assert "ACP_PROXY_TOKEN" not in shown


# ---------------------------------------------------------------- recording, findings

BEARER = "Bearer abcdefghijklmnop0123456789"


async def test_recording_is_a_readable_trace_without_the_secrets_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    header: dict[str, Any] = {"type": "http", "name": "n", "url": "https://example.org/"}
    header |= {"headers": [{"name": "Authorization", "value": BEARER}]}
    env = {"type": "stdio", "name": "e", "command": "/c", "env": [{"name": "API_KEY", "value": "k3y-value"}]}
    async with wrapped({"agent": {"mcpCapabilities": {"http": True}}}, "--record", str(file)) as run:
        await run.initialize()
        answer = await run.call("session/new", {"cwd": "/p", "mcpServers": [header, env]})
        session = answer["result"]["sessionId"]
        await run.prompt(session, f"use {BEARER} please")
        await run.until(lambda: run.states(session)[1:] == ["idle(end_turn)"], "the end of the turn")
        await run.healthy_turn(session)
        # What is recorded is not what is sent.
        assert run.agent_heard("session/prompt")[0]["params"]["prompt"][0]["text"] == f"use {BEARER} please"
        await run.leave()
    data = file.read_bytes()
    assert BEARER.encode() not in data
    assert b"k3y-value" not in data
    assert file.stat().st_mode & 0o777 == 0o600
    entries = [json.loads(entry) for entry in data.splitlines()]
    assert entries[0]["acp-proxy-trace"] == 1
    assert entries[-1]["end"] == "exit status 0"
    frames = [entry for entry in entries if "frame" in entry]
    legs = {(entry["leg"], entry["dir"]) for entry in frames}
    assert legs == {(leg, way) for leg in ("client", "agent") for way in ("in", "out")}
    shown = [entry["frame"] for entry in frames if (entry["leg"], entry["dir"]) == ("client", "out")]
    assert [json.loads(frame).get("id") for frame in shown] == [frame.get("id") for frame in run.frames]
    assert len(list(read(file))) == len(entries)


async def test_findings_are_written_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "findings"
    async with wrapped({}, "--findings", str(file), "--log-level", "error") as run:
        session = await run.open()
        await run.send(b"nonsense\n[]\n", line({"jsonrpc": "2.0", "id": 4711, "result": {}}))
        await run.healthy_turn(session)
        found = [json.loads(entry) for entry in file.read_bytes().splitlines()]
        await run.leave()
        assert run.stderr == b""
    keys = ["t", "rule", "severity", "session", "leg", "frames", "source", "action", "text"]
    assert [list(entry) for entry in found] == [keys] * 3
    assert [entry["rule"] for entry in found] == ["V45", "V32", "V29"]
    assert all(entry["leg"] == "client" and len(entry["frames"]) == 1 for entry in found)
    assert [entry["severity"] in ("error", "warning", "info") for entry in found] == [True] * 3
    numbers = [entry["frames"][0] for entry in found]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


# ---------------------------------------------------------------- backpressure


def resident(pid: int) -> int:
    """Bytes of memory in use, at most so far."""
    for entry in Path(f"/proc/{pid}/status").read_text().splitlines():
        if entry.startswith("VmHWM:"):
            return int(entry.split()[1]) * 1024
    raise AssertionError("no high-water mark")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("version", "agent"), [(2, 1), (1, 1), (2, 2)], ids=["bridged", "v1", "v2"])
async def test_flood_waits_for_a_slow_client_and_a_cancel_does_not(version: int, agent: int) -> None:
    size, count = 1000, 50_000
    flood = [["mark", "flooding"], ["flood", count, size], ["mark", "flooded"], ["reply", {"messageId": "m"}]]
    if agent == 1:
        flood[-1] = ["reply", {"stopReason": "cancelled"}]
    async with wrapped({"version": agent, "on": {"session/prompt": flood}}, version=version) as run:
        session = await run.open()
        run.reading = trio.Event()
        token = await run.prompt(session)
        await run.reach("flooding")
        await trio.sleep(2)
        assert not run.marked("flooded"), "somebody keeps the whole flood"
        await run.tell("session/cancel", {"sessionId": session})
        await run.until(lambda: run.agent_heard("session/cancel"), "the cancel at the agent", 5)
        assert resident(run.process.pid) < 100 * MIB
        run.reading.set()
        await run.reach("flooded")
        await run.answer(token)
        await run.until(lambda: len(run.chunks(session)) == count, "all of it")
        assert resident(run.process.pid) < 100 * MIB
        await run.leave()


# ---------------------------------------------------------------- settings


async def test_settings_of_file_and_command_line_count(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[bridge]\nack_timeout = 40\n")
    off = tmp_path / "off.toml"
    off.write_text('[bridge]\nack_timeout = 0\n\n[log]\nlevel = "info"\nformat = "json"\n')
    silent = {"on": {"session/prompt go": [["await", "_end"], ["reply", {"stopReason": "end_turn"}]]}}

    async def case(acknowledged: bool, *options: str) -> None:
        async with wrapped(silent, *options) as run:
            token = await run.prompt(await run.open())
            await run.until(lambda: run.agent_heard("session/prompt"), "the prompt at the agent")
            if acknowledged:
                await run.answer(token, 5)
                assert run.updates("s1", "user_message")
            else:
                await trio.sleep(1.3)  # longer than the default
                assert run.answers(token) == []
            await run.tell("_end", {})
            await run.answer(token)
            await run.until(lambda: run.states("s1") == ["running", "idle(end_turn)"], "the end")
            await run.leave()

    await together(
        {
            "default": partial(case, True),
            "file": partial(case, False, "--config", str(file)),
            "off": partial(case, False, "--config", str(off)),
            "--set beats file": partial(
                case, True, "--config", str(file), "--set", "bridge.ack_timeout=0.05"
            ),
            "--set": partial(case, False, "--set", "bridge.ack_timeout=40"),
        }
    )


async def test_bridge_off_passes_the_agents_answer_unchanged() -> None:
    async with wrapped({}, "--bridge", "off") as run:
        answer = await run.initialize()
        assert answer["result"]["protocolVersion"] == 1
        assert "agentCapabilities" in answer["result"]
        await run.send(offer := line({"jsonrpc": "2.0", "id": "x", "method": "_x", "params": {"a": 1e2}}))
        await run.answer("x")
        assert run.agent_got()[-1] + b"\n" == offer
        await run.leave()


async def test_agent_version_1_is_offered_version_1() -> None:
    async with wrapped({}, "--set", "agent.version=1") as run:
        answer = await run.initialize()
        assert answer["result"]["protocolVersion"] == 2
        (offer,) = run.agent_heard("initialize")
        assert offer["params"]["protocolVersion"] == 1
        assert "info" not in offer["params"]
        await run.healthy_turn((await run.call("session/new", {"cwd": "/p"}))["result"]["sessionId"])
        await run.leave()


async def test_arguments_after_the_agent_are_the_agents() -> None:
    show = "import sys, json; print(json.dumps({'method': '_argv', 'params': sys.argv[1:]}), flush=True); input()"
    words = ["--record", "x", "--", "-h", "$HOME", "a b", "*", "é", ""]
    async with wrapped(agent=[sys.executable, "-S", "-E", "-c", show, *words], version=1) as run:
        await run.until(lambda: run.frames, "the agent's arguments")
        assert run.frames[0]["params"] == words
        await run.close_stdin()
        await run.ended()
