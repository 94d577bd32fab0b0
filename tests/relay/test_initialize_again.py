"""A repeated `initialize` between v2 peers: answered from the first answer, until something else was asked."""

from __future__ import annotations

from relay_driver import (
    V2_RESULT,
    Driver,
    answer,
    both_v1,
    both_v2,
    call,
    failure,
    initialize_v1,
    initialize_v2,
    note,
)


def test_the_same_again_is_answered_here() -> None:
    driver = both_v2()
    got = driver.client_sends(initialize_v2("again"))
    assert (got.client, got.agent) == ([answer("again", V2_RESULT)], [])
    driver.client_sends(note("_x/tell", {}))
    assert driver.client_sends(initialize_v2(5)).agent == [], "a notification is no request"


def test_after_another_request_it_is_the_agents_to_refuse() -> None:
    driver = both_v2()
    driver.client_sends(call(1, "session/list", {}))
    again = initialize_v2(2)
    assert driver.client_sends(again).agent == [again]


def test_other_parameters_are_another_question() -> None:
    driver = both_v2()
    other = initialize_v2(2, elicitation={})
    assert driver.client_sends(other).agent == [other]


def test_a_refused_one_is_asked_anew() -> None:
    driver = Driver(bridge="off")
    first = initialize_v2(0)
    driver.client_sends(first)
    driver.agent_sends(failure(0, -32603))
    again = initialize_v2(1)
    assert driver.client_sends(again).agent == [again]


def test_version_1_knows_nothing_of_it() -> None:
    driver = both_v1(session=False)
    again = initialize_v1(1)
    assert driver.client_sends(again).agent == [again]
