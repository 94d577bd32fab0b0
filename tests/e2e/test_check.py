"""`acp-proxy check` and `acp-proxy config` as commands: what they say of real recordings, and how they end.

Source: design of the command line (check, Findings, exit statuses).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from script_steps import PERMISSION, chunk, tool
from wrapped import wrapped

ACP_PROXY = [sys.executable, "-m", "acp_proxy"]
STRAY = {"jsonrpc": "2.0", "id": 4711, "result": {}}
# Answers to nothing, a tool under way, a question, and output behind the end.
FAULTY = [
    ["send", {**STRAY, "id": 815}],
    chunk(),
    tool("in_progress"),
    tool("completed", "tool_call_update"),
    ["ask", "session/request_permission", PERMISSION],
    ["reply"],
]


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """The command's exit status, stdout and stderr."""
    done = subprocess.run([*ACP_PROXY, *arguments], input=stdin, capture_output=True, timeout=30, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def capture(*frames: tuple[float, str, Any]) -> bytes:
    """A capture out of times, directions and messages (or the texts of lines)."""
    said = [
        (at, way, body if isinstance(body, str) else json.dumps({"jsonrpc": "2.0", **body}))
        for at, way, body in frames
    ]
    return b"".join(
        json.dumps({"t": at, "dir": way, "line": text}).encode() + b"\n" for at, way, text in said
    )


def turn(stop: str = "end_turn", start: float = 0.0) -> list[tuple[float, str, Any]]:
    """One process of a v1 agent with one turn."""
    params = {"protocolVersion": 1, "clientCapabilities": {}}
    prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}
    return [
        (start, "c2a", {"id": 0, "method": "initialize", "params": params}),
        (start + 0.1, "a2c", {"id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {}}}),
        (start + 0.2, "c2a", {"id": 1, "method": "session/new", "params": {"cwd": "/p", "mcpServers": []}}),
        (start + 0.3, "stderr", "starting"),
        (start + 0.4, "a2c", {"id": 1, "result": {"sessionId": "s"}}),
        (start + 1.0, "c2a", {"id": 2, "method": "session/prompt", "params": prompt}),
        (start + 2.0, "a2c", {"id": 2, "result": {"stopReason": stop}}),
        (start + 3.0, "exit", "0"),
    ]


def file(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


@pytest.fixture
def clean(tmp_path: Path) -> str:
    return file(tmp_path, "clean.jsonl", capture(*turn()))


@pytest.fixture
def dirty(tmp_path: Path) -> str:
    """A turn that ends as cancelled although nobody asked for it, a warning, and a stray answer, an error."""
    return file(tmp_path, "dirty.jsonl", capture(*turn("cancelled")[:-1], (3.0, "a2c", STRAY)))


# ---------------------------------------------------------------- recordings of the real proxy


@pytest.mark.parametrize("version", [1, 2])
async def test_a_recording_shows_what_the_live_run_found(version: int, tmp_path: Path) -> None:
    trace, live = tmp_path / "trace.jsonl", tmp_path / "live.jsonl"
    script = {"version": version, "on": {"session/prompt go": FAULTY}}
    options = ["--record", str(trace), "--findings", str(live), "--log-level", "error"]
    async with wrapped(script, *options, version=version) as proxy:
        proxy.answering = lambda request: {
            "result": {"outcome": {"outcome": "selected", "optionId": "unoffered"}}
        }
        session = await proxy.open()
        await proxy.send(b"nonsense\n", STRAY)
        await proxy.answer(await proxy.prompt(session))
        await proxy.healthy_turn(session)
        await proxy.leave()
    status, out, err = run("check", "--json", str(trace))
    assert (status, err) == (1, "")
    form = ("rule", "severity", "session", "leg", "frames", "source", "text")
    found = [tuple(map(str, map(one.get, form))) for one in json_lines(out)]
    wanted = [tuple(map(str, map(one.get, form))) for one in json_lines(live.read_text())]
    assert sorted(found) == sorted(wanted)
    assert {one[0] for one in found} >= {"V29", "V45"}
    assert {one["file"] for one in json_lines(out)} == {str(trace)}


async def test_a_bridged_recording_is_two_conversations(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    script = {"on": {"session/prompt go": FAULTY}}
    async with wrapped(script, "--record", str(trace), "--log-level", "error") as proxy:
        proxy.answering = lambda request: {"result": {"outcome": {"outcome": "selected", "optionId": "ok"}}}
        session = await proxy.open()
        await proxy.prompt(session)
        await proxy.until(lambda: proxy.states(session)[-1:] == ["idle(end_turn)"], "the end of the turn")
        told = proxy.states(session)
        await proxy.send(STRAY)
        await proxy.leave()
    status, out, err = run("check", "--json", "--states", str(trace))
    assert (status, err) == (1, "")
    lines = json_lines(out)
    assert [(one["rule"], one["leg"]) for one in lines if "rule" in one] == [
        ("V29", "agent"),
        ("V29", "client"),
    ]
    shown = {
        leg: [
            f"{one['state']}({one['stopReason']})" if one["stopReason"] else one["state"]
            for one in lines
            if "state" in one and one["leg"] == leg
        ]
        for leg in ("agent", "client")
    }
    assert shown["client"] == shown["agent"] == told
    assert {one["inferred"] for one in lines if one.get("leg") == "agent" and "state" in one} == {True}


async def test_a_quiet_run_is_clean(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    async with wrapped({}, "--record", str(trace)) as proxy:
        await proxy.healthy_turn(await proxy.open())
        await proxy.leave()
    status, out, err = run("check", str(trace))
    assert (status, err) == (0, "")
    assert out.startswith("1 file, ")
    assert out.endswith(" frames: 0 errors, 0 warnings, 0 info\n")


# ---------------------------------------------------------------- captures, and how it ends


def test_a_capture_is_told_in_lines_for_people(clean: str, dirty: str) -> None:
    assert run("check", clean) == (0, "1 file, 6 frames: 0 errors, 0 warnings, 0 info\n", "")
    status, out, err = run("check", clean, dirty)
    assert (status, err) == (1, "")
    assert [line.split()[:4] for line in out.splitlines()[:-1]] == [
        [f"{dirty}:6:", "warning", "V47", "s"],
        [f"{dirty}:7:", "error", "V29", "-"],
    ]
    assert out.splitlines()[-1] == "2 files, 13 frames: 1 error, 1 warning, 0 info"


def test_states_are_told_with_time_and_cause(clean: str) -> None:
    assert run("check", "--states", clean)[1].splitlines()[:2] == [
        f"{clean}:5: 1.000 s idle -> running by session/prompt",
        f"{clean}:6: 2.000 s running -> idle (end_turn) by answer to session/prompt",
    ]


def test_a_capture_of_several_processes_comes_from_stdin() -> None:
    data = capture(*turn(), *turn("max_tokens", start=5.0))
    status, out, err = run("check", "--states", "-", stdin=data)
    assert (status, err) == (0, "")
    assert [line.split(": ")[0] for line in out.splitlines()[:4]] == [
        f"<stdin>:{number}" for number in (5, 6, 11, 12)
    ]


@pytest.mark.parametrize(
    ("rules", "fail_on", "status"),
    [
        ({}, "error", 1),
        ({"V29": "off"}, "warning", 1),
        ({"V29": "off"}, "error", 0),
        ({"V29": "off", "V47": "off"}, "info", 0),
    ],
)
def test_the_exit_status_follows_the_severity(
    dirty: str, rules: dict[str, str], fail_on: str, status: int
) -> None:
    sets = [part for rule, word in rules.items() for part in ("--set", f"lifecycle.rules.{rule}={word}")]
    assert run("check", "--fail-on", fail_on, *sets, dirty)[0] == status


@pytest.mark.parametrize(
    ("data", "where"), [(b"", ":1:"), (b"no\n", ":1:"), (capture(*turn()) + b"{\n{}\n", ":9:"), (None, ":")]
)
def test_what_cannot_be_used_is_named_and_the_rest_is_judged(
    data: bytes | None, where: str, dirty: str, tmp_path: Path
) -> None:
    bad = file(tmp_path, "bad.jsonl", data) if data is not None else str(tmp_path / "none.jsonl")
    status, out, err = run("check", bad, dirty)
    assert status == 2
    assert err.startswith(f"Error: {bad}{where} ")
    assert len(err.splitlines()) == 1
    assert " V47 s " in out
    assert "1 file, " in out


def test_rich_is_not_needed(dirty: str) -> None:
    code = "import sys; sys.modules['rich'] = None; from acp_proxy.cli import main; "
    code += f"sys.exit(main(['check', {dirty!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_reader_that_leaves_early_is_no_defect(tmp_path: Path) -> None:
    stray = [(3.0 + index, "a2c", {**STRAY, "id": f"{index}{'x' * 200}"}) for index in range(150)]
    many = file(tmp_path, "many.jsonl", capture(*turn()[:-1], *stray))
    command = " ".join([*ACP_PROXY, "check", "--json", *[many] * 10])
    done = subprocess.run(["sh", "-c", f"{command} | head -1"], capture_output=True, timeout=30, check=False)
    assert done.stdout.count(b"\n") == 1
    assert b"defect" not in done.stderr
    assert b"Traceback" not in done.stderr


# ---------------------------------------------------------------- the settings file


def test_config_check_tells_all_mistakes(tmp_path: Path) -> None:
    wrong = file(tmp_path, "wrong.toml", b"[bridge]\nmode = 'on'\nacktimeout = 1\n")
    status, out, err = run("config", "check", wrong)
    assert (status, err) == (2, "")
    assert out.splitlines() == [
        f'{wrong}:2: bridge.mode: expected "auto" or "off", got "on"',
        f"{wrong}:3: unknown key bridge.acktimeout; did you mean bridge.ack_timeout?",
    ]


def test_config_check_reads_permission_rules(tmp_path: Path) -> None:
    wrong = file(tmp_path, "wrong.toml", b"[[permissions.rules]]\ndecision = 'always'\n")
    status, out, err = run("config", "check", wrong)
    assert (status, err) == (2, "")
    assert out.startswith(f"{wrong}: permissions.rules[1].decision: expected ")


def test_config_check_of_a_sound_file_is_silent(tmp_path: Path) -> None:
    assert run("config", "check", file(tmp_path, "right.toml", b"[bridge]\nmode = 'off'\n")) == (0, "", "")


def test_config_schema_is_json() -> None:
    status, out, err = run("config", "schema")
    assert (status, err) == (0, "")
    assert json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
