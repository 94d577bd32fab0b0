"""What a transcript holds, and what it never does, in both dialects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acp_proxy.plugin import Finding, Role, StateReport
from acp_proxy.relay.commands import Emit
from acp_proxy_transcript.conversation import ECHOES, PIECE, Conversation
from relay_driver import (
    OPTIONS,
    Driver,
    answer,
    ask,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    dismissed,
    echo,
    failure,
    form,
    message,
    prompt,
    selected,
    text_block,
    thought,
    tool,
    tool_update,
    update,
    usage,
    withdraw,
)

CANARY = "hunter2-canary"
LOAD = {"sessionId": "s1", "cwd": "/p", "mcpServers": []}


def lines(driver: Driver) -> list[str]:
    """The transcript of all that has passed."""
    conversation = Conversation()
    found: list[str] = []
    for command in driver.outputs.commands:
        if isinstance(command, Emit):
            found += conversation.take(command.report)
    return found + conversation.finish()


def said(driver: Driver) -> list[str]:
    """The transcript without times, session labels and the line that introduces `s1`."""
    found = [line[18:] for line in lines(driver)]
    assert found.pop(0) == "note   this is session s1"
    return found


def test_a_line_has_time_session_and_kind() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(prompt(7, "one\ntwo", "s1"))
    driver.advance(1.26)
    driver.client_sends(prompt(8, "three", "other"))
    assert lines(driver) == [
        "     100.0  #1    note   this is session s1",
        "     100.0  #1    user   one",
        "                         two",
        "     100.0  #1    state  running",
        "     101.3  #2    note   this is session other",
        "     101.3  #2    user   three",
        "     101.3  #2    state  running",
    ]


@pytest.mark.parametrize("opening", [both_v1, bridged])
def test_a_turn_reads_the_same_in_both_dialects(opening: Any) -> None:
    driver = opening(reporting=True)
    driver.prompt(7, "go")
    driver.agent_sends(thought(CANARY), message("Hello "), message("there."), usage())
    driver.agent_sends(tool("k", "pending", title="Write file", rawInput={"content": CANARY}))
    driver.agent_sends(ask(90, "k"))
    driver.client_sends(selected(driver.client_id("session/request_permission"), "no"))
    driver.agent_sends(
        tool_update("k", "failed", content=[{"type": "content", "content": text_block(CANARY)}])
    )
    driver.agent_sends(message("As you wish."))
    driver.ends()
    assert said(driver) == [
        "user   go",
        "state  running",
        "agent  Hello there.",
        "tool   Write file: pending",
        "asks   Write file (Yes / No)",
        "state  requires_action",
        "user   (No)",
        "state  running",
        "tool   Write file: failed",
        "agent  As you wish.",
        "state  idle (end_turn)",
    ]


def test_a_native_v2_agent_may_rewrite_its_messages() -> None:
    driver = both_v2(reporting=True)
    driver.client_sends(prompt(7, "go"))
    driver.agent_sends(
        update("state_update", state="running"),
        update("user_message", messageId="u", content=[text_block("go")]),
        answer(7, {"messageId": "u"}),
        update("agent_message_chunk", messageId="a", content=text_block("Hel")),
        update("agent_message", messageId="a", _meta={}),
        update("agent_message_chunk", messageId="a", content=text_block("lo")),
        update("agent_message", messageId="a", content=[text_block("Hello!")]),
        update(
            "agent_message", messageId="b", content=[text_block("Bye"), {"type": "image", "data": CANARY}]
        ),
        update(
            "agent_message", messageId="b", content=[text_block("Bye"), {"type": "image", "data": CANARY}]
        ),
        update("tool_call_update", toolCallId="k", title="T"),
        update("tool_call_update", toolCallId="k", status="in_progress"),
        update("tool_call_update", toolCallId="k", title="U", rawOutput=CANARY),
        update("tool_call_update", toolCallId="k", status="completed"),
        update(
            "agent_message", messageId="b", content=[text_block("Bye"), {"type": "image", "data": CANARY}]
        ),
        update("agent_message", messageId="c", content=[text_block("taken back")]),
        update("agent_message", messageId="c", content=None),
        update("state_update", state="idle", stopReason="end_turn"),
        update("state_update", state="idle"),
    )
    assert said(driver) == [
        "user   go",
        "state  running",
        "agent  Hello!",
        "agent  Bye[image]",
        "tool   T: pending",
        "tool   T: in_progress",
        "tool   U: completed",
        "state  idle (end_turn)",
    ]


def test_what_is_never_written() -> None:
    """Tool input and output, thoughts, `_meta`, environments, elicitation answers, file contents."""
    driver = both_v1(reporting=True)
    secret = {"_meta": {"k": CANARY}}
    environment = [
        {"name": "server", "command": "c", "args": [CANARY], "env": [{"name": "K", "value": CANARY}]}
    ]
    driver.client_sends(call(2, "session/new", {"cwd": f"/{CANARY}", "mcpServers": environment}))
    driver.client_sends(call(3, "authenticate", {"methodId": CANARY}))
    blocks = [text_block("go"), {"type": "resource", "resource": {"uri": CANARY, "text": CANARY}}]
    driver.client_sends(call(7, "session/prompt", {"sessionId": "s1", "prompt": blocks, **secret}))
    driver.agent_sends(thought(CANARY), message("ok", **secret))
    driver.agent_sends(tool("k", "pending", rawInput=CANARY, locations=[{"path": CANARY}], **secret))
    driver.agent_sends(tool_update("k", "completed", rawOutput=CANARY))
    driver.agent_sends(call(91, "fs/read_text_file", {"sessionId": "s1", "path": CANARY}))
    driver.client_sends(answer(91, {"content": CANARY}))
    driver.agent_sends(form(92))
    driver.client_sends(answer(92, {"action": "accept", "content": {"name": CANARY}}))
    driver.agent_sends(update("available_commands_update", availableCommands=[{"name": CANARY}]))
    driver.agent_sends(answer(7, {"stopReason": "end_turn", **secret}))
    assert CANARY not in "\n".join(lines(driver))
    assert said(driver) == [
        "user   go[resource]",
        "state  running",
        "agent  ok",
        "tool   t: pending",
        "tool   t: completed",
        "asks   ?",
        "state  requires_action",
        "user   (accept)",
        "state  running",
        "state  idle (end_turn)",
    ]


def test_a_prompt_that_the_agent_echoes_is_written_once() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(prompt(7, "good morning"))
    driver.agent_sends(echo("good "), echo("morning"), message("hi"))
    driver.agent_sends(echo("and who is this?"), message("hm"))
    assert said(driver) == [
        "user   good morning",
        "state  running",
        "agent  hi",
        "user   and who is this?",
        "agent  hm",
    ]


def test_prompts_that_are_never_echoed_are_forgotten_some_time() -> None:
    driver = both_v1(reporting=True)
    for number in range(ECHOES + 1):
        driver.client_sends(prompt(number + 10, f"p{number}"))
    driver.agent_sends(echo("p1"), message("hi"), echo("p0"), message("ho"))
    assert said(driver)[-3:] == ["agent  hi", "user   p0", "agent  ho"]


def test_a_replayed_history_is_not_repeated() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(call(2, "session/load", LOAD))
    driver.agent_sends(echo("old"), message("older"), tool("k", "completed"))
    driver.agent_sends(answer(2, {}))
    driver.agent_sends(message("new"))
    assert said(driver) == ["note   resumed; what was said before is not repeated here", "agent  new"]


def test_refusals_are_told() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(call(2, "session/load", LOAD))
    driver.agent_sends(failure(2, -32002, "no such session"))
    driver.client_sends(prompt(7))
    driver.agent_sends(message("hm"), failure(7, -32603, "model unavailable"))
    assert said(driver) == [
        "error  no such session",
        "user   go",
        "state  running",
        "agent  hm",
        "state  idle (error)",
        "error  model unavailable",
    ]


def test_an_error_that_only_a_state_tells_of_is_told() -> None:
    driver = bridged(reporting=True)
    driver.prompt(7)
    driver.agent_sends(message("hm"))
    driver.fails("session/prompt", -32603, "model unavailable")
    assert said(driver)[-2:] == ["state  idle (error)", "error  model unavailable"]


def test_how_questions_end() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(prompt(7))
    driver.agent_sends(
        ask(90, "k"), ask(91, "k", title="x"), ask(92, "k"), ask(93, "k"), form(94, requestId=1)
    )
    driver.client_sends(dismissed(90), failure(91, -32603), answer(92, None))
    driver.agent_sends(withdraw(93))
    driver.client_sends(selected(93), answer(94, {"action": "decline"}))
    texts = [line for line in said(driver) if line[:5].strip() in ("asks", "user", "agent")]
    untitled = f"asks   a question without a title ({OPTIONS[0]['name']} / {OPTIONS[1]['name']})"
    assert texts == [
        "user   go",
        untitled,
        "asks   x (Yes / No)",
        untitled,
        untitled,
        "asks   ?",
        "user   (cancelled)",
        "user   (error)",
        "user   (None)",
        "agent  (withdraws the question)",
        "user   (decline)",
    ]


def test_a_cancel_is_told_in_its_place() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(prompt(7))
    driver.agent_sends(message("Thinking"))
    driver.client_sends(cancel())
    driver.agent_sends(message("Stopped"))
    driver.ends("cancelled")
    assert said(driver)[2:] == [
        "agent  Thinking",
        "user   (cancels)",
        "agent  Stopped",
        "state  idle (cancelled)",
    ]


def test_sessions_do_not_mix() -> None:
    driver = both_v1(reporting=True)
    driver.client_sends(prompt(7, "a", "s1"), prompt(8, "b", "s2"))
    for text in ("x", "y"):
        driver.agent_sends(
            update("agent_message_chunk", "s1", content=text_block(text)),
            update("agent_message_chunk", "s2", content=text_block(text.upper())),
        )
    driver.agent_sends(answer(8, {"stopReason": "end_turn"}))
    assert [line[12:] for line in lines(driver) if "agent" in line] == ["#2    agent  XY", "#1    agent  xy"]


def test_what_a_terminal_would_act_upon_is_left_out() -> None:
    driver = both_v1(reporting=True)
    nasty = "a\x1b[31mb\x1b]52;c;x\x07c\x9b2Jd\u202ee\r\nf\x00g\ud800"
    driver.lines(Role.CLIENT, json.dumps(prompt(7, nasty)).encode())
    driver.lines(Role.AGENT, json.dumps(tool("k", "pending\x1b[2J", title=nasty)).encode())
    driver.agent_sends(ask(90, "k", options=[OPTIONS[0]]))
    text = "\n".join(lines(driver))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert text.encode()
    assert "user   abcde" in text
    assert " tool   abcde\n                         fg: pending\n" in text


def test_a_text_cannot_pass_for_a_line_of_its_own() -> None:
    driver = both_v1(reporting=True)
    driver.agent_sends(message("x\n     100.0  #1    user   (Yes)"))
    assert lines(driver)[-1].startswith(" " * 25)


def test_a_long_message_is_written_in_pieces() -> None:
    driver = both_v1(reporting=True)
    for _ in range(3):
        driver.agent_sends(message("x" * (PIECE // 2 + 1)))
    texts = [line for line in said(driver) if line.startswith("agent")]
    assert [len(line) for line in texts] == [7 + 2 * (PIECE // 2 + 1), 7 + PIECE // 2 + 1]


def test_reports_that_were_lost_leave_a_note() -> None:
    conversation = Conversation()
    lost = Finding(3.0, "V55", "client", "5 reports were lost here", source="plugins")
    assert conversation.take(lost) == ["       3.0        note   5 reports were lost here"]
    assert conversation.take(Finding(3.0, "V45", "agent", "x")) == []


def test_a_state_told_again_is_not_written_again() -> None:
    conversation = Conversation()
    assert len(conversation.take(StateReport(1.0, "s", "idle", "running", None))) == 2
    assert conversation.take(StateReport(2.0, "s", "running", "running", None)) == []


@pytest.mark.parametrize(
    "body",
    [
        {"method": "session/update", "params": {"sessionId": "s1", "update": value}}
        for value in (
            None,
            {},
            {"sessionUpdate": ["x"]},
            {"sessionUpdate": "agent_message_chunk"},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 5}},
            {"sessionUpdate": "agent_message", "messageId": {}, "content": [1]},
            {"sessionUpdate": "tool_call", "toolCallId": 5},
            {"sessionUpdate": "tool_call", "toolCallId": "k", "title": 5, "status": []},
            {"sessionUpdate": "state_update", "error": {}},
        )
    ]
    + [
        {"id": 5, "method": "session/request_permission", "params": params}
        for params in (
            None,
            {"sessionId": 5, "options": 5},
            {"options": [1, {"optionId": []}], "toolCall": []},
        )
    ]
    + [{"id": None, "method": "elicitation/create", "params": {"message": {}}}]
    + [{"method": "$/cancel_request", "params": {"requestId": [1]}}],
    ids=json.dumps,
)
def test_malformed_messages_are_no_reason_to_fail(body: Any) -> None:
    driver = both_v1(reporting=True)
    driver.agent_sends({"jsonrpc": "2.0", **body})
    driver.client_sends(answer(5, {"outcome": {"optionId": []}}), answer([1], 5))
    driver.agent_sends(message("still there"))
    assert lines(driver)[-1].endswith("still there")
