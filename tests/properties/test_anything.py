"""Whatever two peers write, in any order and cut anywhere: the relay goes on, and owes nobody an answer.

Not a conversation but lines: odd ids, broken JSON, answers nobody asked for, requests of the wrong side. What
is checked needs no model of the protocol.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.jsonrpc.message import id_key
from acp_proxy.policy.permission_rules import read_rules
from lifecycle_scripts import state
from relay_driver import (
    EVERYTHING,
    OPTIONS,
    Driver,
    Json,
    Said,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    echo,
    failure,
    initialize_v1,
    initialize_v2,
    line,
    message,
    note,
    prompt,
    thought,
    tool,
    update,
    usage,
    withdraw,
)

CLIENT, AGENT = Role.CLIENT, Role.AGENT


def strangers(version: int) -> Callable[..., Driver]:
    """A client whose `initialize` the agent has not answered yet."""

    def make(**options: Any) -> Driver:
        driver = Driver(**options)
        driver.client_sends((initialize_v1, initialize_v2)[version - 1](0))
        return driver

    return make


PAIRS: dict[str, Callable[..., Driver]] = {
    "early v1": strangers(1),
    "early v2": strangers(2),
    "v1": both_v1,
    "v2": both_v2,
    "bridged": lambda **options: bridged(agent=EVERYTHING, client={"elicitation": {"form": {}}}, **options),
}
METHODS = [
    "session/prompt",
    "session/new",
    "session/list",
    "session/resume",
    "session/load",
    "session/close",
    "session/delete",
    "session/set_mode",
    "session/set_config_option",
    "session/request_permission",
    "elicitation/create",
    "fs/read_text_file",
    "terminal/create",
    "initialize",
    "authenticate",
    "auth/login",
    "tool_call/cancel",
    "terminal/cancel",
    "_x/ask",
    "x/unknown",
]
BROKEN = [
    b"noise",
    b"",
    b"\r",
    b"{",
    b"[]",
    b"{}",
    b"7",
    b"\xff",
    b"\xef\xbb\xbf{}",
    b'[{"jsonrpc":"2.0","method":"_a/b"},5]',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":5,"result":1}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","method":"_x/y","params":{"n":1e400}}',
]
ODD_VALUES: list[Any] = [[], {}, None, True, 7, -0.5, "", "odd", [[]], {"x": [1]}, 10**30]
ODD_IDS = [b"1e400", b"[1e400]", b"null", b"1.5", b"true", b'""', b"-1", b'{"a":1}', b"99999999999999999999"]


def settings(seed: int) -> dict[str, Any]:
    """Options of all kinds, each as often off as on."""
    chance = random.Random(-seed)
    tables = [
        {"decision": "reject", "kind": "edit", "path": "/p/*"},
        {"decision": "allow_once", "title": ["T*", "*x"], "command": "ls", "option_kinds": "allow_once"},
        {"decision": "reject", "cwd": "/p"},
    ]
    every: dict[str, list[Any]] = {
        "lifecycle": ["observe", "enforce", "strict"],
        "batch": ["split"],
        "serve": [("fs", "terminal")],
        "cancel_timeout": [1.0],
        "permission_timeout": [1.0],
        "turn_timeout": [30.0],
        "stall_after": [3.0],
        "stall_action": [("cancel",), ("cancel", "restart"), ("restart",)],
        "tool_timeout": [2.0],
        "extension_timeout": [1.0],
        "restart": ["idle", "always"],
        "permission_rules": [read_rules(tables)],
        "busy": ["queue", "reject", "steer"],
        "idle_cancel": ["swallow"],
        "close_tools": [True],
        "agent_initiated": ["infer", "unknown"],
        "requires_action": ["any_wait"],
        "quiet_time": [0.5],
        "end_markers": [("_meta.x=1", "_x/y")],
        "synonyms": [True],
        "unstable": [True],
        "settle": [0.05],
        "load_settle": [0.05],
        "queue_boundary": ["merge"],
    }
    return {name: chance.choice(values) for name, values in every.items() if chance.random() < 0.5}


class Lines:
    """One connection with a random past; `owed` are the client's requests with ids of its own choice."""

    def __init__(self, pair: str, seed: int, **options: Any) -> None:
        self.chance = random.Random(seed)
        self.driver = PAIRS[pair](**options)
        self.number = 1000
        self.owed: Counter[Any] = Counter()
        self.open: dict[Role, list[Json]] = {CLIENT: [], AGENT: []}
        self.take(self.driver.said[-1])

    def take(self, said: Said) -> None:
        for leg, raw in said.lines:
            assert b"\n" not in raw
            try:
                body = json.loads(raw)
            except ValueError:
                continue  # equal versions get it as it came
            if type(body) is not dict or "id" not in body:
                continue
            if "method" in body:
                self.open[leg].append(body)
            elif leg is CLIENT and id_key(body["id"]) in self.owed:
                self.owed[id_key(body["id"])] -= 1

    def some_id(self) -> Any:
        self.number += 1
        return self.chance.choice([self.number, self.number, f"id {self.number}"])

    def request(self) -> Json:
        session = self.chance.choice(["s1", "s1", "s2", "nobody", 5, None])
        params: Any = {"sessionId": session, "cwd": "/p", "mcpServers": [], "options": OPTIONS, "value": "x"}
        if self.chance.random() < 0.1:
            params = self.chance.choice([None, [], "x", {}])
        return call(self.some_id(), self.chance.choice(METHODS), params)

    def answered(self, leg: Role) -> Json:
        """An answer to what a leg was asked, of a kind that may fit or not."""
        if not self.open[leg]:
            return answer(self.chance.choice([1, 7, "x"]), {})
        asked = self.open[leg].pop(self.chance.randrange(len(self.open[leg])))
        if self.chance.random() < 0.2:
            return failure(asked["id"], self.chance.choice([-32603, -32800, -32002, "x"]))
        fits: Json = {
            "session/new": {"sessionId": self.chance.choice(["s1", "s2", "s3"])},
            "session/prompt": {"stopReason": self.chance.choice(["end_turn", "cancelled", "odd"])},
            "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "ok"}},
        }
        return answer(asked["id"], fits.get(asked["method"], self.chance.choice([{}, None, [], {"x": 1}])))

    def written(self, leg: Role) -> bytes:
        raw = self.undistorted(leg)
        # What stands in the books is left as it is.
        if (
            raw in BROKEN
            or b'"was"' in raw
            or (leg is CLIENT and b'"id"' in raw)
            or self.chance.random() > 0.2
        ):
            return raw
        return self.distorted(raw)

    def undistorted(self, leg: Role) -> bytes:
        kind = self.chance.randrange(10)
        if kind == 0:
            return self.chance.choice(BROKEN)
        if kind == 1:
            odd = line(self.request())
            return odd.replace(b'"id":', b'"id":' + self.chance.choice(ODD_IDS) + b',"was":', 1)
        if kind == 2 and leg is CLIENT:
            return self.distorted(line(self.request()))
        if kind <= 4:
            return line(self.answered(leg))
        if leg is CLIENT:
            body = self.chance.choice(
                [self.request, lambda: prompt(self.some_id()), cancel, self.withdrawn]
            )()
            if "id" in body:
                self.owed[id_key(body["id"])] += 1
            return line(body)
        told = [
            message(),
            thought(),
            message("é\n" * 3),
            echo(),
            usage(),
            tool("k", "pending"),
            tool("k", "odd"),
        ]
        told += [
            state("idle"),
            state("running"),
            update("odd"),
            note("_x/y", 5),
            self.withdrawn(),
            ask(self.some_id()),
        ]
        return line(self.chance.choice([*told, self.request()]))

    def lost(self) -> None:
        """The agent's process ends; where a new one is started, it comes."""
        said = self.driver.agent_exits()
        self.take(said)
        if said.restarts:
            self.open[AGENT].clear()
            self.take(self.driver.advance(1.0))
            self.take(self.driver.agent_returns())

    def withdrawn(self) -> Json:
        return withdraw(self.chance.choice([self.number, 1, None]))

    def distorted(self, raw: bytes) -> bytes:
        """The line with one value, wherever it stands, of some other type."""
        body = json.loads(raw)
        holder, key = self.chance.choice([*places(body)])
        holder[key] = self.chance.choice(ODD_VALUES)
        return line(body)

    def step(self) -> None:
        kind = self.chance.randrange(20)
        if kind == 0:
            self.take(self.driver.advance(self.chance.choice([0.1, 2, 61])))
        elif kind < 10:
            self.take(self.driver.lines(CLIENT, self.written(CLIENT)))
        else:
            data = b"".join(self.written(AGENT) + b"\n" for _ in range(self.chance.choice([1, 1, 3])))
            cut = self.chance.randrange(len(data) + 1)
            for part in (data[:cut], data[cut:]):
                self.take(self.driver.agent_writes(part))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in JSON data: what holds it, and its key or index there."""
    for key, inner in list(value.items() if type(value) is dict else enumerate(value)):
        yield value, key
        if type(inner) in (dict, list):
            yield from places(inner)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("mode", ["observe", "enforce", "strict"])
@pytest.mark.parametrize("seed", range(30))
def test_whatever_they_write_the_relay_goes_on(pair: str, mode: str, seed: int) -> None:
    lines = Lines(pair, seed, lifecycle=mode, reporting=seed % 5 == 0, batch=("reject", "split")[seed % 2])
    for _ in range(60):
        lines.step()
    end = (Driver.agent_exits, Driver.client_leaves)[seed % 2]
    lines.take(end(lines.driver))
    for _ in range(5):
        lines.step()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("seed", range(60))
def test_with_whatever_settings(pair: str, seed: int) -> None:
    lines = Lines(pair, 5000 + seed, **settings(seed))
    for number in range(80):
        lines.step()
        if number % 25 == 24:
            lines.lost()
    lines.take(lines.driver.advance(100.0))


@pytest.mark.parametrize("seed", range(60))
def test_across_a_bridge_each_request_has_one_answer_once_the_agent_is_gone(seed: int) -> None:
    lines = Lines("bridged", 1000 + seed)
    for _ in range(60):
        lines.step()
    lines.take(lines.driver.agent_exits())
    assert {token: count for token, count in lines.owed.items() if count} == {}
