"""Makes up instances of schema definitions, and damages them, from a seeded random source."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from acp_proxy.acp.version import Version
from schema_cache import definitions

# Unknown words and near misses of known ones: open sets must take them all, closed ones never meet them here.
WORDS = [
    "",
    "x",
    "_custom",
    "future_thing",
    "In-Progress",
    "inProgress",
    " completed ",
    "END_TURN",
    "canceled",
    "bash",
    "busy",
    "Text",
    "resourceLink",
    "planUpdate",
    "Allow_Once",
    "rejectOnce",
    "dateTime",
    "Select",
    "bool",
    "Running",
    "streamable-http",
]
NUMBERS = [0, 1, 2, -1, 65535, 2**63, 10**30, -32602, 1.0, 0.5]
JUNK: list[Any] = [None, True, False, 0, -1, 2**70, 1.5, 2.0, "", "junk", "completed", [], [None], {}]
JUNK += [
    {"type": "text"},
    {"type": 5},
    {"type": "_x", "a": None},
    [{"type": "text", "text": "t"}, 3],
    ["a", 1],
]
UNKNOWN_FIELDS = ["x_extra", "_future", "raw_input", "session_update", "tool_call_id", "stop_reason", "meta"]


class InstanceMaker:
    """Valid values of one version's types."""

    def __init__(self, version: Version, chance: random.Random, unstable: bool = True) -> None:
        self._defs = definitions(version, unstable)
        self._chance = chance

    def make(self, name: str) -> Any:
        """A valid value of the definition `name`."""
        return self._value(self._defs[name])

    def _value(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self.make(schema["$ref"].removeprefix("#/$defs/"))
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = self._chance.choice(kind)
        options = schema.get("anyOf") or schema.get("oneOf")
        if kind == "object" or "properties" in schema:
            return self._object(schema)
        if options:
            option = self._chance.choice(options)
            known = [piece["const"] for piece in options if isinstance(piece.get("const"), str)]
            if known and "const" not in option and self._chance.random() < 0.5:
                return misspelt(self._chance.choice(known), self._chance)
            return self._value(option)
        if "allOf" in schema:
            return self._value(schema["allOf"][0])
        if kind == "array":
            count = max(schema.get("minItems", 0), self._chance.choice([0, 1, 1, 2]))
            return [self._value(schema["items"]) for _ in range(count)]
        return self._scalar(kind, schema)

    def _scalar(self, kind: str | None, schema: dict[str, Any]) -> Any:
        if kind == "string":
            return self._chance.choice([word for word in WORDS if len(word) >= schema.get("minLength", 0)])
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
            whole = [number for number in NUMBERS if kind == "number" or number == int(number)]
            return self._chance.choice([number for number in whole if low <= number <= high])
        if kind == "boolean":
            return self._chance.random() < 0.5
        return None if kind == "null" else copy.deepcopy(self._chance.choice(JUNK))

    def _object(self, schema: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        properties = schema.get("properties", {})
        for name, piece in properties.items():
            if name in schema.get("required", ()) or self._chance.random() < 0.4:
                found[name] = self._value(piece)
        for base in schema.get("allOf", ()):
            found.update(self._value(base))
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            found.update(self._value(self._chance.choice(options)))
        found.update({name: piece["const"] for name, piece in properties.items() if "const" in piece})
        if isinstance(schema.get("additionalProperties"), dict):
            for name in self._chance.sample(WORDS, 2):
                found[name] = self._value(schema["additionalProperties"])
        elif self._chance.random() < 0.1:
            found["x_extra"] = copy.deepcopy(self._chance.choice(JUNK))
        return found


def misspelt(word: str, chance: random.Random) -> str:
    """`word` the way somebody might write it who did not read the schema."""
    camel = "".join(piece.capitalize() for piece in word.split("_"))
    return chance.choice(
        [word.upper(), camel, camel[:1].lower() + camel[1:], word.replace("_", "-"), f" {word} "]
    )


def damaged(value: Any, chance: random.Random) -> Any:
    """A copy of `value` with one to three places changed: wrong types, nulls, deletions, unknown words."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice([1, 1, 2, 3])):
        places = list(_places(value))
        if not places or chance.random() < 0.02:
            return copy.deepcopy(chance.choice(JUNK))
        holder, key = chance.choice(places)
        action = chance.randrange(7)
        if action == 0:
            del holder[key]
        elif action == 1:
            holder[key] = chance.choice(WORDS)
        elif action == 2 and isinstance(holder, dict):
            holder[chance.choice(UNKNOWN_FIELDS)] = holder[key]
        elif action == 3 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(chance.choice(JUNK)))
        elif action == 4:
            holder[key] = None
        elif action == 5 and isinstance(holder[key], str):
            holder[key] = misspelt(holder[key], chance)
        else:
            holder[key] = copy.deepcopy(chance.choice(JUNK))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key or index) within `value`."""
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(item)
