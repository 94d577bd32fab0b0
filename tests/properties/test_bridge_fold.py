"""What a client ends up with does not depend on the version it was told in.

A random v1 conversation is folded into what a v1 client would show at its end: messages, tool calls, the plan,
the commands, the options. So is what the bridge made of it, by the rules of v2. The two agree under the
mapping of bridge §6 and §7, and so do the `_meta` and the members nobody here knows, on everything they stand on.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.acp.version import Role, Version
from relay_driver import Driver, Json, answer, bridged, call, note, selected, text_block
from schema_cache import message_error, package_dir

seeds = st.integers(0, 2**32)
TOOLS = ["k", "l", "m"]
STATUSES = ["pending", "in_progress", "completed", "failed"]
FOREIGN = "x_foreign"
# What shows that the agent has taken a prompt (bridge §12); a user's chunk before it is the echo, not news (§5).
EVIDENCE = {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
SPEAKER = {
    "user_message_chunk": "user",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
}


class Speech:
    """Makes the updates and questions of a v1 agent at random, `_meta` and foreign members now and then."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.count = 0

    def next(self, *, taken: bool = True) -> Json:
        """One update; none that would be the echo of a prompt that is not `taken` yet."""
        self.count += 1
        tag = self.chance.choice(
            [
                *SPEAKER,
                *("agent_message_chunk", "tool_call", "tool_call", "tool_call_update", "tool_call_update"),
                *("plan", "config_option_update", "available_commands_update", "usage_update"),
            ]
        )
        if tag == "user_message_chunk" and not taken:
            tag = "agent_message_chunk"
        body: Json = {"sessionUpdate": tag, **getattr(self, f"_{tag}", self._chunk)()}
        if self.chance.random() < 0.3:
            body["_meta"] = {f"vendor/{self.chance.choice('ab')}": self.count}
        if self.chance.random() < 0.3:
            body[FOREIGN] = self.count
        return body

    def _chunk(self) -> Json:
        named = {"messageId": self.chance.choice(["own-1", "own-2"])} if self.chance.random() < 0.3 else {}
        return {"content": text_block(f"{self.count};"), **named}

    def _tool_call(self) -> Json:
        return {"toolCallId": self.chance.choice(TOOLS), "title": f"t{self.count}", **self._patch()}

    def _tool_call_update(self) -> Json:
        return {"toolCallId": self.chance.choice(TOOLS), **self._patch(nulls=True)}

    def _patch(self, *, nulls: bool = False) -> Json:
        fields: Json = {
            "status": self.chance.choice(STATUSES),
            "kind": self.chance.choice(["read", "edit", "execute"]),
            "content": [{"type": "content", "content": text_block(str(self.count))}],
            "rawInput": {"n": self.count},
            "rawOutput": {"m": self.count},
            "locations": [{"path": "/p/a", "line": 1 + self.count}],
        }
        chosen = {key: value for key, value in fields.items() if self.chance.random() < 0.4}
        if nulls:  # in v1, null says that nothing has changed
            chosen |= {key: None for key in fields if key not in chosen and self.chance.random() < 0.15}
        return chosen

    def _plan(self) -> Json:
        entries = [
            {
                "content": f"step {self.count}.{index}",
                "priority": self.chance.choice(["high", "medium", "low"]),
                "status": self.chance.choice(["pending", "in_progress", "completed"]),
            }
            for index in range(self.chance.randrange(3))
        ]
        return {"entries": entries}

    def _config_option_update(self) -> Json:
        switch = {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": self.chance.random() < 0.5}
        choices = [{"value": value, "name": value.upper()} for value in "xy"]
        group = [{"group": "g", "name": "G", "options": choices}]
        select = {
            "id": "model",
            "name": "Model",
            "type": "select",
            "currentValue": self.chance.choice("xy"),
            "options": self.chance.choice([choices, group]),
        }
        return {"configOptions": self.chance.choice([[switch], [select], [switch, select]])}

    def _available_commands_update(self) -> Json:
        plain = {"name": f"c{self.count}", "description": "d"}
        return {"availableCommands": [plain, {"name": "say", "description": "d", "input": {"hint": "what"}}]}

    def _usage_update(self) -> Json:
        return {"used": self.count, "size": 1000}


class Shown:
    """What a client shows of a session after all it was told."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, str]] = []  # speaker, id, text
        self.tools: dict[str, Json] = {}
        self.plan: list[Json] = []
        self.options: list[Json] = []
        self.commands: list[Json] = []
        self.used = 0

    def say(self, speaker: str, message_id: str, text: str) -> None:
        """A chunk goes on with the message that has its id, or is the first of a new one."""
        for index, (who, known, said) in enumerate(self.messages):
            if (who, known) == (speaker, message_id):
                self.messages[index] = (who, known, said + text)
                return
        self.messages.append((speaker, message_id, text))

    def transcript(self) -> dict[tuple[str, str], str]:
        """What each speaker said from first to last, apart from the messages that the agent named itself."""
        said: dict[tuple[str, str], str] = {}
        for speaker, message_id, text in self.messages:
            key = (speaker, message_id if message_id.startswith("own-") else "")
            said[key] = said.get(key, "") + text
        return said


def fold_v1(updates: list[Json], prompts: list[str]) -> Shown:
    """By the rules of v1; an echo of the prompt is left out by whoever makes the updates."""
    shown = Shown()
    for text in prompts:
        shown.say("prompt", text, text)
    for update in updates:
        tag = update["sessionUpdate"]
        if tag in SPEAKER:
            shown.say(SPEAKER[tag], update.get("messageId", ""), update["content"]["text"])
        elif tag in ("tool_call", "tool_call_update"):
            fields = {
                k: v for k, v in update.items() if v is not None and k not in ("sessionUpdate", "_meta")
            }
            _patch(shown.tools, fields, update.get("_meta"))
        elif tag == "plan":
            shown.plan = update["entries"]
        elif tag == "config_option_update":
            shown.options = [_option(each, "id", "group") for each in update["configOptions"]]
        elif tag == "available_commands_update":
            shown.commands = update["availableCommands"]
        else:
            shown.used = update["used"]
    return shown


def fold_v2(updates: list[Json]) -> Shown:
    """By the rules of v2."""
    shown = Shown()
    for update in updates:
        tag = update["sessionUpdate"]
        if tag == "user_message":
            shown.say("prompt", update["messageId"], "".join(block["text"] for block in update["content"]))
        elif tag in SPEAKER:
            shown.say(SPEAKER[tag], update["messageId"], update["content"]["text"])
        elif tag == "tool_call_update":
            fields = {k: v for k, v in update.items() if k not in ("sessionUpdate", "_meta")}
            assert None not in fields.values()  # which would clear what v1 left alone
            _patch(shown.tools, fields, update.get("_meta"))
        elif tag == "plan_update":
            assert update["plan"]["type"] == "items"
            shown.plan = update["plan"]["entries"]
        elif tag == "config_option_update":
            shown.options = [_option(each, "configId", "groupId") for each in update["configOptions"]]
        elif tag == "available_commands_update":
            shown.commands = [_command(each) for each in update["availableCommands"]]
        elif tag == "usage_update":
            shown.used = update["used"]
        else:
            assert tag == "state_update", tag
    return shown


def _patch(tools: dict[str, Json], fields: Json, meta: Json | None) -> None:
    known = tools.setdefault(fields["toolCallId"], {"_meta": {}})
    known.update(fields)
    known["_meta"] = {**known["_meta"], **(meta or {})}


def _option(option: Json, name: str, group: str) -> Json:
    """A config option with neutral names for what the versions name differently."""
    found = {("name of it" if key == name else key): value for key, value in option.items()}
    choices = [
        {("group" if key == group else key): value for key, value in choice.items()}
        for choice in option.get("options", [])
    ]
    return {**found, "options": choices}


def _command(command: Json) -> Json:
    assert command["type"] == "command"
    found = {key: value for key, value in command.items() if key != "type"}
    if "input" in found:
        assert found["input"].pop("type") == "text"
    return found


def told(driver: Driver) -> list[Json]:
    """The updates the client was sent; each fits the schema."""
    found: list[Json] = []
    for body in driver.outputs.client:
        if "method" in body:
            assert message_error(Version.V2, body, sender=Role.AGENT) is None, body
        if body.get("method") == "session/update":
            found.append(body["params"]["update"])
    return found


def extras(updates: list[Json]) -> list[tuple[Any, Any]]:
    """The `_meta` and the foreign member of each update that has one, in order."""
    return [
        (update.get("_meta"), update.get(FOREIGN))
        for update in updates
        if "_meta" in update or FOREIGN in update
    ]


def converse(seed: int, length: int) -> tuple[Driver, list[Json], list[str]]:
    """Turns of a random length, questions among the updates; the driver, the updates, the prompts."""
    speech = Speech(seed)
    driver = bridged()
    updates: list[Json] = []
    prompts: list[str] = []
    while len(updates) < length:
        prompts.append(f"prompt {len(prompts)}")
        driver.prompt(1000 + len(prompts), prompts[-1])
        taken = False
        for _ in range(speech.chance.randint(1, 12)):
            update = speech.next(taken=taken)
            taken = taken or update["sessionUpdate"] in EVIDENCE
            updates.append(update)
            said = driver.agent_sends(note("session/update", {"sessionId": "s1", "update": update}))
            assert said.rules == []
            if speech.chance.random() < 0.1:
                taken = True
                _ask(driver, speech, updates)
        driver.ends("end_turn")
        for _ in range(speech.chance.randint(0, 2)):
            updates.append(speech.next())
            driver.agent_sends(note("session/update", {"sessionId": "s1", "update": updates[-1]}))
    return driver, updates, prompts


def _ask(driver: Driver, speech: Speech, updates: list[Json]) -> None:
    """A question about a tool: what it says of the tool it says in the subject, not in an update."""
    options = [{"optionId": "ok", "name": "Yes", "kind": "allow_once"}]
    tool = {"toolCallId": speech.chance.choice(TOOLS), "status": "pending", FOREIGN: 1}
    params = {"sessionId": "s1", "toolCall": tool, "options": options}
    driver.agent_sends(call(f"q{len(updates)}", "session/request_permission", params))
    (asked,) = [body for body in driver.said[-1].client if body.get("method") == "session/request_permission"]
    assert asked["params"]["subject"]["toolCall"] == tool
    (got,) = driver.client_sends(selected(asked["id"])).agent
    assert got == answer(f"q{len(updates)}", {"outcome": {"outcome": "selected", "optionId": "ok"}})


@given(seeds, st.integers(1, 60))
@settings(deadline=None, max_examples=150)
def test_both_folds_show_the_same(seed: int, length: int) -> None:
    package_dir()
    driver, updates, prompts = converse(seed, length)
    before, after = fold_v1(updates, prompts), fold_v2(told(driver))
    assert after.transcript() == before.transcript()
    assert after.tools == before.tools
    assert after.plan == before.plan
    assert after.options == before.options
    assert after.commands == before.commands
    assert after.used == before.used


@given(seeds, st.integers(1, 60))
@settings(deadline=None, max_examples=80)
def test_a_message_is_one_run_of_one_speaker(seed: int, length: int) -> None:
    package_dir()
    driver, updates, _ = converse(seed, length)
    runs: list[tuple[str, str]] = []
    owners: dict[str, str] = {}
    for update in told(driver):
        speaker = SPEAKER.get(update["sessionUpdate"])
        if speaker is None:
            continue
        assert owners.setdefault(f"{speaker} {update['messageId']}", speaker) == speaker
        if runs[-1:] != [(speaker, update["messageId"])]:
            runs.append((speaker, update["messageId"]))
    made = [run for run in runs if not run[1].startswith("own-")]
    assert len(made) == len(set(made))  # an id of ours is never taken up again
    assert [each for each in owners if "own-" in each] == list(
        dict.fromkeys(
            f"{SPEAKER[update['sessionUpdate']]} {update['messageId']}"
            for update in updates
            if "messageId" in update
        )
    )


@given(seeds, st.integers(1, 60))
@settings(deadline=None, max_examples=80)
def test_meta_and_foreign_members_arrive_in_their_order(seed: int, length: int) -> None:
    package_dir()
    driver, updates, _ = converse(seed, length)
    assert extras(told(driver)) == extras(updates)
