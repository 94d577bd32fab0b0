"""A client that starts the proxy in a terminal to log in gets the agent itself (bridge §7.8)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from acp_proxy import terminal_login

ASKS = """
import os, sys
print("tty", sys.stdin.isatty(), sys.argv[1:], "ACP_PROXY_TERMINAL_LOGIN" in os.environ)
sys.exit(7)
"""


@pytest.mark.parametrize(
    ("mark", "at_terminal", "wanted"),
    [(None, False, False), (None, True, True), ("1", False, True), ("0", True, False), ("", True, False)],
)
def test_mark_decides_before_the_terminal_does(mark: str | None, at_terminal: bool, wanted: bool) -> None:
    environment = {} if mark is None else {terminal_login.MARK: mark}
    assert terminal_login.wanted(environment, at_terminal=at_terminal) is wanted


@pytest.mark.parametrize("mark", [None, "1"])
def test_login_runs_the_agent_in_the_terminal(mark: str | None) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, **({} if mark is None else {terminal_login.MARK: mark})}
    command = [sys.executable, "-m", "acp_proxy", "wrap", "--", sys.executable, "-c", ASKS, "--login"]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    said = b""
    try:
        while chunk := os.read(leader, 4096):
            said += chunk
    except OSError:
        pass  # Linux reports the end of a terminal as an error
    finally:
        os.close(leader)
    assert process.wait(10) == 7
    assert said.split() == b"tty True ['--login'] False".split()


def test_login_of_a_missing_agent_is_an_error_like_any_other() -> None:
    environment = {**os.environ, terminal_login.MARK: "1"}
    command = [sys.executable, "-m", "acp_proxy", "wrap", "--", "/nonexistent/agent"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=20, check=False)
    assert done.returncode == 127
    assert b"/nonexistent/agent" in done.stderr
