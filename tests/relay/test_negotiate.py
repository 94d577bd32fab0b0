"""`initialize` between all kinds of peers (bridge §1, §12; LC-86)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role, Version
from relay_driver import (
    AGENT_INFO,
    CLIENT_INFO,
    V2_RESULT,
    Driver,
    Said,
    answer,
    call,
    failure,
    initialize_v1,
    initialize_v2,
    line,
    message,
    note,
    story,
    v1_result,
)
from schema_cache import message_error

CLIENT, AGENT = Role.CLIENT, Role.AGENT


def offered(said: Said) -> dict[str, Any]:
    """The parameters of the initialize the agent was sent."""
    (body,) = said.agent
    assert body["method"] == "initialize"
    params: dict[str, Any] = body["params"]
    return params


def spaced(body: dict[str, Any]) -> bytes:
    """A line no encoder of ours would write."""
    return line(body).replace(b'"jsonrpc":', b'  "jsonrpc" : ') + b" "


# ---------------------------------------------------------------- equal versions


def test_v1_peers_get_each_others_bytes() -> None:
    driver = Driver()
    ask_, reply = spaced(initialize_v1("i", extra=[1.50])), spaced(answer("i", {**v1_result(), "x": 1e2}))
    assert driver.lines(CLIENT, ask_).lines == [(AGENT, ask_)]
    assert driver.lines(AGENT, reply).lines == [(CLIENT, reply)]
    assert driver.outputs.findings == []


def test_a_v2_agent_answers_a_v2_client_in_its_own_bytes() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    reply = spaced(answer(0, {**V2_RESULT, "x": 1e2}))
    assert driver.lines(AGENT, reply).lines == [(CLIENT, reply)]
    later = spaced(call(1, "session/new", {"cwd": "/p", "n": 1e2}))
    assert driver.lines(CLIENT, later).lines == [(AGENT, later)]


@pytest.mark.parametrize("request_id", [0, "i", -1])
def test_the_offer_to_an_agent_of_unknown_version_has_both_shapes(request_id: Any) -> None:
    driver = Driver()
    request = initialize_v2(request_id, elicitation={"form": {}}, auth={"terminal": {}})
    said = driver.client_sends(request)
    params = offered(said)
    assert said.agent[0]["id"] == request_id
    assert params["protocolVersion"] == 2
    assert params["info"] == params["clientInfo"] == CLIENT_INFO
    assert params["capabilities"] == request["params"]["capabilities"]
    assert params["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert params["clientCapabilities"]["terminal"] is False
    assert params["clientCapabilities"]["auth"]["terminal"] is True
    for version in Version:
        assert message_error(version, said.agent[0], sender=CLIENT) is None


# ---------------------------------------------------------------- a v1 agent


@pytest.mark.parametrize("version", [2, 3, 17, 65535])
def test_a_v1_agent_of_a_newer_client_is_bridged(version: int) -> None:
    driver = Driver()
    assert offered(driver.client_sends(initialize_v2(0, version)))["protocolVersion"] == 2
    (body,) = driver.agent_sends(answer(0, {**v1_result(), "x": 1, "_meta": {"m": 1}})).client
    assert body["result"]["protocolVersion"] == 2
    assert body["result"]["info"] == AGENT_INFO
    assert (body["result"]["x"], body["result"]["_meta"]["m"]) == (1, 1)
    assert driver.outputs.restarts == 0
    driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
    assert driver.outputs.agent[-1]["params"]["mcpServers"] == [], "the bridge stands"


def test_an_agent_that_echoes_the_number_is_a_v1_agent() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    said = driver.agent_sends(answer(0, v1_result(2)))
    assert said.client[0]["result"]["capabilities"] == {"session": {"mcp": {"stdio": {}}}}
    assert said.rules == ["V50"]
    driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
    assert driver.outputs.agent[-1]["params"]["mcpServers"] == []


def test_an_agent_without_a_name_is_unknown() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    result = driver.agent_sends(answer(0, {"protocolVersion": 1})).client[0]["result"]
    assert result["info"] == {"name": "unknown", "version": "unknown"}


# ---------------------------------------------------------------- the offer is refused


@pytest.mark.parametrize("code", [-32602, -32600, -32022])
def test_a_refused_offer_is_made_once_more_in_v1_to_a_fresh_agent(code: int) -> None:
    driver = Driver()
    driver.client_sends(initialize_v2("i"))
    said = driver.agent_sends(failure("i", code))
    assert said.client == []
    kinds = [type(command).__name__ for command in said.commands]
    assert kinds.index("RestartLeg") < kinds.index("SendFrames")
    params = offered(said)
    assert (params["protocolVersion"], params["clientInfo"]) == (1, CLIENT_INFO)
    assert "info" not in params
    assert "capabilities" not in params
    assert message_error(Version.V1, said.agent[0], sender=CLIENT) is None
    assert driver.agent_sends(answer("i", v1_result())).client[0]["result"]["protocolVersion"] == 2


def test_a_second_refusal_goes_to_the_client() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    driver.agent_sends(failure(0, -32602, "first"))
    said = driver.agent_sends(failure(0, -32602, "second"))
    assert said.client == [failure(0, -32602, "second")]
    assert driver.outputs.restarts == 1


@pytest.mark.parametrize("code", [-32603, -32000, -32601, 1])
def test_other_errors_are_no_refusal_of_the_offer(code: int) -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    said = driver.agent_sends(failure(0, code))
    assert (said.client, said.restarts) == ([failure(0, code)], 0)


def test_a_client_may_try_again_after_a_failure() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    driver.agent_sends(failure(0, -32603))
    driver.client_sends(initialize_v2(1))
    assert driver.agent_sends(answer(1, v1_result())).client[0]["result"]["protocolVersion"] == 2


def test_a_v1_clients_refused_offer_is_its_own_business() -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0))
    raw = spaced(failure(0, -32602))
    said = driver.lines(AGENT, raw)
    assert (said.lines, said.restarts) == ([(CLIENT, raw)], 0)


def test_the_agent_gone_fails_the_initialize() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    assert driver.agent_exits("gone").client == [failure(0, -32603, "gone")]


# ---------------------------------------------------------------- configured versions


def test_agent_version_1_offers_v1_at_once() -> None:
    driver = Driver(agent_version="1")
    params = offered(driver.client_sends(initialize_v2(0)))
    assert (params["protocolVersion"], "capabilities" in params) == (1, False)
    said = driver.agent_sends(failure(0, -32602))
    assert (said.client, said.restarts) == ([failure(0, -32602)], 0)


def test_agent_version_1_changes_nothing_for_a_v1_client() -> None:
    driver = Driver(agent_version="1")
    raw = spaced(initialize_v1(0))
    assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_the_bridge_everything_passes_as_it_is(version: int) -> None:
    driver = Driver(bridge="off")
    raw = spaced(initialize_v2(0, version))
    assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]
    for result in (v1_result(), V2_RESULT, {"protocolVersion": 9}):
        fresh = Driver(bridge="off")
        fresh.lines(CLIENT, raw)
        reply = spaced(answer(0, result))
        assert fresh.lines(AGENT, reply).lines == [(CLIENT, reply)]
        later = spaced(call(1, "session/new", {"cwd": "/p"}))
        assert fresh.lines(CLIENT, later).lines == [(AGENT, later)]


def test_without_the_bridge_a_refusal_restarts_nothing() -> None:
    driver = Driver(bridge="off")
    driver.client_sends(initialize_v2(0))
    assert driver.agent_sends(failure(0, -32602)).restarts == 0


@pytest.mark.parametrize("result", [{}, None, {"protocolVersion": 0}, {"protocolVersion": 9}, [], "x"])
def test_an_answer_without_a_common_version_passes_unchanged(result: Any) -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    raw = spaced(answer(0, result))
    assert driver.lines(AGENT, raw).lines == [(CLIENT, raw)]


# ---------------------------------------------------------------- bad offers


def test_a_missing_version_is_refused_here() -> None:
    said = Driver().client_sends(call(0, "initialize", {"clientInfo": CLIENT_INFO}))
    assert said.both == ["C error 0 -32602"]


@pytest.mark.parametrize("version", [True, False, None, 1.5, "one", "", "1.5", [], {}, -1, "1e3", "0x1"])
def test_a_version_that_is_no_number_is_refused_here(version: Any) -> None:
    said = Driver().client_sends(initialize_v1(0, version))
    assert (said.both, said.rules) == (["C error 0 -32602"], ["V50"])


@pytest.mark.parametrize(("version", "number"), [("1", 1), ("1.0", 1), (" 2 ", 2), ("3", 2)])
def test_a_version_in_text_is_read(version: str, number: int) -> None:
    driver = Driver()
    make = initialize_v1 if number == 1 else initialize_v2
    said = driver.client_sends(make(0, version))
    assert offered(said)["protocolVersion"] == number
    assert type(offered(said)["protocolVersion"]) is int
    assert said.rules == ["V50"]


@pytest.mark.parametrize("changes", [{"info": 5}, {"info": {}}, {"info": None}, {"capabilities": 5}])
def test_a_v2_offer_must_fit(changes: dict[str, Any]) -> None:
    request = initialize_v2(0)
    request["params"].update(changes)
    driver = Driver()
    said = driver.client_sends(request)
    if said.agent:
        assert message_error(Version.V2, said.agent[0], sender=CLIENT) is None
    else:
        assert said.both == ["C error 0 -32602"]
        assert story(driver.client_sends(initialize_v2(1)).agent) == ["initialize #1"]


def test_a_missing_info_is_unknown() -> None:
    request = initialize_v2(0)
    del request["params"]["info"]
    said = Driver().client_sends(request)
    assert offered(said)["info"] == {"name": "unknown", "version": "unknown"}


# ---------------------------------------------------------------- before the answer


def test_a_v2_client_says_nothing_before_the_answer() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    said = driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
    assert (said.both, said.rules) == (["C error 1 -32600"], ["V33"])
    said = driver.client_sends(note("session/cancel", {"sessionId": "s"}))
    assert (said.lines, said.rules) == ([], ["V33"])
    assert driver.client_sends(initialize_v2(2)).both == ["C error 2 -32600"]
    assert driver.agent_sends(answer(0, v1_result())).client[0]["id"] == 0


def test_before_any_initialize_the_agent_judges() -> None:
    driver = Driver()
    raw = spaced(call(1, "session/new", {"cwd": "/p"}))
    assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]
    reply = spaced(failure(1, -32600))
    assert driver.lines(AGENT, reply).lines == [(CLIENT, reply)]


def test_a_v1_client_may_speak_before_the_answer() -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0))
    raw = spaced(call(1, "session/new", {"cwd": "/p"}))
    assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]


def test_a_request_of_the_agent_before_its_answer_gets_exactly_one_answer() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    driver.agent_sends(call("q", "_x/hello", {}))
    asked = [body["id"] for body in driver.outputs.client if body.get("method") == "_x/hello"]
    for token in asked:
        driver.client_sends(answer(token, {}))
    driver.agent_sends(answer(0, v1_result()))
    replies = [body for body in driver.outputs.agent if "method" not in body]
    assert [body["id"] for body in replies] == ["q"]


def test_what_an_agent_says_before_its_answer_reaches_the_client() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    given = note("_x/log", {"a": 1})
    assert driver.agent_sends(given).client == [given]


def test_the_answer_is_known_by_the_type_of_its_id() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(1))
    driver.agent_sends(answer("1", v1_result()), answer(1.0, v1_result()))
    assert [body for body in driver.outputs.client if body["id"] == 1 and type(body["id"]) is int] == []
    assert driver.agent_sends(answer(1, v1_result())).client[0]["result"]["protocolVersion"] == 2


def test_a_repeated_initialize_between_v2_peers_is_answered_from_the_first() -> None:
    driver = Driver()
    driver.client_sends(initialize_v2(0))
    driver.agent_sends(answer(0, V2_RESULT))
    assert driver.client_sends(initialize_v2("again")).client == [answer("again", V2_RESULT)]
    other = initialize_v2(2, elicitation={})
    assert driver.client_sends(other).agent == [other], "with other parameters it is the agent's to judge"
    driver.agent_sends(failure(2, -32600))
    driver.client_sends(call(3, "session/list", {}))
    again = initialize_v2(4)
    assert driver.client_sends(again).agent == [again], "after another request as well"


def test_a_repeated_initialize_between_v1_peers_is_the_agents_to_judge() -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0))
    driver.agent_sends(answer(0, v1_result()))
    raw = spaced(initialize_v1(1))
    assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]
    assert story(driver.agent_sends(answer(1, v1_result()), message()).client) == [
        "answer 1",
        "agent_message_chunk",
    ]


# ---------------------------------------------------------------- before anything is agreed


def test_an_agent_that_asks_before_initialize_gets_nobodys_yes() -> None:
    driver = Driver()
    question = call(1, "session/request_permission", {"sessionId": "s", "options": [], "toolCall": {}})
    said = driver.agent_sends(question)
    assert said.both == ["A error 1 -32600"]
    assert said.rules == ["V33"]
    driver.client_sends(initialize_v2(0))
    assert driver.agent_sends({**question, "id": 2}).both == ["A error 2 -32600"]


def test_a_v1_client_settles_for_itself_what_comes_before_the_answer() -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0))
    question = line(call(1, "_x/ask", {"n": 1}))
    assert driver.lines(AGENT, question).lines == [(CLIENT, question)]


def test_nothing_is_bridged_over_requests_that_went_out_untranslated() -> None:
    driver = Driver()
    early = line(call(1, "_x/early", {}))
    assert driver.lines(CLIENT, early).lines == [(AGENT, early)]
    said = driver.client_sends(initialize_v2(2))
    assert said.both == ["C error 2 -32600"]
    assert said.rules == ["V33"]
    driver.agent_sends(answer(1, {}))
    assert offered(driver.client_sends(initialize_v2(3)))["protocolVersion"] == 2
