"""What a relay does with lines that are no plain message, and when a leg ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.jsonrpc.framing import Oversize
from acp_proxy.relay.commands import Emit, FrameReport
from relay_driver import (
    Driver,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    dismissed,
    failure,
    form,
    initialize_v1,
    line,
    message,
    note,
    prompt,
    selected,
    story,
    tool,
    v1_result,
)

CLIENT, AGENT = Role.CLIENT, Role.AGENT
LEGS = [(CLIENT, AGENT), (AGENT, CLIENT)]
MODES = {"v1": both_v1, "v2": both_v2, "bridged": bridged}


@pytest.fixture(params=MODES)
def driver(request: pytest.FixtureRequest) -> Driver:
    made: Driver = MODES[request.param]()
    return made


# ---------------------------------------------------------------- no JSON, no message


@pytest.mark.parametrize("raw", [b"hello", b"{", b'"text"', b"5", b"null", b"\xff", b'{"a":1} x', b"true"])
def test_what_is_no_object(driver: Driver, raw: bytes) -> None:
    said = driver.lines(CLIENT, raw)
    assert (said.both, said.rules) == (["C error None -32700"], ["V45"])
    said = driver.lines(AGENT, raw)
    assert (said.lines, said.diverted, said.rules) == ([], [raw], ["V45"])


@pytest.mark.parametrize("raw", [b"", b"\r", b"  ", b"\t \r"])
def test_blank_lines_are_nothing(driver: Driver, raw: bytes) -> None:
    for leg in Role:
        assert driver.lines(leg, raw).commands == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"method": 5, "id": 3}, "error 3 -32600"),
        ({"method": None, "id": "x"}, "error x -32600"),
        ({"method": 5}, "error None -32600"),
        ({"method": [], "id": 1.5}, "error None -32600"),
        ({}, "error None -32600"),
        ({"jsonrpc": "2.0", "params": {}}, "error None -32600"),
    ],
)
def test_objects_that_are_no_message(driver: Driver, body: dict[str, Any], told: str) -> None:
    said = driver.client_sends(body)
    assert (said.both, said.rules) == ([f"C {told}"], ["V31"])


@pytest.mark.parametrize(
    "body", [{"id": 3}, {"id": None}, {"result": {}}, {"error": {"code": 1}}, {"id": 1, "x": 2}]
)
def test_what_looks_like_an_answer_is_never_answered(driver: Driver, body: dict[str, Any]) -> None:
    for leg in Role:
        assert driver.lines(leg, line({"jsonrpc": "2.0", **body})).lines == []


@pytest.mark.parametrize("leg", Role)
def test_an_error_with_id_null_is_never_forwarded(driver: Driver, leg: Role) -> None:
    said = driver.lines(leg, line(failure(None, -32600)))
    assert (said.lines, said.rules) == ([], ["V51"])


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("leg", Role)
@pytest.mark.parametrize("items", [[], [note("_x/y", {})], [prompt(7), cancel()], [1, None]])
def test_a_batch_is_refused_whole(driver: Driver, leg: Role, items: list[Any]) -> None:
    said = driver.lines(leg, line(items))
    assert [(to, json.loads(raw)["id"]) for to, raw in said.lines] == [(leg, None)]
    assert json.loads(said.lines[0][1])["error"]["code"] == -32600
    assert said.rules == ["V32"]


def test_a_batch_taken_apart() -> None:
    for mode in (both_v1, bridged):
        driver = mode(batch="split")
        said = driver.client_sends([call(5, "_x/a", {}), 7, note("_x/b", {}), {"id": 1}, failure(None, 1)])
        assert [tell.split(" ")[0] for tell in story(said.agent)] == ["_x/a", "_x/b"]
        assert story(said.client) == ["error None -32600", "error None -32600"]
        assert driver.client_sends([]).both == ["C error None -32600"]


# ---------------------------------------------------------------- null ids of v1


def test_null_ids_of_v1_peers_are_answered() -> None:
    driver = both_v1()
    asked = line(call(None, "session/list", {}))
    assert driver.lines(CLIENT, asked).lines == [(AGENT, asked)]
    reply = line(answer(None, {"sessions": []}))
    assert driver.lines(AGENT, reply).lines == [(CLIENT, reply)]
    asked = line(ask(None))
    assert driver.lines(AGENT, asked).lines == [(CLIENT, asked)]
    reply = line(selected(None))
    assert driver.lines(CLIENT, reply).lines == [(AGENT, reply)]


def test_ids_of_equal_versions_are_nobodys_business() -> None:
    for driver in (both_v1(), both_v2()):
        for token in (0, "0", 1.5, 2**70, "", [1]):
            raw = line(call(token, "_x/ask", {}))
            assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]
            reply = line(answer(token, {}))
            assert driver.lines(AGENT, reply).lines == [(CLIENT, reply)]


# ---------------------------------------------------------------- too long


@pytest.mark.parametrize(
    "head", [b'{"jsonrpc":"2.0","id":%s,"method":"x', b'{"id": %s , "method":', b' {"id":%s,"method"']
)
@pytest.mark.parametrize("token", [b"7", b'"a\xc3\xa4"', b"-1"])
def test_a_request_too_long_is_answered_where_its_id_can_be_read(
    driver: Driver, head: bytes, token: bytes
) -> None:
    for leg in Role:
        said = driver.lines(leg, Oversize(head % token))
        ((to, raw),) = said.lines
        body = json.loads(raw)
        assert (to, body["id"], body["error"]["code"]) == (leg, json.loads(token), -32600)
        assert said.rules == ["V48"]


@pytest.mark.parametrize(
    "head",
    [
        b"x" * 100,
        b'{"params":{"id":7,"method":"x',
        b'{"id":7.5,"method":',
        b'{"id":null,"method":',
        b'{"id":7',
    ],
)
def test_a_line_too_long_whose_id_cannot_be_read(driver: Driver, head: bytes) -> None:
    """A client's request is refused under no id, for its own may stand behind what was skipped."""
    said = driver.lines(AGENT, Oversize(head))
    assert (said.lines, said.rules) == ([], ["V48"])
    said = driver.lines(CLIENT, Oversize(head))
    assert (said.both, said.rules) == (["C error None -32600"] if b'"method"' in head else [], ["V48"])


def test_an_answer_too_long_fails_its_request_on_the_other_leg() -> None:
    driver = bridged()
    driver.client_sends(call("list", "_x/ask", {}))
    own = driver.agent_id("_x/ask")
    said = driver.lines(AGENT, Oversize(b'{"jsonrpc":"2.0","id":%d,"result":{' % own))
    assert said.both == ["C error list -32603"]
    driver.prompt(7)
    driver.agent_sends(ask(90))
    said = driver.lines(CLIENT, Oversize(b'{"jsonrpc":"2.0","id":1,"result":{'))
    assert said.agent == [dismissed(90)], "never an approval"
    plain = both_v1()
    plain.agent_sends(ask(90))
    said = plain.lines(CLIENT, Oversize(b'{"jsonrpc":"2.0","id":90,"result":{'))
    assert story(said.agent) == ["error 90 -32603"]


# ---------------------------------------------------------------- numbers JSON cannot carry


HUGE = b"1e400"


def test_equal_versions_pass_what_could_not_be_encoded() -> None:
    for driver in (both_v1(), both_v2()):
        raw = b'{"jsonrpc":"2.0","id":7,"method":"_x/ask","params":{"n":' + HUGE + b"}}"
        assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]


def test_a_changed_message_that_cannot_be_encoded_is_refused() -> None:
    driver = bridged()
    said = driver.lines(CLIENT, b'{"jsonrpc":"2.0","id":7,"method":"_x/ask","params":{"n":' + HUGE + b"}}")
    assert story(said.client)[0].startswith("error 7 ")
    assert said.agent == []
    driver.client_sends(call(8, "_x/ask", {}))
    own = driver.agent_id("_x/ask")
    said = driver.lines(AGENT, b'{"jsonrpc":"2.0","id":%d,"result":{"n":%s}}' % (own, HUGE))
    assert said.both == ["C error 8 -32603"]
    said = driver.lines(AGENT, b'{"jsonrpc":"2.0","id":90,"method":"_x/ask","params":{"n":' + HUGE + b"}}")
    assert [words.rsplit(" ", 1)[0] for words in said.both] == ["A error 90"]
    raw = line(tool("k", "pending", rawInput="x")).replace(b'"x"', HUGE)
    said = driver.lines(AGENT, raw)
    assert (said.lines, said.rules) == ([], ["V42"])


@pytest.mark.parametrize("mode", ["observe", "enforce", "strict"])
@pytest.mark.parametrize("pair", [both_v1, both_v2, bridged])
@pytest.mark.parametrize("leg", [CLIENT, AGENT])
@pytest.mark.parametrize("token", [HUGE, b"[1e400]", b'{"n":-1e400}'])
@pytest.mark.parametrize("method", ["_x/ask", "session/prompt", "session/request_permission"])
def test_an_id_that_cannot_be_encoded_ends_nothing(
    mode: str, pair: Callable[..., Driver], leg: Role, token: bytes, method: str
) -> None:
    """Whoever answers such a request in a peer's name has no id to answer it with."""
    raw = b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{"sessionId":"s1"}}' % (token, method.encode())
    for end in (Driver.client_leaves, Driver.agent_exits):
        driver = pair(lifecycle=mode)
        driver.lines(leg, raw)
        assert [body["method"] for body in driver.client_sends(call(7, "_x/alive", {})).agent] == ["_x/alive"]
        said = end(driver)
        assert all(json.loads(raw) is not None for _, raw in said.lines)
        assert said.closed


# ---------------------------------------------------------------- the agent's end


def test_the_agents_end_fails_what_is_open_and_withdraws_what_it_asked() -> None:
    driver = both_v1()
    driver.prompt(7)
    driver.client_sends(call("l", "session/list", {}))
    driver.agent_sends(ask(90), call("q", "_x/ask", {}))
    said = driver.agent_exits("the agent exited with status 3", {"exitCode": 3})
    assert sorted(story(said.client)) == ["error 7 -32603", "error l -32603", "withdraw 90", "withdraw q"]
    assert said.closed == [CLIENT]
    assert driver.agent_exits().commands == [], "told once"
    assert driver.client_sends(selected(90), note("_x/y", {})).lines == []


def test_lines_before_the_end_come_before_it() -> None:
    driver = both_v1()
    driver.prompt(7)
    driver.agent_sends(answer(7, {"stopReason": "end_turn"}))
    assert story(driver.agent_exits().client) == []


# ---------------------------------------------------------------- the client's end


def test_a_v1_clients_end_cancels_its_turns_and_answers_the_agent() -> None:
    driver = both_v1()
    driver.prompt(7)
    driver.agent_sends(ask(90), form(91), call("q", "_x/ask", {}))
    said = driver.client_leaves()
    assert story(said.agent)[0] == "session/cancel"
    assert said.agent[1:3] == [dismissed(90), answer(91, {"action": "cancel"})]
    assert story(said.agent)[3] == "error q -32603"
    assert said.client == []
    assert said.closed == [AGENT]
    assert driver.client_leaves().commands == []


def test_a_v2_clients_end_does_the_same_through_the_bridge() -> None:
    driver = bridged(client={"elicitation": {"form": {}}})
    driver.prompt(7)
    driver.prompt(8)
    driver.agent_sends(message(), ask(90), form(91), call("q", "_x/ask", {}))
    said = driver.client_leaves()
    assert sorted(story(said.agent)) == ["answer 90", "answer 91", "error q -32603", "session/cancel"]
    assert story(said.agent)[0] == "session/cancel"
    assert dismissed(90) in said.agent
    assert answer(91, {"action": "cancel"}) in said.agent
    assert said.client == []
    assert story(driver.ends("cancelled").agent) == [], "a held prompt is not sent for nobody"


def test_a_held_prompt_is_not_sent_for_nobody_by_an_agent_that_tells_its_states() -> None:
    driver = bridged()
    driver.prompt(7)
    state = {"sessionUpdate": "state_update", "state": "idle"}
    driver.agent_sends(message(), note("session/update", {"sessionId": "s1", "update": state}))
    driver.prompt(8)
    driver.agent_sends(ask(90))
    told = [*driver.client_leaves().agent, *driver.ends().agent]
    assert not [words for words in story(told) if words.startswith("session/prompt")]
    assert story(told).count("answer 90") == 1


def test_a_client_that_leaves_quietly_leaves_nothing_behind() -> None:
    for make in MODES.values():
        said = make().client_leaves()
        assert (said.lines, said.closed) == ([], [AGENT])


def test_a_request_for_a_client_that_has_left_is_answered() -> None:
    for driver in (both_v1(), bridged()):
        driver.client_leaves()
        said = driver.agent_sends(ask(90), call("q", "_x/ask", {}))
        assert sorted(words.split(" ")[2] for words in said.both) == ["90", "q"]
        assert {words[0] for words in said.both} == {"A"}
        assert dismissed(90) in said.agent or story(said.agent)[0] == "error 90 -32603"


def test_what_the_agent_still_says_goes_to_a_client_that_only_closed_its_writing_side() -> None:
    driver = both_v1()
    driver.prompt(7)
    driver.client_leaves()
    said = driver.agent_sends(message("tail"), answer(7, {"stopReason": "cancelled"}))
    assert story(said.client) == ["agent_message_chunk", "answer 7"]


# ---------------------------------------------------------------- findings, reports


def test_a_closed_v1_session_owes_silence() -> None:
    driver = both_v1()
    driver.client_sends(call(5, "session/close", {"sessionId": "s1"}))
    driver.agent_sends(answer(5, {}))
    for late in (tool("k", "pending"), message()):
        assert driver.agent_sends(late).rules == ["V24"]


def test_reports_tell_every_frame_and_only_on_demand() -> None:
    def frames(driver: Driver) -> list[tuple[str, str, int | None]]:
        reports = [c.report for c in driver.outputs.commands if isinstance(c, Emit)]
        return [(r.leg.value, r.direction, r.number) for r in reports if isinstance(r, FrameReport)]

    driver = Driver(reporting=True)
    driver.client_sends(initialize_v1(0))
    driver.agent_sends(answer(0, v1_result()))
    driver.lines(AGENT, b"noise", line([1]))
    driver.agent_sends(message())
    assert frames(driver) == [
        ("client", "in", 1),
        ("agent", "out", 1),
        ("agent", "in", 2),
        ("client", "out", 2),
        ("agent", "in", 3),
        ("agent", "in", 4),
        ("agent", "out", None),
        ("agent", "in", 5),
        ("client", "out", 5),
    ]
    assert frames(both_v1()) == []


def test_findings_name_the_frame() -> None:
    driver = both_v1()
    count = driver.relay.frames_received
    (finding,) = driver.lines(AGENT, b"noise").findings
    assert finding.frames == (count + 1,)
    assert driver.relay.frames_received == count + 1
