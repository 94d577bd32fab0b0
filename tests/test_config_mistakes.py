"""`config.mistakes`: all that is wrong in a settings file, in the order of its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.config import load, mistakes
from acp_proxy.errors import ConfigError

WRONG = """unstabel = true
[bridge]
mode = "on"
ack_timeout = -1
settle = 2
[lifecycle.rules]
V12 = "of"
V01 = "strict"
V99 = "off"
[brige]
[plugins]
transcript = 3
[log]
level.x = 3
"""


def said(path: Path) -> list[str]:
    return [text.replace(str(path), "f") for text in mistakes(path)]


def test_each_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG)
    assert said(file) == [
        "f:1: unknown key unstabel; did you mean unstable?",
        'f:3: bridge.mode: expected "auto" or "off", got "on"',
        "f:4: bridge.ack_timeout: expected a number of seconds, 0 or more, got -1",
        'f:7: lifecycle.rules.V12: expected "observe", "enforce", "strict" or "off", got "of"',
        "f:9: lifecycle.rules: unknown rule V99; rules are V01 to V47",
        "f:10: unknown key brige; did you mean bridge?",
        "f:12: plugins.transcript: expected a table of the plugin's settings, got 3",
        'f:14: log.level: expected "debug", "info", "warning" or "error", got a table',
    ]


def test_what_is_no_toml_at_all_is_one_mistake(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("[bridge\n")
    [text] = said(file)
    assert text.startswith("f: not valid TOML: ")
    file.write_bytes(b"a = '\xff'")
    assert said(file) == ["f: not UTF-8 text (at line 1)"]
    assert said(tmp_path / "none") == ["f: cannot be read: No such file or directory"]


@pytest.mark.parametrize("text", ["", "[bridge]\n", "\ufeffunstable = true", "[plugins.any]\nthing = 1\n"])
def test_a_file_without_mistakes_has_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "right.toml"
    file.write_text(text)
    assert mistakes(file) == []


@pytest.mark.parametrize("line", WRONG.splitlines())
def test_load_refuses_what_is_a_mistake_and_nothing_else(line: str, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    key = line.partition(" =")[0]
    section = {"mode": "bridge", "ack_timeout": "bridge", "settle": "bridge", "transcript": "plugins"}
    table = section.get(key, "lifecycle.rules" if key.startswith("V") else "log" if "level" in key else "")
    file.write_text(f"[{table}]\n{line}\n" if table else f"{line}\n")
    refused = False
    try:
        load(file, [], {})
    except ConfigError:
        refused = True
    assert bool(mistakes(file)) is refused


def test_keys_without_end_are_an_unknown_key(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text(".".join("a" * 3000) + " = 1\n")
    with pytest.raises(ConfigError, match=r"unknown key a\.a\.a"):
        load(file, [], {})
