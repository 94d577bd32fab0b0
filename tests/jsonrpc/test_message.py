"""What an object on the wire is, and which ids are the same id."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from acp_proxy.jsonrpc import message
from acp_proxy.jsonrpc.codec import decode
from acp_proxy.jsonrpc.message import Frame, Notification, Request, Response, classify, id_key


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{}}', Request),
        ('{"id":1,"method":"m"}', Request),
        ('{"id":null,"method":"m"}', Request),
        ('{"id":"x","method":""}', Request),
        ('{"id":1.5,"method":"m"}', Request),
        ('{"id":1,"method":"m","result":{}}', Request),
        ('{"jsonrpc":"1.0","id":1,"method":"m"}', Request),
        ('{"jsonrpc":"2.0","method":"m"}', Notification),
        ('{"method":"m","params":[1]}', Notification),
        ('{"method":"m","result":1}', Notification),
        ('{"jsonrpc":"2.0","id":1,"result":{}}', Response),
        ('{"id":1,"result":null}', Response),
        ('{"id":1,"error":{"code":1,"message":"x"}}', Response),
        ('{"id":1,"error":null}', Response),
        ('{"id":null,"error":{}}', Response),
        ('{"id":1,"result":1,"error":{}}', Response),
        ("{}", None),
        ('{"jsonrpc":"2.0"}', None),
        ('{"id":1}', None),
        ('{"result":{}}', None),
        ('{"error":{}}', None),
        ('{"method":1}', None),
        ('{"id":1,"method":null}', None),
        ('{"id":1,"method":["m"],"result":{}}', None),
        ('{"params":{"method":"m"}}', None),
    ],
)
def test_classify(raw: str, kind: type[message.Message] | None) -> None:
    body = decode(raw.encode())
    frame = Frame(raw.encode(), 3)
    found = classify(body, frame)
    if kind is None:
        assert found is None
        return
    assert found is not None
    assert type(found) is kind
    assert found.body is body
    assert found.frame is frame


@pytest.mark.parametrize("params", ["", ',"params":null', ',"params":[1]', ',"params":"x"', ',"params":7'])
@pytest.mark.parametrize("start", ['{"method":"m"', '{"id":1,"method":"m"'])
def test_params_that_are_no_object_read_as_empty(start: str, params: str) -> None:
    found = classify(decode((start + params + "}").encode()))
    assert isinstance(found, (Request, Notification))
    assert found.params == {}
    assert found.method == "m"
    assert found.frame is None


def test_params_are_the_body_s_own() -> None:
    body = {"id": 1, "method": "m", "params": {"a": 1}, "extra": True}
    found = classify(body)
    assert isinstance(found, Request)
    assert found.params is body["params"]
    assert found.body["extra"] is True


@pytest.mark.parametrize(
    ("body", "is_error", "result", "error"),
    [
        ({"id": 1, "result": {"a": 1}}, False, {"a": 1}, {}),
        ({"id": 1, "result": None}, False, None, {}),
        ({"id": 1, "error": {"code": 5}}, True, None, {"code": 5}),
        ({"id": 1, "error": "no"}, True, None, {}),
        ({"id": 1, "error": None}, True, None, {}),
    ],
)
def test_responses(body: dict[str, Any], is_error: bool, result: Any, error: Any) -> None:
    found = classify(body)
    assert isinstance(found, Response)
    assert (found.id, found.is_error, found.result, found.error) == (1, is_error, result, error)


IDS: list[Any] = [
    0,
    1,
    -1,
    1.0,
    0.0,
    1.5,
    True,
    False,
    None,
    "1",
    "",
    "1.0",
    "True",
    "None",
    "null",
    10**30,
    1e30,
    [1],
    ["1"],
    {},
    {"a": 1},
]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(IDS, 2)))
def test_ids_of_another_type_or_value_are_other_ids(one: Any, other: Any) -> None:
    assert id_key(one) != id_key(other)
    assert len({id_key(one): 1, id_key(other): 2}) == 2


@pytest.mark.parametrize("token", IDS)
def test_an_id_is_the_same_id_when_it_comes_again(token: Any) -> None:
    again = decode(json.dumps({"id": token}, indent=1).encode())["id"]
    assert {id_key(token): "found"}[id_key(again)] == "found"


def test_our_own_messages_say_their_version_and_have_no_frame() -> None:
    made = [
        message.request("a", "m", {"x": 1}),
        message.notification("n", {}),
        message.result(1, {"ok": True}),
        message.error(None, message.PARSE_ERROR, "bad"),
        message.error(2, message.RESOURCE_NOT_FOUND, "gone", {"sessionId": "s"}),
    ]
    assert [one.body for one in made] == [
        {"jsonrpc": "2.0", "id": "a", "method": "m", "params": {"x": 1}},
        {"jsonrpc": "2.0", "method": "n", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {"ok": True}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "bad"}},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "error": {"code": -32002, "message": "gone", "data": {"sessionId": "s"}},
        },
    ]
    for one in made:
        assert one.frame is None
        again = classify(one.body)
        assert again is not None
        assert type(again) is type(one)


def test_repr_names_the_kind_and_is_short() -> None:
    assert repr(message.notification("n", {})) == (
        "<Notification {'jsonrpc': '2.0', 'method': 'n', 'params': {}}>"
    )
    assert len(repr(message.notification("n" * 500, {}))) < 120
    assert repr(Frame(b"abc", 7)) == "<Frame 7, 3 bytes>"
