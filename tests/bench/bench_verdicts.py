"""From samples to verdicts: the median of several pairs, or the first of a few tries that is near enough."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from bench_conversation import BenchError
from bench_figures import Figure
from bench_measures import Stand

SHORT_TRIES = 3
# The short form asks for half of every floor: a busy machine must not fail it, a wrong algorithm must.
SHORT_SLACK = 2.0


@dataclass
class Verdict:
    """A figure with all its samples (reference, measured), their ratios and whether the floor was met."""

    name: str
    unit: str
    floor: str
    met: bool = False
    error: str = ""
    samples: list[tuple[float, float]] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def row(self) -> list[str]:
        shown = ["-"] * 3
        if self.ratios:
            spread = (min(self.ratios), statistics.median(self.ratios), max(self.ratios))
            shown = [f"{ratio:.2f}" for ratio in spread]
        word = "error" if self.error else "informs" if self.floor == "-" else "met" if self.met else "MISSED"
        return [self.name, self.unit, *shown, self.floor, word]


def _take(figure: Figure, stand: Stand, verdict: Verdict) -> None:
    reference, measured = figure.measure(stand)
    verdict.samples.append((reference, measured))
    verdict.ratios.append(measured / reference)


def judge(figure: Figure, stand: Stand, pairs: int) -> Verdict:
    """The full form: the median ratio of interleaved pairs against the floor. One failed run fails it."""
    verdict = Verdict(figure.name, figure.unit, figure.floor)
    try:
        for _ in range(pairs):
            _take(figure, stand, verdict)
        verdict.met = figure.met(statistics.median(verdict.ratios))
    except (BenchError, OSError) as error:
        verdict.error = str(error)
    return verdict


def judge_short(figure: Figure, stand: Stand) -> Verdict:
    """The short form: met at the first try that reaches half the floor, missed when none does."""
    verdict = Verdict(figure.name, figure.unit, figure.floor)
    try:
        while not verdict.met and len(verdict.ratios) < SHORT_TRIES:
            _take(figure, stand, verdict)
            verdict.met = figure.met(verdict.ratios[-1], SHORT_SLACK)
    except (BenchError, OSError) as error:
        verdict.error = str(error)
    return verdict


def table(verdicts: Sequence[Verdict]) -> str:
    """All verdicts as aligned columns, with the errors spelled out below."""
    rows = [
        ["figure", "ratio of", "min", "median", "max", "floor", "verdict"],
        *(each.row() for each in verdicts),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = {2, 3, 4}
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines += [f"{each.name}: {each.error}" for each in verdicts if each.error]
    return "\n".join(lines)


def as_json(verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    """Everything a verdict holds; samples are in the measure's own unit (messages a second, seconds, MiB)."""
    return [asdict(each) for each in verdicts]
