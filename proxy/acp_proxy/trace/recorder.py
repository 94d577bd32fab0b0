"""Writes the recording: whole lines, one write a batch, and never at the expense of the traffic.

When the file cannot be written any more (full disk, limit, unplugged), recording stops for good, the
file ends in a line that says so if there is any room left to make, and the owner is told once.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from acp_proxy import __version__
from acp_proxy.acp.version import Role
from acp_proxy.diagnostics import utc
from acp_proxy.errors import ConfigError
from acp_proxy.jsonrpc.codec import EncodeError
from acp_proxy.trace import format as lines
from acp_proxy.trace.redaction import Redactor

if TYPE_CHECKING:
    from pathlib import Path

FLUSH_BYTES: Final = 1 << 20
# What may be given up of a full disk's worth to say that it was full: a block has to come free.
_GIVEN_UP: Final = 8192
_LINES_KEPT: Final = 128
_FULL: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class Recorder:
    """The recording of one run, every frame redacted before it is kept.

    Resource handling: the file is open from construction to `close` or the first failure.
    Error handling: construction raises ConfigError when the file cannot be opened or is not ours to
    write; later nothing raises, a failure goes to `on_failure` instead, at most once.
    """

    def __init__(
        self,
        path: Path,
        *,
        command: Sequence[str],
        settings: Mapping[str, object],
        started_wall: float,
        started_at: float = 0.0,
        redactor: Redactor | None = None,
        on_failure: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Open the file (mode 0600, an existing one is overwritten) and write the header.

        `started_wall` is the start in seconds since the epoch, `started_at` the same moment on the
        clock that later calls give `at` by. `settings` are dotted keys that differ from the default.
        """
        self.failure: str | None = None
        self._path = path
        self._started = started_at
        self._last = 0.0
        self._redactor = redactor if redactor is not None else Redactor()
        self._on_failure = on_failure
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._size = 0
        self._starts: deque[int] = deque(maxlen=_LINES_KEPT)
        self._fd: int | None = _opened(path)
        arguments = self._redactor.arguments(command)
        shown = self._redactor.settings(settings)
        try:
            line = lines.header(__version__, utc(started_wall), arguments, shown)
        except EncodeError:  # TOML knows infinities, and a plugin's settings are free
            shown = {key: str(value) for key, value in shown.items()}
            line = lines.header(__version__, utc(started_wall), arguments, shown)
        self._add(line)
        self.flush()
        self._starts.clear()  # the header is never given up

    @property
    def redactor(self) -> Redactor:
        """The secrets seen so far, for others who write things down."""
        return self._redactor

    def frame(self, at: float, leg: Role, direction: lines.Direction, raw: bytes, number: int | None) -> None:
        """Keep a frame that came in from a leg or went out to it; one the proxy made has no number."""
        if self._fd is None:
            return
        name: lines.Leg = "client" if leg is Role.CLIENT else "agent"
        try:
            line = lines.frame(self._elapsed(at), name, direction, number, self._redactor.frame(raw))
        except Exception as exc:  # a frame we cannot write down must not fail the relay
            self._give_up(f"a frame could not be encoded: {type(exc).__name__}")
        else:
            self._add(line)

    def finding(self, at: float, finding: Mapping[str, object]) -> None:
        """Keep a finding, in the form of the findings file."""
        if self._fd is None:
            return
        try:
            line = lines.finding(self._elapsed(at), self._redactor.value(dict(finding)))
        except Exception as exc:
            self._give_up(f"a finding could not be encoded: {type(exc).__name__}")
        else:
            self._add(line)

    def flush(self) -> None:
        """Write what is waiting; the runner calls it once a batch."""
        if self._fd is None or not self._buffer:
            return
        data = b"".join(self._buffer)
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as exc:
            self._note_starts(self._size + written)
            self._fail(exc)
            return
        self._note_starts(self._size + written)
        self._size += written
        self._buffer.clear()
        self._buffered = 0

    def close(self, why: str) -> None:
        """Write the last line and close the file. Harmless twice, and after a failure."""
        if self._fd is None:
            return
        self._add(lines.end(self._last, why))
        self.flush()
        self._shut()

    def _elapsed(self, at: float) -> float:
        self._last = at - self._started
        return self._last

    def _add(self, line: bytes) -> None:
        self._buffer.append(line)
        self._buffered += len(line)
        if self._buffered > FLUSH_BYTES:
            self.flush()

    def _note_starts(self, written: int) -> None:
        """Remember where the last lines begin that are in the file, whole or in part."""
        start = self._size
        for line in self._buffer:
            if start > written:
                break
            self._starts.append(start)
            start += len(line)

    def _give_up(self, reason: str) -> None:
        """Stop for good over something that cannot be put into a line; the file itself is well."""
        self._buffer.append(lines.truncated(self._last, reason))
        self.flush()
        if self._fd is not None:
            self._shut()
            self._tell(reason)

    def _fail(self, error: OSError) -> None:
        """Stop for good over the file: cut it back to whole lines and leave a last one."""
        reason = error.strerror or str(error)
        self._buffer.clear()
        self._leave(lines.truncated(self._last, reason), room=_GIVEN_UP if error.errno in _FULL else 0)
        self._shut()
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        if self.failure is not None:
            return
        self.failure = f"recording to {self._path} stopped: {reason}"
        try:
            self._on_failure(self.failure)
        except Exception:  # whoever is told must not fail the relay either
            return

    def _leave(self, note: bytes, room: int) -> None:
        """Write the note after the last whole line, or in place of lines of up to `room` bytes."""
        if self._fd is None or not self._starts:
            return
        end = self._starts[-1]
        try:
            while self._starts and end - self._starts[-1] <= room:
                start = self._starts.pop()
                os.ftruncate(self._fd, start)
                if start == 0 or self._fits(self._fd, start, note):
                    return
                os.ftruncate(self._fd, start)
        except OSError:
            return

    @staticmethod
    def _fits(fd: int, start: int, note: bytes) -> bool:
        os.lseek(fd, start, os.SEEK_SET)
        try:
            return os.write(fd, note) == len(note)
        except OSError:
            return False  # no room yet

    def _shut(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                os.close(fd)
            except OSError as exc:  # where writes are only tried at the end, as on NFS
                self._tell(exc.strerror or str(exc))


def _opened(path: Path) -> int:
    """A descriptor of the emptied file; ConfigError for what is no regular file of ours.

    Nothing is emptied before it is checked, and no link is followed: the name may have been
    planted by somebody else.
    """
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for a reader
    try:
        if path.is_symlink():
            raise ConfigError(f"record.file: {path} is a symbolic link, which is not followed")
        fd = os.open(path, flags, 0o600)
    except OSError as exc:
        raise ConfigError(f"record.file: {path} cannot be opened: {exc.strerror or exc}") from None
    except ValueError as exc:
        raise ConfigError(f"record.file: {str(path)!r} cannot be opened: {exc}") from None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"record.file: {path} is not a regular file")
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise ConfigError(f"record.file: {path} belongs to another user")
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
        os.ftruncate(fd, 0)
    except OSError as exc:
        os.close(fd)
        raise ConfigError(f"record.file: {path} cannot be written: {exc.strerror or exc}") from None
    except ConfigError:
        os.close(fd)
        raise
    return fd
