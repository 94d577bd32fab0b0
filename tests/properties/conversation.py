"""A random conversation between a v2 client and a v1 agent across a bridge, and what it must never break.

Both peers are strangers to each other's mood: prompts, cancels, closes, questions and updates come in any
order. `Conversation` keeps the books: who asked what under which id, and who was answered.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from acp_proxy.acp.version import Role, Version
from relay_driver import EVERYTHING, OPTIONS, Driver, Said, answer, bridged, call, failure, note, text_block
from schema_cache import message_error, response_error
from schema_instances import InstanceMaker, damaged

CLIENT, AGENT = Role.CLIENT, Role.AGENT
SPEAKS = {CLIENT: Version.V2, AGENT: Version.V1}
SESSIONS = ["s1", "s2"]
TOOLS = ["k", "l"]

CLIENT_STEPS = """
prompt prompt prompt cancel close resume replay list option login logout delete extension withdraw answer answer
answer odd_answer note invalid
"""
AGENT_STEPS = """
text text thought echo tool tool tool plan update update damaged_update permission permission form host extension
withdraw finish finish finish fail odd_finish note damaged_permission damaged_form damaged_finish
"""


class Book:
    """The requests one peer received: method by id, and how many answers it gave."""

    def __init__(self) -> None:
        self.methods: dict[Any, str] = {}
        self.open: dict[Any, dict[str, Any]] = {}


class Conversation:
    """Acts one conversation; everything the relay says is checked as it comes."""

    def __init__(self, seed: int, agent: dict[str, Any], **options: Any) -> None:
        self.chance = random.Random(seed)
        self.v1 = InstanceMaker(Version.V1, self.chance)
        self.driver: Driver = bridged(agent=agent, client={"elicitation": {"form": {}, "url": {}}}, **options)
        self.at_client, self.at_agent = Book(), Book()
        self.asked: dict[Role, Counter[Any]] = {CLIENT: Counter(), AGENT: Counter()}
        self.answered: dict[Role, Counter[Any]] = {CLIENT: Counter(), AGENT: Counter()}
        self.methods: dict[tuple[Role, Any], str] = {}
        self.number = 100
        self.problems: list[str] = []

    # ------------------------------------------------------------ the books

    def take(self, said: Said) -> None:
        """Check and enter what the relay said to either peer."""
        for leg, body in [(CLIENT, body) for body in said.client] + [(AGENT, body) for body in said.agent]:
            book = self.at_client if leg is CLIENT else self.at_agent
            if "method" in body:
                problem = message_error(SPEAKS[leg], body, sender=leg.other)
                if "id" in body:
                    if body["id"] in book.open:
                        self.problems.append(f"id {body['id']!r} used twice toward the {leg.value}")
                    book.open[body["id"]] = body
            else:
                key = body["id"]
                self.answered[leg][key] += 1
                problem = None
                if "result" in body:
                    method = self.methods.get((leg, key), "_unknown")
                    problem = response_error(
                        SPEAKS[leg], method, body["result"], receiver_of_request=leg.other
                    )
            if problem is not None:
                self.problems.append(f"toward the {leg.value}: {problem} in {str(body)[:300]}")

    def request(self, sender: Role, method: str, params: Any) -> None:
        """A request of a peer under a fresh id."""
        self.number += 1
        token: Any = self.chance.choice([self.number, f"id-{self.number}"])
        self.asked[sender][token] += 1
        self.methods[sender, token] = method
        self.say(sender, call(token, method, params))

    def say(self, sender: Role, body: dict[str, Any]) -> None:
        said = self.driver.client_sends(body) if sender is CLIENT else self.driver.agent_sends(body)
        self.take(said)

    # ------------------------------------------------------------ steps

    def step(self) -> None:
        if self.chance.random() < 0.1:
            self.take(self.driver.advance(self.chance.choice([0.1, 0.6, 2.0, 15.0])))
        elif self.chance.random() < 0.45:
            self.client_step(self.chance.choice(CLIENT_STEPS.split()))
        else:
            self.agent_step(self.chance.choice(AGENT_STEPS.split()))

    def client_step(self, what: str) -> None:
        session = self.chance.choice(SESSIONS)
        in_session = {"sessionId": session}
        opening = {**in_session, "cwd": "/p"}
        requests: dict[str, tuple[str, Any]] = {
            "prompt": ("session/prompt", {**in_session, "prompt": [text_block("go on")]}),
            "close": ("session/close", in_session),
            "delete": ("session/delete", in_session),
            "resume": ("session/resume", opening),
            "replay": ("session/resume", {**opening, "replayFrom": {"type": "start"}}),
            "list": ("session/list", {}),
            "option": (
                "session/set_config_option",
                {**in_session, "configId": "mode", "type": "id", "value": "b"},
            ),
            "login": ("auth/login", {"methodId": "m"}),
            "logout": ("auth/logout", {}),
            "extension": ("_x/ask", {**in_session, "_meta": {"a": 1}}),
            "invalid": ("session/prompt", {**in_session, "prompt": []}),
        }
        if what in requests:
            self.request(CLIENT, *requests[what])
        elif what == "cancel":
            self.say(CLIENT, note("session/cancel", in_session))
        elif what == "note":
            self.say(CLIENT, note("_x/said", in_session))
        elif what == "withdraw" and self.asked[CLIENT]:
            token = self.chance.choice(list(self.asked[CLIENT]))
            self.say(CLIENT, note("$/cancel_request", {"requestId": token}))
        elif what == "odd_answer":
            self.say(CLIENT, answer(self.chance.choice([0, "x", 1, 2, 77]), {}))
        elif what == "answer" and self.at_client.open:
            self.client_answers(self.chance.choice(list(self.at_client.open)))

    def client_answers(self, token: Any) -> None:
        method = self.at_client.open.pop(token)["method"]
        chosen = {"outcome": {"outcome": "selected", "optionId": self.chance.choice(["ok", "no", "?"])}}
        results: dict[str, Any] = {
            "session/request_permission": self.chance.choice([chosen, {"outcome": {"outcome": "cancelled"}}]),
            "elicitation/create": self.chance.choice(
                [{"action": "accept", "content": {"name": "n"}}, {"action": "decline"}, {"action": "cancel"}]
            ),
        }
        if self.chance.random() < 0.15:
            self.say(CLIENT, failure(token, -32603))
        else:
            self.say(CLIENT, answer(token, results.get(method, {"ok": 1})))

    def agent_step(self, what: str) -> None:
        session = self.chance.choice(SESSIONS)
        tool = {"toolCallId": self.chance.choice(TOOLS), "title": "t"}
        status = self.chance.choice(["pending", "in_progress", "completed", "failed"])
        spoken = self.chance.choice(["go", " on", "z"])
        updates: dict[str, Any] = {
            "text": {"sessionUpdate": "agent_message_chunk", "content": text_block("x")},
            "thought": {"sessionUpdate": "agent_thought_chunk", "content": text_block("x")},
            "echo": {
                "sessionUpdate": "user_message_chunk",
                "content": text_block(spoken),
            },
            "tool": {
                "sessionUpdate": self.chance.choice(["tool_call", "tool_call_update"]),
                **tool,
                "status": status,
            },
            "plan": {"sessionUpdate": "plan", "entries": []},
        }
        if what in updates:
            self.say(AGENT, note("session/update", {"sessionId": session, "update": updates[what]}))
        elif what in ("update", "damaged_update"):
            update = self.v1.make("SessionUpdate")
            if what == "damaged_update":
                update = damaged(update, self.chance)
            self.say(AGENT, note("session/update", {"sessionId": session, "update": update}))
        elif what in ("permission", "damaged_permission"):
            options = self.chance.choice([OPTIONS, OPTIONS, []])
            params: Any = {"sessionId": session, "toolCall": tool, "options": options}
            params = damaged(params, self.chance) if what != "permission" else params
            self.request(AGENT, "session/request_permission", params)
        elif what in ("form", "damaged_form"):
            scope = self.chance.choice([{"sessionId": session}, {"requestId": self.chance.randrange(9)}, {}])
            schema = self.chance.choice(
                [{"type": "object", "properties": {}}, {"properties": {"n": {"type": "string"}}}]
            )
            params = {"message": "?", "mode": "form", "requestedSchema": schema, **scope}
            params = damaged(params, self.chance) if what != "form" else params
            self.request(AGENT, "elicitation/create", params)
        elif what == "host":
            self.request(AGENT, "fs/read_text_file", {"sessionId": session, "path": "/p/a"})
        elif what == "extension":
            self.request(AGENT, "_x/ask", self.chance.choice([{}, {"sessionId": session}]))
        elif what == "note":
            self.say(AGENT, note("_x/said", {"a": 1}))
        elif what == "withdraw" and self.asked[AGENT]:
            self.say(
                AGENT, note("$/cancel_request", {"requestId": self.chance.choice(list(self.asked[AGENT]))})
            )
        elif what == "odd_finish":
            self.say(AGENT, answer(self.chance.choice([0, "x", 9999]), {}))
        elif what in ("finish", "fail", "damaged_finish") and self.at_agent.open:
            self.agent_answers(self.chance.choice(list(self.at_agent.open)), how=what)

    def agent_answers(self, token: Any, *, how: str = "finish") -> None:
        request = self.at_agent.open.pop(token)
        options = [{"id": "b", "name": "B", "type": "boolean", "currentValue": True}]
        modes = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
        opened = self.chance.choice([{}, {"modes": modes}, {"configOptions": options}, None])
        stop = self.chance.choice(["end_turn", "cancelled", "max_tokens", "Refusal", "new_word", None])
        results: dict[str, Any] = {
            "session/prompt": self.chance.choice([{"stopReason": stop}, {}, None]),
            "session/load": opened,
            "session/resume": opened,
            "session/list": self.chance.choice([{"sessions": [{"sessionId": "a", "cwd": "/p"}]}, None]),
        }
        result = results.get(request["method"], self.chance.choice([{}, None]))
        code = self.chance.choice([-32603, -32002, -32800, -32000, 400])
        if how == "fail":
            self.say(AGENT, failure(token, code))
        elif how == "finish":
            self.say(AGENT, answer(token, result))
        elif self.chance.random() < 0.3:
            error = damaged({"code": code, "message": "m"}, self.chance)
            self.say(AGENT, {"jsonrpc": "2.0", "id": token, "error": error})
        else:
            self.say(AGENT, answer(token, damaged(result, self.chance)))

    # ------------------------------------------------------------ ends

    def finish(self) -> None:
        """Both peers answer all that is still open; time passes, so that nothing is only late."""
        for _ in range(200):
            if self.at_agent.open:
                self.agent_answers(next(iter(self.at_agent.open)))
            elif self.at_client.open:
                self.client_answers(next(iter(self.at_client.open)))
            else:
                before = len(self.driver.outputs.lines)
                self.take(self.driver.advance(1000))
                if len(self.driver.outputs.lines) == before:
                    return
        self.problems.append("the conversation does not come to rest")


AGENTS: list[dict[str, Any]] = [
    {},
    EVERYTHING,
    {"loadSession": True},
    {"sessionCapabilities": {"resume": {}}, "auth": {"logout": {}}},
    {"sessionCapabilities": {"close": {}}},
]
