"""Relative paths against the session's directory, on whatever system the agent runs."""

from __future__ import annotations

import pytest

from acp_proxy.filters.translate.paths import is_absolute, resolve


@pytest.mark.parametrize("path", ["/", "/a b", "C:\\x", "c:/x", "\\\\server\\share\\x"])
def test_absolute(path: str) -> None:
    assert is_absolute(path)


@pytest.mark.parametrize("path", ["", "a", "./a", "C:", "C:x", "1:/x", "é:/x", "\\a", "file:///a"])
def test_not_absolute(path: str) -> None:
    assert not is_absolute(path)


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("a/b", "/p", "/p/a/b"),
        ("a", "/p/", "/p/a"),
        ("a", "/", "/a"),
        ("../a", "/p", "/p/../a"),
        ("a\\b", "C:\\p", "C:\\p\\a\\b"),
        ("a", "C:\\", "C:\\a"),
        ("a", "\\\\server\\share", "\\\\server\\share\\a"),
        ("/a", "/p", "/a"),
        ("C:\\a", "/p", "C:\\a"),
        ("", "/p", ""),
        ("file:///a", "/p", "file:///a"),
        ("a", None, "a"),
        ("a", "", "a"),
        ("a", "relative", "a"),
    ],
)
def test_resolve(path: str, cwd: str | None, expected: str) -> None:
    assert resolve(path, cwd) == expected
