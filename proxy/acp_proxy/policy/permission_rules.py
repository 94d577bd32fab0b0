"""The table of permission rules: reads it, and finds the first rule that fits a request.

A rule is a table with a `decision` and match keys; every key it names must fit, and a rule without
keys fits everything. Patterns are globs, or regular expressions between slashes. Nothing here asks
or answers anybody.

Source: keys `permissions.rules`; BR-37.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from acp_proxy.errors import ConfigError
from acp_proxy.jsonrpc.message import Json

DECISIONS: Final = ("ask", "allow_once", "reject")
MATCH_KEYS: Final = ("kind", "title", "command", "path", "cwd", "option_kinds")

_SHELL: Final = frozenset(";&|<>`$(){}\n\r")

Pattern = Callable[[str], bool]


class Asked:
    """What a permission request says of itself, in either protocol version."""

    __slots__ = ("command", "cwd", "kind", "option_kinds", "paths", "title")

    def __init__(
        self,
        kind: str | None,
        title: str | None,
        command: str | None,
        paths: Sequence[str],
        cwd: str | None,
        option_kinds: Sequence[str],
    ) -> None:
        self.kind = kind
        self.title = title
        self.command = command
        self.paths = paths
        self.cwd = cwd
        self.option_kinds = option_kinds

    def values(self, key: str) -> Sequence[str]:
        """The texts a match key looks at; none when the request does not say."""
        if key == "path":
            return self.paths
        if key == "option_kinds":
            return self.option_kinds
        value: str | None = getattr(self, key)
        return () if value is None else (value,)


class Rule:
    """One rule; `number` counts from 1 in the order of the table."""

    __slots__ = ("decision", "number", "wanted")

    def __init__(self, number: int, decision: str, wanted: Mapping[str, Sequence[Pattern]]) -> None:
        self.number = number
        self.decision = decision
        self.wanted = wanted

    def fits(self, asked: Asked) -> bool:
        """Whether every match key of the rule finds a text that one of its patterns fits.

        Where a request has several paths or option kinds, an allowing rule must cover them all: one for
        files below a folder must not decide for a call that also touches another, nor for a path that climbs
        out of the folder again. Any other rule fits as soon as one is covered.
        """
        allows = self.decision == "allow_once"
        for key, patterns in self.wanted.items():
            found = [any(pattern(value) for pattern in patterns) for value in asked.values(key)]
            if not found or not (all(found) if allows else any(found)):
                return False
            if allows and key in ("path", "cwd") and any(map(_climbs, asked.values(key))):
                return False
        return True


def read_rules(tables: Sequence[Any]) -> list[Rule]:
    """Read the table; raises ConfigError naming rule, key and what was expected."""
    return [_read_rule(number, table) for number, table in enumerate(tables, 1)]


def first_fit(rules: Sequence[Rule], asked: Asked) -> Rule | None:
    """The first rule that fits."""
    return next((rule for rule in rules if rule.fits(asked)), None)


def read_request(params: Json, known: Json, cwd: str | None) -> Asked:
    """Read the parameters of `session/request_permission` of either version.

    `known` is what was said of the tool call before: a request names only what changes.
    """
    subject = params.get("subject")
    subject = subject if type(subject) is dict else {}
    if subject.get("type") == "command":
        command = subject.get("command")
        where = subject.get("cwd")
        title = params.get("title")
        return Asked(
            "execute",
            title if type(title) is str else None,
            command if type(command) is str else None,
            (),
            where if type(where) is str else cwd,
            _option_kinds(params),
        )
    given = params.get("toolCall", subject.get("toolCall"))
    tool: Json = (
        {**known, **{k: v for k, v in given.items() if v is not None}} if type(given) is dict else dict(known)
    )
    title = params.get("title") if type(params.get("title")) is str else tool.get("title")
    kind = tool.get("kind")
    return Asked(
        kind if type(kind) is str else None,
        title if type(title) is str else None,
        _command(tool.get("rawInput")),
        list(_paths(tool)),
        cwd,
        _option_kinds(params),
    )


def _read_rule(number: int, table: Any) -> Rule:
    where = f"permissions.rules[{number}]"
    if type(table) is not dict:
        raise ConfigError(f"{where}: expected a table")
    decision = table.get("decision")
    if decision not in DECISIONS:
        raise ConfigError(f"{where}.decision: expected one of {', '.join(DECISIONS)}")
    wanted: dict[str, list[Pattern]] = {}
    for key, value in table.items():
        if key == "decision":
            continue
        if key not in MATCH_KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}; known: {', '.join((*MATCH_KEYS, 'decision'))}")
        texts = [value] if type(value) is str else value
        if type(texts) is not list or not texts or not all(type(text) is str for text in texts):
            raise ConfigError(f"{where}.{key}: expected a pattern or a list of patterns")
        guarded = decision == "allow_once" and key == "command"
        wanted[key] = [_pattern(text, f"{where}.{key}", guarded) for text in texts]
    return Rule(number, str(decision), wanted)


def _pattern(text: str, where: str, guarded: bool) -> Pattern:
    """A glob, or a regular expression between slashes, searched for.

    `guarded`: a glob does not fit a text in which a shell would see a second command or a redirection
    that the glob does not spell: `git *` is not meant to allow `git log; rm -rf .`.
    """
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        try:
            expression = re.compile(text[1:-1])
        except (re.error, OverflowError, RecursionError) as exc:
            raise ConfigError(f"{where}: not a regular expression: {exc}") from exc
        return lambda value: expression.search(value) is not None
    glob = re.compile(fnmatch.translate(text))
    if not guarded:
        return lambda value: glob.match(value) is not None
    foreign = _SHELL.difference(text)
    return lambda value: glob.match(value) is not None and foreign.isdisjoint(value)


def _climbs(path: str) -> bool:
    return ".." in path.replace("\\", "/").split("/")


def _option_kinds(params: Json) -> list[str]:
    options = params.get("options")
    if type(options) is not list:
        return []
    return [
        str(option["kind"]) for option in options if type(option) is dict and type(option.get("kind")) is str
    ]


def _command(raw_input: Any) -> str | None:
    """A tool's command line where agents put it: `command`, as a text or as a list of words."""
    command = raw_input.get("command") if type(raw_input) is dict else None
    if type(command) is str:
        return command
    if type(command) is list and all(type(word) is str for word in command):
        return " ".join(command)
    return None


def _paths(tool: Json) -> Iterator[str]:
    for location in _items(tool.get("locations")):
        if type(location) is dict and type(location.get("path")) is str:
            yield location["path"]
    for item in _items(tool.get("content")):
        if type(item) is not dict or item.get("type") != "diff":
            continue
        for change in _items(item.get("changes")) or [item]:
            for key in ("path", "oldPath"):
                if type(change) is dict and type(change.get(key)) is str:
                    yield change[key]


def _items(value: Any) -> list[Any]:
    return value if type(value) is list else []
