"""Params of the requests that open a session, from a v2 client for a v1 agent (bridge §3.1, §7.7)."""

from __future__ import annotations

from typing import Any

from acp_proxy.filters.translate.refusal import INVALID_PARAMS, Refusal


def new_params(params: Any, *, additional_directories: bool = False) -> dict[str, Any] | Refusal:
    """Translate params of `session/new`, `session/resume`, `session/load` and `session/fork`.

    `mcpServers`, required in v1, is always there. `replayFrom` goes: which request it asks for is the
    adapter's business. `additional_directories` says whether the agent has that capability; without it a
    list that is not empty is refused (-32602), because the agent would work without directories the user
    granted.
    """
    if not isinstance(params, dict):
        return Refusal(INVALID_PARAMS, "params must be an object")
    servers = mcp_servers(params.get("mcpServers"))
    if isinstance(servers, Refusal):
        return servers
    directories = params.get("additionalDirectories")
    if directories and not additional_directories:
        return Refusal(INVALID_PARAMS, "the agent does not support additionalDirectories")
    out: dict[str, Any] = {}
    for key, value in params.items():
        if key == "mcpServers":
            out[key] = servers
        elif key == "additionalDirectories":
            if value is not None and value != []:
                out[key] = value
        elif key != "replayFrom":
            out[key] = value
    out.setdefault("mcpServers", servers)
    return out


def mcp_servers(servers: Any) -> list[Any] | Refusal:
    """Translate a list of MCP servers; null and absence are an empty list.

    `stdio` loses its type, which v1 does not write, and gets the lists v1 requires; `http` gets `headers`;
    `acp` passes. Refused (-32602): `sse`, which v2 does not have, any other or missing type, and what is no
    object. A server left out silently would leave the agent without tools nobody misses until they are
    needed.
    """
    if servers is None:
        return []
    if not isinstance(servers, list):
        return Refusal(INVALID_PARAMS, "mcpServers must be an array")
    out: list[Any] = []
    for index, server in enumerate(servers):
        kind = server.get("type") if isinstance(server, dict) else None
        if kind == "stdio":
            plain = {key: value for key, value in server.items() if key != "type"}
            out.append(_with_lists(plain, "args", "env"))
        elif kind == "http":
            out.append(_with_lists(server, "headers"))
        elif kind == "acp":
            out.append(server)
        else:
            return _refused(index, kind)
    return out


def _with_lists(server: dict[str, Any], *names: str) -> dict[str, Any]:
    missing = [name for name in names if server.get(name) is None]
    return {**server, **{name: [] for name in missing}} if missing else server


def _refused(index: int, kind: object) -> Refusal:
    if isinstance(kind, str):
        return Refusal(
            INVALID_PARAMS, f"mcpServers[{index}]: the agent cannot be given a server of this type"
        )
    return Refusal(INVALID_PARAMS, f"mcpServers[{index}]: must be an object with a type")
