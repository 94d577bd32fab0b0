"""Profiles as data: ranges of versions, which profile wins, and mistakes that are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.errors import ConfigError
from acp_proxy.policy import profiles
from acp_proxy.policy.profiles import Profile, Versions, find, read


def profile(name: str = "p", versions: str = "", *, is_user: bool = False, more: str = "") -> Profile:
    return read(name, f'agent = "bot"\nversions = "{versions}"\n{more}', f"{name}.toml", is_user=is_user)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("", ["", "1", "dev", "0.0.1"], []),
        (
            ">=0.40,<1",
            ["0.40", "0.40.0", "0.99.7", "v0.41", "0.49.0-beta.1"],
            ["0.39.9", "1", "1.0.0", "dev", ""],
        ),
        (">1,<=2.1", ["1.0.1", "2.1", "2.1.0"], ["1", "1.0", "2.1.1"]),
        ("==1.2", ["1.2", "1.2.0", " v1.2 "], ["1.2.1", "1.20", "12"]),
        ("<10", ["9", "2.30"], ["10", "11"]),
    ],
)
def test_a_version_lies_within_its_bounds(text: str, inside: list[str], outside: list[str]) -> None:
    versions = Versions(text)
    assert [one for one in inside if not versions.hold(one)] == []
    assert [one for one in outside if versions.hold(one)] == []


@pytest.mark.parametrize("text", ["1", "=>1", ">=", ">=1,", ">=1 <2", "~=1", ">=1.x", ">=-1"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^p: versions: "):
        read("p", f"agent = 'bot'\nversions = '{text}'", "p", is_user=True)


@given(st.lists(st.integers(0, 999_999_998), min_size=1, max_size=4))
def test_numbers_are_compared_as_numbers(parts: list[int]) -> None:
    here = ".".join(map(str, parts))
    after = ".".join(map(str, [*parts[:-1], parts[-1] + 1]))
    assert Versions(f"=={here}").hold(here)
    assert Versions(f"<{after}").hold(here)
    assert not Versions(f">{here}").hold(here)


@pytest.mark.parametrize(
    ("narrow", "broad"),
    [
        (">=1,<2", ">=1,<3"),
        ("==1.2", ">=1.2,<1.3"),
        (">=1,<2", ">=1"),
        (">=2", ">=1"),
        (">=1", ""),
        ("<2", ""),
        ("<2", ">=1"),
    ],
)
def test_the_narrowest_range_wins(narrow: str, broad: str) -> None:
    one, other = profile("a", broad), profile("b", narrow)
    version = "2.5" if narrow == ">=2" else "1.2"
    assert find([one, other], "bot", version) is find([other, one], "bot", version) is other


def test_the_user_s_profile_wins_over_a_narrower_one_of_ours() -> None:
    ours, users = profile("a", "==1"), profile("b", is_user=True)
    assert find([ours, users], "bot", "1") is users


def test_a_profile_is_for_one_name_exactly() -> None:
    assert find([profile()], "bot", "1") is not None
    for name in ("Bot", "bot2", "", "@x/bot"):
        assert find([profile()], name, "1") is None


def test_settings_have_the_names_of_the_configuration() -> None:
    text = """
    bridge.settle = 0.1
    bridge.load_settle = 1
    prompts.idle_cancel = "swallow"
    normalize.synonyms = true
    false_findings = ["V34", "V12"]
    [inference]
    agent_initiated = "unknown"
    requires_action = "any_wait"
    quiet_time = 3
    end_markers = ["_x/end", "_meta.end=yes"]
    [when_named]
    bridge.settle = 2
    false_findings = ["V15"]
    [[when_named.hints]]
    mark = "_x/busy"
    state = "running"
    """
    found = profile(more=text)
    assert found.always.settings == {
        "bridge.settle": 0.1,
        "bridge.load_settle": 1.0,
        "prompts.idle_cancel": "swallow",
        "normalize.synonyms": True,
        "inference.agent_initiated": "unknown",
        "inference.requires_action": "any_wait",
        "inference.quiet_time": 3.0,
        "inference.end_markers": ("_x/end", "_meta.end=yes"),
    }
    assert set(found.always.settings) == set(profiles.SETTINGS)
    assert (found.always.hints, found.always.false_findings) == ((), {"V34", "V12"})
    named = found.by_name
    assert named.settings == {**found.always.settings, "bridge.settle": 2.0}
    assert [(hint.mark, hint.state, hint.error) for hint in named.hints] == [("_x/busy", "running", None)]
    assert named.false_findings == {"V34", "V12", "V15"}


def test_what_was_configured_is_left_out() -> None:
    found = profile(more='false_findings = ["V34", "V15"]\nbridge.settle = 1\nbridge.load_settle = 2')
    left = found.always.beside(frozenset({"bridge.settle", "lifecycle.rules.V34", "agent.profile"}))
    assert (left.settings, left.false_findings) == ({"bridge.load_settle": 2.0}, {"V15"})


HINT = "hints = [{{mark = '_x', state = 'running', {}}}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent =", "not valid TOML: "),
        ("", "agent: expected the name that the agent gives itself"),
        ("agent = 1", "agent: expected the name that the agent gives itself"),
        ("agent = ''", "agent: expected the name that the agent gives itself"),
        ("versions = 1", "versions: expected bounds such as >=0.40,<1"),
        ("versions = 'new'", "versions: expected bounds such as >=0.40,<1"),
        ("colour = 1", "colour: unknown key; known are agent, versions, when_named, hints, "),
        ("bridge.mode = 'off'", "bridge.mode: unknown key; known are "),
        ("bridge = 1", "bridge: unknown key; known are "),
        ("bridge.settle = {a = 1}", "bridge.settle: expected a number of seconds, 0 or more"),
        ("bridge.settle = -1", "bridge.settle: expected a number of seconds, 0 or more"),
        ("bridge.settle = inf", "bridge.settle: expected a number of seconds, 0 or more"),
        ("bridge.settle = nan", "bridge.settle: expected a number of seconds, 0 or more"),
        ("bridge.settle = true", "bridge.settle: expected a number of seconds, 0 or more"),
        (
            "inference.agent_initiated = 'on'",
            "inference.agent_initiated: expected ignore or infer or unknown",
        ),
        ("inference.end_markers = 'x'", "inference.end_markers: expected a list of strings"),
        ("inference.end_markers = [1]", "inference.end_markers: expected a list of strings"),
        ("prompts.idle_cancel = []", "prompts.idle_cancel: expected forward or swallow"),
        ("normalize.synonyms = 1", "normalize.synonyms: expected true or false"),
        ("false_findings = 'V34'", "false_findings: expected a list of rules such as V34"),
        ("false_findings = ['X34']", "false_findings: expected a list of rules such as V34"),
        ("when_named = 1", "when_named: expected a table"),
        ("when_named.agent = 'bot'", "when_named.agent: unknown key; known are "),
        (
            "when_named.bridge.settle = ''",
            "when_named.bridge.settle: expected a number of seconds, 0 or more",
        ),
        ("hints = 1", "hints: expected a list of tables"),
        ("hints = [1]", "hints.0: expected a table"),
        ("hints = [{}]", "hints.0.mark: expected a notification's method or a path in _meta"),
        ("hints = [{mark = '_x'}]", "hints.0.state: expected one of error, idle, requires_action, running"),
        (HINT.format("stat = 1"), "hints.0.stat: unknown key; known are mark, state, error"),
        (HINT.format("error = 'x'"), "hints.0.error: expected a text, and only with the state error"),
        ("when_named.hints = [{mark = ''}]", "when_named.hints.0.mark: expected a notification's method "),
    ],
)
def test_a_mistake_is_told_with_file_and_key(text: str, said: str) -> None:
    whole = text if text.startswith("agent") or not text else f"agent = 'bot'\n{text}"
    with pytest.raises(ConfigError) as caught:
        read("p", whole, "dir/p.toml", is_user=True)
    assert str(caught.value).startswith(f"dir/p.toml: {said}")


def test_a_profile_nested_too_deeply_is_a_mistake_like_any_other() -> None:
    with pytest.raises(ConfigError, match=r"^p: not valid TOML: "):
        read("p", f"a = {'[' * 100_000}", "p", is_user=True)
