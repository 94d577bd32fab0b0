"""Drives `acp-proxy wrap` as a client would: the real command, real pipes, deadlines on every wait.

The agent is `scripted_agent.py` unless another command is given. Nothing of a run outlives its block.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import trio

from acp_proxy.acp.version import Role, Version
from child_processes import is_running
from schema_cache import message_error, response_error, validator

Json = dict[str, Any]

SCRIPTED_AGENT = str(Path(__file__).with_name("scripted_agent.py"))
DEADLINE = 15.0
ARGUMENT_BYTES = 100_000
SHOWN = 25
INFO = {"name": "client", "version": "1"}


def line(body: Any) -> bytes:
    """A body as a client writes it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class Wrapped:
    """One run of the command, seen from the client's end.

    `raw` holds the lines as they came, `frames` what they say. `asked` maps the id of each request that was
    sent by `ask` to its method.
    """

    def __init__(self, process: trio.Process, journal: Path, version: int) -> None:
        self.process = process
        self.version = version
        self.raw: list[bytes] = []
        self.frames: list[Any] = []
        self.stderr = b""
        self.asked: dict[Any, str] = {}
        self.answering: Callable[[Json], Json | None] = lambda request: None
        self.reading = trio.Event()
        self._journal = journal
        self._ids = itertools.count(1000)
        self._writing = trio.Lock()
        self._news = trio.Event()
        self._at_end = False

    # ------------------------------------------------------------ say

    async def send(self, *bodies: Any) -> None:
        """Write messages; bytes are written as they are. A proxy that has gone away is no error here."""
        assert self.process.stdin is not None
        data = b"".join(body if isinstance(body, bytes) else line(body) for body in bodies)
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with self._writing:
                await self.process.stdin.send_all(data)

    async def ask(self, method: str, params: Any, request_id: Any = None) -> Any:
        """Send a request; return its id."""
        token = next(self._ids) if request_id is None else request_id
        self.asked[token] = method
        await self.send({"jsonrpc": "2.0", "id": token, "method": method, "params": params})
        return token

    async def call(self, method: str, params: Any, request_id: Any = None) -> Json:
        """Send a request and wait for its answer."""
        token = await self.ask(method, params, request_id)
        return await self.answer(token)

    async def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def initialize(self, **capabilities: Any) -> Json:
        """Shake hands in the client's version."""
        about = (
            {"info": INFO, "capabilities": capabilities}
            if self.version == 2
            else {"clientInfo": INFO, "clientCapabilities": capabilities}
        )
        return await self.call("initialize", {"protocolVersion": self.version, **about})

    async def open(self, **capabilities: Any) -> str:
        """Shake hands and open a session; return its id."""
        await self.initialize(**capabilities)
        answer = await self.call("session/new", {"cwd": "/p", "mcpServers": []})
        session: str = answer["result"]["sessionId"]
        return session

    async def prompt(self, session: str, text: str = "go", request_id: Any = None) -> Any:
        """Send a prompt; return the request's id."""
        blocks = [{"type": "text", "text": text}]
        return await self.ask("session/prompt", {"sessionId": session, "prompt": blocks}, request_id)

    async def healthy_turn(self, session: str) -> None:
        """Check that a whole turn works: its states, its acknowledgement, its content."""
        states, heard = len(self.states(session)), len(self.chunks(session))
        token = await self.prompt(session, "healthy")
        answer = await self.answer(token)
        if self.version == 2:
            assert isinstance(answer["result"]["messageId"], str), answer
            await self.until(lambda: len(self.states(session)) >= states + 2, "running and idle")
            assert self.states(session)[states:] == ["running", "idle(end_turn)"], self.story()
        else:
            assert answer["result"]["stopReason"] == "end_turn", answer
        assert self.chunks(session)[heard:] == ["hello"], self.story()

    # ------------------------------------------------------------ hear

    async def until(self, condition: Callable[[], object], what: str, within: float = DEADLINE) -> None:
        """Wait for something that frames, stderr or the journal show."""
        with trio.move_on_after(within):
            while not condition():
                news, self._news = self._news, trio.Event()
                if news.is_set():
                    continue
                with trio.move_on_after(0.02):  # the journal brings no news of its own
                    await self._news.wait()
            return
        raise AssertionError(f"waited in vain for {what}\n{self.story()}")

    async def answer(self, request_id: Any, within: float = DEADLINE) -> Json:
        """Wait for the answer to a request."""
        await self.until(lambda: self.answers(request_id) or self._at_end, f"answer {request_id}", within)
        found = self.answers(request_id)
        assert found, f"no answer {request_id} before the end\n{self.story()}"
        return found[0]

    def answers(self, request_id: Any) -> list[Json]:
        """All answers to an id, null included; 1 and 1.0 and true are different."""
        return [
            frame
            for frame in self.frames
            if isinstance(frame, dict)
            and "method" not in frame
            and "id" in frame
            and type(frame["id"]) is type(request_id)
            and frame["id"] == request_id
        ]

    def requests(self, method: str) -> list[Json]:
        """The requests of the agent's side with this method."""
        return [frame for frame in self.frames if frame.get("method") == method and "id" in frame]

    def updates(self, session: str, tag: str) -> list[Json]:
        """The updates of one kind in a session."""
        found = [
            frame["params"]["update"]
            for frame in self.frames
            if frame.get("method") == "session/update"
            and isinstance(frame.get("params"), dict)
            and frame["params"].get("sessionId") == session
        ]
        return [update for update in found if isinstance(update, dict) and update.get("sessionUpdate") == tag]

    def states(self, session: str) -> list[str]:
        """The states of a session in short: `running`, `idle(end_turn)`."""
        return [
            f"{update.get('state')}({update['stopReason']})"
            if "stopReason" in update
            else str(update.get("state"))
            for update in self.updates(session, "state_update")
        ]

    def chunks(self, session: str) -> list[Any]:
        """The texts of a session's message chunks."""
        contents = [update.get("content") for update in self.updates(session, "agent_message_chunk")]
        return [content.get("text") for content in contents if isinstance(content, dict)]

    def invalid(self, since: int = 0) -> list[str]:
        """What came that v2 does not allow (unstable schema); methods that v2 does not list are left out."""
        found: list[str] = []
        for frame in self.frames[since:]:
            if "method" in frame:
                wrong = message_error(Version.V2, frame, sender=Role.AGENT)
                if wrong and "that a agent may send" in wrong:
                    wrong = None
            elif "error" in frame:
                misfit = next(validator(Version.V2, "Error").iter_errors(frame["error"]), None)
                wrong = misfit.message if misfit else None
            else:
                method = self.asked.get(frame["id"]) if isinstance(frame["id"], int | str) else None
                listed = method is not None and not method.startswith("_")
                wrong = (
                    response_error(Version.V2, str(method), frame["result"], receiver_of_request=Role.AGENT)
                    if listed
                    else None
                )
                if wrong and "is no request" in wrong:
                    wrong = None
            if wrong:
                found.append(f"{wrong} in {json.dumps(frame)[:300]}")
        return found

    def story(self) -> str:
        """The last of what was said, for a failure."""
        said = b"\n".join(got[:300] for got in self.raw[-SHOWN:]).decode(errors="replace")
        stderr = self.stderr[-2000:].decode(errors="replace")
        status = self.process.returncode
        return f"exit status {status}\n--- to the client\n{said}\n--- stderr\n{stderr}"

    # ------------------------------------------------------------ the agent's side

    def journal(self) -> list[Json]:
        """What the agent wrote down."""
        try:
            data = self._journal.read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(entry) for entry in data.split(b"\n")[:-1]]

    def agent_got(self) -> list[bytes]:
        """The lines the agent received, without their ends; long ones are left out."""
        return [entry["in"].encode("latin-1") for entry in self.journal() if "in" in entry]

    def agent_heard(self, method: str) -> list[Json]:
        """The messages with this method that the agent received."""
        return [body for body in self.agent_messages() if body.get("method") == method]

    def agent_messages(self) -> list[Json]:
        """The objects the agent received, long ones left out."""
        found: list[Json] = []
        for got in self.agent_got():
            with contextlib.suppress(ValueError):
                body = json.loads(got)
                if isinstance(body, dict):
                    found.append(body)
        return found

    def pids(self, who: str | None = None) -> list[int]:
        """The processes of the agent that made themselves known."""
        return [entry["pid"] for entry in self.journal() if "pid" in entry and who in (None, entry["who"])]

    def marked(self, word: str) -> bool:
        """Whether the script has passed a mark."""
        return {"mark": word} in self.journal()

    async def reach(self, word: str) -> None:
        """Wait for a mark in the script."""
        await self.until(lambda: self.marked(word), f"mark {word}")

    async def no_orphans(self, within: float = 5.0) -> None:
        """Check that every process of the agent is gone, or goes in time."""
        alive = self.pids()
        with trio.move_on_after(within):
            while alive := [pid for pid in alive if is_running(pid)]:  # noqa: ASYNC110  # nobody tells of them
                await trio.sleep(0.02)
        left = [entry for entry in self.journal() if entry.get("pid") in alive]
        assert not left, f"left behind: {left}\n{self.story()}"

    # ------------------------------------------------------------ the end

    async def close_stdin(self) -> None:
        """Say that nothing more will come."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def close_stdout(self) -> None:
        """Read nothing more, while there may be more to say."""
        assert self.process.stdout is not None
        self._at_end = True
        await self.process.stdout.aclose()

    async def vanish(self) -> None:
        """Break both pipes, as the system does for a client that was killed."""
        await self.close_stdout()
        await self.close_stdin()

    async def ended(self, within: float = DEADLINE) -> int:
        """Wait for the end of the command and of its output; return the exit status, -N for signal N."""
        with trio.move_on_after(within):
            status = await self.process.wait()
            while not self._at_end:
                news = self._news = trio.Event()
                with trio.move_on_after(0.05):
                    await news.wait()
            return status
        raise AssertionError(f"still running after {within} s\n{self.story()}")

    async def leave(self) -> None:
        """Close stdin and check that the command ends well: status 0, nobody left, no traceback."""
        await self.close_stdin()
        status = await self.ended()
        assert status == 0, self.story()
        assert b"Traceback" not in self.stderr, self.story()
        await self.no_orphans()

    async def read_stdout(self) -> None:
        """Task: take the frames while `reading` is set."""
        assert self.process.stdout is not None
        rest = b""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                await self.reading.wait()
                data = await self.process.stdout.receive_some(1 << 20)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for got in lines:
                    self.raw.append(got)
                    frame = json.loads(got)
                    self.frames.append(frame)
                    if isinstance(frame, dict) and "method" in frame and "id" in frame:
                        answer = self.answering(frame)
                        if answer is not None:
                            await self.send({"jsonrpc": "2.0", "id": frame["id"], **answer})
                self._news.set()
        assert rest == b"", rest
        self._at_end = True
        self._news.set()

    async def read_stderr(self) -> None:
        """Task: keep what the command says."""
        assert self.process.stderr is not None
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await self.process.stderr.receive_some(65536):
                self.stderr += data
                self._news.set()


@contextlib.asynccontextmanager
async def wrapped(
    script: Json | None = None,
    *options: str,
    version: int = 2,
    agent: Sequence[str] | None = None,
    reading: bool = True,
) -> AsyncIterator[Wrapped]:
    """Run `acp-proxy wrap OPTIONS -- AGENT` for the length of the block; `version` is the client's.

    With `reading` off nothing is read from stdout until `reading.set()`.
    """
    with tempfile.TemporaryDirectory(prefix="acp-e2e-") as folder:
        journal = Path(folder) / "journal"
        text = json.dumps({"journal": str(journal), **(script or {})})
        if len(text) > ARGUMENT_BYTES:
            (Path(folder) / "script").write_text(text)
            text = f"@{folder}/script"
        command = agent if agent is not None else [sys.executable, "-S", "-E", SCRIPTED_AGENT, text]
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "acp_proxy", "wrap", *options, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
        )
        run = Wrapped(process, journal, version)
        if reading:
            run.reading.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run.read_stdout)
                nursery.start_soon(run.read_stderr)
                try:
                    yield run
                finally:
                    nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.wait()
                for stream in (process.stdin, process.stdout, process.stderr):
                    assert stream is not None
                    await stream.aclose()
            for pid in run.pids():
                if is_running(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
