"""Profiles on disk: ours, the user's, and the one that is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.errors import ConfigError
from acp_proxy.policy.profiles import Content
from acp_proxy.store.profile_files import SHIPPED, FileChoice, read_all, text_of, user_folder

CLAUDE = "@agentclientprotocol/claude-agent-acp"
CODEX = "@agentclientprotocol/codex-acp"


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def found(choice: FileChoice, agent: str, version: str = "1") -> Content:
    content = choice.content(agent, version)
    assert content is not None
    return content


def test_ours_can_be_read_and_are_found_by_what_the_agents_say() -> None:
    known = read_all(None)
    assert set(known) == {"claude-agent-acp", "codex-acp"}
    assert all(not one.is_user and one.source == str(SHIPPED / f"{name}.toml") for name, one in known.items())
    auto = FileChoice("auto", None, frozenset())
    assert found(auto, CLAUDE, "0.49.0").settings == {"inference.end_markers": ("_meta._claude/origin",)}
    assert [hint.state for hint in found(auto, CODEX, "2.6.0").hints] == ["running", "idle"]
    assert auto.content(CLAUDE, "1.0.0") is None
    assert auto.content(CODEX, "") is None
    assert auto.content("somebody", "1") is None
    assert auto.content("", "") is None


def test_what_was_named_holds_for_any_agent_and_in_full() -> None:
    named = FileChoice("claude-agent-acp", None, frozenset())
    assert found(named, "fork", "9").settings["inference.agent_initiated"] == "infer"
    codex = found(FileChoice("codex-acp", None, frozenset()), CODEX, "2.6.0")
    assert [hint.state for hint in codex.hints] == ["running", "idle", "error"]


def test_what_was_configured_beats_both() -> None:
    explicit = frozenset({"inference.agent_initiated", "inference.end_markers"})
    assert found(FileChoice("claude-agent-acp", None, explicit), CLAUDE).settings == {}
    assert found(FileChoice("auto", None, explicit), CLAUDE, "0.49.0").settings == {}


def test_a_user_s_file_stands_before_ours_and_in_the_place_of_its_name(tmp_path: Path) -> None:
    write(tmp_path, "mine", f'agent = "{CLAUDE}"\nbridge.settle = 1')
    auto = FileChoice("auto", tmp_path, frozenset())
    assert found(auto, CLAUDE, "0.49.0").settings == {"bridge.settle": 1.0}
    write(tmp_path, "codex-acp", 'agent = "other"\nbridge.settle = 2')
    auto = FileChoice("auto", tmp_path, frozenset())
    assert auto.content(CODEX, "2.6.0") is None
    assert found(FileChoice("codex-acp", tmp_path, frozenset()), "x").settings == {"bridge.settle": 2.0}
    assert read_all(tmp_path)["codex-acp"].is_user


def test_other_files_in_the_folder_are_nobody_s_business(tmp_path: Path) -> None:
    write(tmp_path, "a", 'agent = "a"')
    (tmp_path / "notes.txt").write_text("= broken")
    (tmp_path / "a.toml~").write_text("= broken")
    assert set(read_all(tmp_path)) == {"a", "claude-agent-acp", "codex-acp"}


def test_a_name_that_no_profile_has_is_refused_with_those_there_are(tmp_path: Path) -> None:
    write(tmp_path, "mine", 'agent = "a"')
    with pytest.raises(ConfigError) as caught:
        FileChoice("claude", tmp_path, frozenset())
    assert str(caught.value) == (
        'agent.profile: no profile "claude"; there are auto, none, claude-agent-acp, codex-acp, mine'
    )


@pytest.mark.parametrize("wanted", ["auto", "codex-acp"])
def test_a_broken_file_is_told_at_once(tmp_path: Path, wanted: str) -> None:
    path = write(tmp_path, "mine", 'agent = "a"\nbridge.settle = "long"')
    with pytest.raises(ConfigError) as caught:
        FileChoice(wanted, tmp_path, frozenset())
    assert str(caught.value) == f"{path}: bridge.settle: expected a number of seconds, 0 or more"


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^profiles\.dir: .*none: No such file or directory$"):
        FileChoice("auto", tmp_path / "none", frozenset())
    (tmp_path / "b.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"b\.toml: not UTF-8 text$"):
        read_all(tmp_path)
    (tmp_path / "b.toml").unlink()
    (tmp_path / "c.toml").mkdir()
    with pytest.raises(ConfigError, match=r"c\.toml: cannot be read: Is a directory$"):
        read_all(tmp_path)


@pytest.mark.parametrize("name", ["auto", "none"])
def test_no_profile_has_a_name_that_means_something_else(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, 'agent = "a"')
    with pytest.raises(ConfigError) as caught:
        read_all(tmp_path)
    assert str(caught.value) == f'{path}: "{name}" cannot be the name of a profile'


def test_the_folder_is_the_configured_one_or_one_that_exists(tmp_path: Path) -> None:
    assert user_folder("some/where", {}) == Path("some/where")
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert user_folder(None, environ) is None
    folder = tmp_path / "acp-proxy" / "profiles"
    folder.mkdir(parents=True)
    assert user_folder(None, environ) == folder


def test_the_folder_is_below_home_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".config" / "acp-proxy" / "profiles"
    assert user_folder(None, {"XDG_CONFIG_HOME": ""}) is None
    folder.mkdir(parents=True)
    assert user_folder(None, {}) == folder


def test_a_profile_is_shown_as_it_is_written(tmp_path: Path) -> None:
    path = write(tmp_path, "mine", '# why\nagent = "a"\n')
    assert text_of(read_all(tmp_path)["mine"]) == path.read_text()


def test_every_shipped_profile_says_what_shows_it() -> None:
    for path in SHIPPED.glob("*.toml"):
        text = path.read_text()
        assert "Seen: version" in text
        assert "Capture" in text


def test_an_agent_without_a_profile_costs_no_parser() -> None:
    code = (
        "import sys; from acp_proxy.store.profile_files import FileChoice;"
        "assert FileChoice('auto', None, frozenset()).content('somebody', '1') is None;"
        "print(sorted({'tomllib', 'acp_proxy.policy.profiles'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"
