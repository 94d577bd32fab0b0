"""The opening exchange between a v2 client and a v1 agent (bridge §1, §2, §7.8, §12).

The first offer goes out before the agent's version is known, so it carries both shapes: a v1 agent ignores
the v2 fields and would otherwise assume a client that can do nothing.
"""

from __future__ import annotations

from typing import Any

from acp_proxy.filters.translate.meta import marked

TERMINAL_LOGIN = "ACP_PROXY_TERMINAL_LOGIN"
"""The variable by which a client that runs us again for a terminal login asks for the agent itself (§7.8)."""

UNKNOWN_INFO = {"name": "unknown", "version": "unknown"}

_RESULT_FIELDS = frozenset({"protocolVersion", "agentInfo", "agentCapabilities", "info", "capabilities"})
_SESSION_BASELINE = frozenset({"list", "resume", "close", "prompt", "mcp"})
_PROMPT_BOOLEANS = ("image", "audio", "embeddedContext")
_REPLACED_CAPABILITIES = frozenset(
    {"loadSession", "promptCapabilities", "mcpCapabilities", "sessionCapabilities", "session"}
)

# Enough for any version there will be; int() refuses to read thousands of digits.
_MAX_DIGITS = 9


def read_version(value: Any) -> tuple[int | None, bool]:
    """Read a `protocolVersion`: the number, and whether it was text and deserves a finding (bridge §12).

    None for anything that is no integer; true and false are no numbers.
    """
    if isinstance(value, bool):
        return None, False
    if isinstance(value, int):
        return value, False
    if isinstance(value, float):
        return (int(value), False) if value.is_integer() else (None, False)
    if isinstance(value, str):
        whole, _, fraction = value.strip().partition(".")
        digits = whole[1:] if whole[:1] in ("+", "-") else whole
        if digits.isdecimal() and digits.isascii() and len(digits) <= _MAX_DIGITS and not fraction.strip("0"):
            return int(whole), True
    return None, False


def is_v2_shape(result: Any) -> bool:
    """Say whether an initialize result is v2 in deed: some v1 agents merely echo the number 2."""
    if not isinstance(result, dict) or read_version(result.get("protocolVersion"))[0] != 2:
        return False
    return result.get("info") is not None or result.get("capabilities") is not None


def offer_both(
    params_v2: Any, served: frozenset[str] = frozenset(), *, unstable: bool = False
) -> dict[str, Any]:
    """Make the first offer to an agent of unknown version: version 2, with the fields of both versions.

    `served` names what the proxy does in the client's place: `fs`, `terminal`. `unstable` also claims the
    v1 markers of unstable features a v2 client has anyway.
    """
    given = params_v2 if isinstance(params_v2, dict) else {}
    out = dict(given)
    out["protocolVersion"] = 2
    if out.get("info") is None:
        out["info"] = dict(UNKNOWN_INFO)
    if out.get("capabilities") is None:
        out["capabilities"] = {}
    out["clientInfo"] = out["info"]
    out["clientCapabilities"] = _client_capabilities(given.get("capabilities"), served, unstable)
    return out


def offer_v1(
    params_v2: Any, served: frozenset[str] = frozenset(), *, unstable: bool = False
) -> dict[str, Any]:
    """Make the offer to an agent that refused the other one, or is known to speak v1: v1 fields only."""
    both = offer_both(params_v2, served, unstable=unstable)
    out = {key: value for key, value in both.items() if key not in ("info", "capabilities")}
    out["protocolVersion"] = 1
    return out


def result_to_v2(result_v1: Any, *, client_terminal_auth: bool, unstable: bool = False) -> dict[str, Any]:
    """Translate a v1 agent's initialize result; unknown fields and `_meta` pass.

    `client_terminal_auth` says whether the client advertised `auth.terminal`: otherwise terminal methods
    are left out. The agent's own capabilities, which v2 cannot fully say, stand in
    `_meta["acp-proxy"].orig.agentCapabilities`. What is no object counts as an empty one.
    """
    given = result_v1 if isinstance(result_v1, dict) else {}
    out: dict[str, Any] = {"protocolVersion": 2}
    info = given.get("agentInfo")
    if info is None:
        info = given.get("info")
    out["info"] = dict(UNKNOWN_INFO) if info is None else info
    capabilities = given.get("agentCapabilities")
    out["capabilities"] = _agent_capabilities(capabilities, unstable)
    for key, value in given.items():
        if key == "authMethods":
            if value is not None:
                out[key] = _auth_methods(value, client_terminal_auth)
        elif key not in _RESULT_FIELDS:
            out[key] = value
    if capabilities is not None:
        out = marked(out, "orig", {"agentCapabilities": capabilities})
    return out


def _client_capabilities(given: Any, served: frozenset[str], unstable: bool) -> dict[str, Any]:
    """Say in v1 what a v2 client can do. Unknown fields pass, but claim neither `fs` nor `terminal`."""
    out: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    files = "fs" in served
    out["fs"] = {"readTextFile": files, "writeTextFile": files}
    out["terminal"] = "terminal" in served
    auth = out.get("auth")
    auth = dict(auth) if isinstance(auth, dict) else {}
    auth["terminal"] = isinstance(auth.get("terminal"), dict)
    out["auth"] = auth
    session = out.get("session")
    session = dict(session) if isinstance(session, dict) else {}
    session.update({"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}})
    out["session"] = session
    if unstable:
        out["subagents"] = {}
        out["plan"] = {}
    return out


def _agent_capabilities(given: Any, unstable: bool) -> dict[str, Any]:
    """Say in v2 what a v1 agent can do. Sessions and stdio servers are its baseline."""
    if not isinstance(given, dict):
        given = {}
    session: dict[str, Any] = {}
    v1_session = given.get("sessionCapabilities")
    if isinstance(v1_session, dict):
        session.update((key, value) for key, value in v1_session.items() if key not in _SESSION_BASELINE)
    if "promptCapabilities" in given:
        session["prompt"] = _markers(given["promptCapabilities"], _PROMPT_BOOLEANS, ())
    # Without `unstable` the acp transport is unknown to the bridge, and its v1 boolean is no v2 marker.
    booleans, withheld = (("http", "acp"), ("sse",)) if unstable else (("http",), ("sse", "acp"))
    session["mcp"] = {**_markers(given.get("mcpCapabilities"), booleans, withheld), "stdio": {}}
    out: dict[str, Any] = {"session": session}
    for key, value in given.items():
        if key == "auth":
            auth = _without_logout(value)
            if auth:
                out[key] = auth
        elif key not in _REPLACED_CAPABILITIES:
            out[key] = value
    return out


def _markers(given: Any, booleans: tuple[str, ...], withheld: tuple[str, ...]) -> dict[str, Any]:
    """Turn each true of `booleans` into `{}` and leave out any other value of them; other fields pass."""
    if not isinstance(given, dict):
        return {}
    out: dict[str, Any] = {}
    for key, value in given.items():
        if key in booleans:
            if value is True:
                out[key] = {}
        elif key not in withheld:
            out[key] = value
    return out


def _without_logout(auth: Any) -> Any:
    if not isinstance(auth, dict):
        return auth
    return {key: value for key, value in auth.items() if key != "logout"}


def _auth_methods(methods: Any, client_terminal_auth: bool) -> Any:
    if not isinstance(methods, list):
        return methods
    return [
        _auth_method(method)
        for method in methods
        if client_terminal_auth or not (isinstance(method, dict) and method.get("type") == "terminal")
    ]


def _auth_method(method: Any) -> Any:
    """Translate one way to log in: `id` to `methodId`, no type to `agent`, a terminal `env` map to a list."""
    if not isinstance(method, dict):
        return method
    kind = method.get("type")
    out: dict[str, Any] = {"type": "agent" if kind is None else kind}
    for key, value in method.items():
        if key == "id":
            out["methodId"] = value
        elif key == "methodId":
            out.setdefault("methodId", value)
        elif kind == "terminal" and key in ("args", "env"):
            if key == "env" and isinstance(value, dict):
                out[key] = [{"name": name, "value": text} for name, text in value.items()]
            elif value is not None:
                out[key] = value
        elif key != "type":
            out[key] = value
    if kind == "terminal":
        given = out.get("env")
        out["env"] = [*(given if isinstance(given, list) else ()), {"name": TERMINAL_LOGIN, "value": "1"}]
    return out
