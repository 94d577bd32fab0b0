"""The record of a violation, and how often each rule has been broken (lifecycle §3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

SEVERITIES: Final[dict[str, str]] = {
    "V01": "error",
    "V02": "error",
    "V03": "error",
    "V04": "warning",
    "V05": "warning",
    "V06": "warning",
    "V07": "error",
    "V08": "info",
    "V09": "error",
    "V10": "warning",
    "V11": "error",
    "V12": "error",
    "V13": "error",
    "V14": "info",
    "V15": "warning",
    "V16": "error",
    "V17": "error",
    "V18": "warning",
    "V19": "error",
    "V20": "error",
    "V21": "error",
    "V22": "error",
    "V23": "warning",
    "V24": "error",
    "V25": "error",
    "V26": "warning",
    "V27": "error",
    "V28": "error",
    "V29": "error",
    "V30": "warning",
    "V31": "error",
    "V32": "error",
    "V33": "error",
    "V34": "error",
    "V35": "error",
    "V36": "warning",
    "V37": "error",
    "V38": "error",
    "V39": "warning",
    "V40": "warning",
    "V41": "info",
    "V42": "error",
    "V43": "info",
    "V44": "error",
    "V45": "warning",
    "V46": "warning",
    "V47": "warning",
    # rules of our own continue where the specification's list ends
    "V48": "warning",  # a line over the size limit
    "V49": "info",  # a byte order mark before a frame
    "V50": "warning",  # protocolVersion is not a number
    "V51": "warning",  # an error answer with id null, which answers nothing
    "V52": "warning",  # a call to a capability nobody offered
    "V53": "warning",  # the recording failed and was cut short
    "V54": "info",  # a value the other protocol version's schema would not take, passed all the same
    "V55": "error",  # a plugin failed
    "V56": "info",  # a permission decided by rule
    "V57": "warning",  # an answer or an end told in a silent peer's name
    "V58": "info",  # what that peer said later, and reached nobody
    "V59": "warning",  # the agent restarted, or no longer
    "V60": "info",  # a config category nobody has listed, the one minted value (V34) that harms nothing
    "V61": "info",  # a value the agent made up, counted
}

MAX_PER_RULE: Final = 200


class Finding:
    """One breach: rule, who is at fault, the frames that show it, and what was done about it."""

    __slots__ = ("action", "at", "frames", "leg", "rule", "session", "severity", "source", "text")

    def __init__(
        self,
        at: float,
        rule: str,
        leg: str,
        text: str,
        *,
        session: str | None = None,
        frames: Sequence[int] = (),
        action: str = "noted",
        source: str | None = None,
        severity: str | None = None,
    ) -> None:
        self.at = at
        self.rule = rule
        self.leg = leg
        self.text = text
        self.session = session
        self.frames = tuple(frames)
        self.action = action
        self.source = source
        self.severity = severity or SEVERITIES.get(rule, "warning")

    def __repr__(self) -> str:
        return f"<Finding {self.rule} {self.action} {self.text!r}>"

    def as_json(self) -> dict[str, Any]:
        """The finding as one line of `--findings` writes it; `t` in seconds since the start."""
        return {
            "t": round(self.at, 3),
            "rule": self.rule,
            "severity": self.severity,
            "session": self.session,
            "leg": self.leg,
            "frames": list(self.frames),
            "source": self.source,
            "action": self.action,
            "text": self.text,
        }


class FindingLog:
    """Collects findings until the relay hands them out; a noisy peer cannot flood it.

    Beyond MAX_PER_RULE findings of one rule only the count goes on; the last one let through says so.
    """

    __slots__ = ("_fresh", "counts", "false_findings")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.false_findings: frozenset[str] = frozenset()
        self._fresh: list[Finding] = []

    def note(self, finding: Finding) -> None:
        """Add a finding, or only count it; what the agent's profile knows to be none is left out."""
        if finding.rule in self.false_findings and finding.leg == "agent" and finding.action == "noted":
            return
        count = self.counts.get(finding.rule, 0) + 1
        self.counts[finding.rule] = count
        if count > MAX_PER_RULE:
            return
        if count == MAX_PER_RULE:
            finding.text += f" (further findings of {finding.rule} are only counted)"
        self._fresh.append(finding)

    def take(self) -> list[Finding]:
        """The findings since the last call."""
        if not self._fresh:
            return []
        fresh, self._fresh = self._fresh, []
        return fresh
