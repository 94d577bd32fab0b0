"""The transcript's file: only its owner reads it, and no link is followed to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from acp_proxy.plugin import ConfigError


class TranscriptFile:
    """A text file that is open from construction to `close`, mode 0600 whatever it was before."""

    def __init__(self, path: str, *, append: bool) -> None:
        """Raises ConfigError when the file cannot be opened, or is no regular file of our own."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for a reader
        try:
            self._fd = os.open(path, flags, 0o600)
        except (OSError, ValueError) as exc:
            raise ConfigError(f"file: {path!r} cannot be opened: {exc}") from exc
        try:
            found = os.fstat(self._fd)
            if not stat.S_ISREG(found.st_mode):
                raise ConfigError(f"file: {path!r} is not a regular file")
            if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
                raise ConfigError(f"file: {path!r} belongs to another user")
            if hasattr(os, "fchmod"):
                os.fchmod(self._fd, 0o600)
            if not append:
                os.ftruncate(self._fd, 0)
            elif found.st_size:
                self.write([""])
        except OSError as exc:
            self.close()
            raise ConfigError(f"file: {path!r} cannot be written: {exc}") from exc
        except ConfigError:
            self.close()
            raise

    def write(self, lines: Sequence[str]) -> None:
        """Write whole lines at once. Raises OSError."""
        data = "".join(f"{line}\n" for line in lines).encode()
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        """Close the file; harmless twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
