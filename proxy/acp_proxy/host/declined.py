"""Why a request of the agent was not carried out, as the error it is answered with."""

from __future__ import annotations

import errno
import os

from acp_proxy.jsonrpc.message import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, Json

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_UNFIT = {
    errno.EISDIR: "it is a directory",
    errno.ELOOP: "it has become a symbolic link",
    errno.ENXIO: "it is no regular file",
    errno.ENAMETOOLONG: "its name is too long",
}


class DeclinedError(Exception):
    """Raised within this room only, where the work is done; the executor turns it into an answer.

    `code` and `data` are those of a JSON-RPC error; `text` never quotes what is in a file.
    """

    def __init__(self, code: int, text: str, data: Json | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.data = data


def not_a_path(path: str, why: str) -> DeclinedError:
    """The path itself is at fault (-32602)."""
    return DeclinedError(INVALID_PARAMS, f"{why}: {path}", {"path": path})


def failed(path: str, error: OSError) -> DeclinedError:
    """What the system said of a path: -32002 when nothing is there (bridge §8), else -32602 or -32603."""
    if error.errno in _ABSENT:
        return DeclinedError(RESOURCE_NOT_FOUND, f"no such file: {path}", {"path": path})
    unfit = _UNFIT.get(error.errno or 0)
    if unfit is not None:
        return not_a_path(path, unfit)
    reason = os.strerror(error.errno) if error.errno else str(error)
    return DeclinedError(INTERNAL_ERROR, f"{reason}: {path}", {"path": path})
