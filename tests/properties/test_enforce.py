"""Whatever an agent does wrong, under `enforce` a client is never told what the catalogue can put right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from v2_client_model import ModelClient

from lifecycle_scripts import heard, idle, job, opened, question, said, state
from relay_driver import Driver, Json, Said, answer, call, cancel, failure, prompt, selected, withdraw


class Play:
    """An agent that says whatever it is made to, a client that keeps to the rules, and the proxy between."""

    def __init__(self, mode: str) -> None:
        self.driver: Driver = opened("22", lifecycle=mode)
        self.model = ModelClient()
        self.last = 10
        self.unechoed: list[int] = []
        self.unanswered: list[int] = []
        self.answered: list[int] = []
        self.open_questions: list[Any] = []
        self.resuming: list[int] = []
        self.closing: list[int] = []
        self.words = 0
        self.tools: list[str] = []

    def client(self, body: Json) -> None:
        self.model.sent(body)
        self.hear(self.driver.client_sends(body))

    def agent(self, body: Json) -> None:
        self.hear(self.driver.agent_sends(body))

    def hear(self, told: Said) -> None:
        for body in told.client:
            self.model.told(body)

    def next_id(self) -> int:
        self.last += 1
        return self.last

    # ------------------------------------------------------------ moves of the client

    def prompts(self) -> None:
        if self.model.closed or self.closing or self.resuming:
            return
        request_id = self.next_id()
        self.unechoed.append(request_id)
        self.unanswered.append(request_id)
        self.client(prompt(request_id, f"text {request_id}"))

    def cancels(self) -> None:
        if not self.model.closed:
            self.client(cancel())

    def closes(self) -> None:
        if not self.model.closed and not self.closing and not self.resuming:
            self.closing.append(self.next_id())
            self.client(call(self.last, "session/close", {"sessionId": "s1"}))

    def resumes(self) -> None:
        if not self.resuming and not self.closing:
            self.resuming.append(self.next_id())
            params = {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}
            self.client(call(self.last, "session/resume", params))

    def chooses(self, option: str) -> None:
        asked = list(self.model.asked)
        if asked:
            self.client(selected(asked[0], option))

    # ------------------------------------------------------------ moves of the agent

    def echoes(self, as_told: bool) -> None:
        if self.unechoed:
            request_id = self.unechoed.pop(0)
            self.agent(heard(request_id, None if as_told else f"x{request_id}", f"text {request_id}"))

    def takes(self, how: str) -> None:
        if not self.unanswered:
            return
        request_id = self.unanswered.pop(0)
        self.answered.append(request_id)
        results: dict[str, Json] = {
            "plain": {"messageId": f"m{request_id}"},
            "nameless": {},
            "ended": {"messageId": f"m{request_id}", "stopReason": "end_turn"},
        }
        if how in results:
            self.agent(answer(request_id, results[how]))
        else:
            self.agent(failure(request_id, -32603))

    def says(self) -> None:
        self.words += 1
        self.agent(said("w", f"a{self.words}"))

    def works(self) -> None:
        self.words += 1
        self.tools.append(f"t{self.words}")
        self.agent(job(self.tools[-1], "in_progress"))

    def finishes(self) -> None:
        if self.tools:
            self.agent(job(self.tools.pop(0), "completed"))

    def asks(self, again: bool) -> None:
        token = 500 if again else 1000 + self.next_id()
        self.agent(question(token, "k"))

    def answers_twice(self) -> None:
        if self.answered:
            self.agent(answer(self.answered[-1], {"messageId": "again"}))

    def closed(self, missing: bool) -> None:
        if self.closing:
            request_id = self.closing.pop()
            self.agent(failure(request_id, -32002) if missing else answer(request_id, {}))

    def resumed(self) -> None:
        if self.resuming:
            self.agent(answer(self.resuming.pop(), {}))

    def waits(self) -> None:
        self.hear(self.driver.advance(5))
        self.model.waited()


MOVES: dict[str, Callable[[Play], None]] = {
    "prompt": Play.prompts,
    "cancel": Play.cancels,
    "close": Play.closes,
    "resume": Play.resumes,
    "choose": lambda play: play.chooses("ok"),
    "choose what was not offered": lambda play: play.chooses("always"),
    "echo": lambda play: play.echoes(True),
    "echo by another name": lambda play: play.echoes(False),
    "take": lambda play: play.takes("plain"),
    "take without a name": lambda play: play.takes("nameless"),
    "take and end": lambda play: play.takes("ended"),
    "refuse": lambda play: play.takes("error"),
    "say": Play.says,
    "work": Play.works,
    "finish": Play.finishes,
    "ask": lambda play: play.asks(False),
    "ask with an id in use": lambda play: play.asks(True),
    "running": lambda play: play.agent(state("running")),
    "requires_action": lambda play: play.agent(state("requires_action")),
    "idle": lambda play: play.agent(idle("end_turn")),
    "idle without a reason": lambda play: play.agent(idle(None)),
    "idle cancelled": lambda play: play.agent(idle("cancelled")),
    "answer twice": Play.answers_twice,
    "answer nothing": lambda play: play.agent(answer(4242, {})),
    "cancel nothing": lambda play: play.agent(withdraw(4242)),
    "closed": lambda play: play.closed(False),
    "closed, missing": lambda play: play.closed(True),
    "resumed": Play.resumed,
    "wait": Play.waits,
}


@given(
    moves=st.lists(st.sampled_from(sorted(MOVES)), max_size=40), mode=st.sampled_from(["enforce", "strict"])
)
def test_a_client_never_sees_what_can_be_put_right(moves: list[str], mode: str) -> None:
    play = Play(mode)
    for number, move in enumerate(moves):
        MOVES[move](play)
        assert play.model.broken == [], f"after {moves[: number + 1]}"


@given(moves=st.lists(st.sampled_from(sorted(MOVES)), max_size=40))
def test_the_agent_gets_one_fitting_answer_to_each_question(moves: list[str]) -> None:
    play = Play("enforce")
    for move in moves:
        MOVES[move](play)
    for body in play.driver.outputs.agent:
        outcome = body.get("result", {}).get("outcome") if "method" not in body else None
        if outcome is not None:
            assert outcome["outcome"] == "cancelled" or outcome["optionId"] in ("ok", "no")


def test_the_model_does_see_what_is_not_put_right() -> None:
    """A model that finds nothing proves nothing: under observe it is told all of it."""
    seen: set[str] = set()
    for moves in (
        ["prompt", "running", "idle", "take", "say"],
        ["prompt", "running", "take without a name"],
        ["prompt", "running", "take", "echo by another name"],
        ["prompt", "running", "take", "say", "idle"],
        ["prompt", "echo", "refuse"],
        ["prompt", "refuse", "echo"],
        ["prompt", "running", "echo", "take", "cancel", "idle"],
        ["prompt", "running", "echo", "take", "close", "closed", "say"],
        ["close", "closed, missing"],
        ["resume", "resumed"],
        ["resume", "idle", "say", "resumed"],
        ["prompt", "running", "echo", "take", "ask", "requires_action", "choose", "say"],
        ["answer nothing"],
        ["ask with an id in use", "ask with an id in use"],
        ["prompt", "running", "echo", "take", "prompt", "cancel", "idle cancelled", "wait"],
    ):
        play = Play("observe")
        for move in moves:
            MOVES[move](play)
        assert play.model.broken, moves
        seen |= {broken.partition(":")[0] for broken in play.model.broken}
    assert seen == {
        "LC-01",
        "LC-10",
        "LC-14",
        "LC-17",
        "LC-30",
        "LC-31",
        "LC-32",
        "LC-42",
        "LC-50",
        "LC-52",
        "LC-70",
        "LC-73",
    }
