"""Absolute paths, as protocol v2 wants them wherever v1 took any string.

Purely textual: the path may belong to another machine, so the file system is never asked, and `.` and `..`
are not resolved (a symbolic link would make that wrong). Source: bridge §7.2 and §11, schema type
AbsolutePath.
"""

from __future__ import annotations


def is_windows(path: str) -> bool:
    r"""Say whether a path is absolute in the Windows manner: `C:\x`, `C:/x` or `\\server\share`."""
    if path.startswith("\\\\"):
        return True
    return len(path) > 2 and path[1] == ":" and path[2] in "\\/" and path[0].isascii() and path[0].isalpha()


def is_absolute(path: str) -> bool:
    """Say whether a path is absolute in the manner of any system an agent may run on."""
    return path.startswith("/") or is_windows(path)


def resolve(path: str, cwd: str | None) -> str:
    """Read a relative path against the session's `cwd`.

    Unchanged: an absolute path, an empty one, a URI in the place of a path, and any path when no absolute
    `cwd` is known; guessing a directory would point the client at a wrong file.
    """
    if not path or is_absolute(path) or "://" in path or not cwd:
        return path
    if is_windows(cwd):
        return cwd.rstrip("\\/") + "\\" + path
    if cwd.startswith("/"):
        return cwd.rstrip("/") + "/" + path
    return path
