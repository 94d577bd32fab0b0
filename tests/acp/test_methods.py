"""Who receives which method, per version."""

from __future__ import annotations

import pytest

from acp_proxy.acp.methods import Kind, MethodInfo, method_info, method_names
from acp_proxy.acp.version import Role, Version
from schema_cache import definitions

CLIENT, AGENT = frozenset({Role.CLIENT}), frozenset({Role.AGENT})
V1, V2 = Version.V1, Version.V2


@pytest.mark.parametrize(
    ("version", "method", "wanted"),
    [
        (V1, "session/prompt", MethodInfo("request", AGENT, "PromptRequest", "PromptResponse", False)),
        (V2, "session/prompt", MethodInfo("request", AGENT, "PromptRequest", "PromptResponse", False)),
        (V1, "session/update", MethodInfo("notification", CLIENT, "SessionNotification", None, False)),
        (V2, "session/update", MethodInfo("notification", CLIENT, "UpdateSessionNotification", None, False)),
        (V1, "session/cancel", MethodInfo("notification", AGENT, "CancelNotification", None, False)),
        (
            V1,
            "fs/read_text_file",
            MethodInfo("request", CLIENT, "ReadTextFileRequest", "ReadTextFileResponse", False),
        ),
        (V2, "session/fork", MethodInfo("request", AGENT, "ForkSessionRequest", "ForkSessionResponse", True)),
        (
            V2,
            "$/cancel_request",
            MethodInfo("notification", CLIENT | AGENT, "CancelRequestNotification", None, False),
        ),
        (
            V1,
            "proxy/initialize",
            MethodInfo("request", frozenset(), "InitializeProxyRequest", "InitializeProxyResponse", True),
        ),
        (V2, "fs/read_text_file", None),
        (V2, "session/load", None),
        (V1, "auth/login", None),
        (V1, "_vendor/thing", None),
        (V1, "", None),
    ],
)
def test_lookup(version: Version, method: str, wanted: MethodInfo | None) -> None:
    assert method_info(version, method) == wanted


@pytest.mark.parametrize("version", list(Version))
def test_a_method_of_both_kinds_goes_to_a_side_each(version: Version) -> None:
    request = method_info(version, "mcp/message", "request")
    notification = method_info(version, "mcp/message", "notification")
    assert method_info(version, "mcp/message") == request
    assert request is not None
    assert notification is not None
    assert (request.receivers, request.result) == (CLIENT, "MessageMcpResponse")
    assert (notification.receivers, notification.result) == (AGENT, None)


@pytest.mark.parametrize(
    ("method", "kind"), [("session/prompt", "notification"), ("session/update", "request")]
)
def test_the_other_kind_of_a_method_is_unknown(method: str, kind: Kind) -> None:
    assert method_info(V1, method, kind) is None


@pytest.mark.peers
@pytest.mark.parametrize("version", list(Version))
def test_every_method_of_the_schema_is_listed_with_its_stability(version: Version) -> None:
    stable = {schema.get("x-method") for schema in definitions(version, unstable=False).values()} - {None}
    every = {schema.get("x-method") for schema in definitions(version).values()} - {None}
    assert method_names(version) == every
    unstable = {method for method in every if (info := method_info(version, method)) and info.unstable}
    assert unstable == every - stable
