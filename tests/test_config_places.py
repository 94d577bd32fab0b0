"""Where in a TOML file a key stands."""

from __future__ import annotations

import pytest

from acp_proxy.config_places import place

TEXT = """\ufeff# bridge.mode = 1
unstable = true
bridge.settle = 1
[bridge] # the bridge
  mode="off"
"ack_timeout" = 2
[ lifecycle . 'rules' ]
V01 = "off"
[plugins.transcript]
file = "x"
[[permissions.rules]]
decision = "ask"
[agent]
inner.deep = 1
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("unstable", 2),
        ("bridge.settle", 3),
        ("bridge", 4),
        ("bridge.mode", 5),
        ("bridge.ack_timeout", 6),
        ("lifecycle.rules", 7),
        ("lifecycle.rules.V01", 8),
        ("lifecycle.rules.V02", 7),
        ("lifecycle", 7),
        ("plugins.transcript", 9),
        ("permissions.rules", 11),
        ("agent.inner.deep", 14),
        ("agent.other", 13),
        ("elsewhere", None),
        ("elsewhere.key", None),
    ],
)
def test_a_key_is_found_or_else_what_is_around_it(key: str, line: int | None) -> None:
    assert place(TEXT, key) == line


def test_the_first_of_several_counts() -> None:
    assert place("[a]\nx = 1\n[b]\n[a]\nx = 2", "a.x") == 2
