"""Reads what two peers said to each other out of a file: a recording of ours, or a plain capture.

A plain capture has one JSON object a line, `{"t": seconds, "dir": "c2a" | "a2c", "line": "the frame"}`;
`exit` says that the agent has ended, and lines of any other `dir` are left out. It may hold several
processes one after the other. A recording holds each leg on its own (`trace.format`): there the proxy
itself is the client of one conversation and the agent of the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

from acp_proxy.acp.version import Role
from acp_proxy.jsonrpc.codec import DecodeError, decode, strip_bom
from acp_proxy.trace.format import MARK, End, FrameLine, TraceError, lines_of

LINE_BYTES: Final = 1 << 28
_SENDERS: Final = {"c2a": Role.CLIENT, "a2c": Role.AGENT}


class Said:
    """One frame: when, on which leg (None in a capture, which knows but one), by whom, and its number.

    The number is that of the received frame, counted from 1 over the whole file; None for a frame that
    the recording proxy made.
    """

    __slots__ = ("at", "leg", "number", "raw", "sender")

    def __init__(self, at: float, leg: Role | None, sender: Role, raw: bytes, number: int | None) -> None:
        self.at = at
        self.leg = leg
        self.sender = sender
        self.raw = raw
        self.number = number


class Over:
    """The agent has ended, or the recorded run has."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


Traffic = Said | Over


def traffic(file: BinaryIO, name: str) -> Iterator[Traffic]:
    """What a file holds, in order, a line at a time.

    Raises TraceError naming file and line for what cannot be read, is neither form, or is damaged. A
    last line that was cut off ends the traffic like the end of the file.
    """
    try:
        lines = _lines(file, name)
        first = next(lines, None)
        if first is None:
            raise TraceError(f"{name}:1: the file is empty")
        everything = itertools.chain((first,), lines)
        yield from _recorded(everything, name) if _is_recording(first) else _captured(everything, name)
    except OSError as exc:
        raise TraceError(f"{name}: cannot be read: {exc.strerror or exc}") from None


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The lines, none of them larger than memory should hold."""
    for number in itertools.count(1):
        raw = file.readline(LINE_BYTES)
        if not raw:
            return
        if len(raw) == LINE_BYTES and not raw.endswith(b"\n"):
            raise TraceError(f"{name}:{number}: the line is longer than {LINE_BYTES} bytes")
        yield raw


def _is_recording(first: bytes) -> bool:
    try:
        body = decode(strip_bom(first))
    except DecodeError:
        return False
    return isinstance(body, dict) and MARK in body


def _recorded(lines: Iterable[bytes], name: str) -> Iterator[Traffic]:
    for line in lines_of(lines, name):
        if isinstance(line, FrameLine):
            leg = Role(line.leg)
            yield Said(line.t, leg, leg if line.dir == "in" else leg.other, line.raw, line.n)
        elif isinstance(line, End):
            yield Over(line.t)


def _captured(lines: Iterable[bytes], name: str) -> Iterator[Traffic]:
    frames = 0
    for number, raw in enumerate(lines, start=1):
        where = f"{name}:{number}"
        if number == 1:
            raw = strip_bom(raw)
        if not raw.strip():
            continue
        try:
            body: Any = decode(raw)
        except DecodeError as exc:
            if number > 1 and not raw.endswith(b"\n"):
                return
            raise TraceError(f"{where}: not JSON: {exc}") from None
        at, direction, text = _captured_line(body, where)
        sender = _SENDERS.get(direction)
        if sender is not None:
            frames += 1
            yield Said(at, None, sender, text.encode("utf-8", "surrogatepass"), frames)
        elif direction == "exit":
            yield Over(at)


def _captured_line(body: Any, where: str) -> tuple[float, str, str]:
    if not isinstance(body, dict) or not isinstance(body.get("dir"), str):
        raise TraceError(f'{where}: neither a recording nor a capture: no "dir"')
    at, text = body.get("t"), body.get("line")
    if isinstance(at, bool) or not isinstance(at, (int, float)):
        raise TraceError(f'{where}: "t" is no number')
    if body["dir"] in _SENDERS and not isinstance(text, str):
        raise TraceError(f'{where}: "line" is no text')
    return at, body["dir"], text if isinstance(text, str) else ""
