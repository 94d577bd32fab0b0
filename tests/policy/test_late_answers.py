"""An answer that comes too late reaches nobody, under whatever ids requests are asked (LC-12, LC-70)."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.jsonrpc.message import Request, Response, id_key, notification, request, result
from acp_proxy.policy.late_answers import LateAnswers


def late_answers() -> LateAnswers:
    numbers = itertools.count(1)
    return LateAnswers(lambda: f"t{next(numbers)}")


def ask(token: Any) -> Request:
    return request(token, "_x", {})


def test_what_nobody_answered_passes_as_it_is() -> None:
    late = late_answers()
    asked, answer = ask(5), result(5, {})
    assert late.out(asked) is asked
    assert late.back(answer) is answer
    assert late.meant(5) == 5


def test_one_late_answer_is_dropped_and_no_more() -> None:
    late = late_answers()
    late.expect(5)
    assert late.back(result(5, {})) is None
    assert late.back(result(5, {})) is not None


def test_ids_of_other_types_are_other_ids() -> None:
    late = late_answers()
    late.expect(1)
    for token in ("1", 1.0, True):
        assert late.back(result(token, {})) is not None


def test_a_request_under_a_late_id_goes_out_and_comes_back_under_another() -> None:
    late = late_answers()
    late.expect(5)
    asked = late.out(ask(5))
    assert asked.id == "acp-proxy-t1"
    assert late.meant(asked.id) == 5
    withdrawn = late.withdrawn(notification("$/cancel_request", {"requestId": 5}))
    assert withdrawn.params == {"requestId": "acp-proxy-t1"}
    answer = late.back(result("acp-proxy-t1", {"yes": 1}))
    assert answer is not None
    assert answer.body == result(5, {"yes": 1}).body
    assert late.back(result(5, {})) is None


def test_a_withdrawal_of_anything_else_passes_as_it_is() -> None:
    withdrawn = notification("$/cancel_request", {"requestId": 5})
    assert late_answers().withdrawn(withdrawn) is withdrawn


@given(st.lists(st.sampled_from(["ask", "give up", "answer first", "answer last"]), max_size=40))
def test_every_answer_belongs_to_the_question_it_was_given_to(moves: list[str]) -> None:
    """The agent uses one id for all its questions; the client answers each, in any order, early or late."""
    late = late_answers()
    open_at_client: list[tuple[Any, int]] = []
    current: tuple[Any, int] | None = None
    for number, move in enumerate(moves):
        if move == "ask" and current is None:
            current = (late.out(ask(5)).id, number)
            assert id_key(current[0]) not in {id_key(token) for token, _ in open_at_client}
            open_at_client.append(current)
        elif move == "give up" and current is not None:
            late.expect(current[0])
            current = None
        elif move.startswith("answer") and open_at_client:
            token, question = open_at_client.pop(0 if move == "answer first" else -1)
            answer: Response | None = late.back(result(token, question))
            if current is not None and question == current[1]:
                assert answer is not None
                assert (answer.id, answer.result) == (5, question)
                current = None
            else:
                assert answer is None
