"""What plugins are installed, by entry points, and the class behind each.

Nothing is imported for a plugin nobody asked for. This module is imported only where plugins are
wanted: `importlib.metadata` alone costs a start several milliseconds.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, get_args

from acp_proxy.errors import ConfigError
from acp_proxy.plugin import API, OnFailure, Plugin

GROUP: Final = "acp_proxy.plugins"


class Installed:
    """One entry point of the group: the plugin's name, its distribution, and that one's version."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry
        self.name = entry.name
        self.distribution = entry.dist.name if entry.dist is not None else "?"
        self.version = entry.dist.version if entry.dist is not None else "?"

    def load(self) -> type[Plugin]:
        """Import the plugin's class.

        Raises ConfigError naming the plugin and the reason when it cannot be imported or is no plugin
        for this version of the interface.
        """
        try:
            # Until the transport has taken it, descriptor 1 is the protocol.
            with contextlib.redirect_stdout(sys.stderr):
                found: Any = self._entry.load()
        except (Exception, SystemExit) as exc:
            raise broken(self.name, f"cannot be imported: {reason(exc)}") from exc
        if not (isinstance(found, type) and issubclass(found, Plugin)):
            raise broken(self.name, f"{self._entry.value} is no subclass of acp_proxy.plugin.Plugin")
        if found.api != API:
            raise broken(
                self.name,
                f"it was made for version {found.api!r} of the plugin interface, this acp-proxy has {API}",
            )
        if found.name not in ("", self.name):
            raise broken(self.name, f"it calls itself {found.name!r}")
        if found.on_failure not in get_args(OnFailure):
            raise broken(self.name, f'on_failure must be "pass" or "refuse", it is {found.on_failure!r}')
        return found


def installed() -> list[Installed]:
    """All plugins that are installed, by name."""
    found = [Installed(entry) for entry in entry_points(group=GROUP)]
    return sorted(found, key=lambda one: (one.name, one.distribution))


def chosen(enabled: Sequence[str]) -> list[Installed]:
    """The plugins with these names, in this order.

    Raises ConfigError for a name given twice, installed by nobody, or by more than one distribution.
    """
    here = installed()
    plugins: list[Installed] = []
    for name in enabled:
        if enabled.count(name) > 1:
            raise ConfigError(f"plugins.enabled: {name!r} is named twice")
        matching = [one for one in here if one.name == name]
        if not matching:
            known = ", ".join(sorted({one.name for one in here})) or "none"
            raise ConfigError(f"plugins.enabled: no plugin {name!r} is installed; installed: {known}")
        if len(matching) > 1:
            whose = ", ".join(one.distribution for one in matching)
            raise ConfigError(f"plugins.enabled: {name!r} is installed more than once: by {whose}")
        plugins += matching
    return plugins


def listing(enabled: Sequence[str]) -> list[tuple[str, str, str, str, str]]:
    """A row for each installed plugin: name, version, distribution, enabled yes or no, what it does.

    The last is the first line of the class's docstring, or why the plugin cannot be used.
    """
    rows: list[tuple[str, str, str, str, str]] = []
    for one in installed():
        try:
            about = (one.load().__doc__ or "").strip().partition("\n")[0]
        except ConfigError as exc:
            about = f"unusable: {exc}"
        rows.append((one.name, one.version, one.distribution, "yes" if one.name in enabled else "no", about))
    return rows


def broken(name: str, why: str) -> ConfigError:
    """The error for a plugin that cannot be used."""
    return ConfigError(f"plugin {name!r}: {why}")


def reason(exc: BaseException) -> str:
    """An exception in a few words, for whoever configures the plugin."""
    text = str(exc)
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
