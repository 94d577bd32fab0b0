"""Agent profiles: what is known of the habits of one agent, as data, and which profile fits an agent (RA-25).

A profile is a TOML table: the agent's name as it says it (`agent`), the versions it holds for
(`versions`, such as `>=0.40,<1`; none: all), settings under the names they have in the configuration, hints
(`hints`) and rules that would be noted wrongly (`false_findings`). Settings under `when_named` hold only
where the profile was asked for by its name: so one that is found by itself need not change what a client
is told. Explicit configuration beats both. Reads texts, not files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from acp_proxy.errors import ConfigError
from acp_proxy.inference.triggers import HINTED, Hint

Version = tuple[int, ...]

WHEN_NAMED: Final = "when_named"
_NUMBER: Final = re.compile(r"\s*v?(\d{1,9}(?:\.\d{1,9})*)")
_BOUND: Final = re.compile(r"\s*(>=|<=|==|>|<)\s*(\d{1,9}(?:\.\d{1,9})*)\s*")
_RULE: Final = re.compile(r"V\d\d")
_PLACES: Final = 4
_NO_END: Final = float("inf")


class Versions:
    """A range of dotted numbers; what follows the number in a version (`-beta.1`) is not looked at."""

    __slots__ = ("_bounds", "text")

    def __init__(self, text: str) -> None:
        """Raises ValueError when `text` is no list of bounds such as `>=0.40,<1`."""
        self.text = text
        self._bounds: list[tuple[str, Version]] = []
        for part in text.split(",") if text.strip() else ():
            found = _BOUND.fullmatch(part)
            if found is None:
                raise ValueError(part.strip())
            self._bounds.append((found[1], _padded(found[2])))

    def hold(self, version: str) -> bool:
        """Whether a version lies within; one that is no number does only where there are no bounds."""
        found = _NUMBER.match(version)
        if found is None:
            return not self._bounds
        number = _padded(found[1])
        return all(_COMPARE[sign](number, bound) for sign, bound in self._bounds)

    @property
    def breadth(self) -> tuple[float, float]:
        """Sorts narrow ranges before broad ones; of two without an end the one that begins later is narrower."""
        low, high = 0.0, _NO_END
        for sign, bound in self._bounds:
            place = float(sum(part * 10 ** (9 * (_PLACES - at)) for at, part in enumerate(bound)))
            if sign in (">=", ">", "=="):
                low = max(low, place)
            if sign in ("<=", "<", "=="):
                high = min(high, place)
        return high - low, -low


def _padded(text: str) -> Version:
    parts = [int(part) for part in text.split(".")][:_PLACES]
    return tuple(parts + [0] * (_PLACES - len(parts)))


_COMPARE: Final[dict[str, Callable[[Version, Version], bool]]] = {
    ">=": lambda number, bound: number >= bound,
    ">": lambda number, bound: number > bound,
    "<=": lambda number, bound: number <= bound,
    "<": lambda number, bound: number < bound,
    "==": lambda number, bound: number == bound,
}


class Content:
    """What a profile changes: settings by their configuration keys, hints, and findings that are none."""

    __slots__ = ("false_findings", "hints", "settings")

    def __init__(
        self, settings: Mapping[str, Any], hints: tuple[Hint, ...], false_findings: frozenset[str]
    ) -> None:
        self.settings = dict(settings)
        self.hints = hints
        self.false_findings = false_findings

    def beside(self, explicit: frozenset[str]) -> Content:
        """What is left of it where some keys have been configured explicitly."""
        kept = {key: value for key, value in self.settings.items() if key not in explicit}
        unnoted = (rule for rule in self.false_findings if f"lifecycle.rules.{rule}" not in explicit)
        return Content(kept, self.hints, frozenset(unnoted))

    def with_more(self, other: Content) -> Content:
        """This and another one, whose settings come first."""
        return Content(
            {**self.settings, **other.settings},
            (*self.hints, *other.hints),
            self.false_findings | other.false_findings,
        )


class Profile:
    """One profile. `source` says where it was read, `is_user` whether the user wrote it."""

    __slots__ = ("agent", "always", "is_user", "name", "source", "versions", "when_named")

    def __init__(
        self,
        name: str,
        agent: str,
        versions: Versions,
        always: Content,
        when_named: Content,
        source: str,
        *,
        is_user: bool,
    ) -> None:
        self.name = name
        self.agent = agent
        self.versions = versions
        self.always = always
        self.when_named = when_named
        self.source = source
        self.is_user = is_user

    @property
    def by_name(self) -> Content:
        """All of it, as holds where the profile was asked for by name."""
        return self.always.with_more(self.when_named)


class ProfileChoice(Protocol):
    """The profile that was asked for, or found by itself."""

    def content(self, agent: str, version: str) -> Content | None:
        """What holds for an agent with this name and version; None when nothing does."""


def find(profiles: Iterable[Profile], agent: str, version: str) -> Profile | None:
    """The profile for an agent: the user's before ours, then the narrowest range of versions."""
    fitting = [one for one in profiles if one.agent == agent and one.versions.hold(version)]
    return min(fitting, key=lambda one: (not one.is_user, one.versions.breadth, one.name), default=None)


# ---------------------------------------------------------------- reading


def read(name: str, text: str, source: str, *, is_user: bool) -> Profile:
    """Read a profile. Raises ConfigError naming source and key."""
    import tomllib  # 1–2 ms, and most agents have no profile

    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{source}: not valid TOML: {exc}") from None
    named = table.pop(WHEN_NAMED, {})
    if type(named) is not dict:
        raise ConfigError(f"{source}: {WHEN_NAMED}: expected a table")
    agent = table.pop("agent", None)
    if type(agent) is not str or not agent:
        raise ConfigError(f"{source}: agent: expected the name that the agent gives itself")
    given = table.pop("versions", "")
    try:
        versions = Versions(given)
    except (ValueError, AttributeError):
        raise ConfigError(f"{source}: versions: expected bounds such as >=0.40,<1") from None
    return Profile(
        name,
        agent,
        versions,
        _content(table, source, ""),
        _content(named, source, f"{WHEN_NAMED}."),
        source,
        is_user=is_user,
    )


def _content(table: Mapping[str, Any], source: str, prefix: str) -> Content:
    settings: dict[str, Any] = {}
    hints: tuple[Hint, ...] = ()
    unnoted: frozenset[str] = frozenset()
    for key, value in _leaves(table):
        if key == "hints":
            hints = _hints(value, source, prefix)
        elif key == "false_findings":
            if type(value) is not list or not all(_is_rule(item) for item in value):
                raise ConfigError(f"{source}: {prefix}{key}: expected a list of rules such as V34")
            unnoted = frozenset(value)
        elif key not in SETTINGS:
            raise ConfigError(f"{source}: {prefix}{key}: unknown key; known are {', '.join(_known())}")
        else:
            reader, expected = SETTINGS[key]
            read_value = reader(value)
            if read_value is None:
                raise ConfigError(f"{source}: {prefix}{key}: expected {expected}")
            settings[key] = read_value
    return Content(settings, hints, unnoted)


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if type(value) is dict and not prefix:
            yield from _leaves(value, f"{name}.")
        else:
            yield prefix + name, value


def _known() -> list[str]:
    return ["agent", "versions", WHEN_NAMED, "hints", "false_findings", *SETTINGS]


def _is_rule(value: Any) -> bool:
    return type(value) is str and _RULE.fullmatch(value) is not None


def _hints(value: Any, source: str, prefix: str) -> tuple[Hint, ...]:
    if type(value) is not list:
        raise ConfigError(f"{source}: {prefix}hints: expected a list of tables")
    found: list[Hint] = []
    for number, item in enumerate(value):
        key = f"{prefix}hints.{number}"
        if type(item) is not dict:
            raise ConfigError(f"{source}: {key}: expected a table")
        strange = next((name for name in item if name not in ("mark", "state", "error")), None)
        if strange is not None:
            raise ConfigError(f"{source}: {key}.{strange}: unknown key; known are mark, state, error")
        mark, state, text = item.get("mark"), item.get("state"), item.get("error")
        if type(mark) is not str or not mark:
            raise ConfigError(f"{source}: {key}.mark: expected a notification's method or a path in _meta")
        if state not in HINTED:
            raise ConfigError(f"{source}: {key}.state: expected one of {', '.join(sorted(HINTED))}")
        if text is not None and (type(text) is not str or state != "error"):
            raise ConfigError(f"{source}: {key}.error: expected a text, and only with the state error")
        found.append(Hint(mark, state, text))
    return tuple(found)


def _one_of(*words: str) -> tuple[Callable[[Any], Any], str]:
    return lambda value: value if type(value) is str and value in words else None, " or ".join(words)


def _seconds(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < _NO_END else None


def _switch(value: Any) -> bool | None:
    return value if type(value) is bool else None


def _words(value: Any) -> tuple[str, ...] | None:
    return tuple(value) if type(value) is list and all(type(item) is str for item in value) else None


SETTINGS: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "bridge.settle": (_seconds, "a number of seconds, 0 or more"),
    "bridge.load_settle": (_seconds, "a number of seconds, 0 or more"),
    "inference.agent_initiated": _one_of("ignore", "infer", "unknown"),
    "inference.requires_action": _one_of("blocked", "any_wait"),
    "inference.quiet_time": (_seconds, "a number of seconds, 0 or more"),
    "inference.end_markers": (_words, "a list of strings"),
    "prompts.idle_cancel": _one_of("forward", "swallow"),
    "normalize.synonyms": (_switch, "true or false"),
}
