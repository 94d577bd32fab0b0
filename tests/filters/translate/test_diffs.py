"""Bridge §7.2: v1 diffs as v2 changes with a Git patch, which Git itself must accept."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.filters.translate.diffs import MAX_PATCH_BYTES, diff_content, git_patch, quoted


def v1_diff(path: str, old: str | None, new: str, **more: Any) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new, **more}


def v2_diff(operation: str, path: str, patch: str | None, **more: Any) -> dict[str, Any]:
    out: dict[str, Any] = {
        "type": "diff",
        "changes": [{"operation": operation, "path": path, "fileType": "text"}],
    }
    if patch is not None:
        out["patch"] = {"format": "git_patch", "text": patch}
    return {**out, **more}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            v1_diff("/p/a", "a\nb\n", "a\nc\n"),
            v2_diff(
                "modify",
                "/p/a",
                "diff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
            ),
        ),
        (
            v1_diff("/p/n", None, "x"),
            v2_diff(
                "add",
                "/p/n",
                "diff --git /p/n /p/n\nnew file mode 100644\n--- /dev/null\n+++ /p/n\n@@ -0,0 +1 @@\n"
                "+x\n\\ No newline at end of file\n",
            ),
        ),
        (
            v1_diff("/p/n", None, ""),
            v2_diff("add", "/p/n", "diff --git /p/n /p/n\nnew file mode 100644\n--- /dev/null\n+++ /p/n\n"),
        ),
        (
            v1_diff("/p/a", "", "x\n"),
            v2_diff("modify", "/p/a", "diff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -0,0 +1 @@\n+x\n"),
        ),
        (
            v1_diff("/p/a", "x\n", ""),
            v2_diff("modify", "/p/a", "diff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -1 +0,0 @@\n-x\n"),
        ),
        (v1_diff("/p/a", "same", "same"), v2_diff("modify", "/p/a", None)),
        (v1_diff("/p/a", "", ""), v2_diff("modify", "/p/a", None)),
        (v1_diff("/p/a", "a", "a\0"), v2_diff("modify", "/p/a", None)),
        (v1_diff("/p/a", "a\0", "a"), v2_diff("modify", "/p/a", None)),
        (v1_diff("/p/a", None, "\0"), v2_diff("add", "/p/a", None)),
        (v1_diff("a", "same", "same"), v2_diff("modify", "/cwd/a", None)),
        (
            v1_diff("/p/a", "", "", _meta={"k": None}, x=1),
            v2_diff("modify", "/p/a", None, _meta={"k": None}, x=1),
        ),
        (v1_diff("/p/a", "", "", changes=[], patch=1), v2_diff("modify", "/p/a", None)),
    ],
    ids=range(13),
)
def test_translation(item: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(item)
    assert diff_content(item, "/cwd") == expected
    assert repr(item) == before


@pytest.mark.parametrize("old", [5, [], {"a": 1}, True])
def test_an_old_text_that_is_no_text_counts_as_absent(old: Any) -> None:
    assert diff_content({"type": "diff", "path": "/p", "oldText": old, "newText": "x"}, None) == diff_content(
        {"type": "diff", "path": "/p", "newText": "x"}, None
    )


@pytest.mark.parametrize(
    "item",
    [
        {"type": "diff"},
        {"type": "diff", "path": "/p"},
        {"type": "diff", "path": 5, "newText": "x"},
        {"type": "diff", "path": "/p", "newText": None},
        {"type": "diff", "changes": []},
    ],
)
def test_a_malformed_item_is_left_alone(item: dict[str, Any]) -> None:
    assert diff_content(item, "/cwd") is item


def test_without_a_directory_a_relative_path_stays() -> None:
    assert diff_content(v1_diff("a", "", ""), None)["changes"][0]["path"] == "a"


@pytest.mark.parametrize(
    ("old", "new", "has_patch"),
    [
        ("", "x" * MAX_PATCH_BYTES, True),
        ("", "x" * (MAX_PATCH_BYTES + 1), False),
        ("x" * (MAX_PATCH_BYTES // 2), "y" * (MAX_PATCH_BYTES // 2), True),
        ("x" * (MAX_PATCH_BYTES // 2), "y" * (MAX_PATCH_BYTES // 2 + 1), False),
        ("", "é" * (MAX_PATCH_BYTES // 2), True),
        ("", "é" * (MAX_PATCH_BYTES // 2) + "x", False),
        (None, "x" * MAX_PATCH_BYTES, True),
    ],
    ids=range(7),
)
def test_the_limit_is_one_mebibyte_of_utf8_in_all(old: str | None, new: str, has_patch: bool) -> None:
    assert (git_patch("/p", old, new) is not None) == has_patch


def test_lone_surrogates_pass() -> None:
    patch = git_patch("/p/\ud83d", "\ud83d\n", "\udc00\n")
    assert patch is not None
    assert patch.splitlines()[0] == 'diff --git "/p/\\355\\240\\275" "/p/\\355\\240\\275"'
    assert patch.endswith("@@ -1 +1 @@\n-\ud83d\n+\udc00\n")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/p/plain name-1.py", "/p/plain name-1.py"),
        ("/p/it's", "/p/it's"),
        ('/p/"q"', '"/p/\\"q\\""'),
        ("C:\\p", '"C:\\\\p"'),
        ("/p/\a\b\t\n\v\f\r", '"/p/\\a\\b\\t\\n\\v\\f\\r"'),
        ("/p/\x01\x1b\x7f", '"/p/\\001\\033\\177"'),
        ("/p/é€", '"/p/\\303\\251\\342\\202\\254"'),
        ("/p/\0", '"/p/\\000"'),
        ("", ""),
    ],
)
def test_paths_are_quoted_as_git_quotes_them(path: str, expected: str) -> None:
    assert quoted(path) == expected


GIT = shutil.which("git")

if GIT is not None:
    GIT_ENV = {"PATH": str(Path(GIT).parent), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}

    @pytest.mark.parametrize("strip", [1, 2])
    @pytest.mark.parametrize(
        ("name", "old", "new"),
        [
            ("a", "a\nb\n", "a\nc\n"),
            ("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nx"),
            ("a", "x", "x\n"),
            ("a", "x\n", "x"),
            ("a", "", "x\n"),
            ("a", "x\n", ""),
            ("a", "a\r\nb\r\n", "a\nb\r\n"),
            ("a", "a\x0cb\u2028c\n", "a\x0cb\u2028d\n"),
            ("sub/new", None, "x"),
            ("new", None, "x\ny\n"),
            ("empty", None, ""),
            ("a b.txt", "a\n", "b\n"),
            ("a b.txt", None, "b\n"),
            ('q"t\té\\.txt', "a\n", "b\n"),
            ('q"t\té\\.txt', None, "b\n"),
        ],
        ids=range(15),
    )
    def test_git_applies_the_patch(tmp_path: Path, name: str, old: str | None, new: str, strip: int) -> None:
        """The path in the patch is `/p/NAME`: Git strips the root, or `/p` too."""
        file = tmp_path / ("p" if strip == 1 else "") / name
        if strip == 1:
            (tmp_path / "p").mkdir()
        if old is not None:
            file.write_bytes(old.encode())
        patch = git_patch(f"/p/{name}", old, new)
        assert patch is not None
        done = subprocess.run(
            [str(GIT), "apply", f"-p{strip}", "-"],
            cwd=tmp_path,
            input=patch.encode(),
            capture_output=True,
            timeout=30,
            env={**GIT_ENV, "HOME": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        )
        assert done.returncode == 0, done.stderr
        assert file.read_bytes() == new.encode()
