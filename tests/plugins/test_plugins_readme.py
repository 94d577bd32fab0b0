"""The tutorial for plugins is run as it stands: its modules, its metadata, its settings."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from acp_proxy import config, plugin
from acp_proxy.inference.findings import Finding
from acp_proxy.plugin import ConfigError, Filter, Plugin
from acp_proxy.plugin_host import host
from acp_proxy.relay.commands import Emit
from plugin_installs import GROUP, REPOSITORY, install, python_path
from relay_driver import Driver, both_v1, bridged, message, tool

TEXT = (REPOSITORY / "plugins" / "README.md").read_text()
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(BLOCK.findall(TEXT))
PATIENCE = 20.0


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.Plugins:
    """The tutorial's plugins installed, and its settings read."""
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    modules = {name.removesuffix(".py"): code for name, code in FILES.items() if name.endswith(".py")}
    install(tmp_path / "site", project["name"], project["entry-points"][GROUP], modules, project["version"])
    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path / "site"))
    file = tmp_path / "acp-proxy.toml"
    file.write_text(FILES["acp-proxy.toml"])
    return config.load(file, [], {}).plugins


def begin(settings: config.Plugins) -> tuple[host.PluginHost, list[Finding]]:
    found: list[Finding] = []
    return host.start(settings.enabled, settings.tables, found.append), found


def test_every_block_was_found() -> None:
    assert set(FILES) == {"nothing.py", "turns.py", "blot.py", "pyproject.toml", "acp-proxy.toml"}
    assert TEXT.count("```") == 2 * len(FILES)
    assert TEXT.index("# nothing.py") < TEXT.index("# turns.py") < TEXT.index("# blot.py")


@pytest.mark.parametrize("opening", [both_v1, bridged])
def test_the_examples_work(
    opening: type[Driver], settings: config.Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    plugins, found = begin(settings)
    assert plugins.observing
    driver = opening(filters=tuple(plugins.filters()), reporting=True)
    driver.prompt(7)
    driver.advance(1.5)
    driver.agent_sends(message("say swordfish twice: swordfish"))
    driver.agent_sends(tool("swordfish", "pending", title="swordfish"))
    chunk, call = (body["params"]["update"] for body in driver.outputs.client[-2:])
    assert chunk["content"]["text"] == "say █████████ twice: █████████"
    assert (call["title"], call["toolCallId"]) == ("█████████", "swordfish")
    driver.ends()
    for command in driver.outputs.commands:
        if isinstance(command, Emit):
            plugins.tell(command.report)
    plugins.close(PATIENCE)
    assert found == plugins.take() == []
    assert capsys.readouterr().err == "s1: end_turn after 1.5 s\n"


def test_what_the_examples_do_not_concern_passes_as_its_own_bytes(settings: config.Plugins) -> None:
    plugins, _ = begin(settings)
    driver = both_v1(filters=tuple(plugins.filters()))
    raw = b'{"jsonrpc":"2.0", "method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"_x"}}}'
    assert driver.lines(plugin.Role.AGENT, raw).raw(plugin.Role.CLIENT) == [raw]


@pytest.mark.usefixtures("settings")
def test_the_example_checks_its_settings() -> None:
    with pytest.raises(ConfigError, match=r"^plugins\.blot: words: expected a list of words$"):
        host.start(["blot"], {}, lambda finding: None)


@pytest.mark.usefixtures("settings")
def test_the_command_shows_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "acp_proxy", "plugins", "--config", str(tmp_path / "acp-proxy.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: re.split(r"  +", line) for line in done.stdout.splitlines()}
    assert rows["nothing"] == [
        "nothing",
        "1.0",
        "acp-proxy-nothing",
        "enabled: yes",
        "Does nothing, very reliably.",
    ]
    assert [rows[name][4] for name in ("turns", "blot")] == [
        "Says on stderr how long each turn took.",
        "Blots out words in what the agent says.",
    ]


def test_every_method_report_and_attribute_is_explained() -> None:
    names = {name for kind in (Plugin, Filter) for name in vars(kind) if not name.startswith("_")} - {
        "api",
        "name",
    }
    for report in (plugin.FrameReport, plugin.StateReport, plugin.Finding):
        names |= {report.__name__, *report.__slots__}
    names |= {"ToAgent", "ToClient", "changed", "request", "notification", "result", "error", "ConfigError"}
    assert [name for name in sorted(names) if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", TEXT)] == []
