"""Benchmarks of the proxy: ``python tests/bench/run.py``, or ``--short`` for under a minute.

Each figure is a ratio taken within one run, against a plain Python relay in front of the same agent, so that
the machine and its load cancel out. Exit status: 0 all floors met, 1 one missed or not measurable, 2 usage.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pstats
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from bench_conversation import BenchError
from bench_figures import FULL, SHORT, Figure, figures
from bench_measures import Stand
from bench_verdicts import as_json, judge, judge_short, table

PAIRS = 5
PROFILE_ROWS = 30


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmarks of acp-proxy, as ratios to a plain relay.")
    parser.add_argument(
        "--short", action="store_true", help="small volumes; up to 3 tries at half of each floor"
    )
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help=f"interleaved pairs a figure (default {PAIRS})"
    )
    parser.add_argument("--only", action="append", metavar="GLOB", help="figures to run, repeatable")
    parser.add_argument("--list", action="store_true", help="name the figures and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write verdicts with all samples")
    parser.add_argument(
        "--proxy", type=shlex.split, metavar="COMMAND", help="command that takes `wrap -- AGENT`"
    )
    parser.add_argument(
        "--no-bridge", action="store_true", help="drive bridged figures as v1, for a stand-in"
    )
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="profile the proxy through the one figure chosen"
    )
    return parser.parse_args(argv)


def chosen(every: Sequence[Figure], patterns: Sequence[str] | None, short: bool) -> list[Figure]:
    if patterns is None:
        return [figure for figure in every if figure.bound is not None or not short]
    return [figure for figure in every if any(fnmatch.fnmatch(figure.name, pattern) for pattern in patterns)]


def profiled(stand: Stand, file: Path) -> Stand:
    """The same proxy under cProfile: its own interpreter first, then whatever that was to run."""
    interpreter, *rest = stand.proxy
    return Stand((interpreter, "-m", "cProfile", "-o", str(file.resolve()), *rest), stand.bridges)


def profile(figure: Figure, stand: Stand, file: Path) -> int:
    """Run the figure once; the file holds the last process of the proxy, its start and warm-up included."""
    try:
        figure.measure(profiled(stand, file))
    except BenchError as error:
        print(f"{figure.name}: {error}", file=sys.stderr)
        return 1
    pstats.Stats(str(file)).sort_stats("tottime").print_stats(PROFILE_ROWS)
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    # As an exception, so that every conversation still reaps what it started.
    raise SystemExit(128 + number)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    stand = Stand(tuple(options.proxy) if options.proxy else Stand.proxy, not options.no_bridge)
    selected = chosen(list(figures(SHORT if options.short else FULL)), options.only, options.short)
    if options.list or not selected:
        print(
            "\n".join(f"{figure.name:32} {figure.floor:8} {figure.unit}" for figure in selected)
            or "no such figure"
        )
        return 0 if selected else 2
    if options.profile:
        if len(selected) != 1:
            print(f"--profile takes one figure, --only chose {len(selected)}", file=sys.stderr)
            return 2
        return profile(selected[0], stand, options.profile)
    verdicts = []
    for figure in selected:
        start = time.perf_counter()
        verdicts.append(judge_short(figure, stand) if options.short else judge(figure, stand, options.pairs))
        seconds = time.perf_counter() - start
        print(f"{figure.name:32} {verdicts[-1].row()[-1]:8} {seconds:6.1f} s", file=sys.stderr, flush=True)
    print(table(verdicts))
    if options.json:
        options.json.write_text(json.dumps(as_json(verdicts), indent=2) + "\n")
    return 0 if all(each.met and not each.error for each in verdicts) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main(sys.argv[1:]))
