"""An agent's own echo of a prompt: adopted, dropped or forwarded (bridge §5, step 7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.filters.translate.echo import EchoMatch
from relay_driver import Driver, bridged, call, echo, message, story, text_block, tool

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def params(block: Any) -> dict[str, Any]:
    return {"update": {"content": block}}


def told(match: EchoMatch, *blocks: Any) -> list[Any]:
    """The contents told after all, of chunks taken in turn."""
    out: list[Any] = []
    for block in blocks:
        out += [each["update"]["content"] for each in match.take(params(block), block)]
    return out


# ---------------------------------------------------------------- matching


def test_the_echo_in_one_piece_or_in_many_is_dropped() -> None:
    for blocks in (["hello world"], ["hello", " ", "world"], list("hello world")):
        match = EchoMatch([text_block("hello world")])
        assert told(match, *map(text_block, blocks)) == []
        assert match.release() == []


def test_neighboring_texts_are_one_text() -> None:
    match = EchoMatch([text_block("a"), text_block(""), text_block("b"), IMAGE, text_block("c")])
    assert told(match, text_block("ab"), IMAGE, text_block("c")) == []
    assert match.release() == []


def test_what_comes_after_the_echo_is_told() -> None:
    match = EchoMatch([text_block("go")])
    assert told(match, text_block("go"), text_block("go")) == [text_block("go")]


def test_what_turns_out_not_to_be_the_echo_is_told_with_what_was_held() -> None:
    match = EchoMatch([text_block("go on")])
    assert told(match, text_block("go"), text_block("ne"), text_block(" on")) == [
        text_block("go"),
        text_block("ne"),
        text_block(" on"),
    ]


@pytest.mark.parametrize("block", [text_block(""), IMAGE, None, {"type": "text"}, "go", text_block("gone")])
def test_strangers_are_told(block: Any) -> None:
    assert told(EchoMatch([text_block("go")]), block) == [block]


def test_an_unfinished_echo_is_told_in_the_end() -> None:
    match = EchoMatch([text_block("go on")])
    assert told(match, text_block("go")) == []
    assert match.release() == [params(text_block("go"))]
    assert match.release() == []


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4), st.data())
def test_nothing_is_lost_and_only_the_whole_prompt_is_dropped(texts: list[str], data: st.DataObject) -> None:
    match = EchoMatch([text_block(text) for text in texts])
    chunks = data.draw(st.lists(st.sampled_from([*texts, "x", ""]).map(text_block), max_size=6))
    out = told(match, *chunks)
    out += [each["update"]["content"] for each in match.release()]
    if out != chunks:
        whole = "".join(texts)
        dropped = chunks[: len(chunks) - len(out)]
        assert "".join(block["text"] for block in dropped) == whole
        assert out == chunks[len(dropped) :]


# ---------------------------------------------------------------- in a turn


def begun() -> Driver:
    driver = bridged()
    driver.prompt(7, "go on")
    return driver


def test_an_echo_before_insertion_takes_the_place_of_ours() -> None:
    driver = begun()
    said = driver.agent_sends(echo("go", messageId="m"), echo(" on", messageId="m"), message())
    assert story(said.client) == [
        "user_message_chunk",
        "answer 7",
        "user_message_chunk",
        "agent_message_chunk",
    ]
    assert said.client[1]["result"] == {"messageId": "m"}


def test_an_adopted_echo_without_an_id_gets_ours() -> None:
    driver = begun()
    said = driver.agent_sends(echo("go"), echo(" on"))
    ids = {body["params"]["update"]["messageId"] for body in (said.client[0], said.client[2])}
    assert ids == {said.client[1]["result"]["messageId"]} == {"0-u1"}


def test_an_echo_after_insertion_is_dropped() -> None:
    driver = begun()
    driver.agent_sends(message())
    assert driver.agent_sends(echo("go")).lines == []
    assert driver.agent_sends(echo(" on")).lines == []
    assert story(driver.ends().client) == ["idle end_turn"]


def test_another_user_message_after_insertion_is_told() -> None:
    driver = begun()
    driver.agent_sends(message())
    assert story(driver.agent_sends(echo("steer left")).client) == ["user_message_chunk"]


def test_an_unfinished_echo_is_told_before_the_end() -> None:
    driver = begun()
    driver.agent_sends(message(), echo("go"))
    assert story(driver.ends().client) == ["user_message_chunk", "idle end_turn"]


def test_an_unfinished_echo_keeps_its_place_before_later_output() -> None:
    driver = begun()
    driver.agent_sends(message(), echo("go"))
    said = driver.agent_sends(tool("k", "pending"), message("later"))
    told_ = story(said.client) + story(driver.ends().client)
    assert told_ == ["user_message_chunk", "tool_call_update", "agent_message_chunk", "idle end_turn"]


def test_user_messages_outside_a_turn_are_told() -> None:
    driver = bridged()
    assert story(driver.agent_sends(echo("hello")).client) == ["user_message_chunk"]


def test_a_replay_during_a_turn_is_no_echo() -> None:
    driver = bridged(agent={"loadSession": True})
    driver.prompt(7, "go on")
    resume = {"sessionId": "s1", "cwd": "/p", "replayFrom": {"type": "start"}}
    driver.client_sends(call(8, "session/resume", resume))
    assert story(driver.agent_sends(echo("go on")).client) == ["user_message_chunk"]
