"""Text files read and written for an agent (bridge §8)."""

from __future__ import annotations

import os
import socket
import stat
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_proxy.host import files
from acp_proxy.host.declined import DeclinedError
from acp_proxy.host.files import read_text_file, write_text_file

MISSING, INVALID, INTERNAL = -32002, -32602, -32603


def declined(code: int, why: str, path: Path, content: str | None = None) -> None:
    """Reading, or writing where a content is given, is declined."""
    act = partial(read, path) if content is None else partial(write, path, content)
    with pytest.raises(DeclinedError, match=why) as caught:
        act()
    assert caught.value.code == code
    assert caught.value.data == {"path": str(path)}


def read(path: Path, line: int | None = None, limit: int | None = None) -> str:
    return read_text_file(str(path), [str(path.parent)], line, limit)


def write(path: Path, content: str) -> None:
    write_text_file(str(path), content, [str(path.parent)])


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "one\ntwo\r\nthree"),
        (1, None, "one\ntwo\r\nthree"),
        (0, None, "one\ntwo\r\nthree"),
        (2, None, "two\r\nthree"),
        (3, None, "three"),
        (4, None, ""),
        (400, 1, ""),
        (None, 1, "one\n"),
        (None, 0, ""),
        (2, 1, "two\r\n"),
        (2, 2, "two\r\nthree"),
        (3, 99, "three"),
        (1, 2**32, "one\ntwo\r\nthree"),
    ],
)
def test_lines_are_counted_from_one_and_come_as_they_are(
    tmp_path: Path, line: int | None, limit: int | None, expected: str
) -> None:
    (tmp_path / "f").write_bytes(b"one\ntwo\r\nthree")
    assert read(tmp_path / "f", line, limit) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    text=st.text(alphabet=st.sampled_from("ab\n\r\u2028é😀"), max_size=40),
    line=st.integers(0, 9),
    limit=st.none() | st.integers(0, 9),
)
def test_any_slice_is_the_slice_of_the_lines(tmp_path: Path, text: str, line: int, limit: int | None) -> None:
    write(tmp_path / "f", text)
    lines = [part + "\n" for part in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    start = max(line, 1) - 1
    end = None if limit is None else start + limit
    assert read(tmp_path / "f", line, limit) == "".join(lines[start:end])


def test_lines_longer_than_a_piece_count_once(tmp_path: Path) -> None:
    long = "x" * (3 * files._CHUNK) + "\n"
    (tmp_path / "f").write_text(long + long + "last")
    assert read(tmp_path / "f", 2, 1) == long
    assert read(tmp_path / "f", 3) == "last"


def test_the_size_counts_only_of_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TEXT_BYTES", 10)
    (tmp_path / "f").write_text("0123456789\n" + "ab\n" * 5)
    declined(INVALID, "more than 10 bytes of text", tmp_path / "f")
    with pytest.raises(DeclinedError, match="ask for fewer lines"):
        read(tmp_path / "f", 1, 1)
    assert read(tmp_path / "f", 2, 3) == "ab\n" * 3
    (tmp_path / "g").write_text("0123456789")
    assert read(tmp_path / "g") == "0123456789"


@pytest.mark.parametrize("data", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\x00\x80"])
def test_what_is_no_utf8_is_declined(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    declined(INVALID, "not UTF-8 text", tmp_path / "f")


def test_a_byte_order_mark_survives_reading_and_writing(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa\r\n")
    write(tmp_path / "g", read(tmp_path / "f"))
    assert (tmp_path / "g").read_bytes() == b"\xef\xbb\xbfa\r\n"


def test_what_is_no_regular_file_is_neither_read_nor_written(tmp_path: Path) -> None:
    """Nor waited for: a pipe that nobody writes to would be read for ever."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    declined(INVALID, "it is a directory", tmp_path / "folder")
    declined(INVALID, "it is a directory", tmp_path / "folder", "x")
    for name in ("fifo", "socket"):
        declined(INVALID, "it is no regular file", tmp_path / name, "x")
    declined(INVALID, "it is no regular file", tmp_path / "fifo")
    declined(INVALID, "it is no regular file", tmp_path / "socket")


def test_a_root_itself_is_a_directory(tmp_path: Path) -> None:
    for act in (
        lambda: read_text_file(str(tmp_path), [str(tmp_path)]),
        lambda: write_text_file(str(tmp_path), "x", [str(tmp_path)]),
    ):
        with pytest.raises(DeclinedError, match="it is a directory"):
            act()


def test_a_missing_file_is_told_as_missing(tmp_path: Path) -> None:
    declined(MISSING, "no such file", tmp_path / "f")


def test_a_name_that_is_too_long_is_the_agents_fault(tmp_path: Path) -> None:
    declined(INVALID, "name is too long", tmp_path / ("x" * 300))
    declined(INVALID, "name is too long", tmp_path / ("x" * 300), "x")


# ---------------------------------------------------------------- writing


def test_a_file_is_created_with_the_permissions_new_files_get(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write(tmp_path / "f", "é\n")
    finally:
        os.umask(previous)
    assert (tmp_path / "f").read_bytes() == "é\n".encode()
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["f"]


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old, and longer than the new text")
    (tmp_path / "f").chmod(0o755)
    write(tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o755


def test_whoever_has_the_old_file_open_sees_it_whole(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with open(tmp_path / "f") as reader:
        write(tmp_path / "f", "new")
        assert reader.read() == "old"


def test_the_directory_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(DeclinedError) as caught:
        write_text_file(f"{tmp_path}/none/f", "x", [str(tmp_path)])
    assert caught.value.code == MISSING
    assert os.listdir(tmp_path) == []


def test_half_a_character_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DeclinedError, match="half a character"):
        write(tmp_path / "f", "a\ud800")
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_the_old_text_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, mode: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "f").write_text("old")
    monkeypatch.setattr(files.os, "fchmod", full)
    declined(INTERNAL, "No space left on device", tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_file_that_may_not_be_written_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory would allow to replace it. Root may write to anything, so the system's word is played."""
    opened = os.open

    def open_(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "f" and flags & os.O_WRONLY:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, mode, dir_fd=dir_fd)

    (tmp_path / "f").write_text("old")
    monkeypatch.setattr(files.os, "open", open_)
    declined(INTERNAL, "Permission denied", tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "old"
