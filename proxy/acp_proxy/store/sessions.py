"""The registry of sessions: in memory, or kept in a file that several proxies may share.

What is asked for is always answered from memory; the file is read once, when it is opened, and
written behind by one thread. So no caller ever waits for a disk or for another proxy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from acp_proxy.errors import ConfigError
from acp_proxy.filters.translate.session_registry import SessionRecord

BUSY_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 5.0
_CLOSE_MARGIN: Final = 1.0

Key = tuple[str, str]


class Registry(Protocol):
    """Keeps session records; the key is the agent's name and the session id. No call raises."""

    def remember(self, record: SessionRecord) -> None:
        """Keep a record in the place of the one that has its key."""

    def forget(self, agent: str, session_id: str) -> None:
        """Drop a record; one that is not there is no error."""

    def sessions(self, cwd: str | None = None) -> list[SessionRecord]:
        """The records known, oldest first; with `cwd` those of exactly this directory."""
        ...

    def close(self) -> None:
        """Let go of what the registry holds, once; the one call that may take a moment."""


class MemoryRegistry:
    """A `Registry` that ends with its process."""

    def __init__(self, records: Sequence[SessionRecord] = ()) -> None:
        self._records: dict[Key, SessionRecord] = {_key(record): record for record in records}

    def remember(self, record: SessionRecord) -> None:
        """See `Registry.remember`."""
        self._records[_key(record)] = record

    def forget(self, agent: str, session_id: str) -> None:
        """See `Registry.forget`."""
        self._records.pop((agent, session_id), None)

    def sessions(self, cwd: str | None = None) -> list[SessionRecord]:
        """See `Registry.sessions`."""
        return [record for record in self._records.values() if cwd is None or record.cwd == cwd]

    def close(self) -> None:
        """See `Registry.close`."""


class SqliteRegistry(MemoryRegistry):
    """A `Registry` whose records of one agent command live on in a SQLite file.

    Resource handling: a thread and the file from construction to `close`.
    Error handling: construction raises ConfigError when the file cannot be used; later nothing raises. What
    cannot be written is told once to `on_failure`, kept, and tried again with the next change, every
    `RETRY_SECONDS`, and when closing.
    """

    def __init__(
        self,
        path: Path,
        command: Sequence[str],
        *,
        on_failure: Callable[[str], None] = lambda text: None,
        busy_seconds: float = BUSY_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """Open or create the file (mode 0600) and read the records of this agent command, its arguments included.

        `busy_seconds` is how long another program may keep the file locked before that counts as a
        failure. `on_failure` is called from the thread, with a text for people.
        """
        try:  # here and not above: SQLite takes time to load
            from acp_proxy.store.session_file import SessionFile
        except ImportError as exc:
            raise ConfigError(f"state.path: {path}: this Python comes without SQLite: {exc}") from None
        super().__init__()
        self._file = SessionFile(path, command, busy_seconds)
        self._on_failure = on_failure
        self._retry_seconds = retry_seconds
        self._patience = busy_seconds + _CLOSE_MARGIN
        self._told = False
        self._closing = False
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._opened = threading.Event()
        self._trouble: str | None = "cannot be read"
        self._unsaved: dict[Key, SessionRecord | None] = {}
        self._thread = threading.Thread(target=self._serve, name="acp-proxy sessions", daemon=True)
        self._thread.start()
        trouble = self._opening()
        if trouble is not None:
            raise ConfigError(f"state.path: {path}: {trouble}")

    def remember(self, record: SessionRecord) -> None:
        """See `Registry.remember`."""
        super().remember(record)
        self._change(_key(record), record)

    def forget(self, agent: str, session_id: str) -> None:
        """See `Registry.forget`."""
        super().forget(agent, session_id)
        self._change((agent, session_id), None)

    def close(self) -> None:
        """Write what is not yet written and let the file go; waits for a locked file no longer than usual.

        Harmless when called again; later changes stay in memory.
        """
        with self._lock:
            self._closing = True
        self._news.set()
        self._thread.join(self._patience)

    def _change(self, key: Key, record: SessionRecord | None) -> None:
        with self._lock:
            self._unsaved[key] = record
        self._news.set()

    def _opening(self) -> str | None:
        """Wait for the thread to have read the file; why it could not."""
        self._opened.wait()
        return self._trouble

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        try:
            self._trouble, records = self._file.read()
            for record in records:
                super().remember(record)
        finally:
            self._opened.set()
        closing = self._trouble is not None
        while not closing:
            self._news.wait(self._retry_seconds if self._unsaved else None)
            with self._lock:
                self._news.clear()
                changes, self._unsaved = self._unsaved, {}
                closing = self._closing
            trouble = self._file.write(changes) if changes else None
            if trouble is not None:
                self._keep(changes, trouble)
        self._file.close()

    def _keep(self, changes: dict[Key, SessionRecord | None], trouble: str) -> None:
        """Nothing is lost that may be written later: newer changes count before these."""
        with self._lock:
            self._unsaved = {**changes, **self._unsaved}
        if not self._told:
            self._told = True
            self._on_failure(trouble)


def _key(record: SessionRecord) -> Key:
    return (record.agent, record.session_id)
