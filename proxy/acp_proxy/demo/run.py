"""Runs the bundled v2 client and v1 agent with a real `acp-proxy wrap` between them and checks the states."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from acp_proxy.demo.client import DemoClient
from acp_proxy.demo.link import ChildLink, DemoError
from acp_proxy.demo.scenarios import SCENARIOS
from acp_proxy.demo.timeline import Timeline

PATIENCE_SECONDS = 10.0
# Above the default grace periods of `wrap` together (agent.eof_grace + agent.term_grace), so that its own
# ladder has its chance first.
CLOSE_SECONDS = 10.0
GIVE_UP_SECONDS = 1.0


def default_command() -> list[str]:
    """The command line of the real thing: this interpreter, `wrap`, and the bundled agent behind it."""
    python = [sys.executable]
    if Path(__file__).resolve().parents[2] != Path.cwd():
        # -m would put the current directory first on the path, where a stray json.py of the user's breaks
        # both processes. Only when the package itself is found that way, in a source tree, is it needed.
        python.append("-P")
    return [*python, "-m", "acp_proxy", "wrap", "--", *python, "-m", "acp_proxy.demo.agent"]


def run_demo(out: TextIO, *, wrap_command: Sequence[str] | None = None) -> int:
    """Play all scenarios and print their timeline to `out`; 0 when every expected state was told, else 1.

    `wrap_command` replaces the whole command, the one whose stdin and stdout speak protocol v2. Source:
    lifecycle §2.6.
    """
    timeline = Timeline(out)
    timeline.begin()
    failures: list[str] = []
    told = 0
    name = "start"
    link: ChildLink | None = None
    try:
        link = ChildLink(wrap_command or default_command())
        client = DemoClient(link, timeline.add, patience=PATIENCE_SECONDS)
        client.open(os.getcwd())
        for scenario in SCENARIOS:
            name = scenario.prompt
            timeline.block(name, scenario.about)
            states = client.play(scenario.prompt, cancel=scenario.cancels)
            told += len(states)
            if tuple(states) != scenario.states:
                failures.append(f"{name}: expected {', '.join(scenario.states)}; told {', '.join(states)}")
    except DemoError as failure:
        failures.append(f"{name}: {failure}")
    finally:
        status = link.close(GIVE_UP_SECONDS if failures else CLOSE_SECONDS) if link else None
    if not failures and status != 0:
        failures.append(f"end: acp-proxy wrap should end with status 0, it was {_status(status)}")
    timeline.end(failures, told)
    if failures and link is not None and link.last_words():
        out.write(f"It said last:\n{link.last_words()}\n")
    return 1 if failures else 0


def _status(status: int | None) -> str:
    return "killed, as it did not end" if status is None else str(status)
