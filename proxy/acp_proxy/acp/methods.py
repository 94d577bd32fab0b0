"""Whose method it is, in which version, and whether it is a request or a notification."""

from __future__ import annotations

from typing import Literal, NamedTuple

from acp_proxy.acp import shapes_v1, shapes_v2
from acp_proxy.acp.version import Role, Version

Kind = Literal["request", "notification"]

# The third side of the schemas, `proxy`, stands between two proxies of a chain: no role of ours receives it.
_RECEIVERS: dict[str, frozenset[Role]] = {
    "client": frozenset({Role.CLIENT}),
    "agent": frozenset({Role.AGENT}),
    "protocol": frozenset(Role),
    "proxy": frozenset(),
}


class MethodInfo(NamedTuple):
    """What the schema of one version says of a method.

    `params` and `result` are type names for `acp.shapes.conform`; `result` is None for a notification.
    Source: the annotations `x-side` and `x-method`.
    """

    kind: Kind
    receivers: frozenset[Role]
    params: str
    result: str | None
    unstable: bool


Tables = dict[str, tuple[tuple[str, str, str, str | None, bool], ...]]


def _read(version: Version, tables: Tables) -> dict[tuple[Version, str, Kind | None], MethodInfo]:
    """Every method by its kind, and under no kind as the first the table lists."""
    found: dict[tuple[Version, str, Kind | None], MethodInfo] = {}
    for method, entries in tables.items():
        for word, side, params, result, unstable in entries:
            kind: Kind = "request" if word == "request" else "notification"
            info = MethodInfo(kind, _RECEIVERS[side], params, result, unstable)
            found[version, method, kind] = info
            found.setdefault((version, method, None), info)
    return found


_METHODS = _read(Version.V1, shapes_v1.METHODS) | _read(Version.V2, shapes_v2.METHODS)


def method_info(version: Version, method: str, kind: Kind | None = None) -> MethodInfo | None:
    """Look a method up; None when `version` does not define it (an extension, or a mistake).

    Two methods exist both as request and as notification (`mcp/message`, `proxy/successor`): `kind` chooses,
    and without it the request is meant.
    """
    return _METHODS.get((version, method, kind))


def method_names(version: Version) -> frozenset[str]:
    """Every method `version` defines, unstable ones included."""
    return frozenset(method for of, method, _ in _METHODS if of is version)
