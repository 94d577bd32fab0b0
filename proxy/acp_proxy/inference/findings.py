"""The record of a violation, and how often each rule has been broken (lifecycle §3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from acp_proxy.inference.rules import RULES

SEVERITIES: Final[dict[str, str]] = {name: rule.severity for name, rule in RULES.items()}

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

    __slots__ = ("counts", "false_findings", "fresh")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.false_findings: frozenset[str] = frozenset()
        self.fresh: list[Finding] = []

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
        self.fresh.append(finding)

    def take(self) -> list[Finding]:
        """The findings since the last call."""
        if not self.fresh:
            return []
        fresh, self.fresh = self.fresh, []
        return fresh
