"""Plays the traffic of real v1 agents (`traces/*.jsonl`) through a Relay to a v2 client, on a virtual clock.

A line of a trace is `{"t": seconds, "dir": "c2a" | "a2c" | "note" | "exit", "line": text}`: what a v1 client and
the agent wrote, and what became of their processes. The agent says here what it said then, at the same time.
The client does what it did then, in the words of v2. An answer of the agent to a request that has not reached
it yet (a held prompt) waits for that request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from acp_proxy.acp.version import Role, Version
from relay_driver import CLIENT_INFO, Driver, Said, line
from schema_cache import message_error, response_error, validator

Json = dict[str, Any]

TRACES = Path(__file__).with_name("traces")
SPEAKS = {Role.CLIENT: Version.V2, Role.AGENT: Version.V1}
RENAMED = {
    "authenticate": "auth/login",
    "session/load": "session/resume",
    "session/set_mode": "session/set_config_option",
}
SAME_DEED = {"session/set_mode": "session/set_config_option", "session/resume": "session/load"}


class Entry(NamedTuple):
    """One line of a trace; `body` is the message of a frame, else nothing."""

    at: float
    direction: str
    text: str
    body: Json


def entries(name: str) -> list[Entry]:
    """A trace in its order."""
    found: list[Entry] = []
    for raw in (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        kept = json.loads(raw)
        framed = kept["dir"] in ("c2a", "a2c")
        found.append(Entry(kept["t"], kept["dir"], kept["line"], json.loads(kept["line"]) if framed else {}))
    return found


def processes(trace: list[Entry]) -> list[list[Entry]]:
    """A trace cut where an agent was started anew."""
    found: list[list[Entry]] = []
    for entry in trace:
        if entry.direction == "c2a" and entry.body.get("method") == "initialize":
            found.append([])
        if found:
            found[-1].append(entry)
    return found


def sessions(trace: list[Entry]) -> list[str]:
    """The ids of the sessions in the order in which they were opened, or else first named."""
    opened = [
        entry.body["result"].get("sessionId")
        for entry in trace
        if entry.direction == "a2c" and isinstance(entry.body.get("result"), dict)
    ]
    named = [(entry.body.get("params") or {}).get("sessionId") for entry in trace]
    found = [session for session in (*opened, *named) if isinstance(session, str)]
    return list(dict.fromkeys(found))


class Player:
    """One process of a trace. After `play`, `wrong` holds what either side should not have been sent."""

    def __init__(self, trace: list[Entry]) -> None:
        self.driver = Driver()
        self.wrong: list[str] = []
        self.unasked = 0  # answers of the agent to requests that never reached it
        self._trace = trace
        self._story: list[tuple[str, str]] = []
        self._questions: dict[Any, Any] = {}
        self._subjects: dict[Any, str] = {}
        self._asked: dict[Any, Json] = {}
        self._reaching: list[tuple[Any, str]] = []
        self._reached: dict[Any, tuple[Any, str]] = {}
        self._early: dict[Any, Json] = {}
        self._at_agent: dict[Any, str] = {}
        self._options: dict[str, list[Json]] = {}
        self._spoken: dict[Role, dict[str, str]] = {Role.CLIENT: {}, Role.AGENT: {}}

    def play(self) -> None:
        """Go through the trace to its end."""
        last = self._trace[0].at
        left = False
        for entry in self._trace:
            self._take(self.driver.advance(entry.at - last))
            last = entry.at
            if entry.direction == "c2a":
                self._client(entry.body)
            elif entry.direction == "a2c":
                self._agent(entry)
            elif entry.direction == "exit":
                if entry.text in ("rc=0", "0") and not left:
                    self._take(self.driver.client_leaves())
                self._take(self.driver.agent_exits(entry.text))
            elif entry.text == "driver closes stdin":
                left = True
                self._take(self.driver.client_leaves())
        self.unasked += len(self._early)

    def story(self, session: str) -> list[str]:
        """What the client was told: states, `ask` for a permission, `withdrawn` for its end, refused prompts.

        A question left open by a turn is withdrawn with the turn's end; no rule orders the two, so here it comes first.
        """
        words = [word for owner, word in self._story if owner == session]
        for index in range(1, len(words)):
            if words[index] == "withdrawn" and words[index - 1].startswith("idle"):
                words[index - 1], words[index] = words[index], words[index - 1]
        return words

    def states(self, session: str) -> list[str]:
        """The states alone."""
        return [
            word for word in self.story(session) if word.startswith(("running", "requires_action", "idle"))
        ]

    def spoken(self, hearer: Role, session: str) -> str:
        """The text of the agent's messages, as the agent said it (`AGENT`) or as the client got it."""
        return self._spoken[hearer].get(session, "")

    # ------------------------------------------------------------ the client

    def _client(self, body: Json) -> None:
        if "method" not in body:
            if body["id"] in self._questions:
                self._take(self.driver.client_sends({**body, "id": self._questions.pop(body["id"])}))
            return
        if "id" in body:
            self._reaching.append((body["id"], body["method"]))
        said = self._in_v2(body)
        if "id" in said:
            self._asked[said["id"]] = said
        self._take(self.driver.client_sends(said))

    def _in_v2(self, body: Json) -> Json:
        method, params = body["method"], dict(body.get("params") or {})
        if method == "initialize":
            params = {"protocolVersion": 2, "info": CLIENT_INFO, "capabilities": {}}
        elif method == "session/load":
            params["replayFrom"] = {"type": "start"}
        elif method == "session/set_mode":
            params = {
                "sessionId": params["sessionId"],
                "configId": "mode",
                "type": "id",
                "value": params["modeId"],
            }
        return {**body, "method": RENAMED.get(method, method), "params": params}

    # ------------------------------------------------------------ the agent

    def _agent(self, entry: Entry) -> None:
        body = entry.body
        if "method" in body:
            self._note_options(body)
            self._hear(Role.AGENT, body)
            said = self.driver.agent_writes(entry.text.encode() + b"\n")
            if "id" in body:
                asked = [each for each in said.client if "id" in each and "method" in each]
                if asked:
                    self._questions[body["id"]] = asked[-1]["id"]
            self._take(said)
        elif body["id"] in self._reached:
            self._answer(body)
        else:
            self._early[body["id"]] = body

    def _answer(self, body: Json) -> None:
        token, method = self._reached.pop(body["id"])
        if method == "session/set_config_option" and body.get("result") == {}:
            # The client of the trace set a mode; asked for the option, the agent would have told them all.
            body = {**body, "result": {"configOptions": next(iter(self._options.values()))}}
        self._take(self.driver.agent_writes(line({**body, "id": token}) + b"\n"))

    def _note_options(self, body: Json) -> None:
        update = (body.get("params") or {}).get("update") or {}
        if update.get("sessionUpdate") == "config_option_update":
            self._options[body["params"]["sessionId"]] = update["configOptions"]

    def _hear(self, hearer: Role, body: Json) -> None:
        update = (body.get("params") or {}).get("update") or {}
        if update.get("sessionUpdate") == "agent_message_chunk":
            session = body["params"]["sessionId"]
            heard = self._spoken[hearer]
            heard[session] = heard.get(session, "") + str(update["content"].get("text", ""))

    # ------------------------------------------------------------ what the relay said

    def _take(self, said: Said) -> None:
        for body in said.client:
            self._check(Role.CLIENT, body)
            self._tell(body)
            self._hear(Role.CLIENT, body)
        for body in said.agent:
            self._check(Role.AGENT, body)
            if "method" in body and "id" in body:
                self._match(body)

    def _match(self, body: Json) -> None:
        """Find the request of the trace that has reached the agent with this one."""
        method = body["method"]
        self._at_agent[body["id"]] = method
        for recorded, wanted in self._reaching:
            if method in (wanted, SAME_DEED.get(wanted)):
                self._reaching.remove((recorded, wanted))
                self._reached[recorded] = (body["id"], method)
                if recorded in self._early:
                    self._answer(self._early.pop(recorded))
                return
        self.wrong.append(f"the agent was sent {method}, which nobody had asked for")

    def _tell(self, body: Json) -> None:
        method, params = body.get("method"), body.get("params") or {}
        if method == "session/update" and params["update"]["sessionUpdate"] == "state_update":
            update = params["update"]
            word = " ".join(str(update[key]) for key in ("state", "stopReason") if key in update)
            self._story.append((params["sessionId"], word))
        elif method == "session/request_permission":
            self._subjects[body["id"]] = params["sessionId"]
            self._story.append((params["sessionId"], "ask"))
        elif method == "$/cancel_request" and params["requestId"] in self._subjects:
            self._story.append((self._subjects.pop(params["requestId"]), "withdrawn"))
        elif "error" in body and self._asked.get(body["id"], {}).get("method") == "session/prompt":
            session = self._asked[body["id"]]["params"]["sessionId"]
            self._story.append((session, f"refused {body['error']['code']}"))

    def _check(self, hearer: Role, body: Json) -> None:
        version = SPEAKS[hearer]
        if "method" in body:
            wrong = message_error(version, body, sender=hearer.other)
        elif "error" in body:
            misfit = next(validator(version, "Error").iter_errors(body["error"]), None)
            wrong = misfit.message if misfit else None
        else:
            wrong = self._result_error(version, hearer, body)
        if wrong and "session/no_such_method" not in wrong and "session/does_not_exist" not in wrong:
            self.wrong.append(f"to the {hearer.value}: {wrong} in {str(body)[:300]}")

    def _result_error(self, version: Version, hearer: Role, body: Json) -> str | None:
        if hearer is Role.CLIENT:
            asked = self._asked.get(body["id"])
            if asked is None:
                return "answer to nothing"
            return response_error(version, asked["method"], body["result"], receiver_of_request=Role.AGENT)
        return response_error(
            version, "session/request_permission", body["result"], receiver_of_request=Role.CLIENT
        )


def play(name: str) -> tuple[list[Player], dict[str, str]]:
    """Play a trace to its end; the players, one a process, and the story of each session by its place.

    The places are `first`, `second`; ` | ` stands where the agent was started anew.
    """
    trace = entries(name)
    players = [Player(part) for part in processes(trace)]
    for player in players:
        player.play()
    told = {
        place: " | ".join(", ".join(player.story(session)) for player in players)
        for place, session in zip(("first", "second", "third"), sessions(trace), strict=False)
    }
    return players, told


def native_states(name: str) -> list[str]:
    """The states that a native v2 agent told of the one session of a trace, and `resume` where it was resumed."""
    return list(_native_states(name))


def _native_states(name: str) -> Iterator[str]:
    for entry in entries(name):
        params = entry.body.get("params") or {}
        update = params.get("update") or {}
        if update.get("sessionUpdate") == "state_update":
            yield " ".join(str(update[key]) for key in ("state", "stopReason") if key in update)
        elif entry.body.get("method") == "session/resume":
            yield "resume"
