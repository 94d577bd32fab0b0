"""An agent that cannot be started, or is gone before it answered `initialize`: the client learns why.

Source: design of the command line, the two paragraphs on exit status.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from side_by_side import together
from wrapped import INFO, Json, Wrapped, wrapped

INITIALIZE = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
AT_ONCE = 1.5
LINGER = 2.0


def unstartable(folder: Path) -> dict[str, tuple[list[str], int, str]]:
    """Commands that cannot be started: with what status we end then, and a word of the reason."""
    plain, script, folder_itself = folder / "plain", folder / "script", folder / "folder"
    plain.write_text("text\n")
    script.write_text("#!/nowhere/at/all\n")
    script.chmod(0o755)
    folder_itself.mkdir()
    empty = folder / "garbage"
    empty.write_bytes(b"\x00\x01\x02\x03")
    empty.chmod(0o755)
    return {
        "not on PATH": (["acp-agent-that-is-nowhere"], 127, "not found"),
        "no such file": ([str(folder / "nothing")], 127, "no such file"),
        "not executable": ([str(plain)], 126, ""),
        "folder": ([str(folder_itself)], 126, ""),
        "no interpreter": ([str(script)], 126, "interpreter"),
        "no program": ([str(empty)], 126, "exec format"),
    }


def check_refusal(answer: Json, *words: str) -> None:
    assert answer["error"]["code"] == -32603, answer
    for word in words:
        assert word in answer["error"]["message"], answer


@pytest.mark.parametrize("version", [1, 2])
async def test_first_request_is_told_the_command_and_the_reason(tmp_path: Path, version: int) -> None:
    async def case(command: list[str], status: int, reason: str) -> None:
        async with wrapped(agent=command, version=version) as run:
            check_refusal(await run.initialize(), command[0], reason)
            # The answer is the last of it: nobody has to close anything.
            assert await run.ended(AT_ONCE) == status, run.story()
            assert command[0].encode() in run.stderr
            assert b"Traceback" not in run.stderr, run.story()
            assert len(run.frames) == 1

    await together({name: partial(case, *entry) for name, entry in unstartable(tmp_path).items()})


async def test_any_first_request_is_told_and_further_ones_the_same() -> None:
    async with wrapped(agent=["acp-agent-that-is-nowhere"]) as run:
        ids = [await run.ask("session/list", {}, "first"), await run.ask("_x", {}, "second")]
        await run.send(b'{"jsonrpc":"2.0","id":"third","method":"session/new"}\n')
        assert await run.ended() == 127
        for token in [*ids, "third"]:
            # Those that came before the end was written are answered; later ones meet a closed pipe.
            for answer in run.answers(token):
                check_refusal(answer, "acp-agent-that-is-nowhere", "not found")
        assert len(run.answers("first")) == 1
        assert len({str(frame["error"]) for frame in run.frames}) == 1


async def test_requests_of_one_write_are_all_answered() -> None:
    async with wrapped(agent=["acp-agent-that-is-nowhere"]) as run:
        await run.send(*({"jsonrpc": "2.0", "id": n, "method": "_x"} for n in range(5)))
        assert await run.ended() == 127
        assert [frame["id"] for frame in run.frames] == list(range(5))
        for frame in run.frames:
            check_refusal(frame, "acp-agent-that-is-nowhere")


async def test_without_a_request_the_end_comes_at_once_when_stdin_ends() -> None:
    async with wrapped(agent=["acp-agent-that-is-nowhere"]) as run:
        await run.close_stdin()
        assert await run.ended(AT_ONCE) == 127
        assert run.raw == []


async def test_without_a_request_the_end_comes_by_itself() -> None:
    async def case(version: int, *said: Any) -> None:
        async with wrapped(agent=["acp-agent-that-is-nowhere"], version=version) as run:
            await run.send(*said)
            started = time.monotonic()
            assert await run.ended(LINGER + 5) == 127
            assert time.monotonic() - started > LINGER / 2, "nobody had the time to ask"
            assert run.raw == []

    note = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
    await together(
        {
            "silence": partial(case, 2),
            "a notification is no request": partial(case, 2, note),
            "nor is a blank line": partial(case, 1, b"\n\n"),
        }
    )


# ---------------------------------------------------------------- started, but gone before its first answer

LINES = [f"line {n}" for n in range(1, 8)]
DIES: list[Any] = [["stderr", "".join(f"{text}\n" for text in LINES)], ["exit", 3]]


async def told(run: Wrapped, answer: Json, command: str = sys.executable) -> None:
    check_refusal(answer, command)
    assert answer["error"]["data"]["stderr"] == LINES[-5:], answer
    assert answer["error"]["data"]["exitStatus"] == 3, answer


async def dies_at_start(run: Wrapped) -> None:
    await run.until(lambda: run.pids(), "the agent")
    await told(run, await run.initialize())
    assert await run.ended(AT_ONCE) == 3


async def dies_while_asked(run: Wrapped) -> None:
    await told(run, await run.initialize())
    assert await run.ended(AT_ONCE) == 3


async def nobody_ever_asks(run: Wrapped) -> None:
    assert await run.ended(LINGER + 5) == 3
    assert run.raw == []


async def nobody_is_there(run: Wrapped) -> None:
    await run.until(lambda: b"ended" in run.stderr, "the note on stderr")
    await run.close_stdin()
    assert await run.ended(AT_ONCE) == 3
    assert run.raw == []


async def asked_late(run: Wrapped) -> None:
    """The reason is kept for whoever asks within the linger."""
    await run.until(lambda: b"ended" in run.stderr, "the note on stderr")
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    await run.send(first, {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/p"}})
    assert await run.ended(AT_ONCE) == 3
    assert [frame["id"] for frame in run.frames] == [1, 2]
    for frame in run.frames:
        await told(run, frame)


async def test_agent_gone_before_its_answer_is_told_with_its_last_words() -> None:
    async def case(event: str, then: Callable[[Wrapped], Awaitable[None]]) -> None:
        async with wrapped({"on": {event: DIES}}) as run:
            await then(run)
            assert b"line 1\n" in run.stderr, run.story()
            assert b"Traceback" not in run.stderr, run.story()
            await run.no_orphans()

    await together(
        {
            "at its start": partial(case, "start", dies_at_start),
            "while asked": partial(case, "initialize", dies_while_asked),
            "asked late": partial(case, "start", asked_late),
            "nobody is there": partial(case, "start", nobody_is_there),
            "nobody ever asks": partial(case, "start", nobody_ever_asks),
        }
    )


async def test_agent_that_refuses_the_offer_and_dies_in_its_second_start() -> None:
    """A v1 agent that does not take the double offer is started anew; its end then is told all the same."""
    async with wrapped(agent=[sys.executable, "-S", "-E", "-c", AGENT_OF_TWO_LIVES]) as run:
        answer = await run.initialize()
        check_refusal(answer, sys.executable)
        assert answer["error"]["data"] == {"stderr": ["second life"], "exitStatus": 4}, answer
        assert await run.ended(AT_ONCE) == 4


# Refuses its first offer, and ends when it is started again (in the same folder).
AGENT_OF_TWO_LIVES = """
import json, os, sys
if os.path.exists("lived"):
    sys.stderr.write("second life\\n")
    sys.exit(4)
open("lived", "w").close()
asked = json.loads(sys.stdin.readline())
error = {"code": -32602, "message": "unknown field"}
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
sys.stdin.read()
"""


async def test_agent_that_closes_its_output_but_lives_is_told_too() -> None:
    async with wrapped({"on": {"initialize": [["close", "stdout"], ["stop"]], "end": [["exit", 9]]}}) as run:
        answer = await run.initialize()
        check_refusal(answer, sys.executable, "closed its output")
        await run.ended(8)
        await run.no_orphans()
