"""Many deadlines, one next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.filters.alarms import Alarms


def test_the_earliest_is_next_and_rings_once() -> None:
    alarms = Alarms()
    assert alarms.next() is None
    assert alarms.ring(1e9) == []
    alarms.set("b", 2.0)
    alarms.set("a", 1.0)
    assert alarms.next() == 1.0
    assert alarms.ring(0.5) == []
    assert alarms.ring(2.0) == ["a", "b"]
    assert alarms.next() is None


def test_setting_again_replaces_and_dropping_silences() -> None:
    alarms = Alarms()
    alarms.set("a", 1.0)
    alarms.set("a", 5.0)
    alarms.set("b", 3.0)
    alarms.set("b", 2.0)
    assert alarms.next() == 2.0
    alarms.drop("b")
    alarms.drop("never set")
    assert alarms.next() == 5.0
    assert alarms.ring(4.0) == []
    assert alarms.ring(5.0) == ["a"]


operations = st.lists(st.tuples(st.sampled_from("sdr"), st.integers(0, 3), st.integers(0, 20)), max_size=40)


@given(operations)
def test_it_does_what_a_plain_dictionary_does(script: list[tuple[str, int, int]]) -> None:
    alarms, plain = Alarms(), dict[int, float]()
    for what, key, at in script:
        if what == "s":
            alarms.set(key, at)
            plain[key] = at
        elif what == "d":
            alarms.drop(key)
            plain.pop(key, None)
        else:
            due = sorted(found for found, when in plain.items() if when <= at)
            rung = alarms.ring(at)
            assert sorted(int(str(each)) for each in rung) == due
            assert [plain[int(str(each))] for each in rung] == sorted(plain[each] for each in due)
            for each in due:
                del plain[each]
        assert alarms.next() == (min(plain.values()) if plain else None)
