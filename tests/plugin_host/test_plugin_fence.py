"""A plugin's filter may do what it likes: the chain gets what a filter may say, and people are told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.filters.base import RestartAgent
from acp_proxy.inference.findings import Finding
from acp_proxy.plugin import (
    Filter,
    Frame,
    Json,
    Message,
    Notification,
    Outcome,
    Request,
    Response,
    Step,
    ToAgent,
    ToClient,
    changed,
    notification,
    request,
    result,
)
from acp_proxy.plugin_host.fence import Fence
from relay_driver import (
    Driver,
    answer,
    ask,
    both_v1,
    bridged,
    call,
    cancel,
    line,
    message,
    note,
    prompt,
    selected,
    tell,
    thought,
    tool,
)

SECRET = "sesame"


class Doing(Filter):
    """Does with each message what it is told to, once armed: the opening of a conversation is left alone."""

    def __init__(self, doing: Callable[[Message], Any]) -> None:
        self._doing = doing
        self.armed = False
        self.seen: list[Message] = []

    def forth(self, message: Message, at: float) -> Outcome:
        return self._do(message)

    def back(self, message: Message, at: float) -> Outcome:
        return self._do(message)

    def _do(self, message: Message) -> Any:
        if not self.armed:
            return message
        self.seen.append(message)
        return self._doing(message)


def fenced(
    doing: Callable[[Message], Any], *, refuses: bool = False, opening: Callable[..., Driver] = both_v1
) -> tuple[Driver, Doing, list[Finding]]:
    """A relay with one fenced filter in it, the session `s1` open, and the findings reported by the fence."""
    found: list[Finding] = []
    stage = Doing(doing)
    fence = Fence("p", stage, refuses=refuses, report=lambda finding, exc: found.append(finding))
    driver = opening(filters=(fence,))
    stage.armed = True
    return driver, stage, found


def fails(message: Message) -> Any:
    raise ValueError(f"cannot take {SECRET}")


class Aside(ToClient):
    """A step the chain does not know."""


async def coroutine() -> None:
    """What a filter returns whose author made it async."""


def in_place(message: Message) -> Message:
    message.body["params"] = {"sessionId": "other"}
    return message


def renamed_in_place(message: Message) -> Message:
    """A new message, so that no frame tells what it was, and then another method in it."""
    made = type(message)({**message.body})
    made.body["method"] = "x/other"
    return made


MISUSES: dict[str, Callable[[Message], Any]] = {
    "exception": fails,
    "exit": lambda message: exit(3),
    "recursion": lambda message: MISUSES["recursion"](message),
    "async": lambda message: coroutine(),
    "generator": lambda message: (step for step in [ToClient(message)]),
    "text": lambda message: "no",
    "bool": lambda message: True,
    "list of messages": lambda message: [message],
    "restart": lambda message: [RestartAgent()],
    "step of its own": lambda message: [Aside(message)],
    "step without message": lambda message: [ToClient("x")],  # type: ignore[arg-type]  # the misuse tested
    "bare message": lambda message: Message({"jsonrpc": "2.0", "method": "x"}),
    "wrong kind": lambda message: Response({"jsonrpc": "2.0", "method": "x"}),
    "no object": lambda message: Notification([1]),  # type: ignore[arg-type]  # the misuse tested
    "not JSON": lambda message: notification("x", {"y": object()}),
    "bytes": lambda message: notification("x", {"y": b"z"}),
    "infinity": lambda message: notification("x", {"y": math.inf}),
    "changed in place": in_place,
    "renamed in place": renamed_in_place,
    "frame of another": lambda message: Notification({"jsonrpc": "2.0", "method": "x"}, message.frame),
}


@pytest.mark.parametrize("doing", MISUSES.values(), ids=MISUSES)
def test_a_failing_filter_lets_its_message_pass_as_it_came(doing: Callable[[Message], Any]) -> None:
    driver, _, found = fenced(doing)
    raw = b'{"jsonrpc":"2.0", "method":"session/cancel","params":{"sessionId":"s1"}}'
    assert driver.lines(Role.CLIENT, raw).raw(Role.AGENT) == [raw]
    raw = line(message("hello"))
    assert driver.lines(Role.AGENT, raw).raw(Role.CLIENT) == [raw]
    assert [finding.rule for finding in found] == ["V55", "V55"]
    assert [finding.leg for finding in found] == ["client", "agent"]
    assert [finding.session for finding in found] == ["s1", "s1"]
    assert [finding.action for finding in found] == ["noted", "noted"]
    assert [finding.frames for finding in found] == [(5,), (6,)]
    assert found[0].severity == "error"
    assert found[0].source == "plugins.p"
    assert SECRET not in found[0].text
    assert "plugin 'p' failed in forth: " in found[0].text


@pytest.mark.parametrize("doing", MISUSES.values(), ids=MISUSES)
def test_a_failing_filter_that_refuses_lets_nothing_pass(doing: Callable[[Message], Any]) -> None:
    driver, _, found = fenced(doing, refuses=True)
    said = driver.client_sends(prompt(7, SECRET))
    assert said.raw(Role.AGENT) == []
    [refusal] = said.client
    assert (refusal["id"], refusal["error"]["code"]) == (7, -32603)
    assert "'p'" in refusal["error"]["message"]
    assert driver.client_sends(cancel()).lines == []
    assert driver.agent_sends(message(SECRET)).lines == []
    said = driver.agent_sends(ask(90))
    assert said.raw(Role.CLIENT) == []
    [refusal] = said.agent
    assert (refusal["id"], refusal["error"]["code"]) == (90, -32603)
    assert {finding.action for finding in found} == {"refused"}
    assert len(found) == 4


def test_a_refused_answer_becomes_an_error_so_that_nobody_waits() -> None:
    driver, stage, _ = fenced(fails, refuses=True)
    stage.armed = False
    driver.prompt(7)
    driver.agent_sends(ask(90))
    stage.armed = True
    said = driver.client_sends(selected(90))
    assert [(body["id"], body["error"]["code"]) for body in said.agent] == [(90, -32603)]
    said = driver.agent_sends(answer(7, {"stopReason": "end_turn", "note": SECRET}))
    assert [(body["id"], body["error"]["code"]) for body in said.client] == [(7, -32603)]


def test_after_three_failures_a_filter_that_passes_is_taken_out() -> None:
    driver, stage, found = fenced(fails)
    for number in range(5):
        assert len(driver.agent_sends(message(str(number))).client) == 1
    assert len(stage.seen) == len(found) == 3
    assert "taken out" in found[2].text
    assert "taken out" not in found[1].text


def test_a_filter_that_refuses_stays_however_often_it_fails() -> None:
    driver, stage, found = fenced(fails, refuses=True)
    for number in range(5):
        assert driver.agent_sends(message(str(number))).client == []
    assert len(stage.seen) == len(found) == 5


def test_the_finding_says_where_and_not_what() -> None:
    driver, _, found = fenced(fails)
    driver.client_sends(cancel())
    assert found[0].text.startswith("plugin 'p' failed in forth: ValueError at test_plugin_fence.py:")


def test_what_a_failing_filter_did_to_a_message_is_undone() -> None:
    """Where the dialects differ the message is encoded anew, and would carry the damage along."""

    def spoil(message: Message) -> Any:
        if isinstance(message, Request):
            message.body["id"] = 99
            message.body["params"]["prompt"] = "spoilt"
            message.frame = None
            raise ValueError
        return message

    driver, _, found = fenced(spoil, opening=bridged)
    [sent] = driver.prompt(7, "go").agent
    assert sent["params"]["prompt"] == [{"type": "text", "text": "go"}]
    driver.agent_sends(message("hi"))
    assert answer(7, {"messageId": "0-u1"}) in driver.outputs.client
    assert len(found) == 1


def spoils_ids(message: Message) -> Any:
    message.body.clear()
    raise ValueError


def spoils_params(message: Message) -> Any:
    message.body["params"]["update"]["title"] = object()
    return message


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("spoil", [spoils_ids, spoils_params])
def test_a_message_without_a_frame_is_checked_too(spoil: Callable[[Message], Any], refuses: bool) -> None:
    """In a bridged session much of what the agent says arrives here as a message of the bridge."""
    found: list[Finding] = []
    stage = Doing(spoil)
    fence = Fence("p", stage, refuses=refuses, report=lambda finding, exc: found.append(finding))
    driver = bridged(filters=(fence,))
    driver.prompt(7)
    driver.agent_sends(thought())
    stage.armed = True
    heard = driver.agent_sends(tool("k", "pending")).client
    passes = spoil is spoils_ids and not refuses
    assert [tell(body) for body in heard] == (["tool_call_update"] if passes else [])
    assert [(finding.frames, finding.action) for finding in found] == [((), "noted" if passes else "refused")]


def test_deep_nesting_is_no_failure_of_the_filter() -> None:
    driver, _, found = fenced(lambda message: message)
    raw = line(note("_x", {"deep": 0})).replace(b"0}", b"[" * 1000 + b"]" * 1000 + b"}")
    assert driver.lines(Role.AGENT, raw).raw(Role.CLIENT) == [raw]
    assert found == []


# ---------------------------------------------------------------- what a filter may do


def test_an_untouched_message_leaves_as_its_own_bytes() -> None:
    driver, stage, found = fenced(lambda message: message)
    raw = b'{ "method":"_x","jsonrpc":"2.0","params":{"n":1.50,"u":"\\u00e9"}}'
    assert driver.lines(Role.AGENT, raw).raw(Role.CLIENT) == [raw]
    assert driver.lines(Role.CLIENT, raw).raw(Role.AGENT) == [raw]
    assert len(stage.seen) == 2
    assert found == []


def test_a_filter_may_change_end_turn_back_and_add() -> None:
    def doing(message: Message) -> Outcome:
        if isinstance(message, Request):
            return [ToClient(result(message.id, {"from": "filter"}))]
        if isinstance(message, Notification) and message.method == "drop":
            return None
        if isinstance(message, Notification) and message.method == "twice":
            return (ToAgent(message), ToAgent(changed(message, method="again")))
        assert isinstance(message, Notification)
        return changed(message, params={"new": True})

    driver, _, found = fenced(doing)
    assert driver.client_sends(call(5, "_x", {})).both == ["C answer 5"]
    assert driver.client_sends(note("drop", {})).lines == []
    assert driver.client_sends(note("twice", {})).both == ["A twice", "A again"]
    assert driver.client_sends(note("other", {})).agent == [note("other", {"new": True})]
    assert found == []


def test_a_filter_sees_the_clients_dialect_and_no_state_change() -> None:
    driver, stage, found = fenced(lambda message: message, opening=bridged)
    driver.prompt(7, "go")
    driver.agent_sends(message("hi"))
    driver.ends()
    tags = [one.body["params"]["update"]["sessionUpdate"] for one in stage.seen[1:] if "params" in one.body]
    assert tags == ["state_update", "user_message", "agent_message_chunk", "state_update"]
    assert all(isinstance(one, Message) for one in stage.seen)
    assert found == []


# ---------------------------------------------------------------- time, ends


class Timed(Filter):
    """Asks for a time and says something then; each part can be replaced."""

    def __init__(self, due: Any = 101.0, steps: Any = ()) -> None:
        self.due = due
        self.steps = steps
        self.expired: list[float] = []
        self.asked = 0

    def next_deadline(self) -> float | None:
        self.asked += 1
        if isinstance(self.due, Exception):
            raise self.due
        due: float | None = self.due
        return due

    def expire(self, at: float) -> Sequence[Step]:
        self.expired.append(at)
        self.due = None
        if isinstance(self.steps, Exception):
            raise self.steps
        steps: Sequence[Step] = self.steps
        return steps

    def agent_gone(self, error: Json, at: float) -> Sequence[Step]:
        return self.expire(at)


def timed(stage: Filter, *, refuses: bool = False) -> tuple[Driver, list[Finding]]:
    found: list[Finding] = []
    fence = Fence("p", stage, refuses=refuses, report=lambda finding, exc: found.append(finding))
    return both_v1(filters=(fence,)), found


def test_a_filter_is_called_at_the_time_it_asked_for() -> None:
    stage = Timed(101, [ToClient(notification("_late", {})), ToAgent(request("x", "_ask", {}))])
    driver, found = timed(stage)
    assert driver.advance(0.5).lines == []
    assert driver.advance(1.0).both == ["C _late", "A _ask #x"]
    assert stage.expired == [101.0]
    assert driver.deadline is None
    assert found == []


@pytest.mark.parametrize("due", [ValueError(SECRET), "soon", True, math.nan, 10**400, object()], ids=repr)
def test_a_filter_that_cannot_tell_its_time_is_not_asked_again(due: Any) -> None:
    stage = Timed(due)
    driver, found = timed(stage, refuses=True)
    driver.client_sends(cancel())
    assert stage.asked == 1
    assert driver.deadline is None
    assert [finding.rule for finding in found] == ["V55"]
    assert "next_deadline" in found[0].text
    assert SECRET not in found[0].text


def test_for_ever_is_no_deadline() -> None:
    driver, found = timed(Timed(math.inf))
    assert driver.deadline is None
    assert found == []


class Impatient(Timed):
    """Is always due."""

    def expire(self, at: float) -> Sequence[Step]:
        super().expire(at)
        self.due = at - 1.0
        return []


def test_a_filter_that_is_always_due_does_not_hold_the_loop() -> None:
    stage = Impatient(101.0)
    driver, found = timed(stage)
    driver.advance(10.0)
    assert stage.expired == [101.0]
    assert [finding.text for finding in found] == [
        "plugin 'p' failed in next_deadline: it is due again at once"
    ]
    assert len(driver.agent_sends(message("still passes")).client) == 1


@pytest.mark.parametrize("steps", [ValueError(SECRET), "text", None, [1], [ToClient(Message({}))]], ids=repr)
def test_failing_at_its_time_or_at_the_agents_end_says_nothing(steps: Any) -> None:
    driver, found = timed(Timed(101.0, steps))
    assert driver.advance(2.0).lines == []
    assert driver.agent_exits().lines == []
    assert [finding.text.split(":")[0] for finding in found] == [
        "plugin 'p' failed in expire",
        "plugin 'p' failed in agent_gone",
    ]
    assert SECRET not in found[0].text


def test_a_filter_may_answer_what_it_holds_when_the_agent_is_gone() -> None:
    driver, found = timed(Timed(None, [ToClient(result(9, {}))]))
    assert driver.agent_exits().both == ["C answer 9"]
    assert found == []


def test_a_filter_taken_out_is_not_called_at_all() -> None:
    class Failing(Timed):
        def back(self, message: Message, at: float) -> Outcome:
            return "no"  # type: ignore[return-value]  # the misuse tested

    stage = Failing(None)
    driver, found = timed(stage)
    for _ in range(4):
        driver.agent_sends(message("x"))
    asked = stage.asked
    driver.client_sends(cancel())
    driver.agent_exits()
    assert stage.asked == asked
    assert stage.expired == []
    assert len(found) == 3


def test_a_frame_of_ours_is_no_frame_of_a_filter() -> None:
    """A frame must hold what the message says, or it would be sent in its place."""
    frame = Frame(line(note("_x", {})), 1)
    driver, _, found = fenced(lambda message: Notification(note("_x", {}), frame))
    assert driver.agent_sends(message("x")).client == [note("_x", {})]
    assert found == []
