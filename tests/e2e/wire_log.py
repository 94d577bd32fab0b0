"""What `peers/tee.py` wrote down on one side of the proxy, and whether it obeys the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from acp_proxy.acp.version import Role, Version
from schema_cache import message_error, response_error

MARKS = {b"> ": Role.AGENT, b"< ": Role.CLIENT}
# What a turn produces; bridge §12: its echo and its acknowledgement come before the first of these.
PRODUCTS = {"agent_message_chunk", "agent_thought_chunk", "tool_call_update", "plan_update"}


class Frame(NamedTuple):
    """One line: who it was for, its bytes with the line end, and the message."""

    toward: Role
    raw: bytes
    message: dict[str, Any]

    @property
    def update(self) -> dict[str, Any]:
        """The update that a `session/update` carries, else nothing."""
        if self.message.get("method") != "session/update":
            return {}
        found: dict[str, Any] = self.message["params"]["update"]
        return found


def read_wire(log: Path) -> list[Frame]:
    """Every frame of a log, in the order in which they passed; raises ValueError for one that is no JSON."""
    lines = log.read_bytes().splitlines(keepends=True)
    return [Frame(MARKS[line[:2]], line[2:], json.loads(line[2:])) for line in lines]


def raw_frames(wire: Iterable[Frame], toward: Role) -> list[bytes]:
    """The bytes that went one way."""
    return [frame.raw for frame in wire if frame.toward is toward]


def schema_errors(wire: list[Frame], version: Version, toward: Role, *, unstable: bool) -> list[str]:
    """What is wrong with the messages toward one side, by the schema of the version that it speaks."""
    asked: dict[Any, str] = {}
    errors: list[str] = []
    for frame in wire:
        message = frame.message
        if frame.toward is not toward:
            if "method" in message and "id" in message:
                asked[message["id"]] = message["method"]
            continue
        error = _schema_error(message, asked, version, toward, unstable)
        if error is not None:
            errors.append(f"{error} in {frame.raw.decode().strip()}")
    return errors


def _schema_error(
    message: dict[str, Any], asked: dict[Any, str], version: Version, toward: Role, unstable: bool
) -> str | None:
    if "method" in message:
        return message_error(version, message, sender=toward.other, unstable=unstable)
    method = asked.pop(message.get("id"), None)
    if method is None:
        return "answer to nothing"
    if set(message) == {"jsonrpc", "id", "error"}:
        error = message["error"]
        well_formed = type(error.get("code")) is int and type(error.get("message")) is str
        return None if well_formed else "error without code or message"
    if set(message) != {"jsonrpc", "id", "result"}:
        return f"members {sorted(message)}"
    return response_error(
        version, method, message["result"], receiver_of_request=toward.other, unstable=unstable
    )


def story(wire: list[Frame]) -> list[str]:
    """What a v2 client was told after `initialize`, one word or two for each frame."""
    asked: dict[Any, str] = {}
    told: list[str] = []
    for frame in wire:
        message = frame.message
        if frame.toward is Role.AGENT:
            if "method" in message and "id" in message:
                asked[message["id"]] = message["method"]
        elif frame.update:
            told.append(_told(frame.update))
        elif "method" in message:
            told.append(message["method"])
        elif asked[message["id"]] != "initialize":
            outcome = f" {message['error']['code']}" if "error" in message else ""
            told.append(asked[message["id"]] + outcome)
    return told


def _told(update: dict[str, Any]) -> str:
    kind = str(update["sessionUpdate"])
    if kind == "state_update":
        return " ".join(str(update[key]) for key in ("state", "stopReason") if key in update)
    if kind == "tool_call_update" and "status" in update:
        return f"tool {update['status']}"
    return kind


def acknowledgement_errors(wire: list[Frame]) -> list[str]:
    """What is wrong with how a v2 client's prompts were acknowledged (LC-30, LC-31, bridge §5, §12).

    `running` and the echo come before the acknowledgement, which comes before anything that the turn produces.
    """
    prompts: dict[Any, list[dict[str, Any]]] = {}
    echoes: dict[str, list[dict[str, Any]]] = {}
    errors: list[str] = []
    state, acknowledged = "idle", True
    for frame in wire:
        message, update = frame.message, frame.update
        if frame.toward is Role.AGENT and message.get("method") == "session/prompt":
            prompts[message["id"]] = message["params"]["prompt"]
        elif frame.toward is Role.AGENT:
            continue
        elif update.get("sessionUpdate") == "state_update":
            if update["state"] == "running" and state == "idle":
                acknowledged = False
            state = update["state"]
        elif update.get("sessionUpdate") == "user_message":
            echoes[update["messageId"]] = update["content"]
        elif update.get("sessionUpdate") in PRODUCTS and not acknowledged:
            errors.append(f"{update['sessionUpdate']} before the acknowledgement")
        elif message.get("id") in prompts and "result" in message:
            acknowledged = True
            content = prompts.pop(message["id"])
            if state == "idle":
                errors.append("acknowledged while idle")
            if echoes.pop(message["result"]["messageId"], None) != content:
                errors.append("acknowledged before its echo, or the echo says something else")
    return errors + [f"{echo} is the echo of no prompt" for echo in echoes]


def overlapping_prompts(wire: list[Frame]) -> list[Any]:
    """The ids of prompts that a v1 agent got while it had another one to answer (bridge §5)."""
    unanswered: set[Any] = set()
    overlapping: list[Any] = []
    for frame in wire:
        message = frame.message
        if frame.toward is Role.CLIENT:
            if "method" not in message:
                unanswered.discard(message["id"])
        elif message.get("method") == "session/prompt":
            if unanswered:
                overlapping.append(message["id"])
            unanswered.add(message["id"])
    return overlapping
