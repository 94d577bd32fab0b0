"""The watch by itself: what it remembers, what it is asked, and what it must not say."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.inference.watch.breach import SOURCES, Breach, frames_of
from acp_proxy.inference.watch.watch import Watch
from acp_proxy.jsonrpc.message import Frame, Message, classify
from lifecycle_scripts import A as AGENT
from lifecycle_scripts import C as CLIENT
from lifecycle_scripts import Script, begun, close, heard, idle, job, question, said, state, taken, turn
from relay_driver import Json, answer, call, failure, line, message, prompt


class Listener:
    """A watch between two v2 peers, and what it has told."""

    def __init__(self, client: int = 2, agent: int = 2, *, bridged: bool = False) -> None:
        self.watch = Watch()
        self.number = 0
        self.at = 100.0
        self.told: list[Breach] = []
        self.say(Role.CLIENT, call(0, "initialize", {"protocolVersion": agent}))
        self.watch.speak(client, agent, bridged=bridged)
        self.hear(Role.AGENT, answer(0, {}))
        self.say(Role.CLIENT, call(1, "session/new", {"cwd": "/p", "mcpServers": []}))
        self.hear(Role.AGENT, answer(1, {"sessionId": "s1"}))
        assert self.told == []

    def say(self, sender: Role, body: Json) -> list[Breach]:
        self.number += 1
        read = classify(body, Frame(line(body), self.number))
        assert read is not None
        found, sound = self.watch.form(read, sender)
        told = [*found, *self.watch.take(read, sender, self.at, sound)]
        self.told += told
        return told

    hear = say

    def play(self, script: Script) -> list[str]:
        rules: list[str] = []
        for who, body in script:
            rules += [one.rule for one in self.say(Role.CLIENT if who == "client" else Role.AGENT, body)]
        return rules


def test_every_rule_says_where_it_comes_from() -> None:
    assert {f"V{number:02}" for number in range(1, 48)} - set(SOURCES) == {"V32", "V45", "V46"}
    assert Breach("V09", "agent", "s", "x").source == "LC-14"


def test_evidence_is_frame_numbers_each_once() -> None:
    body = said()
    framed = classify(body, Frame(b"", 7))
    bare: Message | None = classify(body)
    assert frames_of(3, framed, 0, None, bare, 7, 9) == (3, 7, 9)


@pytest.mark.parametrize("client", [1, 2])
def test_before_the_versions_are_known_only_ids_are_judged(client: int) -> None:
    watch = Watch()
    odd = classify(call(1, "session/list", {"cursor": 5}), Frame(b"", 1))
    assert odd is not None
    assert [one.rule for one in watch.form(odd, Role.CLIENT)[0]] == ["V33"]


# ---------------------------------------------------------------- text that can be passed by


def test_text_is_passed_by_only_while_a_turn_runs_and_has_begun_to_speak() -> None:
    listener = Listener()
    steady = listener.watch.steady
    assert steady("s1") is None
    listener.play(begun())
    assert steady("s1") is None, "the first word of a turn is remembered"
    listener.play([AGENT(said())])
    assert steady("s1") is not None
    listener.play([AGENT(job("t1", "pending")), AGENT(question(90, "t1")), AGENT(state("requires_action"))])
    assert steady("s1") is None, "with the wait gone, text would be V07"
    listener.play([AGENT(state("running"))])
    assert steady("s1") is not None
    listener.play([CLIENT(call(3, "session/resume", {"sessionId": "s1", "cwd": "/p"}))])
    assert steady("s1") is None, "text may be replay now"
    listener.play([AGENT(state("running")), AGENT(answer(3, {})), AGENT(idle())])
    assert steady("s1") is None, "text might be V01 or V13"
    listener.play([close(4), AGENT(answer(4, {}))])
    assert steady("s1") is None
    assert steady("other") is None


def test_v1_text_is_passed_by_until_the_session_is_closed() -> None:
    listener = Listener(1, 1)
    assert listener.watch.steady("s1") is None
    listener.play([CLIENT(prompt(7)), AGENT(message())])
    assert listener.watch.steady("s1") is not None
    listener.play([close(3), AGENT(answer(3, {}))])
    assert listener.watch.steady("s1") is None


def test_without_states_text_is_passed_by_once_that_was_told() -> None:
    listener = Listener()
    assert listener.play([CLIENT(prompt(7)), AGENT(heard(7)), AGENT(said())]) == ["V03"]
    assert listener.watch.steady("s1") is not None


# ---------------------------------------------------------------- what is told once, and what again


def test_a_mistake_is_told_once_and_not_with_every_message_that_follows() -> None:
    listener = Listener()
    script = [*turn(7), CLIENT(prompt(8)), AGENT(heard(8)), AGENT(taken(8)), AGENT(said("x", "a8"))]
    assert listener.play(script) == ["V01"]
    assert listener.play([AGENT(said("y", "a8")), AGENT(job("t", "in_progress")), AGENT(idle())]) == []


def test_more_of_the_same_is_told_as_such() -> None:
    listener = Listener()
    listener.play([CLIENT(call(3, "session/resume", {"sessionId": "s5", "cwd": "/p"}))])
    listener.play([AGENT(said(session="s5")), AGENT(said(session="s5"))])
    assert [(one.rule, one.again) for one in listener.told] == [("V11", False), ("V11", True)]


def test_a_refused_request_is_as_if_it_had_never_been() -> None:
    listener = Listener()
    asked = classify(prompt(7), Frame(b"", 50))
    assert asked is not None
    listener.watch.take(asked, Role.CLIENT, 0.0)
    listener.watch.undo(asked, Role.CLIENT)  # type: ignore[arg-type]  # it is a request
    assert listener.play(turn(7)) == []


def test_a_malformed_message_is_no_ground_for_conclusions() -> None:
    listener = Listener()
    odd = call(7, "session/prompt", {"sessionId": "s1", "prompt": "text"})
    assert listener.play([CLIENT(odd), AGENT(failure(7, -32602))]) == ["V42"]
    assert listener.play(
        [AGENT({**state("idle"), "params": {"sessionId": "s1", "update": {"sessionUpdate": "state_update"}}})]
    ) == ["V42"]


# ---------------------------------------------------------------- whose message is an echo


@pytest.mark.parametrize(
    ("content", "matches"),
    [
        ([{"type": "text", "text": "go"}], True),
        ([{"type": "text", "text": "g"}, {"type": "text", "text": "o"}], True),
        ([{"type": "text", "text": "stop"}], False),
        ([], False),
        (None, False),
    ],
)
def test_an_echo_is_known_by_its_content(content: Any, matches: bool) -> None:
    listener = Listener()
    listener.play([CLIENT(prompt(7)), AGENT(state("running")), AGENT(taken(7))])
    other = heard(7, "other")
    other["params"]["update"]["content"] = content
    assert (listener.play([AGENT(other)]) == ["V20"]) is matches


def test_words_of_somebody_else_are_nobodys_echo() -> None:
    listener = Listener()
    script = [CLIENT(prompt(7)), AGENT(state("running")), AGENT(heard(0, "theirs", "from elsewhere"))]
    assert listener.play([*script, AGENT(heard(7)), AGENT(taken(7)), AGENT(said()), AGENT(idle())]) == []


def test_prompts_in_a_queue_each_have_their_echo() -> None:
    listener = Listener()
    script = [
        *begun(7),
        CLIENT(prompt(8)),
        AGENT(said()),
        AGENT(taken(8)),
        AGENT(idle()),
        AGENT(state("running")),
        AGENT(heard(8)),
        AGENT(said("x", "a8")),
        AGENT(idle()),
    ]
    assert listener.play(script) == [], "the first idle may be of the first prompt alone (LC-33)"


def test_an_id_is_judged_by_the_whole_conversation() -> None:
    listener = Listener()
    for number in range(100, 160):
        listener.play([CLIENT(call(number, "_x/a", {})), AGENT(answer(number, {}))])
    note = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 123}}
    assert listener.play([CLIENT(note)]) == []
    assert listener.play([AGENT(note)]) == ["V30"], "the agent has never used it"


def test_a_malformed_session_new_opens_no_door_once_it_is_answered() -> None:
    """While one is open, output of an unknown session may be its own; afterwards it is a stranger's."""
    listener = Listener()
    assert listener.play([CLIENT(call(3, "session/new", {"cwd": 5}))]) == ["V42"]
    assert listener.play([AGENT(said(session="early"))]) == []
    assert listener.play([AGENT(failure(3, -32602))]) == []
    assert listener.play([AGENT(said(session="s9"))]) == ["V37"]
