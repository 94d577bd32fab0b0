"""`acp-proxy demo` as a user runs it: the bundled agent behind the real proxy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXPECTED = {
    "text": ["running", "idle (end_turn)"],
    "permission": ["running", "requires_action", "running", "idle (end_turn)"],
    "parallel": ["running", "requires_action", "running", "idle (end_turn)"],
    "cancel": ["running", "idle (cancelled)"],
    "error": ["running", "idle (error)"],
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """One run for all tests, from a directory that has nothing to do with the source tree."""
    cwd: Path = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-m", "acp_proxy", "demo"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=50, check=False)


def test_demo_succeeds_and_keeps_stderr_clean(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""


def test_demo_prints_the_expected_states(demo: subprocess.CompletedProcess[str]) -> None:
    told: dict[str, list[str]] = {}
    name = ""
    for line in demo.stdout.splitlines():
        if heading := re.match(r"(\w+): ", line):
            name = heading[1]
        elif (label := re.search(r" \* (.+)$", line)) and name:
            told.setdefault(name, []).append(label[1])
    assert told == EXPECTED, demo.stdout


def test_demo_puts_each_state_beside_its_cause(demo: subprocess.CompletedProcess[str]) -> None:
    causes = [
        line.split(" * ")[0].strip() for line in demo.stdout.splitlines() if " * requires_action" in line
    ]
    assert causes == ['--> may I? "Delete build/"', '--> tool "Search sources" completed'], demo.stdout
    assert "prompt failed: model unavailable" in demo.stdout


def test_demo_ends_with_how_to_use_it(demo: subprocess.CompletedProcess[str]) -> None:
    lines = demo.stdout.splitlines()
    assert lines
    assert lines[-1].endswith("acp-proxy wrap -- YOUR-AGENT")
    assert max(len(line) for line in lines) <= 80
