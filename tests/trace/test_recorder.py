"""The recorder: private, whole lines at all times, and no failure of it reaches the traffic."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from acp_proxy import __version__
from acp_proxy.acp.version import Role
from acp_proxy.errors import ConfigError
from acp_proxy.trace import recorder as module
from acp_proxy.trace.format import End, FindingLine, FrameLine, Header, Truncated, read
from acp_proxy.trace.recorder import Recorder
from acp_proxy.trace.redaction import Redactor

SECRET = "s3cr3t-canary-value"


def recorder(path: Path, **options: Any) -> Recorder:
    given: dict[str, Any] = {"command": ["agent"], "settings": {}, "started_wall": 1_700_000_000.25}
    return Recorder(path, **(given | options))


def test_a_run_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = recorder(
        path, command=["agent", "--api-key", SECRET], settings={"bridge.mode": "off"}, started_at=100.0
    )
    recording.frame(100.5, Role.CLIENT, "in", b'{"id": 1}', 1)
    recording.frame(100.75, Role.AGENT, "out", b"\xff", None)
    recording.finding(101.0, {"rule": "V09"})
    recording.close("client closed")
    assert list(read(path)) == [
        Header(
            1,
            __version__,
            "2023-11-14T22:13:20.250Z",
            ("agent", "--api-key", "‹redacted:1›"),
            {"bridge.mode": "off"},
        ),
        FrameLine(0.5, "client", "in", 1, frame='{"id": 1}'),
        FrameLine(0.75, "agent", "out", None, b64="/w=="),
        FindingLine(1.0, {"rule": "V09"}),
        End(1.0, "client closed"),
    ]


def test_the_header_is_there_at_once_and_frames_after_flush(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = recorder(path)
    assert len(list(read(path))) == 1
    recording.frame(1, Role.CLIENT, "in", b"{}", 1)
    assert len(list(read(path))) == 1
    recording.flush()
    assert len(list(read(path))) == 2
    recording.frame(1, Role.CLIENT, "in", b"x" * module.FLUSH_BYTES, 2)
    assert len(list(read(path))) == 3  # a flood is not kept in memory
    recording.close("done")


def test_secrets_stay_out_of_frames_findings_command_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = recorder(path, command=["agent", f"TOKEN={SECRET}"], settings={"plugins.x.token": SECRET})
    new = {"params": {"mcpServers": [{"name": "m", "env": [{"name": "K", "value": SECRET + "2"}]}]}}
    recording.frame(1, Role.CLIENT, "in", json.dumps(new).encode(), 1)
    recording.frame(2, Role.AGENT, "in", f"cannot log in with {SECRET}2".encode(), 2)
    recording.frame(2, Role.AGENT, "in", f"\xff {SECRET}".encode("latin-1"), 3)
    recording.finding(3, {"text": f"bad {SECRET}2"})
    recording.close("done")
    assert SECRET not in path.read_text()
    frames = [line for line in read(path) if isinstance(line, FrameLine)]
    assert frames[1].frame == "cannot log in with ‹redacted:2›"
    assert frames[2].raw == b"\xff " + "‹redacted:1›".encode()


def test_the_file_is_private_and_an_old_one_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("old\n" * 1000)
    path.chmod(0o644)
    recorder(path).close("done")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [type(line) for line in read(path)] == [Header, End]
    umask = os.umask(0)
    try:
        recorder(tmp_path / "new.jsonl").close("done")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.jsonl").stat().st_mode) == 0o600


def test_a_symbolic_link_is_refused_and_its_target_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(ConfigError) as caught:
        recorder(link)
    assert str(caught.value) == f"record.file: {link} is a symbolic link, which is not followed"
    assert target.read_text() == "precious"
    link.unlink()
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError):
        recorder(link)
    assert not (tmp_path / "nowhere").exists()


def test_a_link_planted_after_the_check_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(target)
    monkeypatch.setattr(type(link), "is_symlink", lambda self: False)
    with pytest.raises(ConfigError, match=r"record\.file: .*link cannot be opened"):
        recorder(link)
    assert target.read_text() == "precious"


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    cases = [pipe, tmp_path, tmp_path / "missing" / "r.jsonl", Path("/dev/null"), Path("nul\0")]
    for path in cases:
        with pytest.raises(ConfigError, match=r"^record\.file: "):
            recorder(path)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ConfigError, match="is not a regular file"):
            recorder(pipe)
    finally:
        os.close(reader)


def test_a_file_of_another_user_is_refused_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("precious")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        recorder(path)
    assert path.read_text() == "precious"


# A limit on file size stands in for a full disk: it also cuts a write in the middle. In a process of its own,
# because a limit once lowered stays.
FULL_DISK = """
import json, resource, sys
from pathlib import Path
from acp_proxy.acp.version import Role
from acp_proxy.trace.recorder import Recorder

path, limit, size, batch = Path(sys.argv[1]), *map(int, sys.argv[2:5])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
told = []
recorder = Recorder(path, command=["agent"], settings={}, started_wall=0, on_failure=told.append)
for number in range(1, 201):
    recorder.frame(number / 10, Role.CLIENT, "in", b"x" * size, number)
    if number % batch == 0:
        recorder.flush()
recorder.close("done")
print(json.dumps([told, recorder.failure]))
"""


@pytest.mark.parametrize("size", [10, 700, 5000])
@pytest.mark.parametrize("batch", [1, 7, 200])
@pytest.mark.parametrize("limit", [300, 1000, 8192])
def test_a_full_disk_leaves_whole_lines_and_the_reason(
    limit: int, size: int, batch: int, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    argv = [sys.executable, "-c", FULL_DISK, str(path), str(limit), str(size), str(batch)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    text = f"recording to {path} stopped: {os.strerror(errno.EFBIG)}"
    assert json.loads(run.stdout) == [[text], text]
    assert path.stat().st_size <= limit
    records = list(read(path))
    assert isinstance(records[0], Header)
    assert isinstance(records[-1], Truncated)
    assert records[-1].truncated == os.strerror(errno.EFBIG)
    kept = [record for record in records[1:-1] if isinstance(record, FrameLine)]
    assert [record.n for record in kept] == list(range(1, len(kept) + 1))
    assert len(kept) == len(records) - 2
    if size == 10:
        assert len(kept) * 75 > limit - 400  # no more was given up than the last line needs


def test_no_room_for_even_the_header_leaves_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), "50", "10", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(run.stdout)[0]) == 1
    assert path.read_bytes() == b""


def test_no_room_for_the_note_leaves_the_header(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorder(path).close("done")
    size = len(path.read_bytes().splitlines(keepends=True)[0])
    argv = [sys.executable, "-c", FULL_DISK, str(path), str(size + 5), "10", "1"]
    subprocess.run(argv, capture_output=True, check=True)
    assert [type(line) for line in read(path)] == [Header]


def test_failing_writes_stop_the_recording_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    path = tmp_path / "r.jsonl"
    recording = recorder(path, on_failure=told.append)

    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    recording.frame(1, Role.CLIENT, "in", b"{}", 1)
    monkeypatch.setattr(os, "write", write)
    recording.flush()
    monkeypatch.undo()
    recording.frame(2, Role.CLIENT, "in", b"{}", 2)
    recording.finding(2, {})
    recording.flush()
    recording.close("done")
    assert told == [f"recording to {path} stopped: Input/output error"]
    assert [type(line) for line in read(path)] == [Header]


@pytest.mark.parametrize("full", [False, True])
def test_a_file_that_fails_to_close_is_reported_like_one_that_fails_to_write(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    path = tmp_path / "r.jsonl"
    recording = recorder(path, on_failure=told.append)
    really_close = os.close

    def close(fd: int) -> None:
        really_close(fd)
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", close)
        if full:
            patch.setattr(os, "write", write)
        recording.close("done")
    assert told == [f"recording to {path} stopped: Disk quota exceeded"]


def test_an_owner_that_fails_to_listen_is_no_concern_of_the_traffic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_failure(text: str) -> None:
        raise RuntimeError(text)

    recording = recorder(tmp_path / "r.jsonl", on_failure=on_failure)
    monkeypatch.setattr(os, "write", lambda fd, data: os.close(987_654))
    recording.frame(1, Role.CLIENT, "in", b"{}", 1)
    recording.flush()
    assert recording.failure is not None


def test_what_cannot_be_encoded_ends_the_recording_not_the_relay(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "r.jsonl"
    recording = recorder(path, on_failure=told.append)
    recording.frame(1, Role.CLIENT, "in", b"{}", 1)
    recording.finding(2, {"t": float("inf")})
    recording.frame(3, Role.CLIENT, "in", b"{}", 2)
    recording.close("done")
    assert told == [f"recording to {path} stopped: a finding could not be encoded: EncodeError"]
    assert [type(line) for line in read(path)] == [Header, FrameLine, Truncated]


def test_a_redactor_that_fails_lets_no_frame_through(tmp_path: Path) -> None:
    class Failing(Redactor):
        def frame(self, raw: bytes) -> bytes:
            raise MemoryError

    path = tmp_path / "r.jsonl"
    redactor = Failing()
    recording = recorder(path, redactor=redactor)
    assert recording.redactor is redactor
    recording.frame(1, Role.CLIENT, "in", SECRET.encode(), 1)
    recording.close("done")
    assert list(read(path))[1:] == [Truncated(1.0, "a frame could not be encoded: MemoryError")]
    assert recording.failure == f"recording to {path} stopped: a frame could not be encoded: MemoryError"


def test_closing_twice_is_harmless_and_frees_the_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    recording = recorder(tmp_path / "r.jsonl")
    recording.close("done")
    recording.close("again")
    recording.frame(1, Role.CLIENT, "in", b"{}", 1)
    recording.flush()
    assert [type(line) for line in read(tmp_path / "r.jsonl")] == [Header, End]
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_command_of_odd_bytes_and_odd_settings_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorder(path, command=["agent", "\udcff\n"], settings={"plugins.x.y": float("inf")}).close("done")
    header = next(iter(read(path)))
    assert isinstance(header, Header)
    assert header.command == ("agent", "\udcff\n")
    assert header.settings == {"plugins.x.y": "inf"}
