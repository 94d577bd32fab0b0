"""The printed form: columns, width, color."""

from __future__ import annotations

import io

import pytest

from acp_proxy.demo.client import Event
from acp_proxy.demo.timeline import Timeline, wants_color


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(*events: Event) -> list[str]:
    out = io.StringIO()
    timeline = Timeline(out)
    timeline.block("name", "about")
    for event in events:
        timeline.add(event)
    timeline.end((), 2)
    return out.getvalue().splitlines()[2:-3]


def test_a_state_stands_beside_its_cause() -> None:
    lines = printed(
        Event("client", 'prompt "x"'),
        Event("state", "running", True),
        Event("agent", 'text "y"'),
        Event("agent", "prompt answered: end_turn"),
        Event("state", "idle (end_turn)", True),
    )
    assert lines == [
        '  <-- prompt "x"                                  * running',
        '  --> text "y"',
        "  --> prompt answered: end_turn                   * idle (end_turn)",
    ]


def test_a_state_that_is_not_synthetic_has_no_mark() -> None:
    assert printed(Event("agent", "x"), Event("state", "running"))[0].endswith("  running")


def test_two_states_in_a_row_get_two_lines() -> None:
    lines = printed(Event("agent", "x"), Event("state", "running", True), Event("state", "idle", True))
    assert [line.split("*")[1] for line in lines] == [" running", " idle"]
    assert lines[0].index("*") == lines[1].index("*")


def test_a_state_may_come_first() -> None:
    assert printed(Event("state", "running", True)) == [" " * 50 + "* running"]


def test_repeated_text_is_printed_once_even_across_what_the_client_does() -> None:
    tick = Event("agent", "tick")
    lines = printed(tick, tick, Event("client", "session/cancel"), tick, Event("agent", "tock"))
    assert lines == ["  --> tick", "  <-- session/cancel", "  --> tock"]


def test_repeated_text_is_printed_again_in_the_next_block() -> None:
    out = io.StringIO()
    timeline = Timeline(out)
    for name in ("a", "b"):
        timeline.block(name, "")
        timeline.add(Event("agent", "same"))
    assert out.getvalue().count("same") == 2


def test_long_and_broken_text_stays_on_one_line_within_80_columns() -> None:
    long = Event("agent", "word\n" * 40)
    lines = printed(long, Event("state", "requires_action" * 9, True))
    assert len(lines) == 1
    assert len(lines[0]) == 80
    assert "word word" in lines[0]
    assert "... " in lines[0]


def test_the_frame_fits_80_columns() -> None:
    out = io.StringIO()
    timeline = Timeline(out)
    timeline.begin()
    timeline.end((), 14)
    lines = out.getvalue().splitlines()
    assert max(len(line) for line in lines) <= 80
    assert "14" in lines[-2]
    assert lines[-1].endswith("acp-proxy wrap -- YOUR-AGENT")


def test_failures_replace_the_praise() -> None:
    out = io.StringIO()
    Timeline(out).end(["text: broken"], 3)
    assert out.getvalue() == "\nFAILED text: broken\n"


def test_each_event_is_visible_before_the_next() -> None:
    out = io.StringIO()
    timeline = Timeline(out)
    timeline.add(Event("agent", "first"))
    assert out.getvalue() == "  --> first"


@pytest.mark.parametrize(
    ("out", "environment", "color"),
    [
        (io.StringIO(), {}, False),
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
    ],
)
def test_when_color_is_wanted(out: io.StringIO, environment: dict[str, str], color: bool) -> None:
    assert wants_color(out, environment) is color


def test_color_changes_nothing_but_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, plain = Terminal(), io.StringIO()
    for out in (terminal, plain):
        timeline = Timeline(out)
        timeline.begin()
        timeline.add(Event("agent", "x"))
        timeline.add(Event("state", "requires_action", True))
        timeline.end(["y"], 0)
    assert "\x1b[33m* requires_action\x1b[0m" in terminal.getvalue()
    assert "\x1b" not in plain.getvalue()
    stripped = terminal.getvalue()
    for code in ("0", "1", "2", "31", "33"):
        stripped = stripped.replace(f"\x1b[{code}m", "")
    assert stripped == plain.getvalue()
