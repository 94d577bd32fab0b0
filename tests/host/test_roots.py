"""Paths lead below the session's directories and nowhere else, whatever is exchanged on the way."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy.host import roots
from acp_proxy.host.declined import DeclinedError
from acp_proxy.host.files import read_text_file, write_text_file
from acp_proxy.host.roots import find

MISSING, INVALID = -32002, -32602


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A project beside something that is none of its business; no descriptor is left open."""
    (tmp_path / "project" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "project" / "a.txt").write_text("inside")
    (tmp_path / "project" / "sub" / "b.txt").write_text("below")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.txt").write_text("secret")
    before = set(os.listdir("/dev/fd"))
    yield tmp_path
    assert set(os.listdir("/dev/fd")) == before


def read(tree: Path, path: str, *more: str) -> str:
    return read_text_file(path if path.startswith("/") else f"{tree}/{path}", [f"{tree}/project", *more])


def refused(tree: Path, path: str, *more: str) -> tuple[int, str]:
    with pytest.raises(DeclinedError) as caught:
        read(tree, path, *more)
    return caught.value.code, caught.value.text


@pytest.mark.parametrize(
    "path",
    [
        "project/a.txt",
        "project//a.txt",
        "project/./a.txt",
        "project/a.txt/",
        "project/sub/../a.txt",
        "project/sub/deep/../../a.txt",
    ],
)
def test_a_path_inside_is_found_however_it_is_written(tree: Path, path: str) -> None:
    assert read(tree, path) == "inside"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "other/secret.txt",
        "project/../other/secret.txt",
        "project/sub/../../other/secret.txt",
        "project-2/a.txt",
        "/",
    ],
)
def test_a_path_outside_is_refused(tree: Path, path: str) -> None:
    code, text = refused(tree, path)
    assert code == INVALID
    assert "not in the session's directories" in text


def test_a_relative_path_is_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "project")
    with pytest.raises(DeclinedError, match="not absolute"):
        read_text_file("a.txt", [f"{tree}/project"])


@pytest.mark.parametrize(
    "path", ["project/none.txt", "project/none/a.txt", "project/a.txt/b", "project/sub/deep/c"]
)
def test_what_is_missing_is_told_as_missing(tree: Path, path: str) -> None:
    assert refused(tree, path)[0] == MISSING


def test_a_root_that_is_gone_is_missing(tree: Path) -> None:
    with pytest.raises(DeclinedError) as caught:
        read_text_file(f"{tree}/gone/a.txt", [f"{tree}/gone"])
    assert caught.value.code == MISSING


def test_no_directories_allow_nothing(tree: Path) -> None:
    for given in ([], ["project"]):
        with pytest.raises(DeclinedError, match="not in"):
            read_text_file(f"{tree}/project/a.txt", given)


def test_every_additional_directory_is_allowed(tree: Path) -> None:
    assert read(tree, "other/secret.txt", f"{tree}/other") == "secret"
    assert read(tree, "project/a.txt", f"{tree}/other") == "inside"


def test_the_root_of_all_allows_all(tree: Path) -> None:
    assert read(tree, "other/secret.txt", "/") == "secret"


# ---------------------------------------------------------------- symbolic links


@pytest.mark.parametrize(
    ("link", "target", "path", "text"),
    [
        ("to-file", "a.txt", "project/to-file", "inside"),
        ("to-file", "{tree}/project/a.txt", "project/to-file", "inside"),
        ("to-folder", "sub/", "project/to-folder/b.txt", "below"),
        ("to-folder", "{tree}/project/sub", "project/to-folder/b.txt", "below"),
        ("sub/up", "..", "project/sub/up/a.txt", "inside"),
        ("sub/up", "deep/../../sub/deep/..", "project/sub/up/b.txt", "below"),
        ("here", ".", "project/here/here/a.txt", "inside"),
    ],
)
def test_a_link_that_stays_inside_is_followed(
    tree: Path, link: str, target: str, path: str, text: str
) -> None:
    (tree / "project" / link).symlink_to(target.format(tree=tree))
    assert read(tree, path) == text


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("{tree}/other/secret.txt", "project/link"),
        ("../other/secret.txt", "project/link"),
        ("{tree}/other", "project/link/secret.txt"),
        ("../other", "project/link/secret.txt"),
        ("..", "project/link/other/secret.txt"),
        ("/", "project/link/etc/passwd"),
        ("sub/../../other/secret.txt", "project/link"),
        ("{tree}/project/..", "project/link/other/secret.txt"),
    ],
)
def test_a_link_that_leads_out_is_refused(tree: Path, target: str, path: str) -> None:
    (tree / "project" / "link").symlink_to(target.format(tree=tree))
    code, text = refused(tree, path)
    assert code == INVALID
    assert "leads out of the session's directories" in text
    with pytest.raises(DeclinedError):
        write_text_file(f"{tree}/{path}", "overwritten", [f"{tree}/project"])
    assert (tree / "other" / "secret.txt").read_text() == "secret"


def test_a_link_into_another_directory_of_the_session_is_followed(tree: Path) -> None:
    (tree / "project" / "link").symlink_to(tree / "other")
    assert read(tree, "project/link/secret.txt", f"{tree}/other") == "secret"


def test_a_directory_of_the_session_inside_another_may_be_a_link(tree: Path) -> None:
    (tree / "project" / "link").symlink_to("../other")
    assert read(tree, "project/link/secret.txt", f"{tree}/project/link") == "secret"


def test_a_root_behind_a_link_is_known_by_both_names(tree: Path) -> None:
    (tree / "alias").symlink_to(tree / "project")
    for name in ("alias", "project"):
        assert read_text_file(f"{tree}/{name}/a.txt", [f"{tree}/alias"]) == "inside"


def test_links_that_go_round_are_refused(tree: Path) -> None:
    (tree / "project" / "round").symlink_to("round")
    assert refused(tree, "project/round")[1].startswith("too many symbolic links")


def test_a_dangling_link_names_the_file_to_be_created(tree: Path) -> None:
    (tree / "project" / "link").symlink_to("sub/new.txt")
    write_text_file(f"{tree}/project/link", "new", [f"{tree}/project"])
    assert (tree / "project" / "sub" / "new.txt").read_text() == "new"
    assert (tree / "project" / "link").is_symlink()


# ---------------------------------------------------------------- swaps


def swap_at(monkeypatch: pytest.MonkeyPatch, name: str, swap: object) -> None:
    """Exchange something right after the walk has found that `name` is no link."""
    looked_at = roots._link

    def look(looked: str, folder: int) -> str | None:
        target = looked_at(looked, folder)
        if looked == name:
            assert callable(swap)
            swap()
        return target

    monkeypatch.setattr(roots, "_link", look)


def test_a_directory_swapped_for_a_link_is_not_followed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (tree / "project" / "sub").rename(tree / "project" / "was")
        (tree / "project" / "sub").symlink_to(tree / "other")

    (tree / "project" / "sub" / "secret.txt").write_text("inside")
    swap_at(monkeypatch, "sub", swap)
    assert refused(tree, "project/sub/secret.txt")[0] in (MISSING, INVALID)


def test_a_file_swapped_for_a_link_is_not_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (tree / "project" / "a.txt").unlink()
        (tree / "project" / "a.txt").symlink_to(tree / "other" / "secret.txt")

    swap_at(monkeypatch, "a.txt", swap)
    assert refused(tree, "project/a.txt") == (
        INVALID,
        f"it has become a symbolic link: {tree}/project/a.txt",
    )


def test_a_file_swapped_for_a_link_is_not_written_through(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        (tree / "project" / "a.txt").unlink()
        (tree / "project" / "a.txt").symlink_to(tree / "other" / "secret.txt")

    swap_at(monkeypatch, "a.txt", swap)
    with pytest.raises(DeclinedError):
        write_text_file(f"{tree}/project/a.txt", "overwritten", [f"{tree}/project"])
    assert (tree / "other" / "secret.txt").read_text() == "secret"


def test_a_directory_moved_out_gives_no_way_to_climb_where_it_went(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`..` goes where the walk came from, not where the directory lies now."""
    swap_at(monkeypatch, "b.txt", lambda: (tree / "project" / "sub").rename(tree / "other" / "sub"))
    (tree / "project" / "sub" / "b.txt").unlink()
    (tree / "project" / "sub" / "b.txt").symlink_to("../secret.txt")
    assert refused(tree, "project/sub/b.txt")[0] == MISSING


def test_a_swap_that_goes_on_all_the_time_never_reaches_outside(tree: Path) -> None:
    """An attacker who exchanges a directory and a link as fast as it can, read and written against."""
    door, inside, outside = (
        tree / "project" / "door",
        tree / "project" / "inside",
        tree / "project" / "outside",
    )
    inside.mkdir()
    (inside / "secret.txt").write_text("harmless")
    outside.symlink_to(tree / "other")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for real in (inside, outside):
                os.rename(real, door)
                os.rename(door, real)

    attacker = threading.Thread(target=swap)
    attacker.start()
    seen: set[str] = set()
    try:
        for number in range(1500):
            try:
                seen.add(read(tree, "project/door/secret.txt"))
                write_text_file(f"{tree}/project/door/new{number % 3}.txt", "x", [f"{tree}/project"])
            except DeclinedError as declined:
                seen.add(str(declined.code))
    finally:
        over.set()
        attacker.join()
    assert seen & {"harmless", str(INVALID), str(MISSING)}
    assert "secret" not in seen
    assert os.listdir(tree / "other") == ["secret.txt"]


def test_the_place_of_a_root_has_no_name(tree: Path) -> None:
    with find(f"{tree}/project/sub/..", [f"{tree}/project"]) as place:
        assert place.name == ""
        assert os.path.samestat(os.stat(place.folder), os.stat(tree / "project"))
