"""Values that an agent made up are counted, for it and its version, and the counts are findings."""

from __future__ import annotations

from typing import Any

from acp_proxy.acp.version import Version
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.inference.sightings import Sightings
from acp_proxy.jsonrpc.message import Frame, Message, classify


class Seen:
    """Sightings of one agent, and what became of them."""

    def __init__(self, version: Version = Version.V1, name: str = "bot", number: str = "1.2") -> None:
        self.log = FindingLog()
        self.sightings = Sightings(self.log, version, name, number)
        self.frames = 0

    def message(self, **body: Any) -> Message:
        self.frames += 1
        message = classify({"jsonrpc": "2.0", **body}, Frame(b"", self.frames))
        assert message is not None
        return message

    def update(self, **update: Any) -> list[Finding]:
        params = {"sessionId": "s", "update": update}
        message = self.message(method="session/update", params=params)
        self.sightings.call(message, "session/update", "notification", params, 5.0)
        return self.log.take()

    def tool(self, **more: Any) -> list[Finding]:
        return self.update(sessionUpdate="tool_call", toolCallId="t", title="x", **more)

    def permission(self, kind: str) -> list[Finding]:
        params = {
            "sessionId": "s",
            "toolCall": {"toolCallId": "t"},
            "options": [{"optionId": "a", "name": "a", "kind": kind}],
        }
        message = self.message(id=1, method="session/request_permission", params=params)
        self.sightings.call(message, "session/request_permission", "request", params, 5.0)
        return self.log.take()

    def result(self, method: str, value: Any) -> list[Finding]:
        self.sightings.result(self.message(id=1, result=value), method, value, 5.0)
        return self.log.take()


def texts(findings: list[Finding]) -> list[str]:
    return [finding.text for finding in findings]


def test_a_value_is_told_of_at_first_sight_with_the_agent_and_its_version() -> None:
    seen = Seen()
    [finding] = seen.tool(kind="banana")
    assert finding.as_json() == {
        "t": 5.0,
        "rule": "V61",
        "severity": "info",
        "session": "s",
        "leg": "agent",
        "frames": [1],
        "source": "LC-23",
        "action": "noted",
        "text": 'unknown to the protocol, seen once from bot 1.2: ToolKind "banana"',
    }


def test_it_is_counted_and_told_again_tenfold() -> None:
    seen = Seen()
    told = [texts(seen.tool(kind="banana")) for _ in range(1000)]
    assert {number + 1: text for number, text in enumerate(told) if text} == {
        1: ['unknown to the protocol, seen once from bot 1.2: ToolKind "banana"'],
        10: ['unknown to the protocol, seen 10 times from bot 1.2: ToolKind "banana"'],
        100: ['unknown to the protocol, seen 100 times from bot 1.2: ToolKind "banana"'],
        1000: ['unknown to the protocol, seen 1000 times from bot 1.2: ToolKind "banana"'],
    }
    assert seen.sightings.counts == {("ToolKind", "banana"): 1000}


def test_each_value_has_its_own_count() -> None:
    seen = Seen()
    assert len(seen.tool(kind="banana", status="ripe")) == 2
    assert seen.tool(kind="banana") == []
    assert seen.sightings.counts == {("ToolKind", "banana"): 2, ("ToolCallStatus", "ripe"): 1}


def test_the_kinds_of_values_are_bounded_too() -> None:
    seen = Seen()
    for number in range(150):
        seen.tool(kind=f"k{number}")
    assert len(seen.sightings.counts) == 101
    assert max(seen.sightings.counts.values()) == 50


def test_updates_requests_and_results_are_looked_through() -> None:
    seen = Seen()
    assert texts(seen.update(sessionUpdate="mood_update", mood="fine")) == [
        'unknown to the protocol, seen once from bot 1.2: SessionUpdate "mood_update"'
    ]
    assert len(seen.permission("allow_twice")) == 1
    assert len(seen.result("session/prompt", {"stopReason": "tired"})) == 1
    assert seen.result("session/prompt", None) == []
    assert seen.result("_bot/own", {"stopReason": "tired"}) == []


def test_extensions_and_what_the_other_version_knows_are_no_news() -> None:
    seen = Seen()
    assert seen.tool(kind="_banana", status="cancelled") == []
    assert seen.update(sessionUpdate="state_update", state="running") == []
    assert seen.result("session/prompt", {"stopReason": "error"}) == []
    assert seen.tool(kind="read", status="completed") == []
    native = Seen(Version.V2)
    assert len(native.update(sessionUpdate="tool_call_update", toolCallId="t", kind="banana")) == 1


def test_text_is_not_looked_at_and_never_quoted() -> None:
    seen = Seen()
    text = {"type": "text", "text": "banana"}
    assert seen.update(sessionUpdate="agent_message_chunk", content=text) == []
    [finding] = seen.update(sessionUpdate="agent_message_chunk", content={"type": "hologram"})
    assert finding.text.endswith('ContentBlock "hologram"')
    for odd in ("my password is 123", "x" * 41, "é", ""):
        assert texts(seen.tool(kind=odd)) == [
            "unknown to the protocol, seen once from bot 1.2: ToolKind (no plain word)"
        ]


def test_an_agent_need_not_have_a_name() -> None:
    assert "from an agent without a name:" in texts(Seen(name="", number="").tool(kind="banana"))[0]
    assert "from bot:" in texts(Seen(number="").tool(kind="banana"))[0]
    assert len(texts(Seen(name="n" * 500, number="9" * 500).tool(kind="banana"))[0]) < 200


def test_what_is_broken_holds_no_values() -> None:
    seen = Seen()
    for params in (None, [], {"update": 1}, {"update": {"sessionUpdate": ["x"]}}):
        message = seen.message(method="session/update", params=params)
        seen.sightings.call(message, "session/update", "notification", params, 0.0)
    assert seen.sightings.counts == {}


def test_made_up_methods_take_no_room() -> None:
    seen = Seen()
    for number in range(1000):
        seen.result(f"m{number}", {})
    assert seen.sightings.counts == {}
    assert len(seen.tool(kind="banana")) == 1
