"""The loop stays awake while the peers answer each other at once, and sleeps in every other case."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.abc
import trio.testing

from acp_proxy.acp.version import Role
from acp_proxy.attention import LOOKS, MOMENT, Attention

CLIENT, AGENT = Role.CLIENT, Role.AGENT
Talk = Sequence[tuple[Role, float]]


class Passes(trio.abc.Instrument):
    """Counts the passes of the loop that wait for nothing."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += timeout == 0


async def passes(talk: Talk, processors: int) -> int:
    """How often the loop looks although nothing but `keep` wants to run."""
    attention = Attention(processors)
    counted = Passes()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attention.keep)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(counted)
        for speaker, at in talk:
            attention.heard(speaker, at)
        await trio.sleep(0.05)
        trio.lowlevel.remove_instrument(counted)
        nursery.cancel_scope.cancel()
    return counted.count


QUICK = MOMENT / 2
SLOW = MOMENT * 2


@pytest.mark.parametrize(
    ("talk", "looks"),
    [
        ([(CLIENT, 0.0)], False),
        ([(CLIENT, 0.0), (AGENT, SLOW)], False),
        ([(AGENT, 0.0), (AGENT, QUICK / 2), (AGENT, QUICK)], False),
        ([(CLIENT, 0.0), (AGENT, QUICK)], True),
        ([(AGENT, 0.0), (CLIENT, QUICK)], True),
        ([(CLIENT, 0.0), (AGENT, SLOW), (CLIENT, SLOW + QUICK)], True),
        # The answer came at once, but what followed it is a stream.
        ([(CLIENT, 0.0), (AGENT, SLOW), *((AGENT, SLOW + n * QUICK / 4) for n in range(9))], False),
    ],
)
async def test_only_turns_taken_at_once_are_waited_for_awake(talk: Talk, looks: bool) -> None:
    counted = await passes(talk, 2)
    assert counted >= LOOKS if looks else counted <= 2


async def test_with_one_processor_the_peers_have_it() -> None:
    assert await passes([(CLIENT, 0.0), (AGENT, QUICK)], 1) <= 2


async def test_it_looks_again_after_having_slept() -> None:
    talk = [(CLIENT, 0.0), (AGENT, QUICK)]
    attention = Attention(2)
    counted = Passes()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attention.keep)
        for number in (1, 2):
            for speaker, at in talk:
                attention.heard(speaker, at + number)
            await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(counted)
        attention.heard(CLIENT, 3.0)
        attention.heard(AGENT, 3.0 + QUICK)
        await trio.sleep(0.05)
        trio.lowlevel.remove_instrument(counted)
        nursery.cancel_scope.cancel()
    assert counted.count >= LOOKS
