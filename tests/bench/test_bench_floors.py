"""Half of every floor holds, and the benchmarks notice a relay that is slow, grows, loses lines or stops."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bench_conversation
import pytest
from bench_conversation import TURN_END, BenchError, Conversation
from bench_figures import SHORT, Figure, figures
from bench_measures import BASELINE, Stand, agent, baseline, growth, rate
from bench_processes import descendants
from bench_verdicts import judge_short

FLOORS = [figure for figure in figures(SHORT) if figure.bound is not None]
STAND_IN = Stand(BASELINE, bridges=False)


RELAY = """
import sys

sys.path.insert(0, {folder!r})
import baseline_relay

{body}

sys.exit(baseline_relay.main(sys.argv[1:]))
"""
GROWING = """
kept = []
baseline_relay.decoder = lambda decodes: kept.append
"""
LOSING = """
class Sink:
    def __init__(self, sink):
        self.sink, self.flush = sink, sink.flush
    def write(self, line):
        return 0 if b"the" in line else self.sink.write(line)

pump = baseline_relay.pump
baseline_relay.pump = lambda source, sink, decode: pump(source, Sink(sink), decode)
"""
STOPPING = """
import os

baseline_relay.decoder = lambda decodes: lambda line: os._exit(3) if b"session/update" in line else None
"""
LEAVING = """
import subprocess

no = subprocess.DEVNULL
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=no, stdout=no, stderr=no)
"""


def relay(folder: Path, body: str) -> Stand:
    """The baseline with something wrong about it."""
    script = folder / "relay.py"
    script.write_text(RELAY.format(folder=str(Path(BASELINE[1]).parent), body=body))
    return Stand((sys.executable, str(script)), bridges=False)


def rate_of(lines: int) -> Figure:
    return Figure("rate", "", 0.8, False, rate(f"chunks:{lines}:250", lines, 1))


@pytest.mark.slow
@pytest.mark.parametrize("figure", FLOORS, ids=lambda figure: figure.name)
def test_half_the_floor_is_reached(figure: Figure) -> None:
    verdict = judge_short(figure, Stand())
    assert not verdict.error
    assert verdict.met, verdict.row()


def test_a_relay_beside_itself_meets_the_rate_floor() -> None:
    assert judge_short(rate_of(20_000), STAND_IN).met


def test_a_slow_relay_misses_the_rate_floor() -> None:
    verdict = judge_short(rate_of(2000), Stand((*BASELINE, "--decodes", "60"), bridges=False))
    assert (verdict.met, verdict.error, len(verdict.ratios)) == (False, "", 3)


def test_a_growing_relay_misses_the_memory_floor(tmp_path: Path) -> None:
    figure = Figure("memory", "", 20.0, True, growth(60_000, 1))
    assert not judge_short(figure, relay(tmp_path, GROWING)).met
    assert judge_short(figure, STAND_IN).met


def test_lost_lines_are_an_error_not_a_rate(tmp_path: Path) -> None:
    verdict = judge_short(rate_of(500), relay(tmp_path, LOSING))
    assert verdict.error == "1 lines came, the agent wrote 501"
    assert not verdict.met


def test_a_stopping_relay_is_an_error(tmp_path: Path) -> None:
    verdict = judge_short(rate_of(500), relay(tmp_path, STOPPING))
    assert verdict.error.startswith("the relay closed its output")
    assert not verdict.met


def test_a_relay_that_leaves_a_process_behind_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_conversation, "LEAVE_SECONDS", 1.0)
    verdict = judge_short(rate_of(10), relay(tmp_path, LEAVING))
    assert verdict.error == "left 1 processes behind"
    assert descendants(os.getpid()) == {}


def test_an_interrupted_conversation_leaves_nothing_running() -> None:
    family: dict[int, str] = {}

    def interrupted() -> None:
        with baseline("chunks:100000:250") as talk:
            talk.initialize()
            family.update(descendants(os.getpid()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(family) == 2
    assert not set(family) & set(descendants(os.getpid()))


def test_a_relay_that_does_not_bridge_is_told_apart() -> None:
    with pytest.raises(BenchError, match="nothing was bridged"), Stand(BASELINE).talk("idle", 2) as talk:
        talk.initialize()


def test_the_agent_writes_what_its_scenario_says() -> None:
    for scenario, lines, size in (("chunks:700:300", 700, 300), ("chunks:3:65536", 3, 65536)):
        with Conversation(agent(scenario), 1) as talk:
            talk.initialize()
            tally = talk.exchange(talk.prompt(talk.new_session(), "go"), TURN_END, 1)
        # The result of the prompt is the line and the bytes beyond the updates.
        assert tally.lines == lines + 1
        assert 0 < tally.bytes - lines * size < 100
