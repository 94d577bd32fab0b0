"""The sessions a v2 client may list and resume although its v1 agent has no `session/list` (bridge §4).

The working copy of a run: read once when the agent has told its name, changed in memory, and every change
kept until the relay takes it and has it written down. Whether anything is written is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from acp_proxy.jsonrpc.message import Json


class SessionRecord:
    """What is kept of a session: what a list shows of it, and never a message. Not to be changed in place.

    `agent` is the agent's `agentInfo.name`, empty when it has none; `created` and `updated` are RFC 3339 in
    UTC, by our clock, None when there was none.
    """

    __slots__ = ("agent", "created", "cwd", "directories", "session_id", "title", "updated")

    def __init__(
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        title: str | None = None,
        created: str | None = None,
        updated: str | None = None,
    ) -> None:
        self.agent = agent
        self.session_id = session_id
        self.cwd = cwd
        self.directories = directories
        self.title = title
        self.created = created
        self.updated = updated

    def replaced(self, **changes: Any) -> SessionRecord:
        """A record that differs in these fields."""
        return SessionRecord(**{**self._fields(), **changes})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SessionRecord) and self._fields() == other._fields()

    def __repr__(self) -> str:
        return f"<SessionRecord {self._fields()}>"

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def as_json(self) -> Json:
        """A v2 `SessionInfo`; what is not known is left out."""
        info: Json = {"sessionId": self.session_id, "cwd": self.cwd}
        if self.directories:
            info["additionalDirectories"] = list(self.directories)
        if self.title is not None:
            info["title"] = self.title
        if self.updated is not None:
            info["updatedAt"] = self.updated
        return info


class Remembered:
    """The sessions of the agent at hand.

    A session lasts beyond its close and beyond the run only where the agent can load or resume it: an
    entry that nothing can open again would be a promise nobody keeps.
    """

    def __init__(
        self, records: Iterable[SessionRecord] = (), clock: Callable[[], str | None] = lambda: None
    ) -> None:
        """`records` are of earlier runs and of any agent; `clock` tells the time as RFC 3339."""
        self.agent = ""
        self._clock = clock
        self._earlier = tuple(records)
        self._lasting = False
        self._sessions: dict[str, SessionRecord] = {}
        self._titles: dict[str, str | None] = {}
        self.changed: dict[str, SessionRecord | None] = {}

    def begin(self, agent: str, *, lasting: bool) -> None:
        """The agent has told its name; `lasting` says whether it can open a session again."""
        self.agent = agent
        self._lasting = lasting
        if lasting:
            self._sessions = {record.session_id: record for record in self._earlier if record.agent == agent}
        self._earlier = ()

    # ------------------------------------------------------------ what happens

    def created(self, session_id: str, cwd: str, directories: Sequence[Any] | None = None) -> None:
        """A session was made. An id of an earlier run may come again: some agents count from one each time."""
        self._sessions.pop(session_id, None)
        self.opened(session_id, cwd, directories)

    def opened(self, session_id: str, cwd: str, directories: Sequence[Any] | None = None) -> None:
        """A session was made, loaded or resumed; its directories are those of the request, none if it has none."""
        now = self._clock()
        paths = tuple(path for path in directories or () if type(path) is str)
        known = self._sessions.get(session_id)
        if known is None:
            record = SessionRecord(self.agent, session_id, cwd, paths, created=now, updated=now)
        else:
            record = known.replaced(cwd=cwd, directories=paths, updated=now)
        if session_id in self._titles:
            record = record.replaced(title=self._titles.pop(session_id))
        self._keep(record)

    def titled(self, session_id: str, title: str | None) -> None:
        """The agent has named the session; a name that comes before the session is open waits for it."""
        known = self._sessions.get(session_id)
        if known is None:
            self._titles[session_id] = title
        elif known.title != title:
            self._keep(known.replaced(title=title, updated=self._clock()))

    def touched(self, session_id: str) -> None:
        """Something was done in the session."""
        known = self._sessions.get(session_id)
        if known is not None:
            self._keep(known.replaced(updated=self._clock()))

    def closed(self, session_id: str) -> None:
        """The session is closed: it stays if it can be opened again."""
        if not self._lasting:
            self._sessions.pop(session_id, None)

    def deleted(self, session_id: str) -> None:
        """The session is no more."""
        self._sessions.pop(session_id, None)
        self.changed[session_id] = None

    # ------------------------------------------------------------ what is told

    def listed(self, cwd: str | None) -> list[Json]:
        """The entries of a `session/list` answer, oldest session first; `cwd` must match to the letter."""
        return [record.as_json() for record in self._sessions.values() if cwd is None or record.cwd == cwd]

    def take(self) -> list[tuple[str, SessionRecord | None]]:
        """What has changed since the last call: session id and record, None for one to be forgotten."""
        if not self.changed:
            return []
        changed, self.changed = self.changed, {}
        return list(changed.items())

    def _keep(self, record: SessionRecord) -> None:
        self._sessions[record.session_id] = record
        if self._lasting:
            self.changed[record.session_id] = record
