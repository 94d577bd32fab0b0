"""The one `_meta` key under which the proxy leaves its own marks (bridge §0).

Marks belong on request params, results and notification params. Never on an upsert entity (a tool call, a
message): there `_meta` is a stored patch, and a mark would become part of what the client keeps.
"""

from __future__ import annotations

from typing import Any

PROXY_KEY = "acp-proxy"


def marked(holder: dict[str, Any], name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Copy `holder` with `fields` merged into `_meta["acp-proxy"][name]`.

    `name` is `orig` or `dropped`; `fields` carries the names the originals had, so that a second bridge can
    put them back. What another proxy noted under other names stays. A `_meta` that is no object is
    replaced.
    """
    meta = holder.get("_meta")
    meta = dict(meta) if isinstance(meta, dict) else {}
    marks = meta.get(PROXY_KEY)
    marks = dict(marks) if isinstance(marks, dict) else {}
    known = marks.get(name)
    marks[name] = {**known, **fields} if isinstance(known, dict) else dict(fields)
    meta[PROXY_KEY] = marks
    return {**holder, "_meta": meta}
