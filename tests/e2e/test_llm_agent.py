"""A real agent with a scripted model, under a v2 client of ours: what it does itself, not what we think it does.

The agent is qwen-code, which speaks v1; the model is `scripted_model.py` on loopback, and nothing else can be
reached: `peers/llm/loopback_only.cjs` sits in the agent and refuses, and a test in which it had to fails.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from peer_conversation import TEE
from peer_installs import PEERS, llm_agent, node_tools
from scripted_model import ScriptedModel, scripted_model
from wire_log import overlapping_prompts, read_wire, schema_errors
from wrapped import Wrapped, wrapped

import schema_cache
from acp_proxy.acp.version import Role, Version

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SAYS = "Hello from the model."
Json = dict[str, Any]
Running = Callable[[ScriptedModel], AbstractAsyncContextManager[Wrapped]]


@pytest.fixture(scope="module")
def agent() -> list[str]:
    """The agent's command; the first test ever waits for the install."""
    node, npm = node_tools()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{npm.parent}:{node.parent}:/usr/bin:/bin")
        schema_cache.package_dir()
    return llm_agent()


@pytest.fixture
def running(agent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Start the agent at a model, with one home for the length of the test; what passed is checked at the end."""
    settings = {"privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
    (tmp_path / ".qwen").mkdir()
    (tmp_path / ".qwen" / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "project").mkdir()
    log = tmp_path / "agent.wire"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_MODEL", "scripted")
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    strangers = tmp_path / "strangers"
    monkeypatch.setenv("PEER_STRANGERS", str(strangers))
    monkeypatch.setenv("NODE_OPTIONS", f"--require {PEERS / 'llm' / 'loopback_only.cjs'}")

    @asynccontextmanager
    async def start(model: ScriptedModel) -> AsyncIterator[Wrapped]:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        log.write_bytes(b"")
        command = [*TEE, str(log), *agent, "--acp", "--auth-type", "openai"]
        async with wrapped(agent=command) as run:
            yield run
            await run.leave()
        assert run.invalid() == []
        wire = read_wire(log)
        assert schema_errors(wire, Version.V1, Role.AGENT, unstable=False) == []
        assert overlapping_prompts(wire) == []
        assert not strangers.exists(), strangers.read_text()

    return start


async def opened(run: Wrapped, folder: Path) -> str:
    """Shake hands, and open a session in the project."""
    answer = await run.initialize()
    assert answer["result"]["protocolVersion"] == 2
    assert answer["result"]["info"]["name"] == "qwen-code"
    answer = await run.call("session/new", {"cwd": str(folder / "project"), "mcpServers": []})
    session: str = answer["result"]["sessionId"]
    return session


async def turn(run: Wrapped, session: str, word: str) -> Any:
    """Send a prompt and wait for the turn's end; return the id of the request."""
    before = len(run.states(session))
    token = await run.prompt(session, f"SCRIPT:{word}")
    await run.until(lambda: ended(run, session, before), "the end of the turn")
    return token


def ended(run: Wrapped, session: str, since: int) -> bool:
    return any(state.startswith("idle") for state in run.states(session)[since:])


def text(run: Wrapped, session: str) -> str:
    return "".join(run.chunks(session))


def chooses(kind: str) -> Callable[[Json], Json | None]:
    """Answers permissions with the first option of a kind."""

    def answer(request: Json) -> Json:
        assert request["method"] == "session/request_permission"
        option = next(each for each in request["params"]["options"] if each["kind"] == kind)
        return {"result": {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}}

    return answer


async def test_text_streams_into_one_message(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            session = await opened(run, tmp_path)
            token = await turn(run, session, "text")
            assert run.states(session) == ["running", "idle(end_turn)"]
            assert text(run, session) == SAYS
            chunks = run.updates(session, "agent_message_chunk")
            assert len({chunk["messageId"] for chunk in chunks}) == 1
            (echo,) = run.updates(session, "user_message")
            assert echo["content"] == [{"type": "text", "text": "SCRIPT:text"}]
            assert (await run.answer(token))["result"] == {"messageId": echo["messageId"]}
    assert set(model.paths) == {"/v1/chat/completions"}


async def test_allowed_tool_runs(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            run.answering = chooses("allow_once")
            session = await opened(run, tmp_path)
            await turn(run, session, "edit")
            assert run.states(session) == ["running", "requires_action", "running", "idle(end_turn)"]
            (request,) = run.requests("session/request_permission")
            assert request["params"]["title"]
            assert request["params"]["subject"]["type"] == "tool_call"
            tool = request["params"]["subject"]["toolCall"]["toolCallId"]
            tools = run.updates(session, "tool_call_update")
            assert {update["toolCallId"] for update in tools} == {tool}
            assert tools[-1]["status"] == "completed"
            assert text(run, session) == SAYS
    assert (tmp_path / "project" / "a.txt").exists()


async def test_rejected_tool_does_not_run(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            run.answering = chooses("reject_once")
            session = await opened(run, tmp_path)
            await turn(run, session, "edit")
            states = run.states(session)
            assert states[:3] == ["running", "requires_action", "running"]
            assert states[3:] == ["idle(end_turn)"]
    assert not (tmp_path / "project" / "a.txt").exists()


async def test_two_tools_of_one_message_ask_one_after_the_other(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            run.answering = chooses("allow_once")
            session = await opened(run, tmp_path)
            await turn(run, session, "parallel")
            waits = ["requires_action", "running"]
            assert run.states(session) == ["running", *waits, *waits, "idle(end_turn)"]
            asked = run.requests("session/request_permission")
            assert len({request["params"]["subject"]["toolCall"]["toolCallId"] for request in asked}) == 2
    assert (tmp_path / "project" / "a.txt").exists()
    assert (tmp_path / "project" / "b.txt").exists()


async def test_cancel_ends_a_streaming_turn_and_the_next_one_works(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            session = await opened(run, tmp_path)
            await run.prompt(session, "SCRIPT:wait")
            await run.until(lambda: run.chunks(session) == ["Waiting"], "the first word")
            await run.tell("session/cancel", {"sessionId": session})
            await run.until(lambda: len(run.states(session)) == 2, "the end of the turn")
            await turn(run, session, "text")
            assert run.states(session) == ["running", "idle(cancelled)", "running", "idle(end_turn)"]
        assert model.ended.is_set()


async def test_cancel_of_a_question_withdraws_it(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            session = await opened(run, tmp_path)
            await run.prompt(session, "SCRIPT:edit")
            await run.until(lambda: run.states(session)[-1:] == ["requires_action"], "the question")
            await run.tell("session/cancel", {"sessionId": session})
            await run.until(lambda: ended(run, session, 0), "the end of the turn")
            assert run.states(session) == ["running", "requires_action", "idle(cancelled)"]
            (request,) = run.requests("session/request_permission")
            withdrawn = [frame["params"] for frame in run.frames if frame.get("method") == "$/cancel_request"]
            assert withdrawn == [{"requestId": request["id"]}]
    assert not (tmp_path / "project" / "a.txt").exists()


async def test_models_failure_is_the_prompts_and_the_turns(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            session = await opened(run, tmp_path)
            token = await turn(run, session, "fail")
            answer = await run.answer(token)
            assert run.states(session) == ["running", "idle(error)"]
            # Nothing had come of the prompt before it failed, so it never was inserted (LC-32).
            assert answer["error"] == run.updates(session, "state_update")[-1]["error"]
            assert run.updates(session, "user_message") == []
            assert "the model says no" in json.dumps(answer["error"])


async def test_prompt_sent_into_a_turn_is_held_for_its_own(running: Running, tmp_path: Path) -> None:
    with scripted_model() as model:
        async with running(model) as run:
            session = await opened(run, tmp_path)
            await run.prompt(session, "SCRIPT:edit")
            await run.until(lambda: run.requests("session/request_permission"), "the question")
            second = await run.prompt(session, "SCRIPT:text")
            answer = chooses("allow_once")(run.requests("session/request_permission")[0])
            assert answer is not None
            request = run.requests("session/request_permission")[0]
            await run.send({"jsonrpc": "2.0", "id": request["id"], **answer})
            await run.until(lambda: run.states(session).count("idle(end_turn)") == 2, "both ends")
            turns = ["running", "requires_action", "running", "idle(end_turn)", "running", "idle(end_turn)"]
            assert run.states(session) == turns
            assert "messageId" in (await run.answer(second))["result"]


async def test_session_of_an_earlier_process_is_replayed(running: Running, tmp_path: Path) -> None:
    def written() -> bool:
        # The agent writes its history behind the turn's end, and not at all once it is told to go.
        return any(SAYS in path.read_text() for path in tmp_path.glob(".qwen/projects/*/chats/*.jsonl"))

    with scripted_model() as model:
        async with running(model) as run:
            run.answering = chooses("allow_once")
            session = await opened(run, tmp_path)
            await turn(run, session, "edit")
            await run.until(written, "the agent's memory")
        async with running(model) as run:
            await run.initialize()
            opening = {"sessionId": session, "cwd": str(tmp_path / "project"), "mcpServers": []}
            answer = await run.call("session/resume", {**opening, "replayFrom": {"type": "start"}})
            assert "result" in answer, answer
            assert run.states(session) == ["idle"]
            spoken = run.updates(session, "user_message_chunk")
            assert [chunk["content"]["text"] for chunk in spoken] == ["SCRIPT:edit"]
            assert run.updates(session, "tool_call_update")[-1]["status"] == "completed"
            assert text(run, session) == SAYS
            await turn(run, session, "text")
            assert run.states(session) == ["idle", "running", "idle(end_turn)"]
