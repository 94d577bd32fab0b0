"""How a mistake in the settings is told: source, key, what was expected and what was found, on one line."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args, get_origin

from acp_proxy.errors import ConfigError

_LONGEST: Final = 40


def expected(kind: Any) -> str:
    """What a type takes, in words."""
    if get_origin(kind) is Literal:
        words = [f'"{word}"' if isinstance(word, str) else str(word) for word in get_args(kind)]
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    if get_origin(kind) is Annotated:
        return str(kind.__metadata__[0].description)
    return expected(get_args(kind)[0])  # the union of a type and None


def wrong(source: str, key: str, takes: str, value: object) -> ConfigError:
    """The mistake of a value; `takes` says what the key takes."""
    return ConfigError(f"{source}: {printable(key)}: expected {takes}, got {shown(value)}")


def shown(value: object) -> str:
    """A value in one short line, control characters escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"  # Python refuses to write out the largest
    if isinstance(value, str):
        return f'"{printable(value)}"'
    return str(value)


def printable(text: str) -> str:
    """A text without control characters, cut in length."""
    escaped = repr(text)[1:-1]
    return escaped if len(escaped) <= _LONGEST else f"{escaped[:_LONGEST]}…"
