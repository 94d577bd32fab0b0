"""Finds values of open sets that a version does not list and that are no extension (LC-23).

A receiver must take them, so `acp.shapes.conform` lets them pass; who minted them is still at fault: only
listed values and names with `_` may be. Compiled from the tables like the fits of `shapes`, leaving out
everything that cannot lead to such a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import TABLES, known_values


class UnknownValue:
    """A value nobody has listed: where it stands (keys and indices), of which enum or union, and what it is."""

    __slots__ = ("path", "type_name", "value")

    def __init__(self, path: tuple[str | int, ...], type_name: str, value: str) -> None:
        self.path = path
        self.type_name = type_name
        self.value = value


Found = list[UnknownValue]
Path = tuple[str | int, ...]
Search = Callable[[Any, Path, Found], None]


def unknown_values(version: Version, name: str, value: object) -> Found:
    """What `value`, of the type `name`, holds of values that `version` does not know.

    Looks only at what is well-formed; raises KeyError when `version` has no such type.
    """
    finder = _finders.get(version)
    if finder is None:
        finder = _finders[version] = _Finder(version)
    search = finder.named(name)
    found: Found = []
    if search is not None:
        search(value, (), found)
    return found


class _Finder:
    """Searches by type; None stands for a type below which nothing can be found."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._named: dict[str, Search | None] = {}

    def named(self, name: str) -> Search | None:
        """The search through a named type; types may hold themselves."""
        if name in self._named:
            return self._named[name]

        def again(value: Any, path: Path, found: Found) -> None:
            search = self._named[name]
            if search is not None and search is not again:
                search(value, path, found)

        self._named[name] = again
        search = self._search(TABLES[self._version][name], name)
        self._named[name] = search
        return search

    def _search(self, node: Any, name: str) -> Search | None:
        if node is None:
            return None
        if isinstance(node, str):
            return self.named(node) if node[0].isupper() else None
        form = node[0]
        if form == "enum":
            return _word(known_values(self._version, name), name)
        if form == "object":
            return _fields(self._of_fields(node[1], name))
        if form == "list":
            return _items(self._search(node[1], name))
        if form == "map":
            return _items(self._search(node[1], name))
        if form == "union":
            return self._union(node, name)
        if form == "either":
            # Told apart by form: only a tagged option says by itself that it is meant.
            tagged = [option for option in node[3] if option[0] == "union"]
            return self._union(tagged[0], name) if tagged else None
        return None

    def _of_fields(self, fields: Any, name: str) -> dict[str, Search]:
        searches = {field[0]: self._search(field[2], name) for field in fields}
        return {key: search for key, search in searches.items() if search is not None}

    def _union(self, node: Any, name: str) -> Search:
        _, tag, fields, variants, _, _ = node
        common = _fields(self._of_fields(fields, name))
        known = {value: self._search(variant, name) for value, _, variant in variants}

        def search(value: Any, path: Path, found: Found) -> None:
            if type(value) is not dict:
                return
            said = value.get(tag)
            if type(said) is str:
                if said in known:
                    variant = known[said]
                    if variant is not None:
                        variant(value, path, found)
                elif not said.startswith("_"):
                    found.append(UnknownValue((*path, tag), name, said))
            if common is not None:
                common(value, path, found)

        return search


_finders: dict[Version, _Finder] = {}


def _word(known: frozenset[str], name: str) -> Search:
    def search(value: Any, path: Path, found: Found) -> None:
        if type(value) is str and value not in known and not value.startswith("_"):
            found.append(UnknownValue(path, name, value))

    return search


def _fields(searches: dict[str, Search]) -> Search | None:
    if not searches:
        return None

    def search(value: Any, path: Path, found: Found) -> None:
        if type(value) is dict:
            for key, inner in searches.items():
                if key in value:
                    inner(value[key], (*path, key), found)

    return search


def _items(inner: Search | None) -> Search | None:
    if inner is None:
        return None

    def search(value: Any, path: Path, found: Found) -> None:
        if type(value) is list:
            for index, item in enumerate(value):
                inner(item, (*path, index), found)
        elif type(value) is dict:
            for key, item in value.items():
                inner(item, (*path, key), found)

    return search
