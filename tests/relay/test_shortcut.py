"""Lines recognized by their bytes alone mean exactly what a parser says, alone or in runs."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acp_proxy.acp.version import Role
from acp_proxy.relay.shortcut import end_of_chunks, end_of_nameless_chunks, is_utf8
from relay_driver import Driver, both_v1, both_v2, bridged, echo, line, message, thought, tool, usage

CLIENT, AGENT = Role.CLIENT, Role.AGENT
TAGS = ("agent_message_chunk", "agent_thought_chunk")
PLAIN = line(message("hi"))


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a member stands twice"
    return found


def untouched(raw: bytes) -> bool:
    """Whether a line passes by its bytes alone."""
    whole = raw + b"\n"
    return end_of_chunks(whole, 0) == len(whole) and is_utf8(raw)


def assert_is_a_chunk(raw: bytes) -> None:
    """What any strict reader finds in a recognized line."""
    body = json.loads(raw.decode("utf-8"), object_pairs_hook=no_duplicates)
    assert set(body) == {"jsonrpc", "method", "params"}
    assert (body["jsonrpc"], body["method"]) == ("2.0", "session/update")
    params = body["params"]
    assert set(params) == {"sessionId", "update"}
    assert type(params["sessionId"]) is str
    update = params["update"]
    assert {"sessionUpdate", "content"} <= set(update) <= {"sessionUpdate", "content", "messageId"}
    assert update["sessionUpdate"] in TAGS
    assert type(update.get("messageId", "")) is str
    assert set(update["content"]) == {"type", "text"}
    assert update["content"]["type"] == "text"
    assert type(update["content"]["text"]) is str


# ---------------------------------------------------------------- what is recognized


@pytest.mark.parametrize(
    "raw",
    [
        PLAIN,
        PLAIN + b"\r",
        line(thought("x")),
        line(message("x", messageId="m")),
        line(message('a "quote" \\ / \n \x00')),
        line(message("ü 漢 😀")),
        json.dumps(message("spaced")).encode(),
    ],
)
def test_what_sdks_write_is_recognized(raw: bytes) -> None:
    assert untouched(raw)
    assert_is_a_chunk(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        PLAIN[:-1],
        PLAIN + b"}",
        PLAIN + PLAIN,
        b" " + PLAIN,
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN + b"\n",
        PLAIN.replace(b'"jsonrpc":"2.0"', b'"jsonrpc":"2.0","id":1'),
        PLAIN.replace(b'"params"', b'"id":1,"params"'),
        PLAIN[:-1] + b',"id":1}',
        PLAIN[:-1] + b',"method":"session/cancel"}',
        PLAIN[:-2] + b',"sessionId":"s2"}}',
        PLAIN[:-3] + b',"sessionUpdate":"state_update"}}}',
        PLAIN[:-3] + b',"content":{"type":"text","text":"x"}}}}',
        PLAIN.replace(b'"text":"hi"', b'"text":"hi","text":"ho"'),
        PLAIN.replace(b'"text":"hi"', b'"text":"hi","type":"image"'),
        PLAIN.replace(b'"hi"', b'"hi\\"'),
        PLAIN.replace(b'"hi"', b'"\\x"'),
        PLAIN.replace(b'"hi"', b'"\\u12g4"'),
        PLAIN.replace(b'"hi"', b'"\\u12"'),
        PLAIN.replace(b'"hi"', b'"\n"'),
        PLAIN.replace(b'"hi"', b'"\x00"'),
        PLAIN.replace(b'"hi"', b'"\t"'),
        PLAIN.replace(b'"hi"', b'"\xff"'),
        PLAIN.replace(b'"hi"', b'"\xc3"'),
        PLAIN.replace(b'"hi"', b'"\xed\xa0\xbd"'),
        PLAIN.replace(b'"hi"', b'"\xc0\xaf"'),
        PLAIN.replace(b'"hi"', b"5"),
        PLAIN.replace(b'"hi"', b"null"),
        PLAIN.replace(b"s1", b"\xff"),
        PLAIN.replace(b"2.0", b"1.0"),
        PLAIN.replace(b"agent_message", b"user_message"),
        line(tool("k", "pending")),
        line(usage()),
        line(echo("x")),
    ],
)
def test_anything_else_is_not(raw: bytes) -> None:
    assert not untouched(raw)


def test_a_member_that_stands_twice_is_not_recognized() -> None:
    twice = line(message("x", messageId="m")).replace(b'"content"', b'"messageId":"n","content"')
    assert twice.count(b"messageId") == 2
    assert not untouched(twice)


pieces = st.sampled_from(
    [
        b'"', b"\\", b"{", b"}", b",", b":", b'"id":1,', b'"messageId":"m",', b'"type":"text",', b"\xff",
        b"\\u00", b"\\n", b"\n", b"\r", b" ", b"s1", b"hi", b'"text":"x"', b"agent_thought_chunk", b"\x00",
        b'"sessionId":"s2",', b'"method":"x",', b'"update":{', b"\xc3\xa4",
    ]
)  # fmt: skip
seeds = st.sampled_from(
    [PLAIN, line(thought("ä")), line(message("x", messageId="m")), json.dumps(message("a b")).encode()]
)


@given(seeds, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 8), pieces), max_size=3))
@example(PLAIN, [])
@settings(max_examples=600, deadline=None)
def test_what_is_recognized_a_parser_reads_as_exactly_a_chunk(
    seed: bytes, edits: list[tuple[int, int, bytes]]
) -> None:
    raw = seed
    for start, length, piece in edits:
        start %= len(raw) + 1
        raw = raw[:start] + piece + raw[start + length :]
    if untouched(raw):
        assert_is_a_chunk(raw)
    for end_of in (end_of_chunks, end_of_nameless_chunks):
        end = end_of(raw + b"\n", 0)
        if end and is_utf8(raw[: end - 1]):
            for single in raw[: end - 1].split(b"\n"):
                assert_is_a_chunk(single)


@given(st.text(), st.sampled_from(TAGS), st.none() | st.text(max_size=5), st.booleans())
@settings(deadline=None)
def test_any_text_is_recognized_as_compact_writers_write_it(
    text: str, tag: str, message_id: str | None, ascii_only: bool
) -> None:
    body = message(text) if message_id is None else message(text, messageId=message_id)
    body["params"]["update"]["sessionUpdate"] = tag
    raw = json.dumps(body, ensure_ascii=ascii_only, separators=(",", ":")).encode("utf-8", "backslashreplace")
    if message_id is None or "\\" not in json.dumps(message_id, ensure_ascii=ascii_only):
        assert untouched(raw)


@pytest.mark.parametrize(
    "filler",
    [b"a", b"\\\\", b"\\u0041", b'\\"', b"a\\\\", b"\xc3\xa4", b" ", b'","text":"', b'{"type":"text",'],
)
def test_a_line_that_nearly_matches_costs_no_more_than_its_length(filler: bytes) -> None:
    body = filler * (200_000 // len(filler))
    head = PLAIN[: PLAIN.index(b'"hi"')]
    for raw in (head + b'"' + body, head + b'"' + body + b'"}}}} ', head + b'"' + body + b'"}},"id":1}'):
        began = time.process_time()
        for end_of in (end_of_chunks, end_of_nameless_chunks):
            assert end_of(raw + b"\n", 0) == 0
        assert not untouched(raw)
        assert time.process_time() - began < 2.0


# ---------------------------------------------------------------- in the relay


words = st.sampled_from(
    [
        message("a"), message("b"), thought("t"), thought("agent_message_chunk"), message("agent_thought_chunk"),
        message("agent_message_chunk"), message("x", session="s2"), thought("x", session="agent_message_chunk"),
        message("n", messageId="m"), message('"sessionId":"s1"'), message("ä\u2028"), usage(), echo("go"),
        tool("k", "pending"), tool("k", "completed"), message("sessionUpdate"), message("x", session="0-a1"),
    ]
)  # fmt: skip
steps = st.lists(
    st.lists(words, min_size=1, max_size=6) | st.sampled_from(["prompt", "end", "wait", "cancel"]), max_size=6
)


def talk(driver: Driver, script: list[Any], together: bool) -> list[Any]:
    """Act a script; what both legs were sent, decoded, in order."""
    number = 10
    for step in script:
        number += 1
        if step == "prompt":
            driver.prompt(number)
        elif step == "end":
            if "session/prompt" in str(driver.outputs.agent):
                driver.ends()
        elif step == "wait":
            driver.advance(2)
        elif step == "cancel":
            driver.client_sends({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}})
        elif together:
            driver.agent_sends(*step)
        else:
            for body in step:
                driver.lines(AGENT, line(body))
    return [(leg, json.loads(raw)) for leg, raw in driver.outputs.lines]


@given(steps)
@example([[thought("x"), message("agent_thought_chunk")], [message("agent_message_chunk"), thought("t")]])
@settings(deadline=None, max_examples=100)
def test_lines_read_together_are_told_like_lines_read_apart(script: list[Any]) -> None:
    for make in (bridged, both_v1, both_v2):
        assert talk(make(), script, together=True) == talk(make(), script, together=False)


@given(steps)
@settings(deadline=None, max_examples=50)
def test_settling_is_not_disturbed_by_reading_together(script: list[Any]) -> None:
    apart = talk(bridged(settle=0.5), script, together=False)
    assert talk(bridged(settle=0.5), script, together=True) == apart


def test_what_is_not_utf8_is_diverted_even_inside_a_run() -> None:
    bad = PLAIN.replace(b"hi", b"\xff")
    for driver in (both_v1(), both_v2(), bridged()):
        said = driver.agent_writes(PLAIN + b"\n" + bad + b"\n" + PLAIN + b"\n")
        assert said.diverted == [bad]
        assert len(said.raw(CLIENT)) == 2


def test_runs_count_their_frames() -> None:
    for make in (both_v1, bridged):
        apart, together = make(), make()
        bodies = [message("a"), message("b"), usage(), message("c"), message("d")]
        for body in bodies:
            apart.lines(AGENT, line(body))
        together.agent_sends(*bodies)
        assert apart.relay.frames_received == together.relay.frames_received
