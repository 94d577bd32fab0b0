"""How a message walks the filters, and where what a filter says goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, ToClient, Travels
from acp_proxy.jsonrpc.message import Json, Message, Notification, notification
from acp_proxy.relay.chain import Chain


class Log:
    """Everything that happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, text: str) -> None:
        self.lines.append(text)


def name_of(message: Travels) -> str:
    assert isinstance(message, Notification)
    return message.method


class Stage(Filter):
    """Writes down what passes; `forth_with` and `back_with` decide what becomes of a message by its name."""

    def __init__(self, log: Log, name: str, **rules: Callable[[Message], Outcome]) -> None:
        self.log = log
        self.name = name
        self.rules: dict[str, Any] = rules
        self.due: float | None = None
        self.at_due: Sequence[Step] = ()
        self.at_end: Sequence[Step] = ()

    def forth(self, message: Message, at: float) -> Outcome:
        self.log.add(f"{self.name}>{name_of(message)}")
        rule = self.rules.get(f"forth_{name_of(message)}")
        outcome: Outcome = message if rule is None else rule(message)
        return outcome

    def back(self, message: Travels, at: float) -> Outcome:
        self.log.add(f"{self.name}<{name_of(message)}")
        rule = self.rules.get(f"back_{name_of(message)}")
        outcome: Outcome = message if rule is None else rule(message)
        return outcome

    def next_deadline(self) -> float | None:
        return self.due

    def expire(self, at: float) -> Sequence[Step]:
        self.log.add(f"{self.name}!{at:g}")
        self.due = None
        return self.at_due

    def agent_gone(self, error: Json, at: float) -> Sequence[Step]:
        self.log.add(f"{self.name}-gone")
        return self.at_end


def say(name: str) -> Message:
    return notification(name, {})


def chain(log: Log, *stages: Stage) -> Chain:
    """A chain whose ends write to the log."""
    return Chain(
        list(stages),
        to_agent=lambda message, at: log.add(f"AGENT {name_of(message)}"),
        to_client=lambda message, at: log.add(f"CLIENT {name_of(message)}"),
        restart=lambda: log.add("RESTART"),
        to_host=lambda request, at: log.add("HOST"),
    )


def test_a_message_passes_all_stages_in_its_direction() -> None:
    log = Log()
    both = chain(log, Stage(log, "a"), Stage(log, "b"))
    both.forth(say("x"), 0.0)
    both.back(say("y"), 0.0)
    assert log.lines == ["a>x", "b>x", "AGENT x", "b<y", "a<y", "CLIENT y"]


def test_a_stage_may_replace_end_or_answer_a_message() -> None:
    log = Log()
    middle = Stage(
        log,
        "b",
        forth_swap=lambda message: say("swapped"),
        forth_stop=lambda message: None,
        forth_answer=lambda message: [ToClient(say("reply"))],
        back_answer=lambda message: [ToAgent(say("reply"))],
    )
    both = chain(log, Stage(log, "a"), middle, Stage(log, "c"))
    both.forth(say("swap"), 0.0)
    assert log.lines[-3:] == ["b>swap", "c>swapped", "AGENT swapped"]
    both.forth(say("stop"), 0.0)
    assert log.lines[-2:] == ["a>stop", "b>stop"]
    both.forth(say("answer"), 0.0)
    assert log.lines[-4:] == ["a>answer", "b>answer", "a<reply", "CLIENT reply"]
    both.back(say("answer"), 0.0)
    assert log.lines[-4:] == ["c<answer", "b<answer", "c>reply", "AGENT reply"]


def test_steps_are_walked_to_their_ends_one_by_one() -> None:
    log = Log()
    speaker = Stage(
        log,
        "b",
        forth_x=lambda message: [ToClient(say("1")), ToAgent(say("2")), RestartAgent(), ToClient(say("3"))],
    )
    chain(log, Stage(log, "a"), speaker, Stage(log, "c")).forth(say("x"), 0.0)
    assert log.lines == [
        "a>x", "b>x", "a<1", "CLIENT 1", "c>2", "AGENT 2", "RESTART", "a<3", "CLIENT 3",
    ]  # fmt: skip


def test_what_a_stage_says_is_heard_by_those_it_passes_and_by_no_other() -> None:
    log = Log()
    outer = Stage(log, "a", back_1=lambda message: [ToAgent(say("again"))])
    inner = Stage(log, "b", forth_x=lambda message: [ToClient(say("1"))])
    chain(log, outer, inner).forth(say("x"), 0.0)
    assert log.lines == ["a>x", "b>x", "a<1", "b>again", "AGENT again"]


def test_deadlines_are_kept_by_those_whose_time_has_come() -> None:
    log = Log()
    stages = [Stage(log, name) for name in "abc"]
    both = chain(log, *stages)
    assert both.next_deadline() is None
    stages[0].due, stages[2].due = 5.0, 3.0
    stages[2].at_due = [ToClient(say("late"))]
    assert both.next_deadline() == 3.0
    both.expire(4.0)
    assert log.lines == ["c!4", "b<late", "a<late", "CLIENT late"]
    assert both.next_deadline() == 5.0


def test_the_agents_end_is_told_from_the_clients_end_on() -> None:
    log = Log()
    stages = [Stage(log, name) for name in "ab"]
    stages[1].at_end = [ToClient(say("failed"))]
    chain(log, *stages).agent_gone({}, 0.0)
    assert log.lines == ["a-gone", "b-gone", "a<failed", "CLIENT failed"]


def test_a_stage_can_be_replaced_or_removed_while_a_message_walks() -> None:
    log = Log()
    new = Stage(log, "new")

    def swap(message: Message) -> Outcome:
        both.replace(old, new)
        return message

    old = Stage(log, "old", back_x=swap)
    both = chain(log, Stage(log, "a"), old, Stage(log, "c"))
    both.back(say("x"), 0.0)
    assert log.lines == ["c<x", "old<x", "a<x", "CLIENT x"]
    both.forth(say("y"), 0.0)
    assert log.lines[4:] == ["a>y", "new>y", "c>y", "AGENT y"]
    both.replace(new, None)
    assert len(both.filters) == 2


def test_a_message_may_enter_at_a_stage() -> None:
    log = Log()
    last = Stage(log, "c")
    chain(log, Stage(log, "a"), last).forth_from(last, say("x"), 0.0)
    assert log.lines == ["c>x", "AGENT x"]


def test_a_stage_that_does_nothing_lets_everything_pass() -> None:
    stage, one = Filter(), say("x")
    assert stage.forth(one, 0.0) is one
    assert stage.back(one, 0.0) is one
    assert (stage.next_deadline(), stage.expire(0.0), stage.agent_gone({}, 0.0)) == (None, (), ())
