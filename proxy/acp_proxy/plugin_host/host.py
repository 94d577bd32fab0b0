"""The plugins of one run, from the settings to the end: set up in order, fenced, watched, closed."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from acp_proxy import plugin
from acp_proxy.errors import ConfigError
from acp_proxy.filters.base import Filter
from acp_proxy.inference.findings import Finding
from acp_proxy.plugin import Plugin
from acp_proxy.plugin_host.discovery import broken, chosen, reason
from acp_proxy.plugin_host.fence import Fence
from acp_proxy.plugin_host.observers import Observers
from acp_proxy.relay.commands import Report


class PluginHost:
    """Some plugins at work.

    Failures of filters go to `note` while the message is in hand; those of observers, which happen in
    another thread, are fetched with `take`. `explain` gets every exception's traceback; it may be
    called from either thread, and the text may quote messages.
    """

    def __init__(
        self,
        plugins: Sequence[tuple[str, Plugin]],
        note: Callable[[Finding], None],
        explain: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._plugins = list(plugins)
        self._note = note
        self._explain = explain
        self._fresh: deque[Finding] = deque()
        self._at = 0.0
        self._observers = Observers(plugins, self._observer_failed)

    @property
    def observing(self) -> bool:
        """Whether any plugin wants reports; when none does, nobody need make them."""
        return self._observers.watching

    def filters(self) -> list[Filter]:
        """The fenced filters of one connection, in the order of the settings, the client's end first.

        Raises ConfigError naming the plugin whose `filters` fails or gives something else.
        """
        fences: list[Filter] = []
        for name, one in self._plugins:
            for stage in _filters(name, one):
                fences.append(
                    Fence(name, stage, refuses=one.on_failure == "refuse", report=self._filter_failed)
                )
        return fences

    def tell(self, report: Report) -> None:
        """Show a report to the observers; never waits."""
        self._at = report.at
        self._observers.tell(report)

    def take(self) -> list[Finding]:
        """The observers' failures since the last call."""
        found: list[Finding] = []
        while self._fresh:
            found.append(self._fresh.popleft())
        return found

    def close(self, timeout: float) -> None:
        """Give the plugins `timeout` seconds in all to see the last reports and to close."""
        if not self._observers.close(timeout):
            text = f"plugins did not close within {timeout:g} s"
            self._fresh.append(Finding(self._at, "V55", "client", text, source="plugins"))
        if self._observers.missed:
            text = f"observers of plugins missed {self._observers.missed} reports in all"
            self._fresh.append(Finding(self._at, "V55", "client", text, source="plugins"))

    def _filter_failed(self, finding: Finding, exc: BaseException | None) -> None:
        self._note(finding)
        self._trace(exc)

    def _observer_failed(self, finding: Finding, exc: BaseException | None) -> None:
        self._fresh.append(finding)
        self._trace(exc)

    def _trace(self, exc: BaseException | None) -> None:
        if exc is not None:
            import traceback  # loads more than the whole plugin interface, for failures only

            self._explain("".join(traceback.format_exception(exc)))


def start(
    enabled: Sequence[str],
    tables: Mapping[str, Mapping[str, Any]],
    note: Callable[[Finding], None],
    explain: Callable[[str], None] = lambda text: None,
) -> PluginHost:
    """Load and set up the plugins that the settings name, in that order.

    Raises ConfigError naming the plugin and the reason when one is unknown, broken, or refuses its
    settings; those set up before it are closed again.
    """
    plugins: list[tuple[str, Plugin]] = []
    classes = [(one.name, one.load()) for one in chosen(enabled)]
    try:
        for name, kind in classes:
            plugins.append((name, _set_up(name, kind, tables.get(name, {}))))
    except ConfigError:
        for _, one in plugins:
            with contextlib.suppress(Exception, SystemExit):
                one.close()
        raise
    return PluginHost(plugins, note, explain)


def _set_up(name: str, kind: type[Plugin], settings: Mapping[str, Any]) -> Plugin:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return kind(copy.deepcopy(dict(settings)))  # others still read the settings
    except ConfigError as exc:
        raise ConfigError(f"plugins.{name}: {exc}") from exc
    except (Exception, SystemExit) as exc:
        raise broken(name, f"cannot be set up: {reason(exc)}") from exc


def _filters(name: str, one: Plugin) -> list[plugin.Filter]:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            stages: list[Any] = list(one.filters())
    except (Exception, SystemExit) as exc:
        raise broken(name, f"filters() failed: {reason(exc)}") from exc
    for stage in stages:
        if not isinstance(stage, plugin.Filter):
            raise broken(
                name, f"filters() gave a {type(stage).__name__}, which is no acp_proxy.plugin.Filter"
            )
    return stages
