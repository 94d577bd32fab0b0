"""Which policy stages stand in a chain, and that none is even imported unless it is wanted."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import pytest

from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog
from acp_proxy.inference.foreground import Rules
from acp_proxy.policy.permission_rules import read_rules
from acp_proxy.policy.stages import Stages
from acp_proxy.relay.options import RelayOptions

LOADED = """
import sys
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay
Relay(RelayOptions(), token=str)
wanted = "breaker busy_prompts cancel_patience client_patience idle_cancel permissions revival stalls"
print([name for name in wanted.split() if f"acp_proxy.policy.{name}" in sys.modules])
"""


def stages(**options: Any) -> Stages:
    numbers = itertools.count(1)
    log = FindingLog()
    return Stages(
        RelayOptions(**options), Engine(Rules(), log), log, lambda: f"t{next(numbers)}", lambda: 1.0
    )


def names(found: list[Any]) -> list[str]:
    return [type(stage).__name__ for stage in found]


def test_by_default_there_is_nothing() -> None:
    found = stages()
    assert (found.at_client, found.before_engine, found.at_agent) == ([], [], [])
    assert found.same_version is None
    assert found.revival is None


def test_by_default_nothing_is_imported() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], stdout=subprocess.PIPE, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize(
    ("options", "at_client", "before_engine", "at_agent"),
    [
        ({"permission_timeout": 1.0}, ["ClientPatience"], [], []),
        ({"permission_timeout": 1.0, "extension_timeout": 1.0}, ["ClientPatience"], [], []),
        ({"idle_cancel": "swallow"}, [], ["IdleCancel"], []),
        ({"tool_timeout": 1.0}, [], ["Stalls"], []),
        ({"cancel_timeout": 1.0}, [], [], ["CancelPatience"]),
        ({"restart": "idle"}, [], [], ["Revival"]),
        ({"stall_action": ("restart",)}, [], [], ["Revival"]),
        ({"stall_action": ("cancel",)}, [], [], []),
        ({"permission_rules": read_rules([{"decision": "ask"}])}, [], [], ["Permissions"]),
    ],
)
def test_each_key_brings_its_stage(
    options: dict[str, Any], at_client: list[str], before_engine: list[str], at_agent: list[str]
) -> None:
    found = stages(**options)
    assert names(found.at_client) == at_client
    assert names(found.before_engine) == before_engine
    assert names(found.at_agent) == at_agent


def test_the_process_that_may_be_replaced_is_next_to_who_replaces_it() -> None:
    rules = read_rules([{"decision": "ask"}])
    found = stages(restart="always", cancel_timeout=1.0, permission_rules=rules)
    assert names(found.at_agent) == ["Permissions", "CancelPatience", "Revival"]
    assert found.at_agent[-1] is found.revival
