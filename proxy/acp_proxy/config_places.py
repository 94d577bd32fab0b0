"""Finds the line of a TOML file that a key stands on, to lead whoever reads of a mistake to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_NAME: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER: Final = re.compile(rf"\s*\[\[?\s*({_NAME})\s*\]")
_KEY: Final = re.compile(rf"\s*({_NAME})\s*=")


def place(text: str, key: str) -> int | None:
    """The line, from 1 on, where a dotted key or else the nearest table around it is written.

    Read line by line, not parsed: a line of a multi-line string that looks like the key is taken for it.
    """
    found: dict[str, int] = {}
    for number, name in _named(text):
        found.setdefault(name, number)
    while key:
        if key in found:
            return found[key]
        below = [number for name, number in found.items() if name.startswith(f"{key}.")]
        if below:
            return min(below)
        key = key.rpartition(".")[0]
    return None


def _named(text: str) -> Iterator[tuple[int, str]]:
    table = ""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        header = _HEADER.match(line)
        if header is not None:
            table = _bare(header[1])
            yield number, table
        elif (written := _KEY.match(line)) is not None:
            yield number, ".".join(filter(None, (table, _bare(written[1]))))


def _bare(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
