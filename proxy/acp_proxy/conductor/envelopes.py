"""Takes the two legs of a conductor's one stream apart, and puts them together again; no input or output.

A conductor talks to a component in the client's name directly, and in its successor's name through
`proxy/successor` envelopes: `{method, params}` is the inner message, the result or error of the envelope
that of the inner request. So the requests of both legs share one space of ids on the wire; each gets an
id of ours there and keeps its own inside. Cancellation names the envelope's id and never crosses a hop.

Source: schema types InitializeProxyRequest, ProxySuccessorRequest, ProxySuccessorNotification; bridge §3.3.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.version import Role
from acp_proxy.inference.pending import Pending
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.message import Json, classify, id_key

_INITIALIZE: Final = "proxy/initialize"
_SUCCESSOR: Final = "proxy/successor"
_CANCEL: Final = "$/cancel_request"


class Envelopes:
    """The mapping of one connection: what is open in either direction, by the ids on the wire."""

    def __init__(self) -> None:
        self._asked: Pending[tuple[Role, Any]] = Pending()
        self._wire_ids: dict[tuple[Role, Any], int] = {}
        self._from_successor: set[Any] = set()
        self._last = 0

    def apart(self, line: bytes) -> tuple[Role, bytes]:
        """A line of the conductor: whose leg it belongs to, and the line as it reads there.

        What is no JSON object, or no message, is the client's: there it gets the answer it deserves.
        """
        try:
            body = codec.decode(line)
        except codec.DecodeError:
            return Role.CLIENT, line
        if type(body) is not dict or classify(body) is None:
            return Role.CLIENT, line
        if "method" not in body:
            return self._answer(body, line)
        method = body["method"]
        if method == _INITIALIZE:
            return Role.CLIENT, codec.encode({**body, "method": "initialize"})
        if method == _SUCCESSOR:
            return self._unwrapped(body, line)
        if method == _CANCEL and "id" not in body:
            params = body.get("params")
            token = params.get("requestId") if type(params) is dict else None
            return (Role.AGENT if id_key(token) in self._from_successor else Role.CLIENT), line
        return Role.CLIENT, line

    def together(self, leg: Role, line: bytes) -> bytes | None:
        """A line of ours for a leg, as it goes to the conductor; None for what has no place there."""
        body = codec.decode(line)
        if "method" not in body:
            if leg is Role.AGENT:
                self._from_successor.discard(id_key(body.get("id")))
            return line
        if body["method"] == _CANCEL and "id" not in body:
            return self._cancelled(leg, body)
        wrapped = body if leg is Role.CLIENT else _wrapped(body)
        if "id" in body:
            self._last += 1
            self._asked.add(self._last, (leg, body["id"]))
            self._wire_ids[leg, id_key(body["id"])] = self._last
            wrapped = {**wrapped, "id": self._last}
        return line if wrapped is body else codec.encode(wrapped)

    def _answer(self, body: Json, line: bytes) -> tuple[Role, bytes]:
        asked = self._asked.pop(body["id"])
        if asked is None:
            return Role.CLIENT, line
        leg, inner = asked
        self._wire_ids.pop((leg, id_key(inner)), None)
        return leg, codec.encode({**body, "id": inner})

    def _unwrapped(self, body: Json, line: bytes) -> tuple[Role, bytes]:
        envelope = body.get("params")
        if type(envelope) is not dict or type(envelope.get("method")) is not str:
            return Role.CLIENT, line
        inner: Json = {"jsonrpc": "2.0", "method": envelope["method"]}
        if envelope.get("params") is not None:
            inner["params"] = envelope["params"]
        if "id" in body:
            inner["id"] = body["id"]
            self._from_successor.add(id_key(body["id"]))
        return Role.AGENT, codec.encode(inner)

    def _cancelled(self, leg: Role, body: Json) -> bytes | None:
        """`$/cancel_request` of ours: by the id the conductor knows, and never inside an envelope."""
        given = body.get("params")
        params: Json = given if type(given) is dict else {}
        wire = self._wire_ids.get((leg, id_key(params.get("requestId"))))
        return None if wire is None else codec.encode({**body, "params": {**params, "requestId": wire}})


def _wrapped(body: Json) -> Json:
    """A message for the successor in its envelope; the envelope's own `_meta` is this hop's and empty."""
    envelope: Json = {"method": body["method"]}
    if "params" in body:
        envelope["params"] = body["params"]
    return {"jsonrpc": "2.0", "method": _SUCCESSOR, "params": envelope}
