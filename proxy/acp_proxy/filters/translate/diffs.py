"""A v1 diff (two texts) as a v2 diff (changes and a Git patch).

v1 texts are often snippets, so the line numbers of a hunk count from the start of the snippet and are no
positions in the file. v1 cannot say that a file was deleted: an emptied text stays a `modify`. Source:
bridge §7.2.
"""

from __future__ import annotations

from typing import Any

from acp_proxy.filters.translate.paths import resolve

MAX_PATCH_BYTES = 1 << 20
"""Both texts together, in UTF-8; above it the diff names its file and carries no patch."""

_PLAIN_CHARACTERS = frozenset(map(chr, range(0x20, 0x7F))) - {'"', "\\"}
_REPLACED = frozenset({"path", "oldText", "newText", "changes", "patch"})
_SHORT_ESCAPES = {
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}


def diff_content(item: Any, cwd: str | None) -> Any:
    """Translate a v1 `diff` content item `{path, oldText?, newText}` to `{changes, patch?}`.

    An item without a text for `path` and `newText`, or no object at all, is returned as it is. `oldText` that
    is no text counts as absent, as the v1 schema says. Other keys stay. A relative `path` is read against
    `cwd`.
    """
    if not isinstance(item, dict):
        return item
    path, new = item.get("path"), item.get("newText")
    if not isinstance(path, str) or not isinstance(new, str):
        return item
    old = item.get("oldText")
    if not isinstance(old, str):
        old = None
    path = resolve(path, cwd)
    change = {"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}
    patch = git_patch(path, old, new)
    out: dict[str, Any] = {}
    for key, value in item.items():
        if key == "path":
            out["changes"] = [change]
            if patch is not None:
                out["patch"] = {"format": "git_patch", "text": patch}
        elif key not in _REPLACED:
            out[key] = value
    return out


def git_patch(path: str, old: str | None, new: str) -> str | None:
    """Write the patch section of one file; None where none is due (NUL bytes, too large, nothing changed).

    `old` None adds the file. An added empty file has no hunk.
    """
    if old == new or "\0" in new or (old is not None and "\0" in old):
        return None
    if _is_large(old or "", new):
        return None
    # Here, not above: most runs of the proxy never see a diff, and difflib costs them start-up time.
    from acp_proxy.filters.translate.hunks import unified_hunks

    name = quoted(path)
    # An empty file gets its `---` and `+++` lines too, which Git omits: from an absolute name in the first
    # line alone `git apply -p1` learns no name.
    before = f"--- {name}\n" if old is not None else "new file mode 100644\n--- /dev/null\n"
    return f"diff --git {name} {name}\n{before}+++ {name}\n{unified_hunks(old or '', new)}"


def quoted(path: str) -> str:
    """Quote a path as Git does with `core.quotePath`: in C style, and only when it holds an unusual byte."""
    if _PLAIN_CHARACTERS.issuperset(path):
        return path
    out = ['"']
    for octet in path.encode("utf-8", "surrogatepass"):
        escape = _SHORT_ESCAPES.get(octet)
        if escape is not None:
            out.append(escape)
        elif 0x20 <= octet < 0x7F:
            out.append(chr(octet))
        else:
            out.append(f"\\{octet:03o}")
    out.append('"')
    return "".join(out)


def _is_large(old: str, new: str) -> bool:
    if len(old) + len(new) > MAX_PATCH_BYTES:
        return True
    return _utf8_length(old) + _utf8_length(new) > MAX_PATCH_BYTES


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
