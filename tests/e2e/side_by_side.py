"""Runs cases of one test side by side: most of a case is waiting for processes to start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import trio

AT_ONCE = 4


async def together(cases: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Run cases side by side, a few at a time; fail with the names and the failures of those that did."""
    failures: dict[str, AssertionError] = {}
    limiter = trio.CapacityLimiter(AT_ONCE)

    async def one(name: str, case: Callable[[], Awaitable[None]]) -> None:
        async with limiter:
            try:
                await case()
            except* AssertionError as group:
                failures[name] = first_failure(group)

    async with trio.open_nursery() as nursery:
        for name, case in cases.items():
            nursery.start_soon(one, name, case)
    if failures:
        told = "\n".join(f"=== {name}: {failure}" for name, failure in sorted(failures.items()))
        raise AssertionError(f"{len(failures)} of {len(cases)} cases failed: {', '.join(failures)}\n{told}")


def first_failure(group: BaseExceptionGroup[AssertionError]) -> AssertionError:
    """The failure inside the groups that nurseries make."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, AssertionError)
    return found
