"""Permissions that a rule decides: the agent is answered at once, and nobody is asked (BR-37)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acp_proxy.errors import ConfigError
from acp_proxy.policy.permission_rules import Rule, read_rules
from relay_driver import (
    OPTIONS,
    Driver,
    Json,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    dismissed,
    message,
    prompt,
    selected,
    story,
    text_block,
    tool,
    tool_update,
    update,
)

PERMISSION = "session/request_permission"
MODES = {"v1": both_v1, "v2": both_v2, "bridged": bridged}


def rules(*tables: Json) -> list[Rule]:
    return read_rules(list(tables))


REJECT = rules({"decision": "reject"})
ALLOW = rules({"decision": "allow_once"})


@pytest.fixture(params=MODES)
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    found: Callable[..., Driver] = MODES[request.param]
    return found


def options(*kinds: str) -> list[Json]:
    return [{"optionId": f"o{i}", "name": kind, "kind": kind} for i, kind in enumerate(kinds)]


def ask_v2(request_id: Any = 90, subject: Json | None = None, **more: Any) -> Json:
    given = subject if subject is not None else {"type": "tool_call", "toolCall": {"toolCallId": "k"}}
    params = {"sessionId": "s1", "title": "May I?", "subject": given, "options": OPTIONS, **more}
    return call(request_id, PERMISSION, params)


def asking(make: Callable[..., Driver], request_id: Any = 90, **more: Any) -> Json:
    return ask_v2(request_id, **more) if make is both_v2 else ask(request_id, **more)


# ---------------------------------------------------------------- who is asked


def test_a_rejecting_rule_answers_at_once_and_asks_nobody(make: Callable[..., Driver]) -> None:
    driver = make(permission_rules=REJECT)
    driver.prompt(7)
    said = driver.agent_sends(asking(make))
    assert said.agent == [selected(90, "no")]
    assert PERMISSION not in str(said.client)


def test_no_state_says_that_somebody_must_act() -> None:
    driver = bridged(permission_rules=REJECT)
    driver.prompt(7)
    driver.agent_sends(message(), ask(90), message())
    driver.ends()
    assert [word for word in story(driver.outputs.client) if word.split()[0] in ("running", "idle")] == [
        "running",
        "idle end_turn",
    ]
    assert "requires_action" not in story(driver.outputs.client)


def test_an_allowing_rule_chooses_the_option_for_once(make: Callable[..., Driver]) -> None:
    driver = make(permission_rules=ALLOW)
    driver.prompt(7)
    assert driver.agent_sends(asking(make)).agent == [selected(90, "ok")]


def test_a_rule_that_says_ask_ends_the_search(make: Callable[..., Driver]) -> None:
    driver = make(permission_rules=rules({"decision": "ask"}, {"decision": "allow_once"}))
    driver.prompt(7)
    assert driver.agent_sends(asking(make)).agent == []
    assert driver.client_id(PERMISSION) is not None


def test_without_a_rule_that_fits_the_client_decides(make: Callable[..., Driver]) -> None:
    driver = make(permission_rules=rules({"kind": "delete", "decision": "reject"}))
    driver.prompt(7)
    driver.agent_sends(asking(make))
    assert driver.client_sends(selected(driver.client_id(PERMISSION), "ok")).agent == [selected(90, "ok")]


# ---------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(
    "kinds",
    [("allow_always", "reject_once"), ("_allow", "reject_once"), ("allowOnce",), ("Allow_Once",), ()],
)
def test_no_other_option_stands_in_for_allow_once(kinds: tuple[str, ...]) -> None:
    driver = both_v1(permission_rules=ALLOW)
    driver.prompt(7)
    said = driver.agent_sends(ask(90, options=options(*kinds)))
    assert said.agent == []
    assert story(said.client) == [f"{PERMISSION} #90"]
    assert "V56" not in said.rules


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("allow_once", "reject_always", "reject_once"), selected(90, "o2")),
        (("allow_once", "reject_always"), selected(90, "o1")),
        (("allow_once", "allow_always"), dismissed(90)),
        (("_no", "allow_once"), dismissed(90)),
        ((), dismissed(90)),
    ],
)
def test_a_rejecting_rule_never_allows(kinds: tuple[str, ...], expected: Json) -> None:
    driver = both_v1(permission_rules=REJECT)
    driver.prompt(7)
    assert driver.agent_sends(ask(90, options=options(*kinds))).agent == [expected]


# ---------------------------------------------------------------- what is written down


def test_every_decision_names_its_rule() -> None:
    driver = both_v1(permission_rules=rules({"kind": "read", "decision": "ask"}, {"decision": "reject"}))
    driver.prompt(7)
    found = driver.agent_sends(ask(90)).findings
    assert [(f.rule, f.severity, f.session) for f in found] == [("V56", "info", "s1")]
    assert "rule 2" in found[0].text
    assert found[0].frames != ()


# ---------------------------------------------------------------- what a rule looks at


@pytest.mark.parametrize(
    ("rule", "tool_call"),
    [
        ({"kind": "execute"}, {"kind": "execute"}),
        ({"title": "Run *"}, {"title": "Run tests"}),
        ({"command": "git push*"}, {"rawInput": {"command": "git push -f"}}),
        ({"command": "/^rm /"}, {"rawInput": {"command": ["rm", "-rf", "/"]}}),
        ({"path": "/etc/*"}, {"locations": [{"path": "/p/a"}, {"path": "/etc/passwd"}]}),
        (
            {"path": "/etc/*"},
            {"content": [{"type": "diff", "path": "/etc/hosts", "oldText": None, "newText": "x"}]},
        ),
        ({"cwd": "/p"}, {}),
        ({"option_kinds": "reject_once"}, {}),
    ],
)
@pytest.mark.parametrize("mode", ["v1", "bridged"])
def test_what_the_request_says_of_its_tool(mode: str, rule: Json, tool_call: Json) -> None:
    driver = MODES[mode](permission_rules=rules({**rule, "decision": "reject"}))
    driver.prompt(7)
    said = driver.agent_sends(ask(90, toolCall={"toolCallId": "k", **tool_call}))
    assert said.agent == [selected(90, "no")]


@pytest.mark.parametrize(
    ("rule", "subject"),
    [
        ({"command": "rm *"}, {"type": "command", "command": "rm -rf /", "cwd": "/p"}),
        ({"cwd": "/p"}, {"type": "command", "command": "ls", "cwd": "/p"}),
        ({"kind": "execute"}, {"type": "command", "command": "ls"}),
        ({"kind": "edit"}, {"type": "tool_call", "toolCall": {"toolCallId": "k", "kind": "edit"}}),
        (
            {"path": "/etc/*"},
            {
                "type": "tool_call",
                "toolCall": {
                    "toolCallId": "k",
                    "content": [{"type": "diff", "changes": [{"type": "edit", "path": "/etc/hosts"}]}],
                },
            },
        ),
    ],
)
def test_what_a_v2_request_says_of_its_subject(rule: Json, subject: Json) -> None:
    driver = both_v2(permission_rules=rules({**rule, "decision": "reject"}))
    driver.prompt(7)
    assert driver.agent_sends(ask_v2(90, subject)).agent == [selected(90, "no")]


def test_what_was_said_of_the_tool_before_counts(make: Callable[..., Driver]) -> None:
    driver = make(permission_rules=rules({"kind": "execute", "command": "rm *", "decision": "reject"}))
    driver.prompt(7)
    driver.agent_sends(tool_update("k", "pending", kind="execute", title="t"))
    driver.agent_sends(tool_update("k", "pending", rawInput={"command": "rm x"}))
    assert driver.agent_sends(asking(make)).agent == [selected(90, "no")]


def test_a_tool_of_another_session_is_another_tool() -> None:
    driver = both_v1(permission_rules=rules({"kind": "execute", "decision": "reject"}))
    driver.prompt(7)
    driver.agent_sends(tool("k", "pending", session="s2", kind="execute"))
    assert driver.agent_sends(ask(90)).agent == []


def test_a_request_without_a_kind_fits_no_rule_that_names_one(make: Callable[..., Driver]) -> None:
    driver = make(permission_rules=rules({"kind": "*", "decision": "reject"}))
    driver.prompt(7)
    assert driver.agent_sends(asking(make)).agent == []


def test_a_loaded_sessions_folder_is_known() -> None:
    driver = both_v1(permission_rules=rules({"cwd": "/q/*", "decision": "reject"}), session=False)
    driver.client_sends(call(1, "session/load", {"sessionId": "s9", "cwd": "/q/r", "mcpServers": []}))
    driver.agent_sends(answer(1, {}))
    driver.client_sends(prompt(7, session="s9"))
    assert driver.agent_sends(ask(90, session="s9")).agent == [selected(90, "no")]


def test_a_folder_is_not_left_by_climbing() -> None:
    allow = rules({"path": "/p/*", "decision": "allow_once"})
    driver = both_v1(permission_rules=allow)
    driver.prompt(7)
    inside = {"toolCallId": "k", "locations": [{"path": "/p/a"}]}
    outside = {"toolCallId": "l", "locations": [{"path": "/p/../etc/passwd"}]}
    assert driver.agent_sends(ask(90, toolCall=inside)).agent == [selected(90, "ok")]
    assert driver.agent_sends(ask(91, toolCall=outside)).agent == []


def test_content_that_comes_in_pieces_is_covered_by_a_rule_or_is_asked_about() -> None:
    """An allowing rule covers every path; a chunk adds to the content, it does not take its place."""

    def diff(path: str) -> Json:
        return {"type": "diff", "changes": [{"operation": "modify", "path": path}]}

    inside = {"toolCallId": "k", "title": "t", "locations": [{"path": "/p/a"}]}
    outside = update("tool_call_update", **inside, content=[diff("/etc/passwd")])
    text = update(
        "tool_call_content_chunk", toolCallId="k", content={"type": "content", "content": text_block("x")}
    )
    piece = update("tool_call_content_chunk", toolCallId="k", content=diff("/etc/passwd"))
    allowed = rules({"path": "/p/*", "decision": "allow_once"})
    for said in ([outside], [outside, text], [update("tool_call_update", **inside), piece]):
        driver = both_v2(permission_rules=allowed)
        driver.agent_sends(*said)
        assert driver.agent_sends(ask_v2()).agent == [], "the client is asked"
    driver = both_v2(permission_rules=allowed)
    driver.agent_sends(update("tool_call_update", **inside), text)
    assert driver.agent_sends(ask_v2()).client == []


def test_what_was_taken_back_fits_no_rule() -> None:
    driver = both_v2(permission_rules=rules({"kind": "read", "decision": "allow_once"}))
    driver.agent_sends(update("tool_call_update", toolCallId="k", kind="read"))
    driver.agent_sends(update("tool_call_update", toolCallId="k", kind=None))
    assert driver.agent_sends(ask_v2()).agent == []


@pytest.mark.parametrize("expression", ["/a{99999999999}/", f"/{'(' * 5000}{')' * 5000}/"])
def test_an_expression_that_cannot_be_compiled_is_a_mistake_of_the_settings(expression: str) -> None:
    with pytest.raises(ConfigError, match="not a regular expression"):
        rules({"path": expression, "decision": "reject"})
