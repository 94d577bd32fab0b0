"""The whole demo, with a scripted process in the place of the proxy."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from acp_proxy.demo import run
from acp_proxy.demo.run import default_command, run_demo
from acp_proxy.demo.scenarios import SCENARIOS

PEER = Path(__file__).with_name("scripted_peer.py")


def play(fault: str = "") -> tuple[int, str]:
    out = io.StringIO()
    status = run_demo(out, wrap_command=[sys.executable, str(PEER), *([fault] if fault else [])])
    return status, out.getvalue()


def test_every_scenario_shows_its_states() -> None:
    status, text = play()
    assert status == 0
    blocks = text.split("\n\n")[2:-1]
    assert len(blocks) == len(SCENARIOS)
    for block, scenario in zip(blocks, SCENARIOS, strict=True):
        heading, *lines = block.splitlines()
        assert heading == f"{scenario.prompt}: {scenario.about}"
        assert tuple(line.split("* ")[1] for line in lines if "* " in line) == scenario.states
    assert "acp-proxy: 14." in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_two_runs_print_the_same() -> None:
    assert play() == play()


def test_a_wrong_state_fails_and_the_rest_is_still_played() -> None:
    status, text = play("wrong_end")
    assert status == 1
    assert "FAILED text: expected running, idle (end_turn); told running, idle (refusal)\n" in text
    assert "error: the model fails" in text
    assert "YOUR-AGENT" not in text


def test_a_missing_requires_action_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PATIENCE_SECONDS", 1.0)
    status, text = play("blind")
    assert status == 1
    assert "FAILED permission: not finished within 1 s; states told: running, no requires_action" in text


def test_a_state_without_the_mark_fails() -> None:
    status, text = play("unmarked")
    assert status == 1
    assert "FAILED text: not marked as synthetic: running, idle (end_turn)" in text


def test_a_proxy_that_is_gone_fails_with_its_last_words() -> None:
    status, text = play("gone")
    assert status == 1
    assert "FAILED permission: the proxy closed its output (exit status 7)\n" in text
    assert text.endswith("It said last:\nagent ran out of luck\n")


def test_a_bad_exit_status_fails() -> None:
    status, text = play("stubborn")
    assert status == 1
    assert "FAILED end: acp-proxy wrap should end with status 0, it was 3" in text


def test_a_proxy_that_cannot_be_started_fails() -> None:
    out = io.StringIO()
    assert run_demo(out, wrap_command=["no-such-program-here"]) == 1
    assert "FAILED start: cannot start no-such-program-here" in out.getvalue()


def test_the_default_command_wraps_the_bundled_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    python = [sys.executable, "-P", "-m"]
    assert default_command() == [*python, "acp_proxy", "wrap", "--", *python, "acp_proxy.demo.agent"]


def test_the_current_directory_counts_in_a_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(run.__file__).parents[2])
    assert "-P" not in default_command()
