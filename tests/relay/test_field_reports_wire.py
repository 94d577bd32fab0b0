"""Field reports on schema, versions, framing and sessions of one agent (groups E, F and G)."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.jsonrpc.framing import LineSplitter, Oversize
from relay_driver import (
    Driver,
    answer,
    both_v1,
    bridged,
    call,
    failure,
    initialize_v1,
    line,
    message,
    note,
    prompt,
    story,
    text_block,
    tool,
    usage,
    v1_result,
)

CLIENT, AGENT = Role.CLIENT, Role.AGENT


# ---------------------------------------------------------------- E


def test_br42_a_usage_update_reaches_either_client() -> None:
    for driver in (bridged(), both_v1()):
        given = usage(used=1)
        assert driver.agent_sends(given).client == [given]


def test_br43_a_null_where_a_number_is_due_is_withheld_from_a_v2_client() -> None:
    said = bridged().agent_sends(usage(used=None))
    assert (said.lines, said.rules) == ([], ["V42"])


def test_br43_same_version_peers_keep_it() -> None:
    raw = line(usage(used=None))
    assert both_v1().lines(AGENT, raw).lines == [(CLIENT, raw)]


def test_br44_a_stop_reason_error_is_idle_error() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message())
    assert story(driver.ends("error").client) == ["idle error"]


def test_br47_missing_mcp_servers_are_an_empty_list() -> None:
    driver = bridged(session=False)
    sent = driver.client_sends(call(5, "session/new", {"cwd": "/p"})).agent[0]
    assert sent["params"]["mcpServers"] == []
    stdio = {"type": "stdio", "name": "n", "command": "/c", "x": 1}
    sent = driver.client_sends(call(6, "session/new", {"cwd": "/p", "mcpServers": [stdio]})).agent[0]
    assert sent["params"]["mcpServers"] == [{"name": "n", "command": "/c", "x": 1, "args": [], "env": []}]


@pytest.mark.parametrize("server", [{"name": "n"}, {"type": "sse", "name": "n", "url": "u"}, "n", None])
def test_br48_malformed_mcp_servers_do_not_vanish(server: Any) -> None:
    driver = bridged(session=False)
    said = driver.client_sends(call(5, "session/new", {"cwd": "/p", "mcpServers": [server]}))
    assert said.both == ["C error 5 -32602"]


def test_br49_a_version_in_text_and_a_missing_one() -> None:
    driver = Driver()
    said = driver.client_sends(initialize_v1(0, "1.0"))
    assert said.agent[0]["params"]["protocolVersion"] == 1
    assert len(said.rules) == 1
    assert Driver().client_sends(call(0, "initialize", {})).both == ["C error 0 -32602"]


@pytest.mark.parametrize("mode", ["bridged", "same version"])
def test_br51_an_error_answer_to_a_notification_is_swallowed(mode: str) -> None:
    driver = bridged() if mode == "bridged" else both_v1()
    given = note("_x/updated", {"a": 1})
    assert driver.agent_sends(given).client == [given]
    said = driver.client_sends(failure(None, -32601))
    assert (said.lines, said.rules) == ([], ["V51"])


def test_br54_untouched_frames_keep_their_bytes() -> None:
    driver = both_v1()
    raw = b'{ "params":{"x":1.50,"n":123456789012345678901234567890,"_meta":{"k":null}} ,"method":"_x/y"}'
    assert driver.lines(AGENT, raw).lines == [(CLIENT, raw)]
    assert driver.lines(CLIENT, raw).lines == [(AGENT, raw)]


def test_br54_changed_frames_keep_keys_their_order_and_big_numbers() -> None:
    driver = bridged()
    given = tool(
        "k", "pending", rawInput={"z": 2**70, "a": [1, {"b": None}], "ü/": "\u2028"}, _meta={"m": 1}, v=1
    )
    given["params"]["_meta"] = {"traceparent": "00-1"}
    (body,) = driver.agent_sends(given).client
    told = body["params"]["update"]
    assert list(told["rawInput"].items()) == list(given["params"]["update"]["rawInput"].items())
    assert (told["_meta"], told["v"]) == ({"m": 1}, 1)
    assert body["params"]["_meta"] == {"traceparent": "00-1"}


def test_br55_calls_nobody_offered_are_refused_with_a_finding() -> None:
    said = bridged().agent_sends(call(60, "fs/read_text_file", {"sessionId": "s1", "path": "/p"}))
    assert (said.both, said.rules) == (["A error 60 -32601"], ["V52"])


@pytest.mark.parametrize(
    ("agent", "replay", "method"),
    [
        ({"sessionCapabilities": {"resume": {}}}, False, "session/resume"),
        ({"loadSession": True}, False, "session/load"),
        ({"loadSession": True}, True, "session/load"),
        ({"sessionCapabilities": {"resume": {}}}, True, None),
        ({}, False, None),
    ],
)
def test_br56_agents_that_only_resume_or_only_load(agent: Any, replay: bool, method: str | None) -> None:
    driver = bridged(agent=agent, session=False)
    params = {"sessionId": "s", "cwd": "/p", **({"replayFrom": {"type": "start"}} if replay else {})}
    said = driver.client_sends(call(5, "session/resume", params))
    assert [body["method"] for body in said.agent] == ([method] if method else [])
    if method:
        told = driver.agent_sends(message("old", session="s")).client
        assert bool(told) is (replay or method == "session/resume")
    else:
        assert "error" in said.client[0]


# ---------------------------------------------------------------- F


def test_br57_log_lines_on_stdout_are_shown_elsewhere() -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0))
    reply = line(answer(0, v1_result()))
    said = driver.lines(AGENT, b"Migrating db\xe2\x80\xa6", b"\xff\xfe", b'"text"', b"[", reply)
    assert said.lines == [(CLIENT, reply)]
    assert said.diverted == [b"Migrating db\xe2\x80\xa6", b"\xff\xfe", b'"text"', b"["]
    assert said.rules == ["V45"] * 4


def test_br59_a_pretty_printed_answer_is_noise_and_breaks_nothing() -> None:
    driver = Driver()
    driver.client_sends(initialize_v1(0))
    pretty = b'{\n "id":0,\n "result":{}\n}'.split(b"\n")
    said = driver.lines(AGENT, *pretty)
    assert (said.lines, said.diverted) == ([], pretty)
    reply = line(answer(0, v1_result()))
    assert driver.lines(AGENT, reply).lines == [(CLIENT, reply)]


def test_br61_long_lines_pass_and_longer_ones_cost_only_themselves() -> None:
    splitter = LineSplitter(1 << 20)
    long = line(message("x" * 70_000))
    longer = line(answer(7, {"text": "x" * (2 << 20)}))
    lines = splitter.feed(long + b"\n" + longer + b"\n" + long + b"\n")
    driver = both_v1()
    driver.prompt(7)
    said = driver.lines(AGENT, *lines)
    assert [raw for raw in said.raw(CLIENT) if raw == long] == [long, long]
    assert "error 7 -32603" in story(said.client), "the request behind the skipped answer is not left open"
    assert said.rules == ["V48"]


def test_br62_a_prompt_over_the_limit_is_refused_by_name() -> None:
    for driver in (bridged(), both_v1()):
        head = line(prompt(7, "x" * 5000))[:4096]
        said = driver.lines(CLIENT, Oversize(head))
        assert said.both == ["C error 7 -32600"]
        assert "limit" in said.client[0]["error"]["message"]
        assert story(driver.prompt(8).agent)[0].startswith("session/prompt"), "nothing else suffers"


def test_br64_lone_surrogates() -> None:
    raw = line(message("@@", messageId="m")).replace(b"@@", b"\\ud83d")
    assert both_v1().lines(AGENT, raw).lines == [(CLIENT, raw)]
    assert bridged().lines(AGENT, raw).raw(CLIENT) == [raw]
    changed = line(message("@@")).replace(b"@@", b"\\ud83d")
    (body,) = bridged().lines(AGENT, changed).client
    assert body["params"]["update"]["content"]["text"] == "\ud83d"


def test_br65_marks_and_carriage_returns_around_a_frame() -> None:
    driver = both_v1()
    plain = line(note("_x/y", {}))
    assert driver.lines(AGENT, plain + b"\r").lines == [(CLIENT, plain + b"\r")]
    said = driver.lines(AGENT, b"\xef\xbb\xbf" + plain)
    assert said.lines == [(CLIENT, plain)]
    assert said.rules == ["V49"]


def test_br65_terminal_escapes_before_a_frame_are_noise() -> None:
    raw = b"\x1b[2J" + line(note("_x/y", {}))
    said = both_v1().lines(AGENT, raw)
    assert (said.lines, said.diverted, said.rules) == ([], [raw], ["V45"])


def test_br67_batches_are_refused_once_and_nothing_of_them_is_processed() -> None:
    for driver in (bridged(), both_v1()):
        raw = line([prompt(7), note("session/cancel", {"sessionId": "s1"})])
        said = driver.lines(CLIENT, raw)
        assert (said.both, said.rules) == (["C error None -32600"], ["V32"])


def test_br67_or_taken_apart_where_wanted() -> None:
    driver = both_v1(batch="split")
    raw = line([prompt(7), note("session/cancel", {"sessionId": "s1"})])
    assert driver.lines(CLIENT, raw).both == ["A session/prompt #7", "A session/cancel"]


# ---------------------------------------------------------------- G


def test_br70_replay_is_no_live_output() -> None:
    driver = bridged(agent={"loadSession": True}, session=False)
    params = {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}
    driver.client_sends(call(4, "session/resume", params))
    said = driver.agent_sends(message("old"), tool("t9", "in_progress"))
    assert story(said.client) == ["agent_message_chunk", "tool_call_update"]
    assert story(driver.answers("session/load", {}).client) == ["idle", "answer 4"]
    driver.prompt(7)
    asked = {
        "sessionId": "s1",
        "toolCall": {"toolCallId": "new"},
        "options": [{"optionId": "o", "name": "n", "kind": "k"}],
    }
    said = driver.agent_sends(call(90, "session/request_permission", asked))
    assert story(said.client)[-1] == "requires_action", "a replayed tool does not move"


def test_br71_a_replay_behind_its_result_is_no_work() -> None:
    driver = bridged(agent={"loadSession": True}, session=False)
    params = {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}
    driver.client_sends(call(4, "session/resume", params))
    driver.answers("session/load", {})
    said = driver.agent_sends(message("old"), tool("t9", "in_progress"))
    assert story(said.client) == ["agent_message_chunk", "tool_call_update"]


@pytest.mark.parametrize(
    ("before", "state"),
    [([], "running"), ([call(90, "session/request_permission", {
        "sessionId": "s1",
        "toolCall": {"toolCallId": "k"},
        "options": [{"optionId": "o", "name": "n", "kind": "k"}],
    })], "requires_action")],
)  # fmt: skip
def test_br72_attaching_in_mid_turn_tells_the_state(before: Any, state: str) -> None:
    driver = bridged(agent={"sessionCapabilities": {"resume": {}}})
    driver.prompt(7)
    driver.agent_sends(message(), *before)
    driver.client_sends(call(8, "session/resume", {"sessionId": "s1", "cwd": "/p"}))
    assert story(driver.answers("session/resume", {}).client) == [state, "answer 8"]


def test_br78_no_finding_and_no_error_tells_a_secret() -> None:
    driver = bridged(session=False)
    servers = [
        {"type": "stdio", "name": "n", "command": "/c", "env": [{"name": "KEY", "value": "s3cret"}]},
        {
            "type": "http",
            "name": "n",
            "url": "https://e",
            "headers": [{"name": "A", "value": "s3cret"}],
            "x": 1,
        },
        {"type": "sse", "name": "s3cret", "url": "https://s3cret"},
    ]
    said = driver.client_sends(call(5, "session/new", {"cwd": "/p", "mcpServers": servers}))
    driver.client_sends(call(6, "session/new", {"cwd": 5, "mcpServers": servers, "s3cret": 1}))
    driver.client_sends(prompt(7, "s3cret"))
    driver.agent_sends(call(9, "terminal/create", {"sessionId": "s1", "command": "s3cret"}))
    assert said.both == ["C error 5 -32602"]
    texts = [finding.text for finding in driver.outputs.findings]
    texts += [body["error"]["message"] for body in driver.outputs.client if "error" in body]
    assert texts
    assert not [text for text in texts if "s3cret" in text]


def test_a_text_block_of_many_bytes_is_one_frame() -> None:
    driver = bridged()
    given = message("é" * 1_000_000, messageId="m")
    assert driver.agent_sends(given).client[0]["params"]["update"]["content"] == text_block("é" * 1_000_000)
