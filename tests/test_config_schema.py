"""The schema of the settings file says what `config.load` does, key by key."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from acp_proxy.config import Settings, known_keys, load
from acp_proxy.config_schema import DIALECT, MEANINGS, PERMISSION_RULE, schema
from acp_proxy.errors import ConfigError
from acp_proxy.policy.permission_rules import DECISIONS, MATCH_KEYS

DEPLOYED = Path(__file__).resolve().parents[1] / "deploy" / "acp-proxy.toml"


def keys(body: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Every dotted key that the schema names, with what it says of it."""
    found: dict[str, dict[str, Any]] = {}
    for name, inner in body["properties"].items():
        if "properties" in inner:
            found |= keys(inner, f"{prefix}{name}.")
        else:
            found[prefix + name] = inner
    return found


def fits(text: str) -> bool:
    return Draft202012Validator(schema()).is_valid(tomllib.loads(text))


def loads(text: str, tmp_path: Path) -> bool:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    try:
        load(file, [], {})
    except ConfigError:
        return False
    return True


def test_it_is_a_schema_that_json_can_carry() -> None:
    body = schema()
    Draft202012Validator.check_schema(body)
    assert body["$schema"] == DIALECT
    assert json.loads(json.dumps(body)) == json.loads(json.dumps(body, allow_nan=False))
    assert "$ref" not in json.dumps(body)


def test_every_key_is_in_it_with_its_meaning_and_default() -> None:
    found = keys(schema())
    assert list(found) == list(known_keys())
    assert set(known_keys()) <= set(MEANINGS)
    settings = Settings()
    for key, body in found.items():
        assert body["description"].startswith(MEANINGS[key])
        value: Any = settings
        for name in key.split("."):
            value = getattr(value, name)
        assert body.get("default") == value


def test_the_deployed_file_fits_with_every_key_in_force() -> None:
    text = DEPLOYED.read_text()
    assert fits(text)
    assert fits(re.sub(r"(?m)^#([a-z_]+ = )", r"\1", text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unstable = true",
        "unstable = 1",
        "unstabel = true",
        "[bridge]",
        "[brige]",
        "bridge = 1",
        "[bridge]\nmode = 'off'",
        "[bridge]\nmode = 'on'",
        "[bridge]\nack_timeout = 0",
        "[bridge]\nack_timeout = 0.5",
        "[bridge]\nack_timeout = -1",
        "[bridge]\nack_timeout = '1'",
        "[bridge]\nmax_held = 1",
        "[bridge]\nmax_held = 0",
        "[bridge]\nmax_held = 1.5",
        "[bridge]\nserve = ['fs']",
        "[bridge]\nserve = ['shell']",
        "[bridge]\nserve = 'fs'",
        "[agent]\nversion = 2",
        "[agent]\nversion = '2'",
        "[agent]\nversion = 3",
        "[record]\nfile = 'x'",
        "[record]\nfile = ''",
        "[lifecycle.rules]\nV01 = 'off'",
        "[lifecycle.rules]\nV99 = 'off'",
        "[lifecycle.rules]\nV01 = 'none'",
        "[plugins]\nenabled = ['a']",
        "[plugins]\na = 1",
        "[plugins.a]\nb = {c = 1}",
    ],
)
def test_schema_and_loader_agree(text: str, tmp_path: Path) -> None:
    assert fits(text) is loads(text, tmp_path)


def test_permission_rules_are_those_of_the_policy() -> None:
    assert set(PERMISSION_RULE["properties"]) == {*MATCH_KEYS, "decision"}
    assert tuple(PERMISSION_RULE["properties"]["decision"]["enum"]) == DECISIONS
    assert fits("[[permissions.rules]]\ndecision = 'ask'\npath = ['/a/*', '/b/*']")
    assert not fits("[[permissions.rules]]\npath = '/a'")
    assert not fits("[[permissions.rules]]\ndecision = 'allow'")
    assert not fits("[[permissions.rules]]\ndecision = 'ask'\nfile = '/a'")
