"""Reads agent profiles from the user's folder and from the ones that came with the program.

The user's files are read when the program starts, so that a broken one is told then. Ours are looked
through for the agent's name first: most agents have none, and then nothing is parsed, or even imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from acp_proxy.errors import ConfigError

if TYPE_CHECKING:
    from acp_proxy.policy.profiles import Content, Profile

SHIPPED: Final = Path(__file__).parents[1] / "policy" / "data"
AUTO: Final = "auto"
NONE: Final = "none"


def user_folder(configured: str | None, environ: Mapping[str, str]) -> Path | None:
    """The folder of the user's profiles, None when there is none.

    `configured` is `profiles.dir`; else it is `acp-proxy/profiles` below XDG_CONFIG_HOME or ~/.config.
    """
    if configured is not None:
        return Path(configured)
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    folder = Path(base, "acp-proxy", "profiles")
    return folder if folder.is_dir() else None


def read_all(folder: Path | None) -> dict[str, Profile]:
    """All profiles by name; a file of the user's takes the place of ours. Raises ConfigError."""
    ours = {name: _read(name, path, is_user=False) for name, path in _files(SHIPPED).items()}
    return {**ours, **_of_user(folder)}


def text_of(profile: Profile) -> str:
    """A profile as it is written. Raises ConfigError."""
    return _text(Path(profile.source))


class FileChoice:
    """Key `agent.profile`: finds the profile by the agent's name, or holds the one asked for.

    `explicit` are the keys that were configured. Raises ConfigError for a file that cannot be used, and for
    a name that no profile has.
    """

    __slots__ = ("_explicit", "_named", "_of_user")

    def __init__(self, wanted: str, folder: Path | None, explicit: frozenset[str]) -> None:
        self._explicit = explicit
        self._named: Profile | None = None
        self._of_user = _of_user(folder)
        if wanted != AUTO:
            known = read_all(folder)
            self._named = known.get(wanted)
            if self._named is None:
                raise ConfigError(
                    f'agent.profile: no profile "{wanted}"; there are {", ".join([AUTO, NONE, *sorted(known)])}'
                )

    def content(self, agent: str, version: str) -> Content | None:
        """What holds for this agent; None when no profile fits it."""
        if self._named is not None:
            return self._named.by_name.beside(self._explicit)
        fitting = [*self._ours(agent), *self._of_user.values()]
        if not fitting:
            return None
        from acp_proxy.policy import profiles

        found = profiles.find(fitting, agent, version)
        return None if found is None else found.always.beside(self._explicit)

    def _ours(self, agent: str) -> list[Profile]:
        found: list[Profile] = []
        for name, path in _files(SHIPPED).items():
            if name not in self._of_user and f'"{agent}"' in _text(path):
                found.append(_read(name, path, is_user=False))
        return found


def _of_user(folder: Path | None) -> dict[str, Profile]:
    if folder is None:
        return {}
    return {name: _read(name, path, is_user=True) for name, path in _files(folder).items()}


def _files(folder: Path) -> dict[str, Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError as exc:
        raise ConfigError(f"profiles.dir: {folder}: {exc.strerror}") from None
    for path in paths:
        if path.stem in (AUTO, NONE):
            raise ConfigError(f'{path}: "{path.stem}" cannot be the name of a profile')
    return {path.stem: path for path in paths}


def _read(name: str, path: Path, *, is_user: bool) -> Profile:
    from acp_proxy.policy import profiles

    return profiles.read(name, _text(path), str(path), is_user=is_user)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
