"""Text files on our own machine, read and written for an agent (bridge §8, schema types ReadTextFileRequest
and WriteTextFileRequest).

Blocking: to be run in a thread. What an editor holds unsaved is not seen here, which is why this is off by
default.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import BinaryIO, Final

from acp_proxy.host.declined import DeclinedError, failed, not_a_path
from acp_proxy.host.roots import NOFOLLOW, Place, find
from acp_proxy.jsonrpc.message import INVALID_PARAMS

# Far beyond what an agent can make use of, and little enough to be held in memory several times over.
TEXT_BYTES: Final = 16 * 1024 * 1024

_CHUNK: Final = 64 * 1024
# Opening a pipe or a terminal line by mistake must neither wait nor take it over.
_UNHURT: Final = NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read_text_file(path: str, roots: Sequence[str], line: int | None = None, limit: int | None = None) -> str:
    """Return the file's text, from its `line` (1 is the first; so is 0) on, `limit` lines of it at most.

    Line ends stay as they are, the last one included; beyond the end there is the empty text.

    Raises:
        DeclinedError: outside of the roots, missing (-32002), no regular file, not UTF-8, or longer than
            `TEXT_BYTES` in what was asked for.
    """
    with find(path, roots) as place:
        try:
            with open(_open(path, place, os.O_RDONLY), "rb") as file:
                data = _lines(file, max(line or 1, 1), limit)
        except OSError as error:
            raise failed(path, error) from None
    if len(data) > TEXT_BYTES:
        raise not_a_path(path, f"more than {TEXT_BYTES} bytes of text; ask for fewer lines")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise not_a_path(path, "the file is not UTF-8 text") from None


def write_text_file(path: str, content: str, roots: Sequence[str]) -> None:
    """Make `content` the text of the file, which is created if it is missing; its directory is not.

    Whoever reads meanwhile sees the old text or the new one: a new file takes the old one's name and
    permissions. A file that may not be written to is left alone although its directory would allow it.

    Raises:
        DeclinedError: outside of the roots, no such directory (-32002), no regular file, not permitted.
    """
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise DeclinedError(INVALID_PARAMS, "the content holds half a character") from None
    with find(path, roots) as place:
        try:
            _replace(place, data, _permissions(path, place))
        except OSError as error:
            raise failed(path, error) from None


def _open(path: str, place: Place, flags: int) -> int:
    """Open a regular file that is there, and nothing else."""
    # A root itself has no name of its own to be opened by.
    fd = os.open(place.name or ".", flags | _UNHURT, dir_fd=place.folder)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise not_a_path(path, "it is a directory" if stat.S_ISDIR(mode) else "it is no regular file")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lines(file: BinaryIO, line: int, limit: int | None) -> bytes:
    """The bytes of the lines wanted; of too many, somewhat more than `TEXT_BYTES`."""
    while line > 1:
        piece = file.readline(_CHUNK)
        if not piece:
            return b""
        line -= piece.endswith(b"\n")
    if limit is None:
        return file.read(TEXT_BYTES + 1)
    pieces: list[bytes] = []
    size = 0
    while limit > 0 and size <= TEXT_BYTES:
        piece = file.readline(_CHUNK)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
        limit -= piece.endswith(b"\n")
    return b"".join(pieces)


def _permissions(path: str, place: Place) -> int | None:
    """The permissions of the file that is to be replaced, None when there is none."""
    try:
        fd = _open(path, place, os.O_WRONLY)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(fd).st_mode & 0o777
    finally:
        os.close(fd)


def _replace(place: Place, data: bytes, permissions: int | None) -> None:
    """Not flushed to the disk: a crash of the machine is not what an agent's edit must survive."""
    beside = f".acp-proxy-{os.urandom(8).hex()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW, 0o666, dir_fd=place.folder)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            if permissions is not None:
                os.fchmod(fd, permissions)
        os.rename(beside, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=place.folder)
        raise
