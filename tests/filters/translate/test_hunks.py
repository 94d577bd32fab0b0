"""A patch, applied, yields the new text; and no pair of texts takes long."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.filters.translate.hunks import lines_of, unified_hunks

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
_NO_NEWLINE = "\\ No newline at end of file\n"


def apply_hunks(old: str, patch: str) -> str:
    """Apply hunks strictly: places, counts and context must all be right."""
    source = re.findall(r"[^\n]*\n|[^\n]+", old)
    rows = re.findall(r"[^\n]*\n", patch)
    assert "".join(rows) == patch
    out: list[str] = []
    taken = 0
    at = 0
    while at < len(rows):
        header = _HEADER.fullmatch(rows[at])
        assert header, rows[at]
        assert header[2] != "1"
        assert header[4] != "1"
        old_count, new_count = int(header[2] or 1), int(header[4] or 1)
        start = int(header[1]) - (1 if old_count else 0)
        assert start >= taken
        out.extend(source[taken:start])
        taken = start
        assert int(header[3]) - (1 if new_count else 0) == len(out)
        at += 1
        body: list[tuple[str, str]] = []
        while at < len(rows) and not rows[at].startswith("@"):
            row = rows[at]
            at += 1
            if row == _NO_NEWLINE:
                mark, text = body.pop()
                body.append((mark, text.removesuffix("\n")))
            else:
                assert row[0] in " +-"
                body.append((row[0], row[1:]))
        assert sum(mark in " -" for mark, _ in body) == old_count
        assert sum(mark in " +" for mark, _ in body) == new_count
        for mark, text in body:
            if mark in " -":
                assert source[taken] == text
                taken += 1
            if mark in " +":
                out.append(text)
    out.extend(source[taken:])
    return "".join(out)


_LINE = st.sampled_from(
    ["", "a", "b", "c", "}", "a\r", "x\x0cy", "\u2028", "@@ -1 +1 @@", "-", "\\ No newline"]
)
_TEXT = st.builds(
    lambda lines, newline: "\n".join(lines) + newline,
    st.lists(_LINE, max_size=40),
    st.sampled_from(["", "\n"]),
)


@given(_TEXT, _TEXT)
def test_applying_the_hunks_gives_the_new_text(old: str, new: str) -> None:
    assert apply_hunks(old, unified_hunks(old, new)) == new


@given(st.text(alphabet=st.characters(exclude_characters="\0"), max_size=30), st.text(max_size=30))
def test_any_characters(old: str, new: str) -> None:
    assert apply_hunks(old, unified_hunks(old, new)) == new


@given(st.integers(0, 2**32), st.integers(2, 300))
def test_regions_too_large_for_difflib(seed: int, kinds: int) -> None:
    chance = random.Random(seed)
    old = [f"{chance.randrange(kinds)}\n" for _ in range(300)]
    new = [line if chance.random() < 0.7 else f"{chance.randrange(kinds)}\n" for line in old]
    before, after = "".join(old), "".join(new)
    assert apply_hunks(before, unified_hunks(before, after)) == after


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("a\n\n", ["a\n", "\n"]),
        ("a\rb\x0b\x0c\x1c\x85\u2028\nc", ["a\rb\x0b\x0c\x1c\x85\u2028\n", "c"]),
    ],
)
def test_lines_end_at_line_feeds_alone(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("old", "new", "hunks"),
    [
        ("a\n", "a\n", ""),
        ("a\nb\n", "a\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        ("", "x\n", "@@ -0,0 +1 @@\n+x\n"),
        ("x\n", "", "@@ -1 +0,0 @@\n-x\n"),
        ("x", "y", f"@@ -1 +1 @@\n-x\n{_NO_NEWLINE}+y\n{_NO_NEWLINE}"),
        ("x", "x\n", f"@@ -1 +1 @@\n-x\n{_NO_NEWLINE}+x\n"),
        ("a\nx", "b\nx", f"@@ -1,2 +1,2 @@\n-a\n+b\n x\n{_NO_NEWLINE}"),
        ("x\n", "x\ny\n", "@@ -1 +1,2 @@\n x\n+y\n"),
    ],
)
def test_exact(old: str, new: str, hunks: str) -> None:
    assert unified_hunks(old, new) == hunks


def numbered(count: int, *changed: int) -> str:
    return "".join(f"{'new' if number in changed else 'old'} {number}\n" for number in range(1, count + 1))


def test_changes_up_to_six_lines_apart_share_a_hunk() -> None:
    together = unified_hunks(numbered(30), numbered(30, 10, 17))
    apart = unified_hunks(numbered(30), numbered(30, 10, 18))
    assert re.findall("@@ .* @@", together) == ["@@ -7,14 +7,14 @@"]
    assert re.findall("@@ .* @@", apart) == ["@@ -7,7 +7,7 @@", "@@ -15,7 +15,7 @@"]


def test_distant_edits_of_a_long_file_stay_small() -> None:
    patch = unified_hunks(numbered(20_000), numbered(20_000, 50, 9_000, 19_000))
    assert patch.count("@@ -") == 3
    assert len(patch) < 1_000


_ALTERNATING = "".join(f"u{n}\n" + "a\nb\n" * 70 for n in range(300))
_WOVEN = "".join(f"u{n}\n" + "b\nc\na\nd\n" * 35 for n in range(300))
_CHANCE = random.Random(7)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("".join(f"a{n}\n" for n in range(20_000)), "".join(f"b{n}\n" for n in range(20_000))),
        ("".join(f"a{n}\n" for n in range(20_000)), "".join(f"a{20_000 - n}\n" for n in range(20_000))),
        (numbered(20_000), numbered(20_000, *range(1, 20_000, 2))),
        (
            "".join(_CHANCE.choice("ab") + "\n" for _ in range(20_000)),
            "".join(_CHANCE.choice("ab") + "\n" for _ in range(20_000)),
        ),
        (_ALTERNATING, _WOVEN),
        ("\n" * 500_000, "a\n" * 250_000),
    ],
    ids=["all different", "reversed", "every other", "two kinds", "worst for difflib", "1 MiB"],
)
def test_time_is_bounded(old: str, new: str) -> None:
    started = time.process_time()
    patch = unified_hunks(old, new)
    took = time.process_time() - started
    assert took < 1.0, "about 0.25 s on a slow machine; without the bounds it is minutes"
    assert apply_hunks(old, patch) == new
