"""Keeps the loop awake for a moment while the peers answer each other at once.

An idle processor takes longer to wake than a message takes to pass: on a virtual machine that was a third
of every round trip. So where the legs have just taken turns within a moment, the loop looks a few times more
before it sleeps. A stream in one direction, and peers that think before they speak, are waited for asleep:
what it costs is some looks at the end of a quick exchange. To look after every event was rejected, for then
each of many streaming sessions would keep a processor busy.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import trio

from acp_proxy.acp.version import Role

MOMENT: Final = 200e-6
"""Seconds between two turns that count as at once."""
LOOKS: Final = 16
"""Passes of the loop that wait for nothing; each takes some microseconds."""


class Attention:
    """Hears who speaks when, and looks out for the answer while one is likely to be there at once."""

    __slots__ = ("_asleep", "_looks", "_speaker", "_turned_at", "_worth_it")

    def __init__(self, processors: int | None = None) -> None:
        """With one processor (`processors`, the system's own count by default) looking only keeps the peers from it."""
        self._worth_it = (processors if processors is not None else _processors()) > 1
        self._asleep = trio.lowlevel.ParkingLot()
        self._looks = 0
        self._speaker: Role | None = None
        self._turned_at = float("-inf")

    def heard(self, speaker: Role, at: float) -> None:
        """A leg has spoken at this time, in seconds; what it said has been handed on."""
        if speaker is self._speaker:
            return
        if at - self._turned_at < MOMENT and self._worth_it:
            self._looks = LOOKS
            self._asleep.unpark()
        self._speaker = speaker
        self._turned_at = at

    async def keep(self) -> None:
        """Look out whenever it may be worth it; runs until cancelled."""
        while True:
            while self._looks > 0:
                self._looks -= 1
                await trio.lowlevel.cancel_shielded_checkpoint()
            await self._asleep.park()


def _processors() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
