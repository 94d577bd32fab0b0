"""One SQLite file of session records, as one thread reads and writes it; other proxies may do so meanwhile.

Each call is a transaction of its own. The connection is opened anew after a failure and when the file at
the path is no longer the one that was opened: what is written into a deleted file is lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from acp_proxy.filters.translate.session_registry import SessionRecord

APPLICATION_ID: Final = 0x61637078
SCHEMA_VERSION: Final = 1
_AGAIN_SECONDS: Final = 0.02
_HEADER_BYTES: Final = 512
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A text that is no valid Unicode is kept as a BLOB, see `_stored`. The rowid keeps the order of arrival.
_CREATE: Final = """
    CREATE TABLE session (
        command TEXT NOT NULL,
        agent TEXT NOT NULL,
        id TEXT NOT NULL,
        cwd TEXT NOT NULL,
        directories TEXT NOT NULL,
        title TEXT,
        created TEXT,
        updated TEXT,
        PRIMARY KEY (command, agent, id)
    )"""
_SELECT: Final = """
    SELECT agent, id, cwd, directories, title, created, updated FROM session WHERE command = ? ORDER BY rowid"""
_UPSERT: Final = """
    INSERT INTO session (command, agent, id, cwd, directories, title, created, updated)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (command, agent, id) DO UPDATE SET cwd = excluded.cwd, directories = excluded.directories,
        title = excluded.title, created = excluded.created, updated = excluded.updated"""
_DELETE: Final = "DELETE FROM session WHERE command = ? AND agent = ? AND id = ?"


class _Unusable(ValueError):
    """The file is not what it should be; the text is for people."""


class SessionFile:
    """The records of one agent command in the file at `path`.

    The command is kept as a digest of its arguments: they hold keys often enough. Nothing raises; a
    failure is a text for people.
    """

    def __init__(self, path: Path, command: Sequence[str], busy_seconds: float) -> None:
        """Touch nothing yet; `busy_seconds` is how long to wait for a file that somebody has locked."""
        self._path = path
        self._command = hashlib.sha256(b"\0".join(map(os.fsencode, command))).hexdigest()
        self._busy_seconds = busy_seconds
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def read(self) -> tuple[str | None, list[SessionRecord]]:
        """Open the file, made with mode 0600 if it is not there; why that failed, and the records in it."""
        try:
            rows = self._connected().execute(_SELECT, (self._command,)).fetchall()
            return None, [_record(row) for row in rows]
        except (sqlite3.Error, OSError, ValueError) as exc:
            self.close()
            return self._told(exc), []

    def write(self, changes: Mapping[tuple[str, str], SessionRecord | None]) -> str | None:
        """Make the changes, all or none; returns why that failed. The key is agent and session id, None forgets."""
        try:
            db = self._connected()
            db.execute("BEGIN IMMEDIATE")
            for (agent, session_id), record in changes.items():
                if record is None:
                    db.execute(_DELETE, (self._command, _stored(agent), _stored(session_id)))
                else:
                    db.execute(_UPSERT, (self._command, *_row(record)))
            db.execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError) as exc:
            self.close()
            return self._told(exc)
        return None

    def close(self) -> None:
        """Let the file go; an unfinished transaction is undone."""
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()

    # ------------------------------------------------------------ the connection

    def _connected(self) -> sqlite3.Connection:
        if self._db is not None:
            if self._identity == _identity(self._path):
                return self._db
            self.close()
        deadline = time.monotonic() + self._busy_seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                self._db = self._opened(left)
            except sqlite3.OperationalError as exc:
                # Two that turn a new file to WAL at once do not wait for each other, whatever the timeout.
                if not left or _code(exc) not in _BUSY:
                    raise
                time.sleep(_AGAIN_SECONDS)
            else:
                self._identity = _identity(self._path)
                return self._db

    def _opened(self, timeout: float) -> sqlite3.Connection:
        _prepare(self._path)
        # Never created here: SQLite would leave its mode to the umask.
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        db = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
        try:
            db.text_factory = bytes
            _settle_schema(db)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA busy_timeout = {int(self._busy_seconds * 1000)}")
        except BaseException:
            db.close()
            raise
        return db

    def _told(self, exc: sqlite3.Error | OSError | ValueError) -> str:
        if isinstance(exc, OSError):
            return exc.strerror or str(exc)
        code = _code(exc)
        if code in _BUSY:
            return f"locked by another program for more than {self._busy_seconds:g} s"
        if code in _DAMAGED or not isinstance(exc, sqlite3.Error | _Unusable):
            return f"damaged, or no file of acp-proxy's: {exc}"
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return f"cannot be written: {exc}"
        return str(exc)


def _prepare(path: Path) -> None:
    """See to it that there is a regular file that only its owner can read, without opening one that is there.

    Closing any descriptor of a file gives up all locks that the process has on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise _Unusable("not a regular file") from None
        if 0 < status.st_size < _HEADER_BYTES:  # SQLite would take it for empty and write over it
            raise ValueError("file is not a database") from None
        if status.st_mode & 0o077:
            with contextlib.suppress(OSError):  # another owner has thought of it
                os.chmod(path, 0o600)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _settle_schema(db: sqlite3.Connection) -> None:
    """Make the table in an empty file; refuse a file that is another program's or of a newer schema.

    The write lock comes first: it shows at once whether the file can be written.
    """
    db.execute("BEGIN IMMEDIATE")
    application = _number(db, "PRAGMA application_id")
    version = _number(db, "PRAGMA user_version")
    if application == APPLICATION_ID and version > SCHEMA_VERSION:
        raise _Unusable(
            f"written by a newer acp-proxy: its schema is {version}, this one knows {SCHEMA_VERSION}"
        )
    if application == 0 and version == 0 and _number(db, "SELECT count(*) FROM sqlite_master") == 0:
        db.execute(_CREATE)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    elif application != APPLICATION_ID or version != SCHEMA_VERSION:
        raise _Unusable("a database, but not one of acp-proxy's")
    db.execute("COMMIT")


def _number(db: sqlite3.Connection, query: str) -> int:
    (value,) = db.execute(query).fetchone()
    return int(value)


def _code(exc: Exception) -> int:
    """The primary code of SQLite; 0 when it had none."""
    return int(getattr(exc, "sqlite_errorcode", 0)) & 0xFF


# ---------------------------------------------------------------- rows


def _row(record: SessionRecord) -> tuple[str | bytes | None, ...]:
    return (
        _stored(record.agent),
        _stored(record.session_id),
        _stored(record.cwd),
        json.dumps(record.directories),
        *(None if text is None else _stored(text) for text in (record.title, record.created, record.updated)),
    )


def _record(row: Sequence[Any]) -> SessionRecord:
    agent, session_id, cwd, directories = map(_text, row[:4])
    title, created, updated = (None if value is None else _text(value) for value in row[4:])
    paths = json.loads(directories)
    if type(paths) is not list or any(type(path) is not str for path in paths):
        raise ValueError("a record's directories are no list of strings")
    return SessionRecord(agent, session_id, cwd, tuple(paths), title, created, updated)


def _stored(text: str) -> str | bytes:
    """The text itself; its bytes where a lone surrogate, which JSON may hold, keeps it from being one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _text(value: Any) -> str:
    if type(value) is not bytes:
        raise ValueError("a record has a number for a text")
    return value.decode("utf-8", "surrogatepass")
