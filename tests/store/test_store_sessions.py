"""The registry of sessions: what is remembered is there in the next run, whatever the file goes through."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.errors import ConfigError
from acp_proxy.filters.translate.session_registry import SessionRecord
from acp_proxy.store import session_file
from acp_proxy.store.session_file import APPLICATION_ID, SCHEMA_VERSION
from acp_proxy.store.sessions import MemoryRegistry, SqliteRegistry

COMMAND = ("agent", "--key", "sk-very-secret")
FULL = SessionRecord("a", "s1", "/p", ("/q", "/r"), "Title", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
WITHIN = 10.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@contextmanager
def registry(path: Path, command: tuple[str, ...] = COMMAND, **more: Any) -> Iterator[SqliteRegistry]:
    """A registry for the length of the block, in which nothing may fail unless `on_failure` is given."""
    failures: list[str] = []
    opened = SqliteRegistry(path, command, **{"on_failure": failures.append, **more})
    try:
        yield opened
    finally:
        opened.close()
    assert failures == []


def kept(path: Path, command: tuple[str, ...] = COMMAND) -> list[SessionRecord]:
    """What a next run finds."""
    with registry(path, command) as opened:
        return opened.sessions()


def record(session_id: str = "s1", agent: str = "a", cwd: str = "/p", **more: Any) -> SessionRecord:
    return SessionRecord(agent, session_id, cwd, **more)


def refusal(path: Path, **more: Any) -> str:
    """Why the file cannot be used."""
    with pytest.raises(ConfigError) as caught:
        SqliteRegistry(path, COMMAND, **more)
    text = str(caught.value)
    assert text.startswith(f"state.path: {path}: ")
    return text.removeprefix(f"state.path: {path}: ")


def until(condition: Callable[[], object]) -> None:
    """Wait for the registry's thread."""
    end = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize("persistent", [False, True])
def test_a_registry_knows_what_it_was_told(persistent: bool, path: Path) -> None:
    opened = SqliteRegistry(path, COMMAND) if persistent else MemoryRegistry()
    for one in (record("s1"), record("s2", cwd="/q"), record("s3"), record("s1", agent="b")):
        opened.remember(one)
    opened.remember(record("s1", title="T"))
    opened.forget("a", "s3")
    opened.forget("a", "never")
    assert opened.sessions() == [record("s1", title="T"), record("s2", cwd="/q"), record("s1", agent="b")]
    assert opened.sessions("/q") == [record("s2", cwd="/q")]
    assert opened.sessions("/q/") == []
    opened.close()


def test_the_next_run_finds_the_sessions_oldest_first(path: Path) -> None:
    with registry(path) as opened:
        for one in (record("z"), FULL, record("b"), record("c")):
            opened.remember(one)
        opened.forget("a", "b")
        opened.remember(record("z", title="renamed"))
    assert kept(path) == [record("z", title="renamed"), FULL, record("c")]
    with registry(path) as opened:
        opened.remember(record("s1"))
    assert kept(path) == [record("z", title="renamed"), record("s1"), record("c")], (
        "a record is replaced whole"
    )
    with registry(path) as opened:
        opened.forget("a", "z")
    assert kept(path) == [record("s1"), record("c")]


def test_sessions_of_another_agent_command_are_not_found(path: Path) -> None:
    for command in (("agent",), ("agent", "--fast"), ("agent --fast",), ("agent", "--fast", "")):
        with registry(path, command) as opened:
            assert opened.sessions() == []
            opened.remember(record(" ".join(command)))
    assert [one.session_id for one in kept(path, ("agent", "--fast"))] == ["agent --fast"]


def test_the_file_holds_no_argument_of_the_command(path: Path) -> None:
    with registry(path) as opened:
        opened.remember(FULL)
    assert b"secret" not in path.read_bytes()


TEXTS = {
    "emoji": "😀 sesión 会话",
    "combining": "e\u0301",
    "right to left": "\u202eabc",
    "nul": "a\0b",
    "empty": "",
    "quotes": "'; DROP TABLE session; --",
    "lone surrogate": "\ud800",
    "surrogate and text": "x\udfff é",
    "long": "x" * 100_000,
    "line feeds": "a\r\nb",
}


def test_any_text_comes_back_as_it_was(path: Path) -> None:
    records = [
        SessionRecord("n" + text, text, text, (text, "/x"), text, text, text) for text in TEXTS.values()
    ]
    with registry(path) as opened:
        for one in records:
            opened.remember(one)
    assert kept(path) == records
    with registry(path) as opened:
        for one in records:
            opened.forget(one.agent, one.session_id)
    assert kept(path) == []


def test_ten_thousand_sessions_are_no_burden(path: Path) -> None:
    records = [record(f"s{number}", title="T" * 50, created="c", updated="u") for number in range(10_000)]
    start = time.perf_counter()
    with registry(path) as opened:
        for one in records:
            opened.remember(one)
        told = time.perf_counter()
    written = time.perf_counter()
    assert kept(path) == records
    read = time.perf_counter()
    assert told - start < 2, "who remembers does not wait for the disk"
    assert written - told < 3
    assert read - written < 3


def test_changes_after_the_close_stay_in_memory(path: Path) -> None:
    opened = SqliteRegistry(path, COMMAND)
    opened.remember(record("s1"))
    opened.close()
    opened.close()
    opened.remember(record("s2"))
    assert [one.session_id for one in opened.sessions()] == ["s1", "s2"]
    assert kept(path) == [record("s1")]


def test_no_thread_is_left(path: Path) -> None:
    before = threading.active_count()
    with registry(path):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    path.write_bytes(b"x")
    refusal(path)
    until(lambda: threading.active_count() == before)


# ---------------------------------------------------------------- the file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("existing", [None, 0o644, 0o666])
def test_the_file_is_its_owners_alone(existing: int | None, path: Path) -> None:
    if existing is not None:
        path.touch()
        path.chmod(existing)
    before = os.umask(0)
    try:
        with registry(path) as opened:
            opened.remember(FULL)
            until(lambda: len(list(path.parent.iterdir())) == 3)
            assert {file.name: mode(file) for file in path.parent.iterdir()} == {
                "sessions.db": 0o600,
                "sessions.db-wal": 0o600,
                "sessions.db-shm": 0o600,
            }
    finally:
        os.umask(before)
    assert list(path.parent.iterdir()) == [path]


def test_the_file_says_what_it_is(path: Path) -> None:
    with registry(path):
        pass
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("name", ["a b.db", "q?mode=ro", "h#ash", "100%25", "ünïcode"])
def test_any_file_name_will_do(name: str, tmp_path: Path) -> None:
    with registry(tmp_path / name) as opened:
        opened.remember(FULL)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert kept(tmp_path / name) == [FULL]


def test_a_relative_path_and_a_link_will_do(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with registry(Path(path.name)) as opened:
        opened.remember(FULL)
    (path.parent / "link").symlink_to(path)
    assert kept(path.parent / "link") == [FULL]


# ---------------------------------------------------------------- files that will not do


@pytest.mark.parametrize("size", [1, 15, 511, 512, 20_000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(size: int, path: Path) -> None:
    data = (b"my only copy of something else " * 1000)[:size]
    path.write_bytes(data)
    assert refusal(path) == "damaged, or no file of acp-proxy's: file is not a database"
    assert path.read_bytes() == data


def test_a_damaged_database_is_refused_and_left_alone(path: Path) -> None:
    with registry(path) as opened:
        for number in range(500):
            opened.remember(record(f"s{number}", title="T" * 100))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    assert refusal(path).startswith("damaged, or no file of acp-proxy's: ")
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("column", "value"), [("cwd", 5), ("directories", "[1]"), ("directories", "{"), ("title", b"\xff")]
)
def test_a_record_that_was_tampered_with_is_damage(column: str, value: Any, path: Path) -> None:
    with registry(path) as opened:
        opened.remember(FULL)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'BLOB')")  # or 5 would become a text
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE session SET {column} = ?", (value,))
    assert refusal(path).startswith("damaged, or no file of acp-proxy's: ")


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    with registry(path) as opened:
        opened.remember(FULL)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    data = path.read_bytes()
    assert refusal(path) == "written by a newer acp-proxy: its schema is 2, this one knows 1"
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE session (id)", "PRAGMA user_version = 1", "PRAGMA application_id = 7"],
)
def test_a_database_of_another_program_is_refused_and_left_alone(statement: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    data = path.read_bytes()
    assert refusal(path) == "a database, but not one of acp-proxy's"
    assert path.read_bytes() == data


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "not a regular file"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "not a regular file"
    assert refusal(tmp_path / "no" / "such.db") == "No such file or directory"
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "s.db") == "Not a directory"


UNPRIVILEGED = """
import os, sys
from pathlib import Path
import acp_proxy.store.session_file
from acp_proxy.errors import ConfigError
from acp_proxy.store.sessions import SqliteRegistry
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    SqliteRegistry(Path(sys.argv[1]), ["a"])
except ConfigError as exc:
    print(exc)
"""


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_that_cannot_be_written_is_refused(existing: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if existing:
            with registry(folder / "s.db") as opened:
                opened.remember(FULL)
            (folder / "s.db").chmod(0o444)
        folder.chmod(0o555)
        try:
            # A user that may do anything becomes nobody, after all that is to be imported was.
            told = subprocess.run(
                [sys.executable, "-c", UNPRIVILEGED, str(folder / "s.db")],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
        finally:
            folder.chmod(0o755)
    wanted = "cannot be written: attempt to write a readonly database" if existing else "Permission denied"
    assert told == f"state.path: {folder}/s.db: {wanted}\n"


def test_a_python_without_sqlite_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "acp_proxy.store.session_file")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert "without SQLite" in refusal(path)


def test_sqlite_is_loaded_only_for_a_file() -> None:
    program = (
        "import sys, acp_proxy.app, acp_proxy.store.sessions as s; s.MemoryRegistry();"
        "print('sqlite3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == b"False"


# ---------------------------------------------------------------- others at the same file

WRITER = """
import sys
from pathlib import Path
from acp_proxy.filters.translate.session_registry import SessionRecord
from acp_proxy.store.sessions import SqliteRegistry
name, path = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for run in range(10):
    registry = SqliteRegistry(Path(path), ["a"], on_failure=print)
    for number in range(20):
        registry.remember(SessionRecord("n", f"{name}-{run}-{number}", "/p"))
    registry.close()
"""


def test_two_proxies_share_a_file(path: Path) -> None:
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen(
            [*command, name, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("left", "right")
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        told = [writer.communicate(timeout=50)[0] for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert told == ["", ""]
    assert [writer.returncode for writer in writers] == [0, 0]
    found = {one.session_id for one in kept(path, ("a",))}
    assert found == {f"{w}-{run}-{n}" for w in ("left", "right") for run in range(10) for n in range(20)}


def test_changes_of_two_proxies_are_merged(path: Path) -> None:
    with registry(path) as opened:
        opened.remember(record("s1"))
    with registry(path) as left, registry(path) as right:
        left.remember(record("s2"))
        right.forget("a", "s1")
        right.remember(record("s3"))
        assert left.sessions() == [record("s1"), record("s2")], "the file is read once"
    assert {one.session_id for one in kept(path)} == {"s2", "s3"}


def test_what_a_killed_proxy_wrote_is_there(path: Path) -> None:
    program = (
        "import os, sys, time; from pathlib import Path;"
        "from acp_proxy.filters.translate.session_registry import SessionRecord;"
        "from acp_proxy.store.sessions import SqliteRegistry;"
        "r = SqliteRegistry(Path(sys.argv[1]), ['a']); r.remember(SessionRecord('n', 's1', '/p'));"
        "print(flush=True); time.sleep(60)"
    )
    killed = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    try:
        assert killed.stdout is not None
        killed.stdout.readline()
        with closing(sqlite3.connect(path)) as db:
            until(lambda: db.execute("SELECT count(*) FROM session").fetchone() == (1,))
    finally:
        killed.kill()
        killed.communicate()
    assert [one.session_id for one in kept(path, ("a",))] == ["s1"]


# ---------------------------------------------------------------- locked, full, gone


@contextmanager
def locked(path: Path, *statements: str) -> Iterator[None]:
    """Another program holds the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)
        yield


LOCKED = "locked by another program for more than 0.1 s"


@pytest.mark.parametrize(
    "statements",
    [
        ["PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"],
        ["BEGIN IMMEDIATE"],
    ],
)
def test_a_locked_file_is_refused_after_a_while(statements: list[str], path: Path) -> None:
    with registry(path) as opened:
        opened.remember(FULL)
    with locked(path, *statements):
        assert refusal(path, busy_seconds=0.1) == LOCKED
    assert kept(path) == [FULL]


def test_a_lock_that_is_let_go_in_time_is_waited_for(path: Path) -> None:
    with registry(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, db.execute, ["ROLLBACK"])
        timer.start()
        assert kept(path) == []
        timer.join()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_PROTOCOL])
def test_a_conflict_for_which_sqlite_does_not_wait_is_tried_again(
    code: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = session_file._settle_schema
    tries: list[sqlite3.Connection] = []

    def conflict_once(db: sqlite3.Connection) -> None:
        tries.append(db)
        if len(tries) == 1:
            conflict = sqlite3.OperationalError("database is locked")
            conflict.sqlite_errorcode = code
            raise conflict
        settle(db)

    monkeypatch.setattr(session_file, "_settle_schema", conflict_once)
    assert kept(path) == []
    assert len(tries) == 2


def test_what_cannot_be_written_is_told_once_kept_and_written_later(path: Path) -> None:
    failures: list[str] = []
    with registry(path, on_failure=failures.append, busy_seconds=0.1, retry_seconds=0.05) as opened:
        with locked(path, "BEGIN IMMEDIATE"):
            opened.remember(record("s1"))
            until(lambda: failures)
            opened.remember(record("s2"))
            opened.remember(record("s1", title="newer"))
            opened.forget("a", "s3")
            until(lambda: opened._unsaved.keys() == {("a", "s1"), ("a", "s2"), ("a", "s3")})
            assert opened.sessions() == [record("s1", title="newer"), record("s2")]
        with closing(sqlite3.connect(path)) as db:
            until(lambda: db.execute("SELECT count(*) FROM session").fetchone() == (2,))
    assert failures == [LOCKED]
    assert kept(path) == [record("s1", title="newer"), record("s2")]


def test_a_failure_is_tried_again_though_nothing_changes(path: Path) -> None:
    failures: list[str] = []
    with registry(path, on_failure=failures.append, busy_seconds=0.1, retry_seconds=0.05) as opened:
        with locked(path, "BEGIN IMMEDIATE"):
            opened.remember(FULL)
            until(lambda: failures)
        with closing(sqlite3.connect(path)) as db:
            until(lambda: db.execute("SELECT count(*) FROM session").fetchone() == (1,))
    assert failures == [LOCKED]


def test_a_newer_change_counts_before_one_that_could_not_be_written(path: Path) -> None:
    failures: list[str] = []
    with (
        registry(path, on_failure=failures.append, busy_seconds=0.5) as opened,
        locked(path, "BEGIN IMMEDIATE"),
    ):
        opened.remember(FULL)
        until(lambda: not opened._unsaved)  # it is being tried
        opened.remember(record("s1", title="newer"))
        assert failures == []
        until(lambda: failures)
    assert kept(path) == [record("s1", title="newer")]


def test_the_end_does_not_wait_for_ever(path: Path) -> None:
    failures: list[str] = []
    opened = SqliteRegistry(path, COMMAND, on_failure=failures.append, busy_seconds=0.1)
    with locked(path, "BEGIN IMMEDIATE"):
        opened.remember(FULL)
        start = time.monotonic()
        opened.close()
        assert time.monotonic() - start < 2
    assert failures == [LOCKED]
    assert opened.sessions() == [FULL]


def test_a_file_that_is_damaged_meanwhile_is_told_once(path: Path) -> None:
    failures: list[str] = []
    opened = SqliteRegistry(path, COMMAND, on_failure=failures.append, retry_seconds=0.05)
    path.unlink()
    path.write_bytes(b"no database " * 1000)
    opened.remember(record("s1"))
    until(lambda: failures)
    opened.remember(record("s2"))
    opened.close()
    assert len(failures) == 1
    assert failures[0].startswith("damaged, or no file of acp-proxy's: ")
    assert opened.sessions() == [record("s1"), record("s2")]


def test_a_file_that_is_deleted_meanwhile_is_made_anew(path: Path) -> None:
    with registry(path) as opened:
        opened.remember(record("s1"))
        until(lambda: not opened._unsaved)
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        opened.remember(record("s2"))
    assert kept(path) == [record("s2")]
    assert mode(path) == 0o600
