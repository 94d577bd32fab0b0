"""The validators that other tests lean on tell right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.acp.version import Role, Version
from schema_cache import message_error, package_dir, response_error, validator

pytestmark = pytest.mark.peers
V1, V2, CLIENT, AGENT = Version.V1, Version.V2, Role.CLIENT, Role.AGENT


def request(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_package_is_the_pinned_one() -> None:
    assert '"version": "2.4.0"' in (package_dir() / "package.json").read_text()


def test_without_npm_a_test_is_skipped_but_fails_where_ci_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_PROXY_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="npm is not installed"):
        package_dir.__wrapped__()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="npm is not installed"):
        package_dir.__wrapped__()


def test_another_tarball_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\necho forged > "$5/sdk.tgz"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("ACP_PROXY_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(pytest.fail.Exception, match="not the pinned one"):
        package_dir.__wrapped__()
    assert list((tmp_path / "cache").iterdir()) == []


def test_validator_knows_stable_from_unstable() -> None:
    value = {"sessionUpdate": "plan_removed", "planId": 5}
    assert not validator(V2, "SessionUpdate").is_valid(value)
    assert validator(V2, "SessionUpdate", unstable=False).is_valid(value)


@pytest.mark.parametrize(
    ("version", "message", "sender"),
    [
        (V1, request("session/prompt", {"sessionId": "s", "prompt": []}), CLIENT),
        (V1, request("logout", None), CLIENT),
        (V1, {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}, CLIENT),
        (V2, request("_anything", [1]), AGENT),
        (V2, {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}, AGENT),
        (V2, {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "a"}}, CLIENT),
    ],
)
def test_conforming_messages(version: Version, message: object, sender: Role) -> None:
    assert message_error(version, message, sender=sender) is None


@pytest.mark.parametrize(
    ("version", "message", "sender", "place"),
    [
        (V2, request("session/prompt", {"sessionId": "s", "prompt": []}), CLIENT, "params/prompt"),
        (V1, request("session/prompt", {"sessionId": 1, "prompt": []}), CLIENT, "params/sessionId"),
        (V1, request("session/prompt", {"sessionId": "s", "prompt": []}), AGENT, "method"),
        (V1, request("session/cancel", {"sessionId": "s"}), CLIENT, "method"),
        (V2, {**request("session/list", {}), "id": None}, CLIENT, "id"),
        (V1, {**request("session/list", {}), "result": {}}, CLIENT, "result"),
        (V1, {"method": "session/list", "id": 1}, CLIENT, "jsonrpc"),
        (V1, {"jsonrpc": "2.0", "id": 1}, CLIENT, "method"),
        (V1, [], CLIENT, "message"),
    ],
)
def test_wrong_messages_are_located(version: Version, message: object, sender: Role, place: str) -> None:
    error = message_error(version, message, sender=sender)
    assert error is not None
    assert error.startswith(place + ":")


def test_results() -> None:
    assert response_error(V1, "session/prompt", {"stopReason": "end_turn"}, receiver_of_request=AGENT) is None
    assert response_error(V2, "session/prompt", {"messageId": "m"}, receiver_of_request=AGENT) is None
    assert response_error(V2, "_x", 5, receiver_of_request=AGENT) is None
    error = response_error(V1, "session/prompt", {"stopReason": "paused"}, receiver_of_request=AGENT)
    assert error is not None
    assert error.startswith("result/stopReason:")
    wrong_side = response_error(V1, "session/prompt", {"stopReason": "end_turn"}, receiver_of_request=CLIENT)
    assert wrong_side is not None
    assert wrong_side.startswith("method:")
