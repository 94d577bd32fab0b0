"""Real agents' traffic through the bridge: what a v2 client is told is what the rules ask for.

`traces/expected.toml` was written by reading each trace, so a difference is a defect of the proxy or of the reading.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from acp_proxy.acp.version import Role
from schema_cache import package_dir
from traces_player import TRACES, entries, play, processes, sessions

EXPECTED = tomllib.loads((TRACES / "expected.toml").read_text(encoding="utf-8"))
AGENTS = {"claude", "codex2", "copilot", "fast-agent", "kimi", "opencode"}
FOREIGN_PATHS = re.compile(r"/(?:work|root|opt|usr|var|etc)/|/home/(?!dev\b)\w|[\w-]+\.(?:npmjs|pypi)\.org")


@pytest.mark.parametrize("name", EXPECTED)
def test_client_of_a_recorded_agent_is_told_what_the_rules_ask_for(name: str) -> None:
    package_dir()
    players, told = play(name)
    wanted = {place: text for place, text in EXPECTED[name].items() if place != "why"}
    assert told == wanted or (not told and not any(wanted.values())), EXPECTED[name]["why"]
    assert [wrong for player in players for wrong in player.wrong] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_text_of_a_recorded_agent_arrives_whole(name: str) -> None:
    trace = entries(name)
    players, _ = play(name)
    for player, part in zip(players, processes(trace), strict=True):
        if any(entry.body.get("method") in ("session/close", "session/resume") for entry in part):
            continue  # what comes after a close is dropped; a replay nobody asked for may be
        for session in sessions(part):
            assert player.spoken(Role.CLIENT, session) == player.spoken(Role.AGENT, session)


def test_every_trace_has_its_expectation_and_every_agent_its_traces() -> None:
    recorded = {path.stem for path in Path(TRACES).glob("*.jsonl")}
    assert recorded - {name for name in recorded if name.startswith("codex2v2-")} == set(EXPECTED)
    assert {name for name in AGENTS if any(each.startswith(f"{name}-") for each in EXPECTED)} == AGENTS


def test_traces_hold_nothing_of_the_machine_they_were_made_on() -> None:
    found = {
        path.name: FOREIGN_PATHS.findall(path.read_text(encoding="utf-8"))
        for path in Path(TRACES).glob("*.jsonl")
    }
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_traces_are_in_no_distribution() -> None:
    targets = tomllib.loads((TRACES.parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    assert targets["wheel"]["packages"] == ["proxy/acp_proxy"]
    assert [each for each in targets["sdist"]["include"] if "tests".startswith(each.strip("/"))] == []
