"""Settings: every wrong value is refused in words that lead to it, and the nearer source wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.config import OPTION_NAMES, Settings, changed, explicit, known_keys, load
from acp_proxy.errors import ConfigError

SECONDS = "expected a number of seconds, 0 or more"
COUNT = "expected a whole number above 0"

# One row per key of the contract: a value that is not the default, as TOML, and as it comes out.
CONTRACT: dict[str, tuple[object, str, object]] = {
    "bridge.mode": ("auto", '"off"', "off"),
    "bridge.ack_timeout": (1.0, "0.2", 0.2),
    "bridge.close_timeout": (10.0, "3", 3.0),
    "bridge.settle": (0.0, "1", 1.0),
    "bridge.load_settle": (0.0, "0.5", 0.5),
    "bridge.max_held": (32, "1", 1),
    "bridge.queue_boundary": ("each", '"merge"', "merge"),
    "bridge.batch": ("reject", '"split"', "split"),
    "bridge.drop_sse": (False, "true", True),
    "bridge.serve": ((), '["fs", "terminal"]', ("fs", "terminal")),
    "lifecycle.mode": ("observe", '"enforce"', "enforce"),
    "lifecycle.rules": ({}, '{ V23 = "strict" }', {"V23": "strict"}),
    "lifecycle.answer_grace": (1.0, "0.5", 0.5),
    "lifecycle.close_tools": (False, "true", True),
    "lifecycle.cancel_timeout": (0.0, "1", 1.0),
    "lifecycle.permission_timeout": (0.0, "1", 1.0),
    "lifecycle.turn_timeout": (0.0, "1", 1.0),
    "lifecycle.tool_timeout": (0.0, "1", 1.0),
    "lifecycle.extension_timeout": (0.0, "1", 1.0),
    "lifecycle.stall_after": (0.0, "1", 1.0),
    "lifecycle.stall_action": ((), '["cancel", "restart"]', ("cancel", "restart")),
    "permissions.rules": ((), '[{ decision = "ask" }]', ({"decision": "ask"},)),
    "prompts.busy": ("pass", '"queue"', "queue"),
    "prompts.idle_cancel": ("forward", '"swallow"', "swallow"),
    "inference.quiet_idle": (0.0, "1", 1.0),
    "inference.agent_initiated": ("ignore", '"unknown"', "unknown"),
    "inference.requires_action": ("blocked", '"any_wait"', "any_wait"),
    "inference.quiet_time": (30.0, "5", 5.0),
    "inference.end_markers": ((), '["_meta.endOfTurn=true"]', ("_meta.endOfTurn=true",)),
    "normalize.synonyms": (False, "true", True),
    "limits.message_bytes": (33554432, "1024", 1024),
    "agent.version": ("auto", "2", 2),
    "agent.profile": ("auto", '"none"', "none"),
    "agent.restart": ("never", '"idle"', "idle"),
    "agent.restart_limit": (3, "5", 5),
    "agent.restart_window": (60.0, "5", 5.0),
    "agent.restart_delay": (0.2, "1", 1.0),
    "agent.eof_grace": (5.0, "0", 0.0),
    "agent.term_grace": (3.0, "0.1", 0.1),
    "profiles.dir": (None, '"profiles"', "profiles"),
    "record.file": (None, '"r.jsonl"', "r.jsonl"),
    "findings.file": (None, '"f.jsonl"', "f.jsonl"),
    "state.path": (None, '"s.db"', "s.db"),
    "state.required": (True, "false", False),
    "log.level": ("warning", '"debug"', "debug"),
    "log.format": ("text", '"json"', "json"),
    "plugins.enabled": ((), '["transcript"]', ("transcript",)),
    "unstable": (False, "true", True),
}


def at(settings: Settings, key: str) -> Any:
    found: Any = settings
    for name in key.split("."):
        found = getattr(found, name)
    return found


def refused(sets: list[str], options: dict[str, object] | None = None, file: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(file, sets, options or {})
    return str(caught.value)


def test_the_keys_are_those_of_the_contract() -> None:
    assert list(known_keys()) == list(CONTRACT)


@pytest.mark.parametrize("key", CONTRACT)
def test_every_key_has_its_default_and_is_read_from_file_and_set(key: str, tmp_path: Path) -> None:
    default, written, value = CONTRACT[key]
    assert at(load(None, [], {}), key) == default
    file = tmp_path / "settings.toml"
    file.write_text(f"{key} = {written}\n")
    for settings in (load(file, [], {}), load(None, [f"{key}={written.strip(chr(34))}"], {})):
        assert at(settings, key) == value
        assert type(at(settings, key)) is type(value)
        told = {key: value}
        if isinstance(value, dict):
            told = {f"{key}.{name}": word for name, word in value.items()}
        assert changed(settings) == ({} if value == default else told)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bridge.mode=on", '--set: bridge.mode: expected "auto" or "off", got "on"'),
        ("bridge.mode=false", '--set: bridge.mode: expected "auto" or "off", got false'),
        ("bridge.ack_timeout=soon", f'--set: bridge.ack_timeout: {SECONDS}, got "soon"'),
        ('bridge.ack_timeout="1"', f'--set: bridge.ack_timeout: {SECONDS}, got "1"'),
        ("bridge.ack_timeout=-0.1", f"--set: bridge.ack_timeout: {SECONDS}, got -0.1"),
        ("bridge.ack_timeout=inf", f"--set: bridge.ack_timeout: {SECONDS}, got inf"),
        ("bridge.ack_timeout=nan", f"--set: bridge.ack_timeout: {SECONDS}, got nan"),
        ("bridge.ack_timeout=true", f"--set: bridge.ack_timeout: {SECONDS}, got true"),
        ("bridge.ack_timeout=", f'--set: bridge.ack_timeout: {SECONDS}, got ""'),
        (f"bridge.ack_timeout=1{'0' * 400}", f"--set: bridge.ack_timeout: {SECONDS}, got a huge number"),
        (f"bridge.max_held=-0x{'f' * 5000}", f'--set: bridge.max_held: {COUNT}, got "-0x{"f" * 37}…"'),
        (f"bridge.settle=0x{'f' * 5000}", f"--set: bridge.settle: {SECONDS}, got a huge number"),
        ("bridge.max_held=0", f"--set: bridge.max_held: {COUNT}, got 0"),
        ("bridge.max_held=1.0", f"--set: bridge.max_held: {COUNT}, got 1.0"),
        ("bridge.drop_sse=1", "--set: bridge.drop_sse: expected true or false, got 1"),
        ('bridge.serve=["shell"]', '--set: bridge.serve: expected a list of "fs" and "terminal", got a list'),
        ("bridge.serve=dns", '--set: bridge.serve: expected a list of "fs" and "terminal", got "dns"'),
        ("bridge.serve=fs,dns", '--set: bridge.serve: expected a list of "fs" and "terminal", got "fs,dns"'),
        (
            "lifecycle.stall_action=explode",
            '--set: lifecycle.stall_action: expected a list of "cancel" and "restart", got "explode"',
        ),
        ("permissions.rules=ask", '--set: permissions.rules: expected a list of tables, got "ask"'),
        ("permissions.rules=[1]", "--set: permissions.rules: expected a list of tables, got a list"),
        (
            "prompts.busy=drop",
            '--set: prompts.busy: expected "pass", "queue", "reject" or "steer", got "drop"',
        ),
        ("agent.restart=maybe", '--set: agent.restart: expected "never", "idle" or "always", got "maybe"'),
        ("bridge.batch=[]", '--set: bridge.batch: expected "reject" or "split", got a list'),
        ("bridge.batch={a=1}", '--set: bridge.batch: expected "reject" or "split", got a table'),
        ("limits.message_bytes=-1", f"--set: limits.message_bytes: {COUNT}, got -1"),
        ("agent.version=3", '--set: agent.version: expected "auto", 1 or 2, got 3'),
        ("agent.version=true", '--set: agent.version: expected "auto", 1 or 2, got true'),
        ("agent.version=1.0", '--set: agent.version: expected "auto", 1 or 2, got 1.0'),
        ("inference.end_markers=a", '--set: inference.end_markers: expected a list of strings, got "a"'),
        ("inference.end_markers=[1]", "--set: inference.end_markers: expected a list of strings, got a list"),
        ("record.file=", '--set: record.file: expected the path of a file, got ""'),
        (
            "log.level=loud",
            '--set: log.level: expected "debug", "info", "warning" or "error", got "loud"',
        ),
        (
            "lifecycle.mode=repair",
            '--set: lifecycle.mode: expected "observe", "enforce" or "strict", got "repair"',
        ),
        (
            "lifecycle.rules.V48=off",
            "--set: lifecycle.rules: unknown rule V48; rules are V01 to V47",
        ),
        (
            "lifecycle.rules.V23=deny",
            '--set: lifecycle.rules.V23: expected "observe", "enforce", "strict" or "off", got "deny"',
        ),
        (
            "plugins.enabled=transcript",
            '--set: plugins.enabled: expected a list of strings, got "transcript"',
        ),
        (
            "plugins.transcript=1",
            "--set: plugins.transcript: expected a table of the plugin's settings, got 1",
        ),
        ("bridge=1", "--set: bridge: expected a table, got 1"),
        ("bridge.mod=off", "--set: unknown key bridge.mod; did you mean bridge.mode?"),
        ("bridge.max_hold=1", "--set: unknown key bridge.max_hold; did you mean bridge.max_held?"),
        ("ack_timeout=1", "--set: unknown key ack_timeout; did you mean bridge.ack_timeout?"),
        ("brige={}", "--set: unknown key brige; did you mean bridge?"),
        ("brige={mode='off'}", "--set: unknown key brige.mode; did you mean bridge.mode?"),
        ("bridge.mode.x=1", '--set: bridge.mode: expected "auto" or "off", got a table'),
        ("garden.gate=x", "--set: unknown key garden.gate"),
        ("state.path=", '--set: state.path: expected the path of a file, got ""'),
        ("state.required=1", "--set: state.required: expected true or false, got 1"),
        ("wxyz=1", "--set: unknown key wxyz"),
        ("zz\x1b[31m=1", "--set: unknown key zz\\x1b[31m"),
        ("bridge.mode", '--set: expected KEY=VALUE, got "bridge.mode"'),
        ("=1", '--set: expected KEY=VALUE, got "=1"'),
        ("bridge..mode=off", '--set: expected KEY=VALUE, got "bridge..mode=off"'),
    ],
)
def test_a_wrong_set_is_refused_with_source_key_and_expected_type(text: str, message: str) -> None:
    assert refused([text]) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bridge.mode = 'on'", 'bridge.mode: expected "auto" or "off", got "on"'),
        ("[bridge]\nmod = 'off'", "unknown key bridge.mod; did you mean bridge.mode?"),
        ("[brige]", "unknown key brige; did you mean bridge?"),
        ("bridge = 1", "bridge: expected a table, got 1"),
        ("record.file = 1", "record.file: expected the path of a file, got 1"),
        (
            "log.level = 2020-01-01",
            'log.level: expected "debug", "info", "warning" or "error", got 2020-01-01',
        ),
        ("[lifecycle]\nmode = 'never'", 'lifecycle.mode: expected "observe", "enforce" or "strict", '),
        ("[lifecycle.rules]\nv23 = 'off'", "lifecycle.rules: unknown rule v23; "),
        ("[plugins]\ntranscript = 1", "plugins.transcript: expected a table of the plugin's settings, got 1"),
        ("a = 1\n[bridge\n", "not valid TOML: "),
        ("x = " + "[" * 5000, "not valid TOML: nested too deeply"),
    ],
)
def test_a_wrong_file_is_refused_and_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    assert refused([], file=file).startswith(f"{file}: {message}")


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("unstable = true\nbridge = \n")
    assert "line 2" in refused([], file=file)
    file.write_bytes(b"unstable = true\n# \xff\n")
    assert refused([], file=file) == f"{file}: not UTF-8 text (at line 2)"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    assert refused([], file=missing) == f"{missing}: cannot be read: No such file or directory"
    assert refused([], file=tmp_path) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.parametrize("key", OPTION_NAMES)
def test_a_wrong_option_is_called_by_its_name(key: str) -> None:
    assert refused([], {key: 1}) == f"{OPTION_NAMES[key]}: {key}: expected {known_keys()[key]}, got 1"


def test_set_beats_option_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("log.level = 'error'\nlog.format = 'json'\n[bridge]\nmode = 'off'\nsettle = 1\n")
    settings = load(
        file, ["log.level=debug", "log.level=info"], {"log.level": "warning", "bridge.mode": "auto"}
    )
    assert settings.log.level == "info"  # the last --set
    assert settings.bridge.mode == "auto"  # the option
    assert settings.log.format == "json"  # the file
    assert settings.bridge.settle == 1.0
    assert settings.bridge.close_timeout == 10.0  # the default


def test_an_overridden_value_is_still_checked(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("bridge.mode = 'on'")
    assert refused(["bridge.mode=off"], file=file).startswith(str(file))


def test_an_option_that_was_not_given_is_none() -> None:
    assert load(None, [], dict.fromkeys(OPTION_NAMES)) == Settings()


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("record.file=1.0", "record.file", "1.0"),
        ('record.file="quoted"', "record.file", '"quoted"'),
        ("record.file=a=b.jsonl", "record.file", "a=b.jsonl"),
        ("log.level=info", "log.level", "info"),
        ('log.level="info"', "log.level", "info"),
        ("agent.version=1", "agent.version", 1),
        ('agent.version="1"', "agent.version", 1),
        ("agent.version=auto", "agent.version", "auto"),
        ("bridge={mode='off'}", "bridge.mode", "off"),
        (" bridge.mode =off", "bridge.mode", "off"),
        ('inference.end_markers=["a", "b"]', "inference.end_markers", ("a", "b")),
    ],
)
def test_set_takes_toml_values_and_bare_text(text: str, key: str, value: object) -> None:
    assert at(load(None, [text], {}), key) == value


def test_a_line_feed_in_a_set_sets_no_second_key() -> None:
    assert load(None, ["plugins.a.b=1\nunstable = true"], {}).plugins.tables == {
        "a": {"b": "1\nunstable = true"}
    }


def test_plugins_have_tables_of_their_own_which_are_merged(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        "[plugins]\nenabled = ['transcript', 'other']\n[plugins.transcript]\npath = 'a'\n"
        "[plugins.transcript.style]\nwidth = 80\ncolor = true\n[plugins.other]\n"
    )
    settings = load(file, ["plugins.transcript.style.width=100", "plugins.transcript.unstable=false"], {})
    assert settings.plugins.enabled == ("transcript", "other")
    assert settings.plugins.tables == {
        "transcript": {"path": "a", "style": {"width": 100, "color": True}, "unstable": False},
        "other": {},
    }
    assert changed(settings) == {
        "plugins.enabled": ("transcript", "other"),
        "plugins.transcript.path": "a",
        "plugins.transcript.style.width": 100,
        "plugins.transcript.style.color": True,
        "plugins.transcript.unstable": False,
    }


def test_settings_cannot_be_changed() -> None:
    bridge: Any = Settings().bridge
    with pytest.raises(AttributeError):
        bridge.mode = "off"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"\xef\xbb\xbfunstable = true\r\n")
    assert load(file, [], {}).unstable is True


@given(st.text(max_size=40))
def test_any_set_is_taken_or_refused_in_one_line(text: str) -> None:
    for candidate in (text, f"bridge.ack_timeout={text}", f"record.file={text}", f"plugins.{text}"):
        said = "--set: "
        try:
            load(None, [candidate], {})
        except ConfigError as exc:
            said = str(exc)
        assert said.startswith("--set: ")
        assert "\n" not in said


def test_a_run_without_settings_imports_no_parser() -> None:
    code = (
        "import sys; from acp_proxy.config import load;"
        "load(None, ['bridge.mode=off'], {'log.level': 'info'});"
        "print(sorted({'tomllib', 'difflib', 'trio', 'click', 'logging'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"


def test_what_was_given_is_known_even_where_it_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[bridge]\nsettle = 0\n[lifecycle.rules]\nV01 = "off"')
    settings = load(file, ["inference.agent_initiated=ignore"], {"log.level": "warning", "record.file": None})
    assert explicit(settings) == {
        "bridge.settle",
        "lifecycle.rules",
        "lifecycle.rules.V01",
        "inference.agent_initiated",
        "log.level",
    }
    assert explicit(Settings()) == explicit(load(None, [], {})) == frozenset()


def test_where_a_value_came_from_is_no_part_of_the_settings() -> None:
    settings = load(None, ["bridge.settle=0"], {})
    assert settings == Settings()
    assert changed(settings) == {}
