"""The command line: what reaches `app`, and what is said where when something is wrong."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.parametrize(
    "argv",
    [
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
            ["--lifecycle", "strict"],
            '--lifecycle: lifecycle.mode: "strict" is not available: this version only observes ("observe")',
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


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["wrap"], ["demo"], ["plugins"]])
def test_help_is_there_for_every_command(
    command: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, flag]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Usage: acp-proxy")


def test_only_what_exists_is_listed() -> None:
    assert sorted(cli.cli.commands) == ["demo", "plugins", "wrap"]


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
