"""The house rules about imports, enforced: the rooms' contracts, and what a start must not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / ".importlinter"
PACKAGE = ROOT / "proxy" / "acp_proxy"

# What costs a start tens of milliseconds, and belongs to commands that draw or serve.
HEAVY = ("asyncio", "http", "prometheus_client", "rich", "trio.testing", "unittest", "urllib.request")


def test_the_contracts_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(CONTRACTS), no_cache=True)
    assert status == 0, capsys.readouterr().out


def loaded_by(statement: str) -> set[str]:
    """The modules a fresh interpreter holds after a statement."""
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=50
    )
    return set(done.stdout.split())


def test_a_start_loads_nothing_heavy() -> None:
    loaded = loaded_by("import acp_proxy.app")
    assert "acp_proxy.relay.relay" in loaded
    assert sorted(loaded & set(HEAVY)) == []


def test_a_start_loads_no_logging_beyond_what_trio_needs_itself() -> None:
    """trio imports `logging`; nothing of ours may, so that it goes with a trio that does not."""
    ours = loaded_by("import trio, msgspec, ujson, click\nimport acp_proxy.app")
    theirs = loaded_by("import trio, msgspec, ujson, click")
    assert not {name for name in ours - theirs if name.split(".")[0] == "logging"}
    for path in PACKAGE.rglob("*.py"):
        assert "import logging" not in path.read_text(encoding="utf-8"), path


def test_a_start_loads_no_room_it_does_not_need() -> None:
    loaded = loaded_by("import acp_proxy.app")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("acp_proxy.")}
    assert not rooms & {"cli", "conductor", "demo", "plugin_host", "testing", "trace"}


def test_help_needs_neither_settings_nor_the_loop() -> None:
    loaded = loaded_by("import acp_proxy.cli")
    assert not loaded & {"trio", "msgspec", "ujson", "acp_proxy.app", "acp_proxy.config"}


def test_the_package_is_found_once() -> None:
    """`import proxy.acp_proxy` from the root of the repository would make a second copy."""
    import acp_proxy

    assert Path(acp_proxy.__file__ or "").parent == PACKAGE
    assert not (ROOT / "proxy" / "__init__.py").exists()
