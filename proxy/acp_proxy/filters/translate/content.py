"""Content blocks of a v1 peer as v2 blocks (bridge §7.1): same shapes, stricter values.

Unknown block types and malformed blocks come back untouched. A block that needs no change comes back as the
same object, so the usual text chunk costs two look-ups.
"""

from __future__ import annotations

from typing import Any

from acp_proxy.filters.translate.paths import is_absolute, is_windows

BLOCK_TYPES = frozenset({"text", "image", "audio", "resource_link", "resource"})

# RFC 3986 pchar and "/": everything a path may hold unescaped in a URI.
_URI_CHARACTERS = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/"
)


def file_uri(path: str) -> str:
    """Write an absolute path as a `file:` URI, escaping the UTF-8 bytes a URI cannot hold.

    Written here because `urllib.parse` costs start-up time, and because a lone surrogate must not raise.
    """
    if is_windows(path):
        path = path.replace("\\", "/")
        prefix = "file:" if path.startswith("//") else "file:///"
    else:
        prefix = "file://"
    if _URI_CHARACTERS.issuperset(path):
        return prefix + path
    octets = path.encode("utf-8", "surrogatepass")
    return prefix + "".join(
        chr(octet) if chr(octet) in _URI_CHARACTERS else f"%{octet:02X}" for octet in octets
    )


def content_block(block: Any) -> Any:
    """Translate one ContentBlock; anything that is not an object with a known `type` is returned as it is.

    `uri` (of a link, an image or an embedded resource): a bare absolute path becomes a `file:` URI. `size`:
    a negative one is omitted. `annotations.priority`: clamped to 0..1.
    """
    if not isinstance(block, dict):
        return block
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in BLOCK_TYPES:
        return block
    changed: dict[str, Any] | None = None
    if kind == "resource":
        resource = block.get("resource")
        with_uri = _with_uri(resource)
        if with_uri is not resource:
            changed = {**block, "resource": with_uri}
    elif kind in ("image", "resource_link"):
        with_uri = _with_uri(block)
        if with_uri is not block:
            changed = with_uri
        if kind == "resource_link" and _is_negative(block.get("size")):
            changed = dict(block) if changed is None else changed
            del changed["size"]
    notes = block.get("annotations")
    if notes is not None:
        clamped = _clamped(notes)
        if clamped is not notes:
            changed = dict(block) if changed is None else changed
            changed["annotations"] = clamped
    return block if changed is None else changed


def content_list(blocks: Any) -> Any:
    """Translate each block of a list; the same list when nothing changes, and what is no list as it is."""
    if not isinstance(blocks, list):
        return blocks
    translated = [content_block(block) for block in blocks]
    for before, after in zip(blocks, translated, strict=True):
        if before is not after:
            return translated
    return blocks


def _with_uri(holder: Any) -> Any:
    if not isinstance(holder, dict):
        return holder
    uri = holder.get("uri")
    if isinstance(uri, str) and is_absolute(uri):
        return {**holder, "uri": file_uri(uri)}
    return holder


def _is_negative(size: Any) -> bool:
    return isinstance(size, (int, float)) and size < 0


def _clamped(notes: Any) -> Any:
    if not isinstance(notes, dict):
        return notes
    priority = notes.get("priority")
    if not isinstance(priority, (int, float)) or isinstance(priority, bool):
        return notes
    if priority < 0:
        return {**notes, "priority": 0}
    if priority > 1:
        return {**notes, "priority": 1}
    return notes
