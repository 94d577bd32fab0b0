"""What the benchmarks know about processes: their environment, their descendants, their memory, their end.

From `/proc` where there is one, else (macOS) from `ps`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

PROC = Path("/proc")
# Debug modes, tracers and coverage of whoever runs the benchmarks would be measured along with the relay.
INHERITED_PYTHON = {"PYTHONPATH", "PYTHONHOME"}
TRACERS = ("COV_CORE_", "COVERAGE_")


def environment() -> dict[str, str]:
    """The environment of every process measured: ours without interpreter switches and tracers."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(TRACERS) and (not name.startswith("PYTHON") or name in INHERITED_PYTHON)
    }


def resident_bytes(pid: int) -> int:
    """Resident memory (VmRSS) of one process, in bytes."""
    status = PROC / str(pid) / "status"
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(fields["VmRSS"].split()[0]) * 1024
    return int(_ps("-o", "rss=", "-p", str(pid))) * 1024


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, check=True, text=True).stdout


def _processes() -> dict[int, tuple[int, str]]:
    """Parent and start time of every living process; one that only waits to be collected no longer lives."""
    rows: list[list[str]] = []
    if PROC.is_dir():
        for entry in PROC.iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "stat").read_text()
                except OSError:
                    continue
                # The command's name stands in parentheses and may itself hold spaces and parentheses.
                fields = line[line.rindex(")") + 2 :].split()
                rows.append([entry.name, fields[1], fields[0], fields[19]])
    else:
        rows = [line.split(None, 3) for line in _ps("-A", "-o", "pid=,ppid=,state=,lstart=").splitlines()]
    return {int(pid): (int(parent), start) for pid, parent, state, start in rows if state[0] not in "ZX"}


def descendants(pid: int) -> dict[int, str]:
    """Every living process below `pid`, with its start time: a number alone may be given out again."""
    children: dict[int, dict[int, str]] = {}
    for child, (parent, start) in _processes().items():
        children.setdefault(parent, {})[child] = start
    found: dict[int, str] = {}
    parents = [pid]
    while parents:
        below = children.get(parents.pop(), {})
        found.update(below)
        parents.extend(below)
    return found


def _alive(family: dict[int, str]) -> list[int]:
    now = _processes() if family else {}
    return [pid for pid, start in family.items() if pid in now and now[pid][1] == start]


def outlived(family: dict[int, str], seconds: float) -> list[int]:
    """Wait for a family to end, kill what has not within the given time, and say who that was."""
    deadline = time.monotonic() + seconds
    while (alive := _alive(family)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return alive
