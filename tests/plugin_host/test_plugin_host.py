"""From the settings to plugins at work: what is wrong is said before anything starts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.errors import ConfigError
from acp_proxy.inference.findings import Finding
from acp_proxy.plugin import StateReport
from acp_proxy.plugin_host import discovery, host
from plugin_installs import install
from relay_driver import Driver, call, note

PATIENCE = 20.0

MODULE = """
    import threading
    from acp_proxy.plugin import ConfigError, Filter, Plugin, changed

    LOG = []
    print("imported")

    class Quiet(Plugin):
        '''Does nothing at all.

        And says so at length.
        '''

        def __init__(self, settings):
            super().__init__(settings)
            LOG.append(("quiet", dict(settings)))

        def close(self):
            LOG.append("closed")

    class Tag(Filter):
        def __init__(self, tag):
            self.tag = tag

        def forth(self, message, at):
            return changed(message, params={**message.params, "tags": message.params.get("tags", "") + self.tag})

    class First(Plugin):
        def filters(self):
            return (Tag("a"), Tag("b"))

    class Second(Plugin):
        name = "second"
        on_failure = "refuse"

        def filters(self):
            return [Tag("c")]

    class Talks(Plugin):
        def __init__(self, settings):
            print("constructed")

        def filters(self):
            print("asked")
            return []

    class Wants(Plugin):
        def __init__(self, settings):
            settings.pop("level", None)
            settings.get("deep", {}).clear()
            raise ConfigError("level: expected a number")

    class Breaks(Plugin):
        def __init__(self, settings):
            raise RuntimeError("no luck")

    class Leaves(Plugin):
        def __init__(self, settings):
            raise SystemExit(4)

    class Later(Plugin):
        api = 2

    class Misnamed(Plugin):
        name = "other"

    class Undecided(Plugin):
        on_failure = "maybe"

    class Filterless(Plugin):
        def filters(self):
            return [object()]

    class Nothing(Plugin):
        def filters(self):
            return None

    class Watch(Plugin):
        def observe(self, report):
            raise ValueError("sesame")

    class Hangs(Plugin):
        def close(self):
            GATE.wait(20)

    GATE = threading.Event()
    NOT_A_CLASS = Quiet({})

    def function(settings):
        return None
"""
NAMES = {
    "quiet": "Quiet",
    "first": "First",
    "second": "Second",
    "talks": "Talks",
    "wants": "Wants",
    "breaks": "Breaks",
    "leaves": "Leaves",
    "later": "Later",
    "misnamed": "Misnamed",
    "undecided": "Undecided",
    "filterless": "Filterless",
    "nothing": "Nothing",
    "watch": "Watch",
    "hangs": "Hangs",
    "instance": "NOT_A_CLASS",
    "function": "function",
    "missing": "Missing",
    "string": "LOG",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that Python imports from, with plugins of all sorts in it."""
    targets = {name: f"samples_of_plugins:{target}" for name, target in NAMES.items()}
    install(tmp_path, "sample-plugins", targets, {"samples_of_plugins": MODULE})
    install(tmp_path, "broken-import", {"unimportable": "no_such_module:Plugin"})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "samples_of_plugins", raising=False)
    return tmp_path


def begin(*enabled: str, **tables: Mapping[str, Any]) -> tuple[host.PluginHost, list[Finding]]:
    found: list[Finding] = []
    return host.start(enabled, tables, found.append), found


def log() -> list[Any]:
    import samples_of_plugins  # type: ignore[import-not-found]  # written by the fixture

    entries: list[Any] = samples_of_plugins.LOG
    return entries


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("absent", "plugins.enabled: no plugin 'absent' is installed; installed: breaks, "),
        (
            "unimportable",
            "plugin 'unimportable': cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("missing", "plugin 'missing': cannot be imported: AttributeError: "),
        (
            "instance",
            "plugin 'instance': samples_of_plugins:NOT_A_CLASS is no subclass of acp_proxy.plugin.Plugin",
        ),
        ("function", "plugin 'function': samples_of_plugins:function is no subclass of"),
        ("string", "plugin 'string': samples_of_plugins:LOG is no subclass of"),
        ("later", "plugin 'later': it was made for version 2 of the plugin interface, this acp-proxy has 1"),
        ("misnamed", "plugin 'misnamed': it calls itself 'other'"),
        ("undecided", "plugin 'undecided': on_failure must be \"pass\" or \"refuse\", it is 'maybe'"),
        ("wants", "plugins.wants: level: expected a number"),
        ("breaks", "plugin 'breaks': cannot be set up: RuntimeError: no luck"),
        ("leaves", "plugin 'leaves': cannot be set up: SystemExit: 4"),
        ("quiet", "plugins.enabled: 'quiet' is named twice"),
    ],
)
def test_what_cannot_be_used_is_named_with_the_reason(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        begin("quiet", name)
    assert str(caught.value).startswith(text)


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("name", ["filterless", "nothing"])
def test_what_is_no_filter_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^plugin '{name}': filters"):
        begin(name)[0].filters()


@pytest.mark.usefixtures("site")
def test_nothing_is_set_up_before_every_plugin_is_found_and_those_set_up_are_closed_again() -> None:
    with pytest.raises(ConfigError):
        begin("quiet", "later")
    assert log() == [("quiet", {})]  # the module's own sample
    with pytest.raises(ConfigError):
        begin("quiet", "breaks")
    assert log()[1:] == [("quiet", {}), "closed"]


@pytest.mark.usefixtures("site")
def test_a_plugin_gets_its_own_table_and_cannot_change_the_settings() -> None:
    tables = {"quiet": {"a": [1, 2]}, "wants": {"level": "x", "deep": {"k": 1}}}
    begin("quiet", **tables)
    assert log()[1:] == [("quiet", {"a": [1, 2]})]
    with pytest.raises(ConfigError):
        begin("wants", **tables)
    assert tables["wants"] == {"level": "x", "deep": {"k": 1}}


@pytest.mark.usefixtures("site")
def test_filters_stand_in_the_order_of_the_settings() -> None:
    plugins, found = begin("second", "first")
    assert not plugins.observing
    driver = Driver(filters=tuple(plugins.filters()))
    assert driver.client_sends(note("_x", {})).agent == [note("_x", {"tags": "cab"})]
    assert found == []


@pytest.mark.usefixtures("site")
def test_each_filter_fails_as_its_plugin_declares() -> None:
    plugins, found = begin("first", "second")
    driver = Driver(filters=tuple(plugins.filters()))
    request = call(1, "_x", {"tags": 5})
    said = driver.client_sends(request)
    assert said.agent == []
    assert said.client[0]["error"] == {"code": -32603, "message": "plugin 'second' failed at this message"}
    assert [(one.source, one.action) for one in found] == [
        ("plugins.first", "noted"),
        ("plugins.first", "noted"),
        ("plugins.second", "refused"),
    ]


@pytest.mark.usefixtures("site")
def test_what_plugins_print_does_not_reach_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    begin("talks")[0].filters()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "imported\nconstructed\nasked\n"


@pytest.mark.usefixtures("site")
def test_observers_failures_are_fetched_and_explained() -> None:
    explained: list[str] = []
    plugins = host.start(["watch"], {}, lambda finding: None, explained.append)
    assert plugins.observing
    plugins.tell(StateReport(3.0, "s", "idle", "running", None))
    plugins.close(PATIENCE)
    [finding] = plugins.take()
    assert finding.text.startswith("plugin 'watch' failed in observe: ValueError at samples_of_plugins.py:")
    assert plugins.take() == []
    assert len(explained) == 1
    assert 'raise ValueError("sesame")' in explained[0]


@pytest.mark.usefixtures("site")
def test_a_plugin_that_does_not_close_is_left_behind() -> None:
    plugins, _ = begin("hangs")
    try:
        plugins.close(0.05)
    finally:
        sys.modules["samples_of_plugins"].GATE.set()
    assert [finding.text for finding in plugins.take()] == ["plugins did not close within 0.05 s"]


def test_two_distributions_may_not_offer_one_name(site: Path) -> None:
    install(site, "another", {"quiet": "samples_of_plugins:Quiet"})
    with pytest.raises(ConfigError) as caught:
        begin("quiet")
    assert str(caught.value) == (
        "plugins.enabled: 'quiet' is installed more than once: by another, sample-plugins"
    )


@pytest.mark.usefixtures("site")
def test_the_listing_tells_of_each_plugin_also_of_broken_ones() -> None:
    rows = {row[0]: row[1:] for row in discovery.listing(["quiet", "absent"])}
    assert set(rows) >= {*NAMES, "unimportable"}  # others may be installed where the tests run
    assert rows["quiet"] == ("1.2.3", "sample-plugins", "yes", "Does nothing at all.")
    assert rows["unimportable"] == (
        "1.2.3",
        "broken-import",
        "no",
        "unusable: plugin 'unimportable': cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_module'",
    )
    assert list(rows) == sorted(rows)
