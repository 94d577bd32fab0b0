"""How the official SDKs get into the cache, or why not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from peer_installs import PEERS, cached, node_tools, python_peers


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("ACP_PROXY_TEST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_install_happens_once_for_the_same_pins(cache: Path) -> None:
    installs: list[Path] = []

    def install(folder: Path) -> None:
        installs.append(folder)
        (folder / "package").write_text("here")

    first = cached("peer", b"1.0", install)
    assert (first / "package").read_text() == "here"
    assert cached("peer", b"1.0", install) == first
    assert cached("peer", b"1.1", install) != first
    assert len(installs) == 2
    assert len(list(cache.iterdir())) == 2


def test_race_for_an_install_is_won_by_the_first(cache: Path) -> None:
    def faster(folder: Path) -> None:
        (folder / "by").write_text("faster")

    def slower(folder: Path) -> None:
        cached("peer", b"1.0", faster)
        (folder / "by").write_text("slower")

    assert (cached("peer", b"1.0", slower) / "by").read_text() == "faster"
    assert len(list(cache.iterdir())) == 1


def test_failed_install_leaves_nothing_behind(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cached("peer", b"1.0", fail)
    assert list(cache.iterdir()) == []


def test_without_packages_a_test_is_skipped_but_fails_where_ci_is_set(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(cache / "no-python"))
    monkeypatch.setenv("PATH", str(cache))
    monkeypatch.delenv("CI", raising=False)
    for ask in (python_peers, node_tools):
        with pytest.raises(pytest.skip.Exception, match="pip install cannot be started"):
            ask.__wrapped__()
    monkeypatch.setenv("CI", "true")
    for ask in (python_peers, node_tools):
        with pytest.raises(pytest.fail.Exception, match="pip install cannot be started"):
            ask.__wrapped__()
    assert list(cache.iterdir()) == []


def test_lock_file_pins_both_packages_and_names_no_registry() -> None:
    lock = json.loads((PEERS / "package-lock.json").read_text())
    wanted = json.loads((PEERS / "package.json").read_text())["dependencies"]
    locked = {path.removeprefix("node_modules/"): entry for path, entry in lock["packages"].items() if path}
    assert {name: entry["version"] for name, entry in locked.items()} == wanted
    assert all(entry["integrity"].startswith("sha512-") for entry in locked.values())
    assert not any("resolved" in entry for entry in locked.values())
