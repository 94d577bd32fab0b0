"""The recording: JSON lines, a header first, then frames and findings as they came, an end last.

    {"acp-proxy-trace": 1, "version": …, "started": ISO 8601 in UTC, "command": [argv], "settings": {…}}
    {"t": 0.25, "leg": "client", "dir": "in", "n": 1, "frame": "the line as it was"}
    {"t": 0.26, "leg": "agent", "dir": "out", "n": null, "b64": "a frame that is not UTF-8"}
    {"t": 0.31, "finding": {…}}
    {"t": 9.0, "truncated": "why recording stopped early"}
    {"t": 9.0, "end": "why the run ended"}

`t` is seconds since the start. `dir` is as the proxy sees it: `in` came from the peer of that leg, `out`
went to it. `n` numbers received frames over both legs; a frame passed on keeps its number, one that the
proxy made has none. `settings` holds the dotted keys that differ from the defaults. A reader ignores
members it does not know.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from acp_proxy.errors import AcpProxyError
from acp_proxy.jsonrpc.codec import DecodeError, decode, encode

if TYPE_CHECKING:
    from pathlib import Path

Leg = Literal["client", "agent"]
Direction = Literal["in", "out"]

FORMAT: Final = 1
MARK: Final = "acp-proxy-trace"
_Line = TypeVar("_Line", bound=Struct)


class TraceError(AcpProxyError):
    """A file is no recording or a damaged one; the text names the file and the line."""


class Header(Struct, frozen=True):
    """What was run: the version of the proxy, the agent's command line, settings by dotted key."""

    format: int = msgspec.field(name=MARK)
    version: str
    started: str
    command: tuple[str, ...]
    settings: dict[str, Any]


class FrameLine(Struct, frozen=True):
    """One frame on one leg; either `frame` or `b64` is set."""

    t: float
    leg: Leg
    dir: Direction
    n: int | None = None
    frame: str | None = None
    b64: str | None = None

    @property
    def raw(self) -> bytes:
        """The frame's bytes, as far as redaction left them."""
        if self.frame is not None:
            return self.frame.encode("utf-8", "surrogatepass")
        return binascii.a2b_base64(self.b64 or "")


class FindingLine(Struct, frozen=True):
    """One finding, in the form of the findings file."""

    t: float
    finding: dict[str, Any]


class Truncated(Struct, frozen=True):
    """Recording stopped before the run did."""

    t: float
    truncated: str


class End(Struct, frozen=True):
    """The run ended."""

    t: float
    end: str


Line = Header | FrameLine | FindingLine | Truncated | End


def header(version: str, started: str, command: Sequence[str], settings: Mapping[str, object]) -> bytes:
    """The first line; whoever calls has redacted what goes in."""
    return _line(
        {MARK: FORMAT, "version": version, "started": started, "command": command, "settings": settings}
    )


def frame(t: float, leg: Leg, direction: Direction, number: int | None, raw: bytes) -> bytes:
    """A frame's line. Put together by hand: every frame of a recorded run passes here."""
    count = "null" if number is None else number
    try:
        member, text = "frame", raw.decode()
    except UnicodeDecodeError:
        member, text = "b64", binascii.b2a_base64(raw, newline=False).decode()
    start = f'{{"t":{t:.6f},"leg":"{leg}","dir":"{direction}","n":{count},"{member}":'
    return b"%b%b}\n" % (start.encode(), encode(text))


def finding(t: float, body: Mapping[str, object]) -> bytes:
    """A finding's line."""
    return _line({"t": round(t, 6), "finding": body})


def truncated(t: float, why: str) -> bytes:
    """The last line of a recording that had to stop."""
    return _line({"t": round(t, 6), "truncated": why})


def end(t: float, why: str) -> bytes:
    """The last line of a whole recording."""
    return _line({"t": round(t, 6), "end": why})


def read(path: Path) -> Iterator[Line]:
    """Read a recording line by line; the first is its Header.

    Where the proxy was killed in the middle of a write, the piece of a line comes out as Truncated.
    Raises TraceError for a file that cannot be read, is no recording, is of a later format, or
    holds a damaged line.
    """
    try:
        with path.open("rb") as file:
            yield from lines_of(file, str(path))
    except OSError as exc:
        raise TraceError(f"{path}: cannot be read: {exc.strerror or exc}") from None


def lines_of(lines: Iterable[bytes], name: str) -> Iterator[Line]:
    """Read the lines of a recording that comes from anywhere; see `read`. `name` is what errors call it."""
    last = 0.0
    number = 0
    for number, raw in enumerate(lines, start=1):
        try:
            body = decode(raw)
        except DecodeError as exc:
            if number > 1 and not raw.endswith(b"\n"):
                yield Truncated(last, "the last line is incomplete")
                return
            raise TraceError(f"{name}:{number}: not JSON: {exc}") from None
        where = f"{name}:{number}"
        line = _header(body, where) if number == 1 else _body_line(body, where)
        if not isinstance(line, Header):
            last = line.t
        yield line
    if number == 0:
        raise TraceError(f"{name}:1: the file is empty")


def _header(body: Any, where: str) -> Header:
    if not isinstance(body, dict) or MARK not in body:
        raise TraceError(f'{where}: not an acp-proxy recording: no "{MARK}"')
    if body[MARK] != FORMAT:
        raise TraceError(f"{where}: recording format {body[MARK]!r:.20} is not known here, only {FORMAT}")
    return _typed(body, Header, where)


def _body_line(body: Any, where: str) -> FrameLine | FindingLine | Truncated | End:
    if isinstance(body, dict):
        if "leg" in body:
            return _frame_line(body, where)
        if "finding" in body:
            return _typed(body, FindingLine, where)
        if "truncated" in body:
            return _typed(body, Truncated, where)
        if "end" in body:
            return _typed(body, End, where)
    raise TraceError(f"{where}: neither frame, finding nor end")


def _frame_line(body: Any, where: str) -> FrameLine:
    line = _typed(body, FrameLine, where)
    if (line.frame is None) == (line.b64 is None):
        raise TraceError(f'{where}: a frame needs either "frame" or "b64"')
    try:
        binascii.a2b_base64(line.b64 or "", strict_mode=True)
    except ValueError:
        raise TraceError(f'{where}: "b64" is not base64') from None
    return line


def _typed(body: Any, kind: type[_Line], where: str) -> _Line:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as exc:
        raise TraceError(f"{where}: {exc}") from None


def _line(body: Mapping[str, object]) -> bytes:
    return encode(body) + b"\n"
