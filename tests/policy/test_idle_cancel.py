"""A cancel that finds nothing to cancel is passed on, or swallowed where that is wanted (RA-14)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relay_driver import Driver, Json, both_v1, both_v2, bridged, cancel, update


def state(name: str) -> Json:
    return update("state_update", state=name)


@pytest.mark.parametrize("mode", [both_v1, both_v2, bridged])
def test_an_idle_cancel_passes_unless_it_is_to_be_swallowed(mode: Callable[..., Driver]) -> None:
    assert mode().client_sends(cancel()).agent == [cancel()]
    assert mode(idle_cancel="swallow").client_sends(cancel()).agent == []


@pytest.mark.parametrize("mode", [both_v1, both_v2, bridged])
def test_a_cancel_with_something_to_cancel_passes(mode: Callable[..., Driver]) -> None:
    driver = mode(idle_cancel="swallow")
    driver.prompt(7)
    assert driver.client_sends(cancel("s2")).agent == []
    assert driver.client_sends(cancel()).agent == [cancel()]


def test_a_cancel_of_work_a_v2_agent_reports_passes() -> None:
    driver = both_v2(idle_cancel="swallow")
    driver.agent_sends(state("running"))
    assert driver.client_sends(cancel()).agent == [cancel()]
    driver.agent_sends(state("idle"))
    assert driver.client_sends(cancel()).agent == []
