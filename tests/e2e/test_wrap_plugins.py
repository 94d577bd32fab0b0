"""Plugins at work in the real command: their failures are told, and are nobody else's."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from script_steps import PERMISSION, chunk, tool
from wrapped import wrapped

from plugin_installs import TRANSCRIPT, install, install_project, python_path

TURN_ENDS = ["reply", {"stopReason": "end_turn"}]
SELECTED = {"result": {"outcome": {"outcome": "selected", "optionId": "ok"}}}
SECRET = "hunter2-canary"

MODULE = """
    import subprocess, sys, time
    from acp_proxy.plugin import Filter, FrameReport, Notification, Plugin, ToAgent, ToClient, changed, notification

    print("imported", flush=True)

    class Shouting(Plugin):
        '''Prints wherever it can.'''

        def __init__(self, settings):
            print("set up", flush=True)

        def filters(self):
            print("filters", flush=True)
            return [Echo()]

        def observe(self, report):
            print("observed", flush=True)

        def close(self):
            print("closed", flush=True)

    class Echo(Filter):
        def back(self, message, at):
            print("back", flush=True)
            subprocess.run([sys.executable, "-S", "-E", "-c", "print('child')"])
            return message

    class Refusing(Plugin):
        on_failure = "refuse"

        def filters(self):
            return [Failing()]

    class Passing(Plugin):
        def filters(self):
            return [Failing()]

        def observe(self, report):
            raise RuntimeError("hunter2-canary")

    class Failing(Filter):
        def back(self, message, at):
            if "method" in message.body:
                raise RuntimeError("hunter2-canary")
            return message

    class Slow(Plugin):
        def observe(self, report):
            time.sleep(60)

    class Clock(Plugin):
        def filters(self):
            return [Ticking()]

    class Ticking(Filter):
        due = None

        def forth(self, message, at):
            if "_wind" == message.body.get("method"):
                self.due = at + 0.05
                return None
            return message

        def next_deadline(self):
            return self.due

        def expire(self, at):
            self.due = None
            return [ToClient(notification("_tick", {})), ToAgent(notification("_tock", {}))]

    class Broken(Plugin):
        def __init__(self, settings):
            raise ValueError("out of order")
"""
PLUGINS = {
    name: f"plugins_under_test:{name.capitalize()}"
    for name in ("shouting", "refusing", "passing", "slow", "clock", "broken")
}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that the command's Python imports from, with the plugins in it."""
    folder = tmp_path / "site"
    install(folder, "plugins-under-test", PLUGINS, {"plugins_under_test": MODULE})
    install_project(folder, TRANSCRIPT)
    monkeypatch.setenv("PYTHONPATH", python_path(folder, TRANSCRIPT))
    return folder


def enabled(*names: str, **settings: object) -> list[str]:
    """The options that enable these plugins, and set keys of the first."""
    options = ["--set", f"plugins.enabled={json.dumps(names)}"]
    for key, value in settings.items():
        options += ["--set", f"plugins.{names[0]}.{key}={json.dumps(value)}"]
    return options


def findings(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_plugin_that_prints_does_not_spoil_the_protocol() -> None:
    async with wrapped({}, *enabled("shouting")) as run:
        session = await run.open()
        await run.healthy_turn(session)
        await run.leave()
        printed = set(run.stderr.decode().split("\n"))
        assert printed >= {"imported", "set up", "filters", "back", "child", "observed", "closed"}
        assert run.invalid() == []


async def test_a_broken_plugin_is_said_before_anything_starts(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    async with wrapped({}, *enabled("broken"), "--record", str(recording)) as run:
        assert await run.ended() == 2
        assert run.stderr.decode().splitlines() == [
            "imported",
            "Error: plugin 'broken': cannot be set up: ValueError: out of order",
        ]
        assert run.raw == []
        assert run.pids() == []
        assert not recording.exists()


async def test_a_filter_that_refuses_lets_nothing_pass_that_it_failed_at(tmp_path: Path) -> None:
    found = tmp_path / "findings"
    script = {
        "on": {
            "session/prompt go": [chunk(SECRET), ["ask", "session/request_permission", PERMISSION], TURN_ENDS]
        }
    }
    async with wrapped(script, *enabled("refusing"), "--findings", str(found), version=1) as run:
        session = await run.open()
        token = await run.prompt(session)
        answer = await run.answer(token)
        assert answer["result"] == {"stopReason": "end_turn"}
        await run.leave()
        [refused] = [message for message in run.agent_messages() if "error" in message]
        assert refused["error"]["code"] == -32603
        assert all("method" not in frame for frame in run.frames)
        assert SECRET.encode() not in run.stderr
    entries = findings(found)
    assert [(one["rule"], one["action"], one["session"]) for one in entries] == [
        ("V55", "refused", session)
    ] * 2
    assert SECRET not in found.read_text()


async def test_failures_are_findings_and_traffic_goes_on(tmp_path: Path) -> None:
    found = tmp_path / "findings"
    recording = tmp_path / "recording"
    options = [*enabled("passing"), "--findings", str(found), "--record", str(recording)]
    async with wrapped({}, *options) as run:
        session = await run.open()
        for _ in range(3):
            await run.healthy_turn(session)
        await run.leave()
        assert run.invalid() == []
        assert SECRET.encode() not in run.stderr
    entries = findings(found)
    assert {one["rule"] for one in entries} == {"V55"}
    assert {one["source"] for one in entries} == {"plugins.passing"}
    texts = [re.sub(r" at \S+\.py:\d+", "", one["text"]) for one in entries]
    assert sorted(texts) == [
        "plugin 'passing' failed in back: RuntimeError",
        "plugin 'passing' failed in back: RuntimeError",
        "plugin 'passing' failed in back: RuntimeError; after 3 failures its filter is taken out",
        "plugin 'passing' failed in observe: RuntimeError; it observes no more",
    ]
    recorded = [json.loads(line) for line in recording.read_text().splitlines()]
    assert [one["finding"]["rule"] for one in recorded if "finding" in one] == ["V55"] * 4
    assert SECRET not in found.read_text()


async def test_the_exception_itself_is_shown_to_who_asks_for_debugging() -> None:
    async with wrapped({}, *enabled("passing"), "--log-level", "debug") as run:
        await run.healthy_turn(await run.open())
        await run.close_stdin()
        assert await run.ended() == 0
        assert f"RuntimeError: {SECRET}".encode() in run.stderr


async def test_a_slow_observer_holds_nobody_up(tmp_path: Path) -> None:
    found = tmp_path / "findings"
    async with wrapped({}, *enabled("slow"), "--findings", str(found)) as run:
        session = await run.open()
        for _ in range(5):
            await run.healthy_turn(session)
        begun = time.monotonic()
        await run.leave()
        assert time.monotonic() - begun < 10
    assert [one["text"] for one in findings(found)] == ["plugins did not close within 2 s"]


async def test_a_filter_keeps_time() -> None:
    async with wrapped({}, *enabled("clock")) as run:
        await run.open()
        await run.tell("_wind", {})
        await run.until(lambda: any(frame.get("method") == "_tick" for frame in run.frames), "the tick")
        await run.until(lambda: run.agent_heard("_tock"), "the tock")
        assert run.agent_heard("_wind") == []
        await run.leave()


CONVERSATION = {
    "session/prompt go": [
        chunk("Let me "),
        chunk("see.\x1b[2J"),
        tool("pending"),
        ["ask", "session/request_permission", PERMISSION],
        tool("completed", "tool_call_update"),
        chunk("Done."),
        TURN_ENDS,
    ]
}
TRANSCRIBED = [
    "note   this is session SESSION",
    "user   go",
    "state  running",
    "agent  Let me see.",
    "tool   t: pending",
    "asks   t (Yes / No)",
    "state  requires_action",
    "user   (Yes)",
    "state  running",
    "tool   t: completed",
    "agent  Done.",
    "state  idle (end_turn)",
]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_transcript_is_the_same_for_clients_of_both_versions(version: int, tmp_path: Path) -> None:
    file = tmp_path / "transcript"
    async with wrapped({"on": CONVERSATION}, *enabled("transcript", file=str(file)), version=version) as run:
        run.answering = lambda request: SELECTED
        session = await run.open()
        await run.prompt(session)
        await run.until(lambda: "Done." in run.chunks(session), "the end of the turn")
        if version == 2:
            await run.until(lambda: run.states(session)[-1:] == ["idle(end_turn)"], "idle")
        await run.leave()
    header, *lines = file.read_text().splitlines()
    assert header.startswith("Transcript of acp-proxy, 20")
    assert [line[18:].replace(session, "SESSION") for line in lines] == TRANSCRIBED
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_transcript_without_a_file_is_a_configuration_error() -> None:
    async with wrapped({}, *enabled("transcript")) as run:
        assert await run.ended() == 2
        assert run.stderr == b"Error: plugins.transcript: file: expected the path of a file\n"


def listed(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "acp_proxy", "plugins", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def test_the_command_lists_what_is_installed() -> None:
    done = listed(*enabled("transcript"))
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert set(rows) >= {*PLUGINS, "transcript"}
    version = re.escape(rows["transcript"].split()[1])
    assert re.fullmatch(
        rf"transcript +{version} +acp-proxy-transcript +enabled: yes +"
        "Writes a readable transcript: prompts, answers, tool calls, permissions and states.",
        rows["transcript"],
    )
    assert re.fullmatch(
        r"shouting +1\.2\.3 +plugins-under-test +enabled: no +Prints wherever it can\.", rows["shouting"]
    )
    assert re.fullmatch(r"slow +1\.2\.3 +plugins-under-test +enabled: no", rows["slow"])
    assert "imported" not in done.stdout


def test_the_listing_fails_where_wrap_would() -> None:
    done = listed(*enabled("absent"))
    assert done.returncode == 2
    assert "transcript" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("Error: plugins.enabled: no plugin 'absent' is installed")


def test_without_plugins_nothing_of_theirs_is_imported() -> None:
    code = "import sys, acp_proxy.app; print([name for name in sys.modules if name.startswith('acp_proxy.plugin')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
