"""The settings of a run: typed, checked key by key, told apart by where each value came from.

A key is dotted (`bridge.ack_timeout`); in TOML the parts before the last dot are tables. A value
is taken from `--set`, else from an option, else from the `--config` file, else from the defaults
below, which are the contract. Every value is checked, also one that another source overrides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from acp_proxy.config_words import expected, printable, shown, wrong
from acp_proxy.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

# The description of a type is what error messages say was expected.
Seconds = Annotated[
    float, Meta(ge=0, le=sys.float_info.max, description="a number of seconds, 0 or more")
]  # the upper bound keeps infinity out
Count = Annotated[int, Meta(gt=0, description="a whole number above 0")]
Switch = Annotated[bool, Meta(description="true or false")]
Text = Annotated[str, Meta(min_length=1, description="the path of a file")]
Folder = Annotated[str, Meta(min_length=1, description="the path of a directory")]
ProfileName = Annotated[str, Meta(min_length=1, description='"auto", "none" or the name of a profile')]
Names = Annotated[tuple[str, ...], Meta(description="a list of strings")]
Actions = Annotated[
    tuple[Literal["cancel", "restart"], ...], Meta(description='a list of "cancel" and "restart"')
]
RuleWords = Annotated[
    dict[str, Literal["observe", "enforce", "strict", "off"]],
    Meta(description='a table of rules, each "observe", "enforce", "strict" or "off"'),
]
Tables = Annotated[tuple[dict[str, Any], ...], Meta(description="a list of tables")]
Served = Annotated[tuple[Literal["fs", "terminal"], ...], Meta(description='a list of "fs" and "terminal"')]

OPTION_NAMES: Final = {
    "bridge.mode": "--bridge",
    "lifecycle.mode": "--lifecycle",
    "record.file": "--record",
    "findings.file": "--findings",
    "log.level": "--log-level",
    "log.format": "--log-format",
}
_PLUGINS: Final = "plugins"
_RULES: Final = "lifecycle.rules"
_DEEPEST: Final = 8  # no key is, and a file may nest without end
LAST_RULE: Final = 47  # of the lifecycle's catalogue; rules of our own are findings, not choices
_GIVEN: Final = "given"  # beside the fields: where a value came from is no part of what holds


class Bridge(Struct, frozen=True):
    """Translation between protocol versions; times in seconds, 0 = off.

    `serve`: what a v1 agent behind a v2 client may have done on the proxy's own machine; a v2 client does
    neither. `fs` reads and writes files in the session's directories, `terminal` runs any command.
    """

    mode: Literal["auto", "off"] = "auto"
    ack_timeout: Seconds = 1.0
    close_timeout: Seconds = 10.0
    settle: Seconds = 0.0
    load_settle: Seconds = 0.0
    max_held: Count = 32
    queue_boundary: Literal["each", "merge"] = "each"
    batch: Literal["reject", "split"] = "reject"
    drop_sse: Switch = False
    serve: Served = ()


class Lifecycle(Struct, frozen=True):
    """What happens to a lifecycle violation, and the ceilings of a turn in seconds, 0 = off."""

    mode: Literal["observe", "enforce", "strict"] = "observe"
    rules: RuleWords = {}
    answer_grace: Seconds = 1.0
    close_tools: Switch = False
    cancel_timeout: Seconds = 0.0
    permission_timeout: Seconds = 0.0
    turn_timeout: Seconds = 0.0
    tool_timeout: Seconds = 0.0
    extension_timeout: Seconds = 0.0
    stall_after: Seconds = 0.0
    stall_action: Actions = ()


class Permissions(Struct, frozen=True):
    """Who answers permission requests: the first rule that fits, else the client.

    The tables are read, and refused, by `policy.permission_rules`.
    """

    rules: Tables = ()


class Prompts(Struct, frozen=True):
    """Prompts while a turn runs, between peers of one version, and cancels while none does."""

    busy: Literal["pass", "queue", "reject", "steer"] = "pass"
    idle_cancel: Literal["forward", "swallow"] = "forward"


class Inference(Struct, frozen=True):
    """How far the state is guessed where the wire is silent; times in seconds."""

    quiet_idle: Seconds = 0.0
    agent_initiated: Literal["ignore", "infer", "unknown"] = "ignore"
    requires_action: Literal["blocked", "any_wait"] = "blocked"
    quiet_time: Seconds = 30.0
    end_markers: Names = ()


class Normalize(Struct, frozen=True):
    """What is repaired beyond spelling, between peers of different protocol versions."""

    synonyms: Switch = False


class Limits(Struct, frozen=True):
    """Ceilings on what a peer may send, in bytes."""

    message_bytes: Count = 33_554_432


class Agent(Struct, frozen=True):
    """The agent process: the version offered to it, its grace periods in seconds, and its restarts.

    `restart_limit` restarts in `restart_window` seconds; `restart_delay` is the first wait, in seconds.
    """

    version: Literal["auto", 1, 2] = "auto"
    profile: ProfileName = "auto"
    restart: Literal["never", "idle", "always"] = "never"
    restart_limit: Count = 3
    restart_window: Seconds = 60.0
    restart_delay: Seconds = 0.2
    eof_grace: Seconds = 5.0
    term_grace: Seconds = 3.0


class Profiles(Struct, frozen=True):
    """Where the user's own agent profiles are; by default below XDG_CONFIG_HOME or ~/.config."""

    dir: Folder | None = None


class Record(Struct, frozen=True):
    """Where the traffic is written, if anywhere."""

    file: Text | None = None


class Findings(Struct, frozen=True):
    """Where findings are written, if anywhere."""

    file: Text | None = None


class State(Struct, frozen=True):
    """What is kept from run to run: the file with the registry of sessions, and whether to go on without it."""

    path: Text | None = None
    required: Switch = True


class Logging(Struct, frozen=True):
    """Diagnostics on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["text", "json"] = "text"


class Plugins(Struct, frozen=True):
    """The plugins to load, in order, and each one's own table, which only the plugin can check."""

    enabled: Names = ()
    tables: dict[str, dict[str, Any]] = {}


class Settings(Struct, frozen=True, dict=True):
    """All settings of one run; the defaults are those of the command-line contract."""

    bridge: Bridge = Bridge()
    lifecycle: Lifecycle = Lifecycle()
    permissions: Permissions = Permissions()
    prompts: Prompts = Prompts()
    inference: Inference = Inference()
    normalize: Normalize = Normalize()
    limits: Limits = Limits()
    agent: Agent = Agent()
    profiles: Profiles = Profiles()
    record: Record = Record()
    findings: Findings = Findings()
    state: State = State()
    log: Logging = Logging()
    plugins: Plugins = Plugins()
    unstable: Switch = False


def load(config_file: Path | None, sets: Sequence[str], options: Mapping[str, object]) -> Settings:
    """Settle the settings of a run.

    `sets` are the `KEY=VALUE` texts of `--set`, the last one for a key wins; `options` maps dotted
    keys to values, None meaning that the option was not given. Raises ConfigError naming the
    source, the key and what was expected, for the first value that is wrong.
    """
    given = {key: value for key, value in options.items() if value is not None}
    if config_file is None and not sets and not given:
        return Settings()
    types = _types()
    chosen: dict[str, object] = {}
    if config_file is not None:
        _choose(chosen, _leaves(_read(config_file), types, str(config_file)), types, str(config_file))
    for key, value in given.items():
        _choose(chosen, [(key, value)], types, OPTION_NAMES.get(key, "option"))
    for text in sets:
        _choose(chosen, _leaves(_assigned(text, types), types, "--set"), types, "--set")
    settings = _built(chosen)
    msgspec.structs.force_setattr(settings, _GIVEN, frozenset(_given(chosen)))
    return settings


def explicit(settings: Settings) -> frozenset[str]:
    """The dotted keys that any source gave a value, be it the default; `lifecycle.rules.VNN` for each rule."""
    given: frozenset[str] = settings.__dict__.get(_GIVEN, frozenset())
    return given


def mistakes(config_file: Path) -> list[str]:
    """Everything that is wrong in a file, each as `load` would say it, with the line where it stands."""
    from acp_proxy.config_places import place

    try:
        table = _read(config_file)
        text = config_file.read_text("utf-8", "replace")
    except ConfigError as exc:
        return [str(exc)]
    types = _types()
    found: list[tuple[int, str]] = []
    for key, value in _leaves(table, types, str(config_file)):
        parts: list[tuple[str, object]] = [(key, value)]
        if key == _RULES and isinstance(value, dict):
            parts = [(f"{key}.{rule}", {rule: word}) for rule, word in value.items()]
        for written, part in parts:
            line = place(text, written)
            source = f"{config_file}:{line}" if line is not None else str(config_file)
            try:
                _checked(key, part, types, source)
            except ConfigError as exc:
                found.append((line or 0, str(exc)))
    return [said for _, said in sorted(found, key=lambda one: one[0])]


def known_keys() -> dict[str, str]:
    """Every dotted key with the text that says what it takes; a plugin's own keys are not among them."""
    return {key: expected(kind) for key, kind in _types().items()}


def changed(settings: Settings) -> dict[str, object]:
    """The dotted keys whose values are not the defaults, with those values as plain JSON data."""
    default = dict(_flat(_plain(Settings())))
    return {
        key: value for key, value in _flat(_plain(settings)) if key not in default or default[key] != value
    }


def _types() -> dict[str, Any]:
    """Dotted key to type, read off the structs so that there is no second list of keys."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            for inner in msgspec.structs.fields(field.type):
                found[f"{field.name}.{inner.name}"] = inner.type
        else:
            found[field.name] = field.type
    del found["plugins.tables"]
    return found


def _read(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    import tomllib  # 1–2 ms, and most runs have no file

    try:
        # A byte order mark is what some editors write; tomllib takes it for a broken key.
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror or exc}") from None
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{path}: not UTF-8 text (at line {line})") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from None
    except ValueError as exc:
        raise ConfigError(f"{path}: not valid TOML: {exc}") from None


def _assigned(text: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """One `--set` text as nested tables."""
    key, equals, raw = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise ConfigError(f"--set: expected KEY=VALUE, got {shown(text)}")
    kind = types.get(key)
    value: object = raw if _is_plain_text(kind, raw) else _toml_value(raw)
    if isinstance(value, str) and (words := _words(kind)):
        listed = [word.strip() for word in value.split(",")]
        value = listed if words.issuperset(listed) else value
    for part in reversed(key.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _is_plain_text(kind: Any, raw: str) -> bool:
    """Whether the text is the value, unparsed: a path named `1.0` is no number."""
    if kind is None:
        return False
    if get_origin(kind) is Literal:
        return raw in get_args(kind)
    return Text in get_args(kind) or Folder in get_args(kind) or kind is ProfileName


def _words(kind: Any) -> set[str]:
    """The words a list of known words is made of; one may write such a list without brackets: `cancel,restart`."""
    items = get_args(get_args(kind)[0]) if get_origin(kind) is Annotated else ()
    return set(get_args(items[0])) if len(items) == 2 and get_origin(items[0]) is Literal else set()


def _toml_value(raw: str) -> object:
    """The text as a TOML value, or as itself when it is none: shells eat the quotes of a string."""
    import tomllib

    try:
        table = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    # A line feed in the text could have begun a second key.
    return table["value"] if len(table) == 1 else raw


def _leaves(
    table: Mapping[str, Any], types: Mapping[str, Any], source: str, prefix: str = ""
) -> Iterator[tuple[str, object]]:
    """Walk nested tables down to values; a plugin's table comes out whole, `plugins.NAME`."""
    for name, value in table.items():
        key = prefix + name
        if (
            not isinstance(value, dict)
            or key in types
            or prefix == f"{_PLUGINS}."
            or key.count(".") > _DEEPEST
        ):
            yield key, value
        elif value:
            yield from _leaves(value, types, source, f"{key}.")
        elif key not in _sections(types):
            yield key, value


def _choose(
    chosen: dict[str, object], leaves: Iterable[tuple[str, object]], types: Mapping[str, Any], source: str
) -> None:
    """Let the checked values of one source take the place of what was chosen before."""
    for key, value in leaves:
        _merge(chosen, key, _checked(key, value, types, source))


def _merge(into: dict[str, Any], key: str, value: object) -> None:
    """Tables are merged key by key, anything else is replaced."""
    before = into.get(key)
    if isinstance(before, dict) and isinstance(value, dict):
        for name, inner in value.items():
            _merge(before, name, inner)
    else:
        into[key] = value


def _sections(types: Mapping[str, Any]) -> set[str]:
    return {key.partition(".")[0] for key in types if "." in key}


def _checked(key: str, value: object, types: Mapping[str, Any], source: str) -> object:
    """The value converted to its key's type; ConfigError when key or value is wrong."""
    kind = types.get(key)
    if kind is None:
        if key.startswith(f"{_PLUGINS}."):
            if isinstance(value, dict):
                return value
            raise wrong(source, key, "a table of the plugin's settings", value)
        if key in _sections(types):
            raise wrong(source, key, "a table", value)
        raise _unknown(key, types, source)
    if key == _RULES and isinstance(value, dict):
        return _checked_rules(value, source)
    if key == "agent.version" and value in ("1", "2"):
        value = int(str(value))
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise wrong(source, key, expected(kind), value) from None


def _checked_rules(table: Mapping[str, object], source: str) -> dict[str, object]:
    """The words chosen for single rules; ConfigError for an unknown rule or word."""
    rules = {f"V{number:02}" for number in range(1, LAST_RULE + 1)}
    words = get_args(get_args(get_args(RuleWords)[0])[1])
    for rule, word in table.items():
        if rule not in rules:
            raise ConfigError(
                f"{source}: {_RULES}: unknown rule {printable(rule)}; rules are V01 to V{LAST_RULE}"
            )
        if word not in words:
            raise wrong(source, f"{_RULES}.{rule}", expected(get_args(get_args(RuleWords)[0])[1]), word)
    return dict(table)


def _unknown(key: str, types: Mapping[str, Any], source: str) -> ConfigError:
    import difflib  # costs more than the whole check; only a mistake pays for it

    near = difflib.get_close_matches(key, [*types, *sorted(_sections(types))], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError(f"{source}: unknown key {printable(key)}{hint}")


def _built(chosen: Mapping[str, object]) -> Settings:
    """Settings out of checked values, keyed by dotted key."""
    sections: dict[str, Any] = {}
    tables: dict[str, object] = {}
    for key, value in chosen.items():
        section, _, name = key.partition(".")
        if section == _PLUGINS and isinstance(value, dict):
            tables[name] = value
        elif name:
            sections.setdefault(section, {})[name] = value
        else:
            sections[key] = value
    if tables:
        sections.setdefault(_PLUGINS, {})["tables"] = tables
    return msgspec.convert(sections, Settings)


def _given(chosen: Mapping[str, object]) -> Iterator[str]:
    for key, value in chosen.items():
        if key == _RULES and isinstance(value, dict):
            yield from (f"{key}.{rule}" for rule in value)
        yield key


def _plain(settings: Settings) -> dict[str, Any]:
    """Settings as the tables one would write them in."""
    plain: dict[str, Any] = msgspec.to_builtins(settings, builtin_types=(tuple,))
    tables = plain[_PLUGINS].pop("tables")
    return {**plain, _PLUGINS: {**plain[_PLUGINS], **tables}}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
