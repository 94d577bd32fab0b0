"""One stream of a conductor, two legs: ids, envelopes, cancellation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.conductor.envelopes import Envelopes

CLIENT, AGENT = Role.CLIENT, Role.AGENT


def line(**body: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **body}).encode()


def apart(envelopes: Envelopes, **body: Any) -> tuple[Role, Any]:
    leg, inner = envelopes.apart(line(**body))
    return leg, json.loads(inner)


def together(envelopes: Envelopes, leg: Role, **body: Any) -> Any:
    out = envelopes.together(leg, line(**body))
    return None if out is None else json.loads(out)


def test_proxy_initialize_is_the_clients_initialize() -> None:
    envelopes = Envelopes()
    leg, inner = apart(envelopes, id=1, method="proxy/initialize", params={"protocolVersion": 2})
    assert (leg, inner["method"], inner["params"]) == (CLIENT, "initialize", {"protocolVersion": 2})
    assert together(envelopes, CLIENT, id=1, result={"protocolVersion": 2})["id"] == 1


def test_message_for_the_successor_goes_in_an_envelope_and_its_answer_comes_back() -> None:
    envelopes = Envelopes()
    out = together(envelopes, AGENT, id="a", method="initialize", params={"protocolVersion": 2})
    assert out["method"] == "proxy/successor"
    assert out["params"] == {"method": "initialize", "params": {"protocolVersion": 2}}
    leg, inner = apart(envelopes, id=out["id"], result={"protocolVersion": 1, "_meta": {"k": [1, None]}})
    assert (leg, inner) == (
        AGENT,
        {"jsonrpc": "2.0", "id": "a", "result": {"protocolVersion": 1, "_meta": {"k": [1, None]}}},
    )


def test_request_of_the_successor_is_the_agents_and_is_answered_plainly() -> None:
    envelopes = Envelopes()
    leg, inner = apart(
        envelopes,
        id=7,
        method="proxy/successor",
        params={"method": "session/request_permission", "params": {"a": 1}},
    )
    assert (leg, inner) == (
        AGENT,
        {"jsonrpc": "2.0", "method": "session/request_permission", "params": {"a": 1}, "id": 7},
    )
    assert together(envelopes, AGENT, id=7, result={"x": 1}) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"x": 1},
    }


def test_notifications_of_both_legs() -> None:
    envelopes = Envelopes()
    leg, inner = apart(
        envelopes, method="proxy/successor", params={"method": "session/update", "params": {"s": 1}}
    )
    assert (leg, inner) == (AGENT, {"jsonrpc": "2.0", "method": "session/update", "params": {"s": 1}})
    assert apart(envelopes, method="session/cancel", params={})[0] is CLIENT
    assert together(envelopes, CLIENT, method="session/update", params={})["method"] == "session/update"
    out = together(envelopes, AGENT, method="session/cancel", params={"sessionId": "s"})
    assert out == {
        "jsonrpc": "2.0",
        "method": "proxy/successor",
        "params": {"method": "session/cancel", "params": {"sessionId": "s"}},
    }


def test_one_id_on_both_legs_is_two_requests() -> None:
    envelopes = Envelopes()
    to_client = together(envelopes, CLIENT, id=1, method="session/request_permission", params={})
    to_agent = together(envelopes, AGENT, id=1, method="session/prompt", params={})
    assert to_client["id"] != to_agent["id"]
    assert apart(envelopes, id=to_agent["id"], result={})[0] is AGENT
    assert apart(envelopes, id=to_client["id"], result={}) == (
        CLIENT,
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    )


def test_cancellation_names_the_envelope() -> None:
    envelopes = Envelopes()
    asked = together(envelopes, AGENT, id=5, method="session/prompt", params={})
    out = together(envelopes, AGENT, method="$/cancel_request", params={"requestId": 5})
    assert out == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked["id"]}}
    assert together(envelopes, AGENT, method="$/cancel_request", params={"requestId": 6}) is None
    apart(envelopes, id=9, method="proxy/successor", params={"method": "_x", "params": {}})
    assert apart(envelopes, method="$/cancel_request", params={"requestId": 9})[0] is AGENT
    assert apart(envelopes, method="$/cancel_request", params={"requestId": 10})[0] is CLIENT


@pytest.mark.parametrize(
    "raw",
    [b"no json", b"[]", b"7", b'{"a":1}', b'{"id":3,"method":"proxy/successor","params":{"params":{}}}'],
)
def test_what_is_no_message_is_the_clients_unchanged(raw: bytes) -> None:
    assert Envelopes().apart(raw) == (CLIENT, raw)


def test_answer_nobody_asked_for_is_the_clients() -> None:
    assert apart(Envelopes(), id=99, result={})[0] is CLIENT
