"""Writes down what a check found: for people a line each and a summary, for programs JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from acp_proxy.diagnostics import printable
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.trace.checking import Judged, StateChange

SEVERITIES: Final = ("error", "warning", "info")
"""From the worst on."""

_NOBODY: Final = "-"


class Account:
    """The account of one run of `acp-proxy check`, over all its files.

    In text a finding reads `FILE:FRAME: SEVERITY RULE SESSION TEXT` with the last frame that shows it,
    a state `FILE:FRAME: TIME SESSION OLD -> NEW (STOP REASON) by CAUSE`; `-` stands for what there is
    none of. As JSON a finding has the form of the findings file, a state change members `t`, `session`,
    `leg`, `from`, `state`, `stopReason`, `inferred`, `frame` and `cause`; both have `file` besides.
    """

    def __init__(self, write: Callable[[str], object], *, as_json: bool, states: bool) -> None:
        """`write` takes text; `states` tells state changes too."""
        self.counts: dict[str, int] = dict.fromkeys(SEVERITIES, 0)
        self._write = write
        self._as_json = as_json
        self._states = states

    def add(self, file: str, judged: Judged) -> None:
        """Write down one thing found in a file."""
        if isinstance(judged, StateChange):
            if self._states:
                self._line(state_as_json(judged), file) if self._as_json else self._state(judged, file)
            return
        self.counts[judged.severity] += 1
        if self._as_json:
            self._line(judged.as_json(), file)
        else:
            self._finding(judged, file)

    def summary(self, files: int, frames: int) -> None:
        """Say at the end how much was looked at and found; nothing as JSON."""
        if not self._as_json:
            found = ", ".join(_many(self.counts[severity], severity) for severity in SEVERITIES)
            self._write(f"{_many(files, 'file')}, {_many(frames, 'frame')}: {found}\n")

    def at_least(self, severity: str) -> bool:
        """Whether anything of this severity or a worse one was found."""
        return any(self.counts[one] for one in SEVERITIES[: SEVERITIES.index(severity) + 1])

    def _line(self, body: Mapping[str, Any], file: str) -> None:
        # Not printable(): encoded JSON holds no control characters, and programs want the session as it is.
        self._write(codec.encode({"file": file, **body}).decode() + "\n")

    def _finding(self, finding: Finding, file: str) -> None:
        where = _where(file, max(finding.frames, default=None))
        session = finding.session if finding.session is not None else _NOBODY
        self._write(printable(f"{where}: {finding.severity} {finding.rule} {session} {finding.text}") + "\n")

    def _state(self, change: StateChange, file: str) -> None:
        stop = f" ({change.stop_reason})" if change.stop_reason is not None else ""
        leg = f" at the {change.leg.value}" if change.leg is not None else ""
        text = f"{change.at:.3f} {change.session} {change.old} -> {change.new}{stop}{leg} by {change.cause}"
        self._write(printable(f"{_where(file, change.frame)}: {text}") + "\n")


def state_as_json(change: StateChange) -> dict[str, Any]:
    """A state change as one line of `check --states --json`."""
    return {
        "t": round(change.at, 3),
        "session": change.session,
        "leg": change.leg.value if change.leg is not None else None,
        "from": change.old,
        "state": change.new,
        "stopReason": change.stop_reason,
        "inferred": change.inferred,
        "frame": change.frame,
        "cause": change.cause,
    }


def _where(file: str, frame: int | None) -> str:
    return f"{file}:{frame if frame is not None else _NOBODY}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 or what == "info" else f"{count} {what}s"
