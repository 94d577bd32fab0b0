"""Which file is executed, in which environment, and what an end is called."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from acp_proxy.errors import AgentStartError
from acp_proxy.transport.agent_command import (
    AgentCommand,
    ExitStatus,
    agent_environment,
    find_executable,
    start_error,
)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Folders `one` and `two`: a file that may not be executed in both, a program in `two` only."""
    for name in ("one", "two"):
        (tmp_path / name / "folder").mkdir(parents=True)
        (tmp_path / name / "data").write_text("")
    for name in ("one/tool", "two/tool", "two/only"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "two/tool").chmod(0o755)
    (tmp_path / "two/only").chmod(0o755)
    return tmp_path


def path_of(folders: Path, *names: str) -> dict[str, str]:
    return {"PATH": os.pathsep.join(str(folders / name) if name else "" for name in names)}


@pytest.mark.parametrize("name", ["tool", "only"])
def test_the_first_executable_file_on_the_agents_path_wins(folders: Path, name: str) -> None:
    found = find_executable(AgentCommand([name]), path_of(folders, "none", "one", "two"))
    assert found == str(folders / "two" / name)


def test_a_name_with_a_slash_is_not_looked_up(folders: Path) -> None:
    assert find_executable(AgentCommand([str(folders / "two/tool")]), {}) == str(folders / "two/tool")
    with pytest.raises(AgentStartError, match="no such file"):
        find_executable(AgentCommand(["./only"]), path_of(folders, "two"))


def test_relative_names_are_relative_to_the_agents_folder(folders: Path) -> None:
    command = AgentCommand(["./tool"], cwd=str(folders / "two"))
    assert find_executable(command, {}) == "./tool"
    command = AgentCommand(["tool"], cwd=str(folders / "two"))
    assert find_executable(command, path_of(folders, "")) == "./tool"


@pytest.mark.parametrize(
    ("name", "exit_status", "cause"),
    [
        ("absent", 127, "'absent': not found on PATH"),
        ("folder", 127, "'folder': not found on PATH"),
        ("data", 126, "not executable"),
        ("one/absent", 127, "no such file"),
        ("one/data", 126, "not executable"),
        ("one/folder", 126, "it is a directory"),
        ("", 127, "the command is empty"),
    ],
)
def test_what_cannot_be_executed_is_refused_with_the_status_of_a_shell(
    folders: Path, name: str, exit_status: int, cause: str
) -> None:
    command = AgentCommand([name, "--key=secret"], cwd=str(folders))
    with pytest.raises(AgentStartError, match=cause) as caught:
        find_executable(command, path_of(folders, "one", "two"))
    assert caught.value.exit_status == exit_status
    assert "secret" not in caught.value.reason


def test_an_empty_command_line_is_refused() -> None:
    with pytest.raises(AgentStartError, match="empty"):
        find_executable(AgentCommand([]), {})


def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentStartError, match=f"no such working directory: {tmp_path}/gone") as caught:
        find_executable(AgentCommand(["/bin/sh"], cwd=f"{tmp_path}/gone"), {})
    assert caught.value.exit_status == 126


def test_the_environment_is_inherited_without_our_settings() -> None:
    command = AgentCommand(["x"], env={"ADDED": "1", "KEPT": "changed", "ACP_PROXY_ADDED": "1"})
    inherited = {"KEPT": "1", "OTHER": "1", "ACP_PROXY_TOKEN": "secret", "ACP_PROXYING": "1"}
    assert agent_environment(command, inherited) == {
        "KEPT": "changed",
        "OTHER": "1",
        "ACP_PROXYING": "1",
        "ADDED": "1",
    }
    assert inherited["KEPT"] == "1"


def test_a_commands_repr_keeps_arguments_and_variables_to_itself() -> None:
    command = AgentCommand(["tool", "--key=secret"], env={"KEY": "secret"})
    assert repr(command) == "<AgentCommand 'tool' with 1 arguments>"


@pytest.mark.parametrize(
    ("status", "number", "text"),
    [
        (ExitStatus(code=0), 0, "exit status 0"),
        (ExitStatus(code=3), 3, "exit status 3"),
        (ExitStatus(signal=signal.SIGKILL), 137, "killed by SIGKILL"),
        (ExitStatus(signal=40), 168, "killed by signal 40"),
    ],
)
def test_an_exit_status_as_number_and_in_words(status: ExitStatus, number: int, text: str) -> None:
    assert status.status == number
    assert str(status) == text
    assert repr(status) == f"<ExitStatus {text}>"


def test_exit_statuses_compare_by_value() -> None:
    assert ExitStatus.from_returncode(-9) == ExitStatus(signal=9)
    assert ExitStatus.from_returncode(9) == ExitStatus(code=9)
    assert ExitStatus(code=9) != ExitStatus(signal=9)
    assert len({ExitStatus(code=1), ExitStatus(code=1), ExitStatus(signal=1)}) == 2
    assert ExitStatus(code=1) != 1


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(errno.ENOEXEC, ""), "exec format error"),
        (OSError(errno.ENOENT, ""), "interpreter"),
        (OSError(errno.EMFILE, ""), "Too many open files"),
        (ValueError("embedded null byte"), "embedded null byte"),
        (OSError("its supervisor did not start"), "its supervisor did not start"),
    ],
)
def test_a_start_that_failed_names_command_and_cause(error: OSError | ValueError, cause: str) -> None:
    made = start_error(AgentCommand(["tool", "secret"]), error)
    assert made.exit_status == 126
    assert made.reason.startswith("cannot start agent 'tool': ")
    assert cause in made.reason
    assert "secret" not in made.reason
