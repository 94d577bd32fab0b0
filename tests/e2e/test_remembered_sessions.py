"""`state.path`: one run's sessions are listed and resumed in the next, though the agent itself has no list."""

from __future__ import annotations

import json
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from wrapped import SCRIPTED_AGENT, Json, Wrapped, wrapped

NAMED: list[Any] = ["update", {"sessionUpdate": "session_info_update", "title": "Größe 📏"}]
SAID: list[Any] = [
    "update",
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "named"}},
]
SCRIPT = {
    "agent": {"loadSession": True, "sessionCapabilities": {"delete": {}}},
    "on": {"session/prompt name": [NAMED, SAID, ["reply"]], "session/list": [["fail", -32601]]},
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def proxy(
    state: Path, *options: str, argument: str = "one", **more: Any
) -> AbstractAsyncContextManager[Wrapped]:
    """One run; the agent command is the same whenever `argument` is."""
    script = state.parent / "script.json"
    script.write_text(json.dumps({"journal": str(journal(state)), **SCRIPT, **more}))
    agent = [sys.executable, "-S", "-E", SCRIPTED_AGENT, f"@{script}", argument]
    return wrapped(None, "--set", f"state.path={state}", *options, agent=agent)


def journal(state: Path) -> Path:
    return state.parent / "journal"


def agent_heard(state: Path) -> list[str]:
    """The methods that reached an agent in all runs so far."""
    if not journal(state).exists():
        return []
    entries = [json.loads(entry) for entry in journal(state).read_text().splitlines()]
    return [json.loads(entry["in"])["method"] for entry in entries if "in" in entry]


def kept(state: Path) -> bytes:
    """What is in the file, which is its owner's alone."""
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    return state.read_bytes()


async def listed(run: Wrapped, **params: Any) -> list[Json]:
    answer = await run.call("session/list", params)
    entries: list[Json] = answer["result"]["sessions"]
    return entries


async def test_the_next_run_lists_and_resumes_the_sessions_of_this_one(state: Path) -> None:
    async with proxy(state) as run:
        session = await run.open()
        await run.answer(await run.prompt(session, "name"))
        await run.until(lambda: run.states(session)[-1:] == ["idle(end_turn)"], "the end of the turn")
        await run.leave()
    assert "Größe 📏".encode() in kept(state)
    assert b"named" not in kept(state), "no message is kept"

    async with proxy(state) as run:
        await run.initialize()
        (entry,) = await listed(run)
        age = datetime.now(UTC) - datetime.fromisoformat(entry.pop("updatedAt"))
        assert timedelta(seconds=-1) < age < timedelta(minutes=1)
        assert entry == {"sessionId": session, "cwd": "/p", "title": "Größe 📏"}
        assert await listed(run, cwd="/p/") == []
        answer = await run.call("session/resume", {"sessionId": session, "cwd": "/p"})
        assert "result" in answer, answer
        await run.healthy_turn(session)
        assert run.invalid() == []
        await run.leave()
    assert agent_heard(state) == [
        *("initialize", "session/new", "session/prompt"),
        *("initialize", "session/load", "session/prompt"),
    ]

    async with proxy(state, argument="another") as run:
        await run.initialize()
        assert await listed(run) == []
        await run.leave()


async def test_a_deleted_session_is_not_listed_in_the_next_run(state: Path) -> None:
    async with proxy(state) as run:
        session = await run.open()
        await run.leave()
    for remembered in ([session], []):
        async with proxy(state) as run:
            await run.initialize()
            assert [entry["sessionId"] for entry in await listed(run)] == remembered
            await run.call("session/delete", {"sessionId": session})
            await run.leave()


async def test_without_the_key_each_run_starts_anew(state: Path) -> None:
    for _ in range(2):
        async with wrapped({"agent": {"loadSession": True}}) as run:
            await run.initialize()
            assert await listed(run) == []
            answer = await run.call("session/new", {"cwd": "/p", "mcpServers": []})
            assert [entry["sessionId"] for entry in await listed(run)] == [answer["result"]["sessionId"]]
            await run.leave()
    assert list(state.parent.iterdir()) == []


@pytest.fixture
def damaged(state: Path) -> Iterator[Path]:
    """A file that is somebody else's, and still is after the test."""
    state.write_bytes(b"no database " * 1000)
    yield state
    assert state.read_bytes() == b"no database " * 1000


async def test_a_damaged_file_is_an_error_before_anything_is_started(damaged: Path) -> None:
    async with proxy(damaged) as run:
        assert await run.ended() == 2
        assert run.raw == []
        assert run.stderr.decode() == (
            f"Error: state.path: {damaged}: damaged, or no file of acp-proxy's: file is not a database\n"
        )
    assert agent_heard(damaged) == []


async def test_a_damaged_file_is_a_warning_where_it_is_not_required(damaged: Path) -> None:
    async with proxy(damaged, "--set", "state.required=false") as run:
        session = await run.open()
        await run.healthy_turn(session)
        assert [entry["sessionId"] for entry in await listed(run)] == [session]
        await run.leave()
        assert run.stderr.count(b"warning: sessions of earlier runs are not known") == 1


async def test_a_file_that_cannot_be_written_disturbs_no_traffic(state: Path) -> None:
    async with proxy(state) as run:
        await run.initialize()
        with closing(sqlite3.connect(state, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            start = time.monotonic()
            answer = await run.call("session/new", {"cwd": "/p", "mcpServers": []})
            for _ in range(3):
                await run.healthy_turn(answer["result"]["sessionId"])
            assert time.monotonic() - start < 2, "nobody waits for the file"
            assert len(await listed(run)) == 1
            await run.until(lambda: b"sessions cannot be saved" in run.stderr, "the warning")
            await run.leave()
        assert run.stderr.count(b"warning: sessions cannot be saved") == 1
