"""How `bridge.serve` is wired: only where it was asked for, and only where it can be done."""

from __future__ import annotations

import subprocess
import sys

import pytest

from acp_proxy import app
from acp_proxy.config import Bridge, Settings
from acp_proxy.errors import ConfigError
from acp_proxy.host import executor


def test_without_the_setting_nothing_of_the_host_is_imported() -> None:
    code = """
import sys
from acp_proxy import app
from acp_proxy.config import Settings
assert app._host(Settings()) is None
print([name for name in sys.modules if name.startswith("acp_proxy.host")])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_with_it_the_executor_is_used() -> None:
    assert app._host(Settings(bridge=Bridge(serve=("fs",)))) is executor.HostExecutor


@pytest.mark.parametrize("name", ["fs", "terminal"])
def test_what_the_system_cannot_do_is_refused_at_the_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(executor.AVAILABLE, name, False)
    with pytest.raises(ConfigError, match=f'bridge.serve: "{name}" is not available on this system'):
        app._host(Settings(bridge=Bridge(serve=("fs", "terminal"))))
