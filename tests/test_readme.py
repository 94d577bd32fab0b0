"""README says what is so: each row of its table about the bridge, and each of its examples.

A row added to the table needs its check here; a row that is no longer true makes its check fail.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relay_driver import (
    EVERYTHING,
    answer,
    ask,
    bridged,
    call,
    cancel,
    message,
    prompt,
    selected,
    story,
    text_block,
    tool,
    tool_update,
    update,
)
from traces_player import TRACES

Json = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SCRIPTED_AGENT = REPOSITORY / "tests" / "e2e" / "scripted_agent.py"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SHELL = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line]
JSON = [text for kind, text in BLOCKS if kind == "json"]


def section(title: str) -> str:
    """The text under a heading of the second level."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[tuple[str, str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return [(first, second) for first, second in cells]


# ---------------------------------------------------------------- what a v2 client gets from a v1 agent


def updates(bodies: list[Json], tag: str) -> list[Json]:
    """The updates of one kind."""
    return [
        body["params"]["update"]
        for body in bodies
        if body.get("method") == "session/update" and body["params"]["update"]["sessionUpdate"] == tag
    ]


def states_are_inferred_and_marked() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(ask(90))
    driver.client_sends(selected(driver.client_id("session/request_permission")))
    driver.ends("max_tokens")
    told = [body for body in driver.outputs.client if "state_update" in json.dumps(body)]
    assert story(told) == ["running", "requires_action", "running", "idle max_tokens"]
    assert {body["params"]["_meta"]["acp-proxy"]["synthetic"] for body in told} == {True}


def prompt_is_acknowledged_at_evidence_or_in_time() -> None:
    driver = bridged(ack_timeout=1.0)
    assert story(driver.prompt(7).client) == ["running"]
    said = driver.agent_sends(message("hi")).client
    assert story(said) == ["user_message", "answer 7", "agent_message_chunk"]
    assert said[0]["params"]["update"]["content"] == [text_block("go")]
    assert said[1]["result"] == {"messageId": said[0]["params"]["update"]["messageId"]}
    driver.ends()
    driver.prompt(8)
    assert driver.advance(0.9).client == []
    assert story(driver.advance(0.2).client) == ["user_message", "answer 8"]


def prompts_are_held_in_order() -> None:
    driver = bridged(max_held=2)
    driver.prompt(7)
    for request_id, text in ((8, "two"), (9, "three")):
        assert driver.client_sends(prompt(request_id, text)).agent == []
    assert story(driver.client_sends(prompt(10, "four")).client) == ["error 10 -32603"]
    for text in ("two", "three"):
        (sent,) = driver.ends().agent
        assert sent["params"]["prompt"] == [text_block(text)]


def cancel_reaches_everything() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(ask(90))
    driver.client_sends(prompt(8, "held"))
    said = driver.client_sends(cancel())
    assert story(said.agent)[0] == "session/cancel"
    assert said.agent[1] == answer(90, {"outcome": {"outcome": "cancelled"}})
    asked = driver.client_id("session/request_permission")
    assert sorted(story(said.client)) == ["error 8 -32800", f"withdraw {asked}"]


def chunks_get_ids() -> None:
    driver = bridged()
    driver.prompt(7)
    said = driver.agent_sends(message("a"), message("b"), message("c", messageId="own")).client
    ids = [chunk["messageId"] for chunk in updates(said, "agent_message_chunk")]
    assert ids[0] == ids[1]
    assert isinstance(ids[0], str)
    assert ids[2] == "own"


def tool_calls_become_updates_and_diffs_patches() -> None:
    driver = bridged()
    driver.prompt(7)
    diff = {"type": "diff", "path": "/p/a", "oldText": "a\n", "newText": "b\n"}
    said = driver.agent_sends(tool("k", "pending"), tool_update("k", "completed", content=[diff])).client
    first, second = updates(said, "tool_call_update")
    assert (first["status"], second["status"]) == ("pending", "completed")
    (shown,) = second["content"]
    assert shown["changes"] == [{"operation": "modify", "path": "/p/a", "fileType": "text"}]
    assert shown["patch"]["format"] == "git_patch"
    assert shown["patch"]["text"].endswith("@@ -1 +1 @@\n-a\n+b\n")


def permissions_have_title_and_subject_and_offered_answers() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(tool("k", "pending", title="Delete it"))
    (asked, _) = driver.agent_sends(ask(90, "k")).client
    assert asked["params"]["title"] == "Delete it"
    assert asked["params"]["subject"] == {"type": "tool_call", "toolCall": {"toolCallId": "k"}}
    (got,) = driver.client_sends(selected(asked["id"], "never offered")).agent
    assert got == answer(90, {"outcome": {"outcome": "cancelled"}})


def config_options_pass_and_modes_become_one() -> None:
    option = {
        "id": "model",
        "name": "M",
        "type": "select",
        "currentValue": "x",
        "options": [{"value": "x", "name": "X"}],
    }
    modes = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
    driver = bridged(result={"configOptions": [option], "modes": modes})
    result = driver.outputs.client[-1]["result"]
    told = {each["configId"]: each for each in result["configOptions"]}
    assert set(told) == {"model", "mode"}
    assert told["mode"]["category"] == "mode"
    choice = {"sessionId": "s1", "configId": "mode", "type": "id", "value": "b"}
    (sent,) = driver.client_sends(call(5, "session/set_config_option", choice)).agent
    assert (sent["method"], sent["params"]["modeId"]) == ("session/set_mode", "b")


def resume_uses_what_the_agent_has() -> None:
    opening = {"sessionId": "old", "cwd": "/p"}
    replay = {**opening, "replayFrom": {"type": "start"}}
    both: list[tuple[Json, Json, str]] = [
        ({"sessionCapabilities": {"resume": {}}}, opening, "session/resume"),
        ({"loadSession": True}, opening, "session/load"),
        ({"loadSession": True}, replay, "session/load"),
        (EVERYTHING, replay, "session/load"),
    ]
    for capabilities, params, method in both:
        driver = bridged(agent=capabilities, session=False)
        (sent,) = driver.client_sends(call(5, "session/resume", params)).agent
        assert sent["method"] == method
    driver = bridged(agent={"sessionCapabilities": {"resume": {}}}, session=False)
    said = driver.client_sends(call(5, "session/resume", replay))
    assert (said.agent, story(said.client)) == ([], ["error 5 -32602"])


def list_and_close_are_emulated() -> None:
    driver = bridged()
    said = driver.client_sends(call(5, "session/list", {}))
    assert said.agent == []
    assert [entry["sessionId"] for entry in said.client[0]["result"]["sessions"]] == ["s1"]
    driver.prompt(7)
    assert story(driver.client_sends(call(8, "session/close", {"sessionId": "s1"})).agent) == [
        "session/cancel"
    ]
    assert story(driver.ends("cancelled").client)[-2:] == ["idle cancelled", "answer 8"]
    able = bridged(agent=EVERYTHING)
    for method, params in (("session/list", {}), ("session/close", {"sessionId": "s1"})):
        assert able.client_sends(call(method, method, params)).agent[0]["method"] == method


def delete_and_logout_are_refused() -> None:
    for method, params in (("session/delete", {"sessionId": "s1"}), ("auth/logout", {})):
        said = bridged().client_sends(call(5, method, params))
        assert (said.agent, story(said.client)) == ([], ["error 5 -32601"])
    able = bridged(agent={**EVERYTHING, "auth": {"logout": {}}})
    assert (
        able.client_sends(call(5, "session/delete", {"sessionId": "s1"})).agent[0]["method"]
        == "session/delete"
    )
    assert able.client_sends(call(6, "auth/logout", {})).agent[0]["method"] == "logout"


def files_and_terminals_are_refused() -> None:
    driver = bridged()
    offered = driver.outputs.agent[0]["params"]["clientCapabilities"]
    assert offered["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert offered["terminal"] is False
    for method in ("fs/read_text_file", "terminal/create"):
        said = driver.agent_sends(call(90, method, {"sessionId": "s1", "path": "/p/a", "command": "ls"}))
        assert (said.client, story(said.agent)) == ([], ["error 90 -32601"])


def unknown_values_pass_and_spellings_are_repaired() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message("x"))
    novelty = update("_vendor/news", anything={"a": 1})
    assert driver.agent_sends(novelty).client == [novelty]
    (said,) = driver.agent_sends(tool("k", "in-progress", kind="levitate")).client
    told = said["params"]["update"]
    assert (told["status"], told["kind"]) == ("in_progress", "levitate")
    assert "in-progress" in json.dumps(said["params"]["_meta"]["acp-proxy"]["orig"])


ROWS: dict[str, Callable[[], None]] = {
    "`state_update` snapshots": states_are_inferred_and_marked,
    "`session/prompt` answered with `messageId`": prompt_is_acknowledged_at_evidence_or_in_time,
    "prompts while one is running": prompts_are_held_in_order,
    "`session/cancel`": cancel_reaches_everything,
    "messages": chunks_get_ids,
    "`tool_call_update`": tool_calls_become_updates_and_diffs_patches,
    "permissions": permissions_have_title_and_subject_and_offered_answers,
    "config options": config_options_pass_and_modes_become_one,
    "`session/resume`": resume_uses_what_the_agent_has,
    "`session/list`, `session/close`": list_and_close_are_emulated,
    "`session/delete`, `auth/logout`": delete_and_logout_are_refused,
    "`fs/*`, `terminal/*` of the agent": files_and_terminals_are_refused,
    "unknown updates, kinds and values": unknown_values_pass_and_spellings_are_repaired,
}


@pytest.mark.parametrize("row", rows("What a v2 client gets from a v1 agent"))
def test_row_of_the_bridge_table_is_true(row: tuple[str, str]) -> None:
    ROWS[row[0]]()


def test_every_check_has_its_row() -> None:
    assert [first for first, _ in rows("What a v2 client gets from a v1 agent")] == list(ROWS)


# ---------------------------------------------------------------- examples


def test_commands_are_those_that_continuous_integration_runs() -> None:
    (found,) = re.findall(r"^command=\$\((sed .*)\)$", (REPOSITORY / ".ci" / "run").read_text(), re.MULTILINE)
    ran = subprocess.run(["bash", "-euc", found], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    (command,) = [line for line in SHELL if line in section("Run the tests")]
    assert ran.stdout == f"{command}\n"
    assert " && .venv/bin/python -m pytest" in command


@pytest.mark.parametrize("command", SHELL)
def test_shell_example_is_a_command(command: str) -> None:
    assert len(shlex.split(command)) > 1
    subprocess.run(["bash", "-n", "-c", command], check=True)


@pytest.mark.parametrize("text", JSON)
def test_editor_settings_start_the_proxy(text: str) -> None:
    (server,) = json.loads(text)["agent_servers"].values()
    assert server["command"] == "acp-proxy"
    assert server["args"][:2] == ["wrap", "--"]


def wrap_examples() -> list[list[str]]:
    """Each `acp-proxy wrap` that README shows, as arguments."""
    found = [["acp-proxy", *next(iter(json.loads(text)["agent_servers"].values()))["args"]] for text in JSON]
    for command in SHELL:
        words = shlex.split(command)
        if words[0] == "acpx":
            words = shlex.split(words[words.index("--agent") + 1])
        if words[:2] == ["acp-proxy", "wrap"]:
            found.append(words)
    return found


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the settings file, and the two commands of the examples on PATH."""
    commands = tmp_path / "bin"
    commands.mkdir()
    python = shlex.quote(sys.executable)
    scripts = {
        "acp-proxy": f'exec {python} -m acp_proxy "$@"',
        "my-agent": f'[ "$1" = --acp ] && exec {python} -S -E {shlex.quote(str(SCRIPTED_AGENT))} "{{}}"',
    }
    for name, line in scripts.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    shutil.copy(REPOSITORY / "deploy" / "acp-proxy.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def converse(command: list[str]) -> list[Json]:
    """A turn of a v2 client with what the command starts; everything it is told."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        info = {"name": "reader", "version": "1"}
        steps = [
            call(0, "initialize", {"protocolVersion": 2, "info": info, "capabilities": {}}),
            call(1, "session/new", {"cwd": "/p", "mcpServers": []}),
            prompt(2),
        ]
        heard: list[Json] = []
        while story(heard[-1:]) != ["idle end_turn"]:
            if steps and (not heard or heard[-1].get("id") == steps[0]["id"] - 1):
                body = steps.pop(0)
                if body["method"] == "session/prompt":
                    body["params"]["sessionId"] = heard[-1]["result"]["sessionId"]
                process.stdin.write(json.dumps(body).encode() + b"\n")
                process.stdin.flush()
            heard.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        heard += [json.loads(raw) for raw in process.stdout]
    assert process.returncode == 0
    return heard


@pytest.mark.parametrize("command", wrap_examples(), ids=" ".join)
def test_wrap_example_works(command: list[str], desk: Path) -> None:
    wanted = ["running", "user_message", "answer 2", "agent_message_chunk", "idle end_turn"]
    told = story(converse(command))
    assert [word for word in told if word not in ("answer 0", "answer 1")] == wanted
    for option, file in itertools.pairwise(command):
        if option == "--record":
            assert len((desk / file).read_text().splitlines()) > 10
        elif option == "--findings":
            assert (desk / file).read_text() == ""


def test_there_is_an_example_for_every_way_to_wrap() -> None:
    assert len(wrap_examples()) == 5


def test_check_examples_judge_what_they_are_given(desk: Path) -> None:
    commands = [shlex.split(line) for line in SHELL if line.startswith("acp-proxy check ")]
    recorded = next(each for each in wrap_examples() if "--record" in each)
    converse(recorded)
    for name, capture in (("capture.jsonl", "codex2-text"), ("other.jsonl", "codex2v2-text")):
        shutil.copy(TRACES / f"{capture}.jsonl", desk / name)
    assert len(commands) == 2
    for command in commands:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr


def test_config_examples_work(desk: Path) -> None:
    commands = re.findall(r"`(acp-proxy config [^`]+)`", README)
    assert len(commands) == 2
    for command in commands:
        subprocess.run(shlex.split(command), capture_output=True, check=True)


def test_options_of_the_table_are_those_of_wrap() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "acp_proxy", "wrap", "--help"], capture_output=True, text=True, check=True
    )
    for first, _ in re.findall(r"^\| (`--[^|]+) \| ([^|]*) \|", section("Configure"), re.MULTILINE):
        for option in re.findall(r"--[a-z-]+", first):
            assert option in ran.stdout
