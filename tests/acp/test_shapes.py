"""What a lenient receiver makes of a value: unchanged, made to fit, or refused at a place."""

from __future__ import annotations

import copy
import functools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from acp_proxy.acp.shapes import Conformed, conform
from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import TABLES
from schema_cache import definitions, validator
from schema_instances import InstanceMaker, damaged

V1, V2 = Version.V1, Version.V2
TEXT = {"type": "text", "text": "hello"}
CALL = {"sessionUpdate": "tool_call_update", "toolCallId": "t"}


def fits_unchanged(outcome: Conformed, value: object) -> bool:
    return outcome.problem is None and outcome.value is value and outcome.notes == []


def test_arbitrary_json_is_not_walked_into() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    value = {**CALL, "rawInput": deep, "rawOutput": [deep], "_meta": {"deep": deep}, "unknown": deep}
    assert fits_unchanged(conform(V2, "SessionUpdate", value), value)
    while deep:  # taken apart from outside: the interpreter would recurse to free it
        deep = deep.pop("a")


@pytest.mark.parametrize(
    ("version", "name", "value", "wanted", "notes", "fits_as_it_is"),
    [
        (
            V2,
            "ToolCallUpdate",
            {"toolCallId": "t", "kind": "Bash"},
            {"toolCallId": "t", "kind": "execute"},
            [("kind", "respelled")],
            True,
        ),
        (V2, "StateUpdate", {"state": "busy"}, {"state": "running"}, [("state", "respelled")], True),
        (
            V2,
            "SessionUpdate",
            {"session_update": "tool_call_update", "tool_call_id": "t"},
            CALL,
            [("sessionUpdate", "respelled"), ("toolCallId", "respelled")],
            False,
        ),
        (
            V2,
            "StateUpdate",
            {"state": "idle", "stop_reason": "stop"},
            {"state": "idle", "stopReason": "end_turn"},
            [("stopReason", "respelled"), ("stopReason", "respelled")],
            True,
        ),
        (
            V1,
            "ReadTextFileRequest",
            {"session_id": "s", "path": "/p"},
            {"sessionId": "s", "path": "/p"},
            [("sessionId", "respelled")],
            False,
        ),
    ],
)
def test_synonyms_and_field_names_are_repaired_only_when_asked_for(
    version: Version,
    name: str,
    value: Any,
    wanted: Any,
    notes: list[tuple[str, str]],
    fits_as_it_is: bool,
) -> None:
    outcome = conform(version, name, value, synonyms=True)
    assert outcome.problem is None
    assert (outcome.value, sorted(outcome.notes)) == (wanted, sorted(notes))
    plain = conform(version, name, value)
    assert plain.value is value
    assert (plain.problem is None) == fits_as_it_is


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Both names are there: which one holds is not ours to say.
        ("ToolCallUpdate", {"toolCallId": "t", "tool_call_id": "u"}),
        # Under its known name the value would be malformed.
        ("ResumeSessionRequest", {"sessionId": "s", "cwd": "/", "replay_from": 5}),
    ],
)
def test_a_field_name_is_not_repaired_at_the_cost_of_a_fitting_value(name: str, value: Any) -> None:
    assert fits_unchanged(conform(V2, name, value, synonyms=True), value)


def test_unstable_parts_are_unknown_parts_where_unstable_is_off() -> None:
    removed = {"sessionUpdate": "plan_removed", "planId": 5}
    assert conform(V2, "SessionUpdate", removed).problem == "planId: expected a string"
    assert fits_unchanged(conform(V2, "SessionUpdate", removed, unstable=False), removed)
    assert conform(V1, "SessionUpdate", removed, unstable=False).problem == "sessionUpdate: unknown tag"
    new = {"cwd": "/", "systemPrompt": 5}
    assert conform(V2, "NewSessionRequest", new).problem == "systemPrompt: expected an object"
    assert fits_unchanged(conform(V2, "NewSessionRequest", new, unstable=False), new)


def test_keep_unknown_opens_what_v1_closed() -> None:
    update = {"sessionUpdate": "zap", "x": 1}
    assert fits_unchanged(conform(V1, "SessionUpdate", update, keep_unknown=True), update)
    call = {"toolCallId": "t", "kind": "zap", "content": [{"type": "zap"}, {"type": "content"}]}
    outcome = conform(V1, "ToolCallUpdate", call, keep_unknown=True)
    assert outcome.value == {"toolCallId": "t", "kind": "zap", "content": [{"type": "zap"}]}
    schema = {"type": "zap", "properties": {}}
    assert conform(V2, "ElicitationSchema", schema, keep_unknown=True).problem == "type: unknown value"


def test_an_unknown_type_is_our_mistake() -> None:
    with pytest.raises(KeyError):
        conform(V1, "NoSuchType", {})


def test_only_the_changed_path_is_copied() -> None:
    untouched = {"type": "content", "content": TEXT}
    broken = {"type": "content", "content": TEXT, "_meta": 5}
    value = {"toolCallId": "t", "rawInput": {}, "content": [untouched, broken]}
    fitted = conform(V2, "ToolCallUpdate", value).value
    assert fitted["rawInput"] is value["rawInput"]
    assert fitted["content"][0] is untouched
    assert fitted["content"][1]["content"] is TEXT
    assert list(fitted) == list(value)


# --- Properties: the schema itself is the judge -------------------------------------------------------------

EXAMPLES = settings(max_examples=400, derandomize=True, database=None, deadline=None)
SEEDS = st.integers(0, 2**48)


def tags_known_here(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The conditions "has known tag T" of a union of v1."""
    options = schema.get("anyOf") or schema.get("oneOf") or []
    found = []
    for option in options:
        for name, piece in option.get("properties", {}).items():
            if "const" in piece:
                found.append({"properties": {name: {"const": piece["const"]}}, "required": [name]})
    return found


@functools.cache
def judge(
    version: Version, name: str, unstable: bool, opened: bool, tag_settles: bool
) -> Draft202012Validator:
    """The schema; `opened`: without closed sets; `tag_settles`: with no known tag in an untagged form."""
    if not opened and not tag_settles:
        return validator(version, name, unstable)
    defs = copy.deepcopy(definitions(version, unstable))
    for title, schema in defs.items():
        tags = tags_known_here(schema)
        options = schema.get("anyOf") or schema.get("oneOf") or []
        if tags and not any("not" in option for option in options):
            for option in options:
                if option.get("title") in ("agent", "stdio", "value_id"):
                    option["not"] = {"anyOf": tags}
            if opened and not any("not" in option for option in options):
                tag = tags[0]["required"][0]
                unknown = {"properties": {tag: {"type": "string"}}, "required": [tag], "not": {"anyOf": tags}}
                schema["anyOf"] = [*schema.pop("anyOf", []), *schema.pop("oneOf", []), unknown]
        if (
            opened
            and "oneOf" in schema
            and schema["oneOf"][0].get("type") == "string"
            and title[:6] != "Elicit"
        ):
            schema["anyOf"] = [*schema.pop("oneOf"), {"type": "string"}]
    return Draft202012Validator({"$defs": defs, "$ref": f"#/$defs/{name}"})


def drawn(seed: int, unstable: bool = True) -> tuple[Version, str, Any, random.Random]:
    chance = random.Random(seed)
    version = chance.choice(list(Version))
    names = sorted(TABLES[version])
    if not unstable:
        names = [name for name in names if name in definitions(version, unstable=False)]
    name = chance.choice(names)
    return version, name, InstanceMaker(version, chance, unstable).make(name), chance


def check_valid(seed: int, **options: bool) -> None:
    """A valid value stays the same object, except for the spelling of words."""
    version, name, value, _ = drawn(seed, options["unstable"])
    assert judge(version, name, options["unstable"], False, False).is_valid(value)
    outcome = conform(version, name, value, **options)
    assert outcome.problem is None
    assert (outcome.value is value) == (not outcome.notes)
    assert {what for _, what in outcome.notes} <= {"respelled"}


def check_damaged(seed: int, **options: bool) -> Conformed:
    """Whatever conforms is valid, and whatever is valid conforms; the input is never changed."""
    version, name, value, chance = drawn(seed, options["unstable"])
    value = damaged(value, chance)
    before = copy.deepcopy(value)
    outcome = conform(version, name, value, **options)
    assert value == before
    opened = options["keep_unknown"]
    if outcome.problem is not None:
        assert outcome.value is value
        assert not judge(version, name, options["unstable"], opened, True).is_valid(value)
        return outcome
    assert (outcome.value is value) == (not outcome.notes)
    assert judge(version, name, options["unstable"], opened, False).is_valid(outcome.value)
    if not options["synonyms"]:
        assert conform(version, name, outcome.value, **options).value is outcome.value
    return outcome


OPTIONS = st.fixed_dictionaries(
    {"unstable": st.booleans(), "synonyms": st.booleans(), "keep_unknown": st.booleans()}
)


@pytest.mark.peers
@EXAMPLES
@given(SEEDS, OPTIONS)
def test_valid_values_stay_as_they_are(seed: int, options: dict[str, bool]) -> None:
    check_valid(seed, **options)


@pytest.mark.peers
@EXAMPLES
@given(SEEDS, OPTIONS)
def test_damaged_values_become_valid_or_were_not(seed: int, options: dict[str, bool]) -> None:
    check_damaged(seed, **options)


@pytest.mark.peers
def test_damage_meets_every_outcome() -> None:
    """The generator is not so tame, nor so wild, that the properties above hold for want of cases."""
    met: dict[str, int] = {}
    for seed in range(1200):
        outcome = check_damaged(seed, unstable=True, synonyms=False, keep_unknown=False)
        kinds = {what for _, what in outcome.notes} or {"refused" if outcome.problem else "unchanged"}
        for kind in kinds:
            met[kind] = met.get(kind, 0) + 1
    assert set(met) == {"refused", "unchanged", "omitted", "emptied", "respelled", "dropped item"}
    assert min(met.values()) >= 3


@pytest.mark.peers
@pytest.mark.parametrize("version", list(Version))
@pytest.mark.parametrize("unstable", [False, True])
def test_every_type_takes_valid_instances(version: Version, unstable: bool) -> None:
    for name in TABLES[version]:
        if name in definitions(version, unstable):
            value = InstanceMaker(version, random.Random(name), unstable).make(name)
            assert validator(version, name, unstable).is_valid(value), name
            assert conform(version, name, value, unstable=unstable).problem is None, name
