"""Where an agent's paths may lead: below the directories of its session and nowhere else.

A path is walked name by name from a directory that is held open, and no step lets the system follow a
symbolic link: a link is read, and its target walked in the same way. So between a check and its use there is
nothing that could be exchanged, and `..` never climbs above where the walk began. Rejected: comparing
`realpath` with the roots, which a link swapped in afterwards defeats; openat2(2), which is Linux's alone and
refuses absolute links that stay inside.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from acp_proxy.host.declined import DeclinedError, failed, not_a_path

# Names that Windows lacks must not be looked up while this module is imported.
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)
AVAILABLE: Final = bool(NOFOLLOW) and {os.open, os.readlink, os.rename} <= os.supports_dir_fd

MAX_LINKS: Final = 40  # as many as Linux follows


class Place:
    """What a path comes down to: a name in an open directory, `""` for one of the roots itself.

    The name was no symbolic link when it was looked at, and need not exist. Whoever opens it does so with
    `NOFOLLOW`, relative to `folder`.
    """

    __slots__ = ("folder", "name")

    def __init__(self, folder: int, name: str) -> None:
        self.folder = folder
        self.name = name


@contextmanager
def find(path: str, roots: Sequence[str]) -> Generator[Place]:
    """Walk an absolute path below one of the roots; the directory stays open inside the block.

    The roots are the client's word and may themselves lead through links; a path may begin with a root as it
    was given or as it really stands.

    Raises:
        DeclinedError: the path is relative, or leads out of the roots, or no such directory is there.
    """
    if not path.startswith("/"):
        raise not_a_path(path, "the path is not absolute")
    walk = _Walk(path, roots)
    try:
        yield Place(*walk.to_the_end())
    finally:
        walk.close()


class _Walk:
    """The directories from a root to where we stand, all open."""

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self._path = path
        self._folders: list[int] = []
        self._links = 0
        forms = {tuple(_names(form)): root for root in roots for form in _forms(root)}
        # The innermost first: a root may lie in another, and be reached there through a link.
        self._roots = sorted(forms.items(), key=lambda item: -len(item[0]))

    def to_the_end(self) -> tuple[int, str]:
        """Go all the way; see `Place`."""
        try:
            return self._go(self._enter(self._path))
        except OSError as error:
            raise failed(self._path, error) from None

    def close(self) -> None:
        """Let go of everything."""
        while self._folders:
            os.close(self._folders.pop())

    def _go(self, ahead: list[str]) -> tuple[int, str]:
        ahead.reverse()
        last = ""
        while ahead:
            name = ahead.pop()
            if name == "..":
                self._climb()
                last = ""
                continue
            target = _link(name, self._folders[-1])
            if target is not None:
                self._links += 1
                if self._links > MAX_LINKS:
                    raise not_a_path(self._path, "too many symbolic links")
                ahead += reversed(self._enter(target) if target.startswith("/") else _names(target))
                last = ""
            elif ahead:
                # Exchanged for a link since it was looked at, it is no directory: NOFOLLOW sees to that.
                self._folders.append(os.open(name, _FOLDER | NOFOLLOW, dir_fd=self._folders[-1]))
            else:
                last = name
        return self._folders[-1], last

    def _enter(self, path: str) -> list[str]:
        """Begin anew at the root that an absolute path lies in; what is left of the path."""
        names = _names(path)
        for form, root in self._roots:
            if tuple(names[: len(form)]) == form:
                self.close()
                self._folders.append(os.open(root, _FOLDER))
                return names[len(form) :]
        raise self._outside()

    def _climb(self) -> None:
        if len(self._folders) == 1:
            raise self._outside()
        os.close(self._folders.pop())

    def _outside(self) -> DeclinedError:
        why = "the path leads out of" if self._links else "the path is not in"
        return not_a_path(self._path, f"{why} the session's directories")


def _forms(root: str) -> list[str]:
    return [os.path.normpath(root), os.path.realpath(root)] if root.startswith("/") else []


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _link(name: str, folder: int) -> str | None:
    """Where a symbolic link points; None for what is none or is not there."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise
