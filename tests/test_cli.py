"""The command line: what reaches `app`, and what is said where when something is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import acp_proxy
from acp_proxy import cli
from acp_proxy.config import Settings, changed
from acp_proxy.errors import AcpProxyError, AgentStartError, ConfigError


class FakeApp(ModuleType):
    """Stands in for the wiring: keeps what it was called with and returns or raises what it was told."""

    def __init__(self) -> None:
        super().__init__("acp_proxy.app")
        self.calls: list[tuple[Any, ...]] = []
        self.outcome: int | BaseException = 0

    def _end(self, *call: Any) -> int:
        self.calls.append(call)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def wrap(self, settings: Settings, argv: list[str]) -> int:
        return self._end("wrap", settings, argv)

    def demo(self, settings: Settings) -> int:
        return self._end("demo", settings)

    def list_plugins(self, settings: Settings) -> int:
        return self._end("plugins", settings)

    def list_profiles(self, settings: Settings, name: str | None) -> int:
        return self._end("profiles", settings, name)

    def check(self, settings: Settings, files: list[str], **how: Any) -> int:
        return self._end("check", settings, files, how)

    def check_config(self, file: Path) -> int:
        return self._end("check_config", file)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> FakeApp:
    fake = FakeApp()
    monkeypatch.setitem(sys.modules, "acp_proxy.app", fake)
    monkeypatch.setattr(acp_proxy, "app", fake, raising=False)
    return fake


def test_wrap_hands_over_settings_and_the_agents_command(app: FakeApp) -> None:
    app.outcome = 3
    argv = ["wrap", "--bridge", "off", "--record", "r", "--findings", "f", "--log-level", "info"]
    argv += [
        "--log-format",
        "json",
        "--lifecycle",
        "observe",
        "--set",
        "bridge.settle=2",
        "--",
        "agent",
        "-x",
    ]
    assert cli.main(argv) == 3
    [(name, settings, command)] = app.calls
    assert (name, command) == ("wrap", ["agent", "-x"])
    assert changed(settings) == {
        "bridge.mode": "off",
        "bridge.settle": 2.0,
        "record.file": "r",
        "findings.file": "f",
        "log.level": "info",
        "log.format": "json",
    }


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["agent", "--bridge", "off"], ["agent", "--bridge", "off"]),
        (["agent", "--help"], ["agent", "--help"]),
        (["agent", "-h", "--version"], ["agent", "-h", "--version"]),
        (["agent", "--", "--flag"], ["agent", "--", "--flag"]),
        (["--", "agent", "--", "--flag"], ["agent", "--", "--flag"]),
        (["--", "-agent"], ["-agent"]),
        (["--", "agent", "", "a b", "\udcff", "-"], ["agent", "", "a b", "\udcff", "-"]),
    ],
)
def test_nothing_after_the_agent_is_ours(app: FakeApp, argv: list[str], command: list[str]) -> None:
    assert cli.main(["wrap", *argv]) == 0
    [(_, settings, seen)] = app.calls
    assert seen == command
    assert settings == Settings()


def test_demo_and_plugins_get_settings(app: FakeApp) -> None:
    assert cli.main(["demo", "--set", "unstable=true"]) == 0
    assert cli.main(["plugins", "--log-level", "error"]) == 0
    assert [(call[0], changed(call[1])) for call in app.calls] == [
        ("demo", {"unstable": True}),
        ("plugins", {"log.level": "error"}),
    ]


def test_profiles_gets_settings_and_perhaps_a_name(app: FakeApp) -> None:
    assert cli.main(["profiles"]) == 0
    assert cli.main(["profiles", "--set", "profiles.dir=d", "mine"]) == 0
    assert [(call[0], changed(call[1]), call[2]) for call in app.calls] == [
        ("profiles", {}, None),
        ("profiles", {"profiles.dir": "d"}, "mine"),
    ]


def test_profiles_lists_ours_and_the_user_s_and_prints_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '# mine\nagent = "bot\\u001b[2J"\nversions = ">=1"\n'
    (tmp_path / "mine.toml").write_text(text)
    folder = ["--set", f"profiles.dir={tmp_path}"]
    assert cli.main(["profiles", *folder]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["claude-agent-acp", "codex-acp", "mine"]
    assert rows[0].split()[1:3] == ["@agentclientprotocol/claude-agent-acp", ">=0.40,<1"]
    assert rows[2].split()[2:] == [">=1", str(tmp_path / "mine.toml")]
    assert "\x1b" not in rows[2]
    assert cli.main(["profiles", *folder, "mine"]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["profiles", "other"], 'no profile "other"; there are claude-agent-acp, codex-acp'),
        (
            ["wrap", "--set", "agent.profile=other", "--", "true"],
            'agent.profile: no profile "other"; there are auto, none, claude-agent-acp, codex-acp',
        ),
    ],
)
def test_a_profile_that_is_not_there_is_a_configuration_error(
    argv: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert cli.main(argv) == 2
    assert capsys.readouterr().err == f"Error: {said}\n"


def test_a_broken_profile_stops_the_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "acp-proxy" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('agent = "bot"\ncolour = 1')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert cli.main(["wrap", "--", "true"]) == 2
    assert capsys.readouterr().err.startswith(f"Error: {folder / 'mine.toml'}: colour: unknown key; ")


def test_check_gets_settings_files_and_how_to_tell(app: FakeApp) -> None:
    app.outcome = 1
    assert cli.main(["check", "a", "-", "b"]) == 1
    argv = ["--json", "--states", "--fail-on", "info", "--set", "lifecycle.rules.V01=off", "--", "-c"]
    assert cli.main(["check", *argv]) == 1
    plain = {"as_json": False, "states": False, "fail_on": "warning"}
    full = {"as_json": True, "states": True, "fail_on": "info"}
    assert [(changed(call[1]), call[2], call[3]) for call in app.calls] == [
        ({}, ["a", "-", "b"], plain),
        ({"lifecycle.rules.V01": "off"}, ["-c"], full),
    ]


def test_config_check_gets_the_file(app: FakeApp) -> None:
    app.outcome = 2
    assert cli.main(["config", "check", "a.toml"]) == 2
    assert app.calls == [("check_config", Path("a.toml"))]


def test_config_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "schema"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out)["properties"]["bridge"]["properties"]["mode"]["enum"] == ["auto", "off"]


@pytest.mark.parametrize(
    "argv",
    [
        ["check"],
        ["check", "--fail-on", "all", "f"],
        ["config", "check"],
        ["config", "check", "a", "b"],
        ["config", "schema", "extra"],
        ["wrap"],
        ["wrap", "--"],
        ["wrap", "--bridge", "off"],
        ["wrap", "--bridge", "on", "--", "agent"],
        ["wrap", "--lifecycle", "none", "--", "agent"],
        ["wrap", "--nonsense", "--", "agent"],
        ["wrap", "--record"],
        ["demo", "extra"],
        ["plugins", "extra"],
        ["serve"],
        ["--nonsense"],
    ],
)
def test_usage_errors_end_with_2_and_spare_stdout(
    app: FakeApp, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Error: " in err
    assert app.calls == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "bridge.mod=off"], "--set: unknown key bridge.mod; did you mean bridge.mode?"),
        (["--config", "no-such.toml"], "no-such.toml: cannot be read: No such file or directory"),
        (
            ["--set", "lifecycle.rules.V99=off"],
            "--set: lifecycle.rules: unknown rule V99; rules are V01 to V47",
        ),
    ],
)
def test_configuration_errors_end_with_2_and_one_line(
    app: FakeApp, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["wrap", *options, "--", "agent"]) == 2
    assert capsys.readouterr() == ("", f"Error: {message}\n")
    assert app.calls == []


@pytest.mark.parametrize(
    ("outcome", "status", "message"),
    [
        (ConfigError("record.file: no"), 2, "Error: record.file: no\n"),
        (AgentStartError("agent: not found", 127), 127, "Error: agent: not found\n"),
        (AcpProxyError("broken"), 1, "Error: broken\n"),
        (AcpProxyError("bro\x1b]52;c;eA==\x07ken\n2"), 1, "Error: broken 2\n"),
        (ValueError("odd"), 1, "Error: ValueError: odd (a defect; --log-level debug shows where)\n"),
        (KeyboardInterrupt(), 130, "\n"),
    ],
)
def test_whatever_app_raises_becomes_a_status_and_a_line(
    app: FakeApp, outcome: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app.outcome = outcome
    assert cli.main(["wrap", "--", "agent"]) == status
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("options", [["--log-level", "debug"], ["--set", "log.level=debug"]])
def test_a_traceback_is_for_those_who_debug(
    app: FakeApp, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    app.outcome = ValueError("odd")
    assert cli.main(["wrap", *options, "--", "agent"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Traceback ")
    assert err.splitlines()[-1].startswith("Error: ValueError: odd")


def test_a_file_name_with_a_null_character_is_a_mistake_of_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[findings]\nfile = "a\\u0000b"\n')
    assert cli.main(["wrap", "--config", str(file), "--", "no-such-agent"]) == 2
    assert "findings.file" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    "command", [[], ["wrap"], ["demo"], ["plugins"], ["profiles"], ["check"], ["config"], ["config", "check"]]
)
def test_help_is_there_for_every_command(
    command: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, flag]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Usage: acp-proxy")
    assert command or "..." not in out.split("Commands:")[1], "a summary is cut off"


def test_the_help_of_wrap_tells_exit_statuses_and_where_the_keys_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli.main(["wrap", "-h"])
    told = " ".join(capsys.readouterr().out.split())
    assert "`acp-proxy config schema` lists the keys" in told
    assert all(word in told for word in ("Exit status", "128+N", "126 and 127"))


def test_only_what_exists_is_listed() -> None:
    assert sorted(cli.cli.commands) == [
        "check",
        "component",
        "config",
        "demo",
        "plugins",
        "profiles",
        "rules",
        "wrap",
    ]


def test_the_module_is_the_same_program() -> None:
    out = subprocess.run(
        [sys.executable, "-m", "acp_proxy", "--version"], capture_output=True, text=True, check=True
    )
    assert out.stdout == f"acp-proxy, version {acp_proxy.__version__}\n"


def test_importing_the_command_line_imports_little_else() -> None:
    code = (
        "import sys; import acp_proxy.cli;"
        "heavy = {'msgspec', 'trio', 'tomllib', 'logging', 'asyncio', 'rich', 'http', 'ujson', 'pathlib'};"
        "print(sorted(name for name in sys.modules if name.startswith('acp_proxy') or name in heavy))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "['acp_proxy', 'acp_proxy.cli', 'acp_proxy.errors']\n"
