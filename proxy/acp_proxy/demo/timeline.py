"""Prints the demo's events as two columns: the v1 traffic on the left, the states made of it on the right."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from acp_proxy.demo.client import Event

WIDTH = 80
RIGHT_COLUMN = 50
_RESET = "\x1b[0m"
_COLORS = {"running": "\x1b[32m", "requires_action": "\x1b[33m", "idle": "\x1b[36m"}
_DIM = "\x1b[2m"
_BOLD = "\x1b[1m"


def wants_color(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether escape sequences are welcome: a terminal that is not `dumb`, and no NO_COLOR."""
    return out.isatty() and environment.get("TERM") != "dumb" and not environment.get("NO_COLOR")


class Timeline:
    """Writes lines of at most 80 columns, each as soon as its event is known.

    A state is put beside the line that caused it, so a line stays open until the next event shows whether
    there is one.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._color = wants_color(out, os.environ)
        self._column = 0
        self._last_said = ""

    def begin(self) -> None:
        """The introduction and the heads of the columns."""
        self._line("A v1 agent never says what state it is in, and a v2 client has to be told.", _BOLD)
        self._line("acp-proxy stands between them, infers the state from the traffic and tells it.")
        self._line("")
        heads = "  --> v1 agent says   <-- it is told"
        self._line(heads.ljust(RIGHT_COLUMN) + "* state made by acp-proxy", _DIM)

    def block(self, name: str, about: str) -> None:
        """Start a scenario."""
        self._end_line()
        self._line("")
        self._line(f"{name}: {about}", _BOLD)
        self._last_said = ""

    def add(self, event: Event) -> None:
        """Print an event, but not again what the agent said last: how often it does so depends on timing."""
        if event.source == "state":
            self._state(event)
            return
        if event.source == "agent":
            if event.text == self._last_said:
                return
            self._last_said = event.text
        self._end_line()
        text = f"  {'-->' if event.source == 'agent' else '<--'} {' '.join(event.text.split())}"
        if len(text) >= RIGHT_COLUMN:
            text = text[: RIGHT_COLUMN - 4] + "..."
        self._write(text)

    def end(self, failures: Sequence[str], told: int) -> None:
        """The summary: how many states the proxy made and how to get them, or what is missing."""
        self._end_line()
        self._line("")
        if not failures:
            self._line(f"States sent by the agent: 0. Told to the client by acp-proxy: {told}.")
            self._line("The same for your agent:  acp-proxy wrap -- YOUR-AGENT", _BOLD)
        for failure in failures:
            self._line(f"FAILED {failure}", "\x1b[31m")

    def _state(self, event: Event) -> None:
        if self._column > RIGHT_COLUMN or self._column == 0:
            # A second state without anything in between gets a line of its own.
            self._end_line()
        self._write(" " * (RIGHT_COLUMN - self._column))
        label = f"{'*' if event.synthetic else ' '} {event.text}"[: WIDTH - RIGHT_COLUMN]
        self._write(label, _COLORS.get(event.text.split(" ")[0], ""))

    def _write(self, text: str, color: str = "") -> None:
        self._column += len(text)
        self._out.write(f"{color}{text}{_RESET}" if self._color and color else text)
        self._out.flush()

    def _end_line(self) -> None:
        if self._column:
            self._out.write("\n")
            self._column = 0

    def _line(self, text: str, color: str = "") -> None:
        self._write(text, color)
        self._out.write("\n")
        self._column = 0
