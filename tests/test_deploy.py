"""What is deployed says what the code does: the commented settings, and the container file."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from acp_proxy import config
from acp_proxy.config import Settings, changed, known_keys

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
SETTINGS = DEPLOY / "acp-proxy.toml"
# A commented-out key; prose has a blank after the number sign.
KEY = re.compile(r"#([a-z_]+) = .+")


def uncommented() -> str:
    return "\n".join(KEY.sub(lambda found: found[0][1:], line) for line in SETTINGS.read_text().splitlines())


def shown() -> dict[str, str]:
    """Each key with the comment above it."""
    found: dict[str, str] = {}
    section = ""
    comment: list[str] = []
    for line in SETTINGS.read_text().splitlines():
        if line.startswith("["):
            section = f"{line.strip('[]')}."
        elif key := KEY.fullmatch(line):
            found[section + key[1]] = "\n".join(comment)
        elif line.startswith("#"):
            comment.append(line)
            continue
        comment = []
    return found


def without_default() -> set[str]:
    """The keys whose default is that there is none, which TOML cannot say."""
    settings = Settings()
    return {key for key in known_keys() if _value(settings, key) is None}


def _value(settings: Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def test_as_it_is_the_file_changes_nothing() -> None:
    assert config.load(SETTINGS, [], {}) == Settings()


def test_every_key_is_shown_with_its_default(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(uncommented())
    assert set(changed(config.load(file, [], {}))) == without_default()


def test_there_is_no_key_more_or_less() -> None:
    assert sorted(shown()) == sorted(known_keys())
    assert uncommented().count(" = ") == SETTINGS.read_text().count(" = ")


def test_numbers_are_written_as_their_type_is() -> None:
    """0 for a time would do, but a reader would take it for whole seconds."""
    table = tomllib.loads(uncommented())
    for key in set(known_keys()) - without_default():
        value: object = table
        for name in key.split("."):
            assert isinstance(value, dict)
            value = value[name]
        default = _value(Settings(), key)
        assert type(value) is (list if isinstance(default, tuple) else type(default)), key


@pytest.mark.parametrize("key", sorted(known_keys()))
def test_every_key_is_explained_with_its_choices(key: str) -> None:
    comment = shown()[key]
    assert len(comment) > 10
    words = re.findall(r'"(\w+)"', known_keys()[key])
    assert [word for word in words if f'"{word}"' not in comment] == []
    if key in without_default():
        assert "example" in comment.lower()


def instructions() -> list[tuple[str, str]]:
    """The container file's instructions, continued lines joined."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in pairs]


def test_the_container_runs_the_command_itself_and_not_as_root() -> None:
    found = instructions()
    last = dict(found)
    assert found[0] == ("FROM", "python:3.12-slim")
    assert json.loads(last["ENTRYPOINT"]) == ["acp-proxy"]
    assert json.loads(last["CMD"]) == ["--help"]
    user, _, group = last["USER"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert f"--uid {user} " in last["RUN"]
    order = [name for name, _ in found]
    assert order.index("USER") > order.index("RUN")
    assert order.count("USER") == 1


def test_the_container_holds_the_wheel_alone() -> None:
    copied = [rest for name, rest in instructions() if name in ("COPY", "ADD")]
    assert copied == ["dist/*.whl /tmp/wheels/"]
