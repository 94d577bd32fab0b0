"""Slash commands of a v1 agent as v2 commands (bridge §7.5)."""

from __future__ import annotations

from typing import Any


def available_commands(update: Any) -> Any:
    """Translate the body of an `available_commands_update`: commands and their inputs get the tags of v2.

    A leading `/` of a name goes. A name with whitespace (the user could never type it) and the second
    command of a name are left out. What is no list, no object or has no name in text is left for the reader
    to judge.
    """
    if not isinstance(update, dict):
        return update
    commands = update.get("availableCommands")
    if not isinstance(commands, list):
        return update
    seen: set[str] = set()
    out: list[Any] = []
    for command in commands:
        translated = _command(command)
        name = translated.get("name") if isinstance(translated, dict) else None
        if isinstance(name, str):
            if name in seen or any(character.isspace() for character in name):
                continue
            seen.add(name)
        out.append(translated)
    return {**update, "availableCommands": out}


def _command(command: Any) -> Any:
    """Tag one command and its input. v1 has no tags, so a `type` found there is a stranger and gives way."""
    if not isinstance(command, dict):
        return command
    out: dict[str, Any] = {"type": "command", **command}
    out["type"] = "command"
    name = command.get("name")
    if isinstance(name, str) and name.startswith("/"):
        out["name"] = name[1:]
    given = command.get("input")
    if isinstance(given, dict):
        tagged: dict[str, Any] = {"type": "text", **given}
        tagged["type"] = "text"
        out["input"] = tagged
    return out
