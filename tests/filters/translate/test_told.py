"""What the client has been told: the config options it always gets in full, and when a prompt waits."""

from __future__ import annotations

from typing import Any

from acp_proxy.filters.translate.told import ConfigView, HeldPrompt, Settling, ToldSession, Turn

MODEL = {
    "id": "model",
    "name": "Model",
    "type": "select",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
}
MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}


def view(**told: Any) -> ConfigView:
    config = ConfigView()
    config.learn(told)
    return config


def values(config: ConfigView) -> dict[str, Any]:
    return {option["configId"]: option["currentValue"] for option in config.full() or ()}


def test_nothing_told_is_no_list_and_an_empty_list_is_one() -> None:
    assert view().full() is None
    assert view(configOptions=None, modes=None).full() is None
    assert view(configOptions=[]).full() == []


def test_modes_come_last_as_an_option_made_up() -> None:
    config = view(configOptions=[MODEL], modes=MODES)
    assert values(config) == {"model": "a", "mode": "ask"}
    assert config.is_made_up("mode")
    assert not config.is_made_up("model")


def test_a_taken_id_is_avoided() -> None:
    config = view(configOptions=[{**MODEL, "id": "mode", "category": "other"}], modes=MODES)
    assert values(config) == {"mode": "a", "acp-proxy-mode": "ask"}
    assert config.is_made_up("acp-proxy-mode")
    assert not config.is_made_up("mode")


def test_an_option_of_category_mode_is_the_mode() -> None:
    config = view(configOptions=[{**MODEL, "category": "mode"}], modes=MODES)
    assert values(config) == {"model": "a"}
    assert config.set_mode("b")
    assert values(config) == {"model": "b"}
    assert not config.set_mode("b")


def test_setting_values() -> None:
    config = view(configOptions=[MODEL], modes=MODES)
    config.set_value("model", "b")
    config.set_value("mode", "code")
    config.set_value("unheard-of", "x")
    assert values(config) == {"model": "b", "mode": "code"}
    view().set_value("model", "b")


def test_setting_a_mode_says_whether_anything_changed() -> None:
    config = view(modes=MODES)
    assert not config.set_mode("ask")
    assert config.set_mode("code")
    assert not view().set_mode("ask")


def test_what_is_learned_later_replaces_its_own_part_only() -> None:
    config = view(configOptions=[MODEL], modes=MODES)
    config.learn({"configOptions": []})
    assert values(config) == {"mode": "ask"}
    config.learn({"modes": {**MODES, "currentModeId": "code"}})
    assert values(config) == {"mode": "code"}
    config.learn({"configOptions": None, "modes": "?"})
    assert values(config) == {"mode": "code"}


def test_modes_without_a_usable_mode_make_no_option() -> None:
    assert view(modes={"currentModeId": "x", "availableModes": []}).full() is None


def test_when_a_prompt_has_to_wait() -> None:
    told = ToldSession("s", "0")
    assert not told.busy
    told.held.append(HeldPrompt(1, {}))
    assert told.busy
    told.held.clear()
    told.turn = Turn(1, 1, [])
    assert told.busy
    told.turn = None
    told.settling = Settling([], 0.5, 10.0)
    assert told.busy
    assert told.settling.latest == 12.0
