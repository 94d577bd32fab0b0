"""The plugin door: what it exports is for good, and its base classes do nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from acp_proxy import plugin
from acp_proxy.plugin import Filter, Message, Notification, Plugin, Request, Response, changed

# Version 1 of the interface. A name may be added here, never taken away.
PROMISED = {
    "API",
    "AUTH_REQUIRED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REQUEST_CANCELLED",
    "RESOURCE_NOT_FOUND",
    "ConfigError",
    "Filter",
    "Finding",
    "Frame",
    "FrameReport",
    "Json",
    "Message",
    "Notification",
    "OnFailure",
    "Outcome",
    "Plugin",
    "Report",
    "Request",
    "Response",
    "Role",
    "StateReport",
    "Step",
    "ToAgent",
    "ToClient",
    "changed",
    "error",
    "id_key",
    "notification",
    "request",
    "result",
}
PROMISED_METHODS = {
    Plugin: {"api", "name", "on_failure", "filters", "observe", "close"},
    Filter: {"forth", "back", "next_deadline", "expire", "agent_gone"},
}
PROMISED_ATTRIBUTES = {
    plugin.FrameReport: {"at", "leg", "direction", "raw", "number", "message"},
    plugin.StateReport: {"at", "session_id", "old", "new", "stop_reason"},
    plugin.Finding: {"at", "rule", "severity", "leg", "session", "frames", "source", "action", "text"},
}


def test_nothing_promised_has_been_taken_away() -> None:
    assert set(plugin.__all__) >= PROMISED
    assert all(hasattr(plugin, name) for name in plugin.__all__)
    assert plugin.API == Plugin.api == 1
    for kind, names in PROMISED_METHODS.items():
        assert {name for name in vars(kind) if not name.startswith("_")} >= names
    for kind, names in PROMISED_ATTRIBUTES.items():
        assert set(kind.__slots__) >= names


def test_everything_public_is_exported() -> None:
    defined = {
        name
        for name, value in vars(plugin).items()
        if getattr(value, "__module__", "").startswith("acp_proxy") and not name.startswith("_")
    }
    assert defined <= set(plugin.__all__)


def test_a_plugin_does_nothing() -> None:
    one = Plugin({"key": 1})
    one.observe(plugin.StateReport(1.0, "s", "idle", "running", None))
    one.close()
    assert list(one.filters()) == []
    assert (one.settings, one.name, one.on_failure) == ({"key": 1}, "", "pass")


def test_a_filter_does_nothing() -> None:
    stage = Filter()
    message = plugin.notification("x", {})
    assert stage.forth(message, 1.0) is message
    assert stage.back(message, 1.0) is message
    assert stage.next_deadline() is None
    assert list(stage.expire(1.0)) == list(stage.agent_gone({"code": 1, "message": "x"}, 1.0)) == []


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (plugin.request(1, "m", {"a": 1}), Request),
        (plugin.notification("m", {"a": 1}), Notification),
        (plugin.result(1, {"a": 1}), Response),
    ],
)
def test_changed_makes_another_message_of_the_same_kind(message: Message, kind: type[Message]) -> None:
    before = dict(message.body)
    message.frame = plugin.Frame(b"{}", 3)
    other = changed(message, params={"b": 2}, extra=True)
    assert type(other) is kind
    assert other.body == {**before, "params": {"b": 2}, "extra": True}
    assert other.frame is None
    assert message.body == before


def test_the_door_opens_without_io() -> None:
    """The sans-IO rooms stay so: importing the door loads nothing that waits or reads a clock."""
    code = (
        "import sys, acp_proxy.plugin; print({'trio', 'socket', 'subprocess', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
