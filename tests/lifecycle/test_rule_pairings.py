"""Which rules mean something between which versions: each is found where it applies, and nowhere else."""

from __future__ import annotations

import pytest

from acp_proxy.inference.findings import SEVERITIES
from lifecycle_scripts import BREACHES, NEAR_MISSES, SOUND_V1, SOUND_V2, opened, play, rules_of

RULES = {f"V{number:02}" for number in range(1, 48)}
# Needs a key of the configuration, and has its own tests.
ELSEWHERE = {"V46"}
CASES = [(rule, pairing) for rule, scripts in BREACHES.items() for pairing in scripts]
APPLIES = {
    pairing: {rule for rule, scripts in BREACHES.items() if pairing in scripts}
    for pairing in ("11", "21", "22")
}
# What else a script shows, by its nature: the rule is broken on the way.
BESIDE = {"V41", "V47"}


def test_every_rule_of_the_catalogue_has_a_script() -> None:
    assert set(BREACHES) == RULES - ELSEWHERE
    assert set(NEAR_MISSES) == RULES - ELSEWHERE
    assert set(SEVERITIES) >= RULES


@pytest.mark.parametrize(("rule", "pairing"), CASES)
def test_a_breach_is_found_where_the_rule_applies(rule: str, pairing: str) -> None:
    said = play(opened(pairing), BREACHES[rule][pairing])
    assert rule in rules_of(said)
    finding = next(one for one in said.findings if one.rule == rule)
    assert finding.severity == SEVERITIES[rule]
    assert finding.action in (("noted",) if pairing != "21" else ("noted", "repaired", "refused"))


@pytest.mark.parametrize(("rule", "pairing"), CASES)
def test_nothing_is_found_that_means_nothing_between_these_versions(rule: str, pairing: str) -> None:
    found = rules_of(play(opened(pairing), BREACHES[rule][pairing]))
    assert found <= APPLIES[pairing]
    assert found <= {rule} | BESIDE


@pytest.mark.parametrize("rule", sorted(NEAR_MISSES))
@pytest.mark.parametrize("mode", ["observe", "enforce", "strict"])
def test_what_only_looks_like_a_breach_is_none(rule: str, mode: str) -> None:
    assert rules_of(play(opened("22", lifecycle=mode), NEAR_MISSES[rule])) == set()


@pytest.mark.parametrize("mode", ["observe", "enforce", "strict"])
def test_a_sound_conversation_is_left_alone(mode: str) -> None:
    for pairing, script in (("22", SOUND_V2), ("11", SOUND_V1)):
        said = play(opened(pairing, lifecycle=mode), script)
        assert said.findings == []
        assert said.client == [body for who, body in script if who == "agent"]
        assert said.agent == [body for who, body in script if who == "client"]


@pytest.mark.parametrize(("rule", "pairing"), CASES)
def test_a_rule_that_is_off_is_neither_found_nor_repaired(rule: str, pairing: str) -> None:
    said = play(opened(pairing, lifecycle="enforce", rules={rule: "off"}), BREACHES[rule][pairing])
    # Across a bridge the translator keeps to the protocol by itself, and says so.
    assert rule not in rules_of(said) or pairing == "21"


@pytest.mark.parametrize(("rule", "pairing"), [case for case in CASES if case[1] != "21"])
def test_under_observe_everything_passes_as_it_was_said(rule: str, pairing: str) -> None:
    script = BREACHES[rule][pairing]
    said = play(opened(pairing), script)
    if rule in ("V32", "V45"):  # these have one fixed answer (lifecycle §2.5)
        return
    assert said.client == [body for who, body in script if who == "agent"]
    assert said.agent == [body for who, body in script if who == "client"]
