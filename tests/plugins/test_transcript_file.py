"""The transcript's file is for its owner alone, and the plugin's settings are checked."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.plugin import ConfigError, StateReport
from acp_proxy_transcript import Transcript
from acp_proxy_transcript.file import TranscriptFile


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "file: expected the path of a file"),
        ({"file": ""}, "file: expected the path of a file"),
        ({"file": 3}, "file: expected the path of a file"),
        ({"file": "x", "append": "no"}, "append: expected true or false"),
        ({"file": "x", "flie": "y"}, "unknown key flie; there are file and append"),
    ],
)
def test_wrong_settings_are_refused(
    settings: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        Transcript(settings)
    assert str(caught.value) == text
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_continued_and_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("before\n")
    path.chmod(0o644)
    Transcript({"file": str(path)}).close()
    first, blank, header = path.read_text().splitlines()
    assert (first, blank) == ("before", "")
    assert header.startswith("Transcript of acp-proxy, ")
    assert mode(path) == 0o600


def test_an_existing_file_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("before\n")
    Transcript({"file": str(path), "append": False}).close()
    assert len(path.read_text().splitlines()) == 1


def test_lines_are_in_the_file_at_once_and_the_rest_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t"
    transcript = Transcript({"file": str(path)})
    transcript.observe(StateReport(1.0, "s", "idle", "running", None))
    assert path.read_text().splitlines()[-1] == "       1.0  #1    state  running"
    transcript.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        transcript.observe(StateReport(2.0, "s", "running", "idle", None))


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory", "nowhere", "null"])
def test_what_is_no_file_of_ours_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    victim = tmp_path / "victim"
    victim.write_text("precious")
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "dangling":
        path.symlink_to(tmp_path / "planted")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "nowhere":
        path = tmp_path / "no" / "such"
    name = "a\0b" if kind == "null" else str(path)
    with pytest.raises(ConfigError, match=r"^file: .*(cannot be opened|is not a regular file)"):
        TranscriptFile(name, append=False)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "planted").exists()


def test_a_device_is_no_file() -> None:
    with pytest.raises(ConfigError, match="is not a regular file"):
        TranscriptFile(os.devnull, append=True)


def test_closing_twice_is_harmless_and_the_text_is_utf_8(tmp_path: Path) -> None:
    file = TranscriptFile(str(tmp_path / "t"), append=True)
    file.write(["ä", ""])
    file.close()
    file.close()
    assert (tmp_path / "t").read_bytes() == "ä\n\n".encode()
