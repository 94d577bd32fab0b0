"""Text that passes undecoded is watched all the same: what may be a breach is decoded first."""

from __future__ import annotations

import pytest

from acp_proxy.acp.version import Role
from acp_proxy.relay.shortcut import end_of_chunks, end_of_named_chunks, whose
from lifecycle_scripts import A, C, begun, close, heard, idle, opened, play, resume, said, state, taken, turn
from relay_driver import answer, cancel, line, message, prompt, text_block, update

RUN = b"".join(line(said(f"w{number}", "a8")) + b"\n" for number in range(5))


@pytest.mark.parametrize(
    ("before", "rule"),
    [
        ([*turn(7), C(prompt(8)), A(heard(8)), A(taken(8))], "V01"),
        ([C(prompt(7)), A(heard(7))], "V03"),
        ([*begun(), A(said("x", "a8")), C(cancel()), A(idle("cancelled"))], "V13"),
        ([*turn(7), close(), A(answer(3, {}))], "V24"),
        ([resume(3, "s1")], "V11"),
    ],
)
def test_a_breach_in_a_run_of_chunks_is_found(before: list[tuple[str, object]], rule: str) -> None:
    driver = opened("22")
    play(driver, before)
    got = driver.agent_writes(RUN)
    assert rule in got.rules
    assert b"\n".join(got.raw(Role.CLIENT)) + b"\n" == RUN


def test_a_turn_whose_text_came_in_a_run_has_had_output() -> None:
    """Otherwise the turn after a cancelled one would look as if the cancel had eaten it (V47)."""
    driver = opened("22")
    play(driver, [*begun(), A(said()), C(cancel()), A(idle("cancelled")), *begun(8)])
    driver.agent_writes(RUN)
    assert driver.agent_sends(idle()).rules == []


def test_what_a_run_said_last_is_known_when_more_of_it_comes_too_late() -> None:
    driver = opened("22")
    play(driver, begun())
    driver.agent_writes(RUN)
    play(driver, [C(cancel()), A(idle("cancelled"))])
    assert driver.agent_sends(said("late", "a8")).rules == ["V13"]


def test_a_v2_chunk_without_a_message_id_is_decoded_and_found_malformed() -> None:
    driver = opened("22")
    play(driver, [*begun(), A(said())])
    nameless = line(message("x")) + b"\n"
    assert end_of_chunks(nameless, 0) == len(nameless)
    assert end_of_named_chunks(nameless, 0) == 0
    assert driver.agent_writes(nameless * 2).rules == ["V42", "V42"]


def test_chunks_of_two_sessions_are_told_apart() -> None:
    driver = opened("22")
    play(driver, [*begun(), A(said())])
    mixed = line(said("a")) + b"\n" + line(said("b", session="s9")) + b"\n"
    assert driver.agent_writes(mixed).rules == ["V37"]


@pytest.mark.parametrize("mode", ["enforce", "strict"])
def test_text_that_cannot_be_misread_passes_an_enforced_session_in_its_own_bytes(mode: str) -> None:
    driver = opened("22", lifecycle=mode)
    play(driver, [*begun(), A(said())])
    spaced = RUN.replace(b'"params":', b'"params": ')
    assert b"\n".join(driver.agent_writes(spaced).raw(Role.CLIENT)) + b"\n" == spaced


def test_an_escape_is_written_as_it_was_judged() -> None:
    driver = opened("22", lifecycle="enforce")
    play(driver, [*begun(), A(said())])
    escaped = line(said("HERE", "a8")).replace(b"HERE", b"\\u0041")
    assert driver.agent_writes(escaped + b"\n").raw(Role.CLIENT) == [line(said("A", "a8"))]


def test_text_is_judged_one_by_one_while_a_repair_is_kept_up() -> None:
    driver = opened("22", lifecycle="enforce")
    play(driver, [C(prompt(7)), A(answer(7, {}))])
    assert "V19" in driver.outputs.rules
    play(driver, [A(state("running")), A(said())])
    spaced = RUN.replace(b'"params":', b'"params": ')
    assert b"\n".join(driver.agent_writes(spaced).raw(Role.CLIENT)) + b"\n" == RUN


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([said("x", "a1")], ("s1", "a1")),
        ([said("x", "a1"), said("y", "a2")], ("s1", "a2")),
        ([message("x")], ("s1", None)),
        ([said('quoted "messageId":"no" inside', "a1")], ("s1", "a1")),
        ([said("x"), said("y", session="s2")], None),
        ([update("agent_message_chunk", "é", messageId="ü", content=text_block("x"))], ("é", "ü")),
    ],
)
def test_whose_chunks_they_are(
    lines: list[dict[str, object]], expected: tuple[str, str | None] | None
) -> None:
    data = b"\n".join(map(line, lines))
    assert whose(data) == expected
    assert whose(data + b"\n") == expected


def test_bytes_that_are_no_text_are_nobodys() -> None:
    assert whose(line(said()).replace(b"out", b"\xff")) is None


def test_a_state_in_between_is_no_chunk() -> None:
    assert end_of_chunks(line(state("running")) + b"\n", 0) == 0
