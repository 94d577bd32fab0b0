"""Laws of all translators: any JSON in any place, no exception, the input untouched, foreign `_meta` kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_proxy.filters.translate import (
    commands,
    config_options,
    content,
    diffs,
    elicitation,
    initialize,
    permissions,
    plans,
    session_params,
    tools,
)
from acp_proxy.filters.translate.refusal import Refusal

# Words that lead into the translators, so that random values reach the inner branches.
_KEYS = """
type content text uri size annotations priority resource path oldText newText terminalId sessionUpdate
toolCallId title kind status locations line rawInput _meta entries availableCommands name input configId
id category options group currentValue value availableModes currentModeId modeId mcpServers
additionalDirectories replayFrom args env headers info capabilities auth terminal session agentInfo
agentCapabilities authMethods protocolVersion outcome optionId toolCall mode requestedSchema properties
items enum oneOf anyOf sessionId requestId action elicitation promptCapabilities mcpCapabilities
sessionCapabilities acp-proxy orig dropped
"""
_WORDS = """
text image audio resource_link resource content diff terminal tool_call tool_call_update plan select
boolean id stdio http sse acp agent selected cancelled form url array string accept mode allow_once /p
a//b file:///x
"""
BLOCK_TYPES = ["text", "image", "audio", "resource_link", "resource"]
ITEM_TYPES = [*BLOCK_TYPES, "content", "diff", "terminal"]

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([1.0, -0.5, 1e308, 10**30])
    | st.sampled_from([*_WORDS.split(), "C:\\p", "", " "])
    | st.text(alphabet=st.characters(codec=None), max_size=5)
)
keys = st.sampled_from(_KEYS.split()) | st.text(max_size=3)
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=7),
    max_leaves=12,
)


def shaped(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Give objects with these fields, each of any value one time in four, now and then no object at all."""
    mixed = {name: field | field | field | json_values for name, field in fields.items()}
    objects = st.builds(
        lambda known, more, meta: {**more, **known, **meta},
        st.fixed_dictionaries({}, optional=mixed),
        st.dictionaries(keys, json_values, max_size=2),
        st.just({}) | st.fixed_dictionaries({"_meta": st.dictionaries(keys, json_values, max_size=2)}),
    )
    return objects | objects | objects | json_values


blocks = shaped(
    type=st.sampled_from(BLOCK_TYPES),
    uri=st.sampled_from(["/a b", "x"]),
    size=st.integers(-1, 1),
    annotations=shaped(priority=st.integers(-1, 2)),
    resource=shaped(uri=st.just("/a")),
)
items = shaped(
    type=st.sampled_from(ITEM_TYPES),
    content=blocks,
    path=st.text(max_size=3),
    oldText=st.text(max_size=9),
    newText=st.text(max_size=9),
    terminalId=st.text(max_size=3),
)
tool_fields = shaped(
    sessionUpdate=st.sampled_from(["tool_call", "tool_call_update"]),
    title=st.text(max_size=3),
    content=st.lists(items, max_size=3),
    locations=st.lists(shaped(path=st.text(max_size=3), line=st.integers(-1, 1)), max_size=2),
)
named = shaped(name=st.text(max_size=3), input=json_values)
choices = shaped(
    value=st.text(max_size=2), group=st.text(max_size=2), options=st.lists(json_values, max_size=2)
)
config = shaped(
    id=st.text(max_size=3), type=st.sampled_from(["select", "boolean"]), options=st.lists(choices, max_size=3)
)
mode_lists = shaped(
    currentModeId=st.text(max_size=2), availableModes=st.lists(shaped(id=st.text(max_size=2)), max_size=3)
)
session_requests = shaped(
    mcpServers=st.lists(shaped(type=st.sampled_from(["stdio", "http", "acp", "sse"])), max_size=3),
    additionalDirectories=st.lists(st.text(max_size=2), max_size=2),
)
offers = shaped(info=json_values, capabilities=shaped(auth=json_values, session=json_values))
results = shaped(
    agentInfo=json_values,
    agentCapabilities=shaped(
        promptCapabilities=json_values,
        mcpCapabilities=json_values,
        sessionCapabilities=json_values,
        auth=json_values,
    ),
    authMethods=st.lists(
        shaped(type=st.sampled_from(["terminal", "agent"]), id=json_values, env=json_values), max_size=3
    ),
)
questions = shaped(
    toolCall=tool_fields,
    options=st.lists(
        shaped(optionId=st.text(max_size=2), name=st.text(max_size=2), kind=st.text(max_size=2)), max_size=2
    ),
)
fields = shaped(
    type=st.sampled_from(["array", "string"]),
    enum=st.lists(json_values, max_size=1),
    items=shaped(enum=st.lists(json_values, max_size=1)),
)
forms = shaped(
    sessionId=st.text(max_size=2),
    mode=st.just("form"),
    requestedSchema=shaped(type=st.just("object"), properties=st.dictionaries(keys, fields, max_size=3)),
)
answers = shaped(
    action=st.sampled_from(["accept", "decline"]), content=st.dictionaries(keys, json_values, max_size=3)
)
outcomes = shaped(
    outcome=shaped(outcome=st.sampled_from(["selected", "cancelled"]), optionId=st.text(max_size=2))
)
OFFERED = frozenset({"a"})


def ask(params: Any) -> Any:
    return permissions.request_to_v2(params, stored_title="t", cwd="/p")


# name: translator of one value, and values it should meet
LAWS: dict[str, tuple[Callable[[Any], Any], st.SearchStrategy[Any]]] = {
    "content_block": (content.content_block, blocks),
    "content_list": (content.content_list, st.lists(blocks, max_size=3) | json_values),
    "diff_content": (lambda item: diffs.diff_content(item, "/p"), items),
    "tool_call": (lambda update: tools.tool_call(update, "/p"), tool_fields),
    "tool_call_update": (lambda update: tools.tool_call_update(update, None), tool_fields),
    "permission_tool_call": (lambda call: tools.permission_tool_call(call, "C:\\p"), tool_fields),
    "tool_content": (lambda given: tools.tool_content(given, "/p", OFFERED), st.lists(items) | json_values),
    "plan": (plans.plan, shaped(entries=json_values)),
    "available_commands": (
        commands.available_commands,
        shaped(availableCommands=st.lists(named, max_size=3)),
    ),
    "options": (config_options.options, st.lists(config, max_size=3) | json_values),
    "has_mode": (config_options.has_mode, st.lists(config, max_size=3) | json_values),
    "mode_option": (lambda modes: config_options.mode_option(modes, OFFERED), mode_lists),
    "with_value": (
        lambda given: config_options.with_value(given, "mode", given),
        st.lists(config, max_size=3) | json_values,
    ),
    "current_mode": (config_options.current_mode, json_values),
    "set_request": (config_options.set_request, shaped(type=st.sampled_from(["id", "boolean"]))),
    "mcp_servers": (session_params.mcp_servers, json_values),
    "new_params": (
        lambda params: session_params.new_params(params, additional_directories=True),
        session_requests,
    ),
    "offer_both": (lambda params: initialize.offer_both(params, OFFERED, unstable=True), offers),
    "offer_v1": (initialize.offer_v1, offers),
    "result_to_v2": (
        lambda result: initialize.result_to_v2(result, client_terminal_auth=True, unstable=True),
        results,
    ),
    "result_to_v2 stable": (
        lambda result: initialize.result_to_v2(result, client_terminal_auth=False),
        results,
    ),
    "is_v2_shape": (initialize.is_v2_shape, json_values),
    "read_version": (initialize.read_version, json_values),
    "permission request_to_v2": (ask, questions),
    "offered_options": (permissions.offered_options, questions),
    "outcome_to_v1": (lambda result: permissions.outcome_to_v1(result, OFFERED)[0], outcomes),
    "elicitation request_to_v2": (elicitation.request_to_v2, forms),
    "response_to_v1": (elicitation.response_to_v1, answers),
}


def foreign(meta: dict[str, Any]) -> dict[str, Any]:
    """Give what is in a `_meta` besides the proxy's own key."""
    return {key: value for key, value in meta.items() if key != "acp-proxy"}


@pytest.mark.parametrize("name", LAWS)
def test_any_json_is_translated_without_a_crash_or_a_trace_on_the_input(name: str) -> None:
    translate, values = LAWS[name]

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(values)
    def law(value: Any) -> None:
        before = copy.deepcopy(value)
        translated = translate(value)
        assert repr(value) == repr(before)
        assert repr(translate(value)) == repr(translated)
        if isinstance(value, dict) and isinstance(translated, dict) and isinstance(value.get("_meta"), dict):
            assert foreign(translated["_meta"]) == foreign(value["_meta"])

    law()


@settings(max_examples=60, deadline=None)
@given(tool_fields)
def test_no_null_of_a_tool_call_reaches_the_client(fields_of_call: Any) -> None:
    for translate in (tools.tool_call, tools.tool_call_update, tools.permission_tool_call):
        translated = translate(fields_of_call, "/p")
        if isinstance(translated, dict):
            assert None not in translated.values()


CHOICES = [{"optionId": "a", "name": "A", "kind": "allow_once"}]


@settings(max_examples=60, deadline=None)
@given(tool_fields.filter(lambda call: isinstance(call, dict)), json_values, st.none() | st.text(max_size=2))
def test_a_question_is_asked_with_a_title_a_subject_and_a_choice(
    call: Any, more: Any, stored: str | None
) -> None:
    params = {"toolCall": call, "options": [more, *CHOICES], "title": more, "subject": more}
    out = permissions.request_to_v2(params, stored_title=stored, cwd="/p")
    assert not isinstance(out, Refusal)
    assert isinstance(out["title"], str)
    assert out["title"]
    assert out["subject"]["type"] == "tool_call"
    assert out["subject"]["toolCall"].get("title") in (stored, call.get("title"), None)
    assert "a" in permissions.offered_options(out)
