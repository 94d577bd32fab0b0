"""One number from one run: how each kind of figure is taken, for the relay and for what it is compared with.

Every measure returns a pair (reference, measured); the figure is measured / reference, so no absolute time is
ever judged. The reference is taken first.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench_conversation import RESULT, TURN_END, BenchError, Conversation, Tally
from bench_processes import environment

HERE = Path(__file__).resolve().parent
BASELINE = (sys.executable, str(HERE / "baseline_relay.py"))
IMPORTS = (sys.executable, "-c", "import trio, ujson, click")
IMPORT_SECONDS = 60.0
MEBIBYTE = 1 << 20
# The growth floor is stated for what follows the first 100,000 of a million updates.
GROWTH_UPDATES = 900_000

Sample = tuple[float, float]
Measure = Callable[["Stand"], Sample]


@dataclass(frozen=True)
class Stand:
    """What is compared: the proxy's command (without `wrap`), and whether it can be asked to bridge.

    A stand-in that only relays (`bridges` false) gets a v1 client where the proxy would have a v2 one.
    """

    proxy: tuple[str, ...] = (sys.executable, "-m", "acp_proxy")
    bridges: bool = True

    def talk(self, scenario: str, version: int, *options: str) -> Conversation:
        if not self.bridges:
            return Conversation((*self.proxy, "wrap", "--", *agent(scenario)), 1)
        return Conversation((*self.proxy, "wrap", *options, "--", *agent(scenario)), version)


def agent(scenario: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", str(HERE / "agent.py"), scenario)


def baseline(scenario: str) -> Conversation:
    return Conversation((*BASELINE, "--", *agent(scenario)), 1)


def _turn(conversation: Conversation, least: int, mark: int = 0) -> Tally:
    """A warm-up turn, then the measured one; raises BenchError if fewer lines came than the agent wrote."""
    with conversation as talk:
        talk.initialize()
        session = talk.new_session()
        talk.exchange(talk.prompt(session, "warm"), TURN_END, 1)
        tally = talk.exchange(talk.prompt(session, "go"), TURN_END, 1, mark)
    if tally.lines <= least:
        raise BenchError(f"{tally.lines} lines came, the agent wrote {least + 1}")
    return tally


def rate(scenario: str, lines: int, version: int) -> Measure:
    """Messages a second against the baseline's. With lines of one size it is bytes a second as well."""

    def measure(stand: Stand) -> Sample:
        reference = _turn(baseline(scenario), lines)
        return lines / reference.seconds, lines / _turn(stand.talk(scenario, version), lines).seconds

    return measure


def enforcing(scenario: str, lines: int, version: int) -> Measure:
    """Seconds of a turn under `enforce` against the same under `observe`."""

    def measure(stand: Stand) -> Sample:
        modes = ("observe", "enforce")
        observed, enforced = (
            _turn(stand.talk(scenario, version, "--lifecycle", mode), lines).seconds for mode in modes
        )
        return observed, enforced

    return measure


def headroom(scenario: str, lines: int) -> Measure:
    """How much faster agent and reader are with nothing between them: neither may be what is measured."""

    def measure(stand: Stand) -> Sample:
        reference = _turn(baseline(scenario), lines)
        return lines / reference.seconds, lines / _turn(Conversation(agent(scenario), 1), lines).seconds

    return measure


def _round_trip(conversation: Conversation, count: int) -> float:
    with conversation as talk:
        talk.initialize()
        talk.new_session()
        requests = [talk.line("_bench/echo", {"number": number}) for number in range(count + count // 10)]
        seconds = [talk.exchange(request, RESULT, 1).seconds for request in requests]
    return statistics.median(seconds[count // 10 :])


def round_trip(count: int, version: int) -> Measure:
    """Median seconds of one small request to the agent and back, in sequence, the first tenth unmeasured."""

    def measure(stand: Stand) -> Sample:
        return _round_trip(baseline("idle"), count), _round_trip(stand.talk("idle", version), count)

    return measure


def growth(updates: int, version: int) -> Measure:
    """MiB the main process grew from a tenth of the updates to their end, scaled to `GROWTH_UPDATES`."""

    def measure(stand: Stand) -> Sample:
        tally = _turn(stand.talk(f"chunks:{updates}:250", version), updates, mark=updates // 10)
        grown = (tally.resident_at_end - tally.resident_at_mark) / MEBIBYTE
        return (updates - updates // 10) / GROWTH_UPDATES, grown

    return measure


def _imports() -> float:
    start = time.perf_counter()
    subprocess.run(IMPORTS, check=True, timeout=IMPORT_SECONDS, env=environment())
    return time.perf_counter() - start


def _answered(conversation: Conversation) -> float:
    with conversation as talk:
        talk.initialize()
        return time.perf_counter() - talk.started


def start_up(runs: int, version: int) -> Measure:
    """Seconds from exec to the `initialize` result, less the bare agent's, against importing our needs.

    Medians of interleaved runs; one unmeasured run of each comes first, for the caches.
    """

    def measure(stand: Stand) -> Sample:
        rows = [
            (_imports(), _answered(Conversation(agent("idle"), 1)), _answered(stand.talk("idle", version)))
            for _ in range(runs + 1)
        ][1:]
        imports, bare, wrapped = (statistics.median(column) for column in zip(*rows, strict=True))
        return imports, wrapped - bare

    return measure


def cost_of_updates(count: int, times: int, version: int) -> Measure:
    """Seconds a message in a turn of `count` updates, and in one `times` as long."""
    return _cost(lambda size: (f"chunks:{size}:250", size), count, times, version)


def cost_of_tool_calls(count: int, times: int, version: int) -> Measure:
    """Seconds a message with `count` tool calls open at once, and with `times` as many."""
    return _cost(lambda size: (f"tools:{size}", 4 * size), count, times, version)


def _cost(scenario: Callable[[int], tuple[str, int]], count: int, times: int, version: int) -> Measure:
    def measure(stand: Stand) -> Sample:
        (small, few), (large, many) = scenario(count), scenario(count * times)
        reference = _turn(stand.talk(small, version), few).seconds / few
        return reference, _turn(stand.talk(large, version), many).seconds / many

    return measure


def _sessions(conversation: Conversation, count: int, each: int) -> float:
    """Seconds a message to make `count` sessions at once, prompt in all and take their interleaved turns."""
    with conversation as talk:
        talk.initialize()
        first = talk.new_session()
        talk.exchange(talk.prompt(first, "warm"), TURN_END, 1)
        opening = b"".join(talk.line("session/new", {"cwd": "/", "mcpServers": []}) for _ in range(count))
        # The agent counts its sessions; asking it for their names would put decoding into the measured time.
        names = [f"{first[:-1]}{number + 2}" for number in range(count)]
        prompts = b"".join(talk.prompt(name, "go") for name in names)
        made = talk.exchange(opening, RESULT, count)
        turns = talk.exchange(prompts, TURN_END, count)
    if turns.lines < count * (each + 1):
        raise BenchError(f"{turns.lines} lines came, the agent wrote {count * (each + 1)}")
    return (made.seconds + turns.seconds) / (count * (each + 2))


def cost_of_sessions(count: int, times: int, version: int) -> Measure:
    """Seconds a message with `count` sessions on one connection, and with `times` as many."""
    each = 40

    def measure(stand: Stand) -> Sample:
        few, many = f"sessions:{count}:{each}", f"sessions:{count * times}:{each}"
        reference = _sessions(stand.talk(few, version), count, each)
        return reference, _sessions(stand.talk(many, version), count * times, each)

    return measure
