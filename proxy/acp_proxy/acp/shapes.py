"""Makes a JSON value fit a type of the protocol the way a lenient receiver does, or says where it cannot.

What a schema annotates decides: a malformed property marked as default-on-error counts as omitted, an item
that does not fit is left out where the list skips invalid items, null counts as omitted where null is not
allowed. Anything else that does not fit is malformed. Unknown properties and unknown values of open sets stay
as they are. Sources: the published schemas, lifecycle §2.5 (malformed variant, malformed optional field),
bridge §9 and §10.

Entries of the tables `shapes_v1` and `shapes_v2`, where NODE may also be the name of a type:

    "any" "null" "boolean" "string" "integer" "number" "object"
    ("string", least length)   ("integer" | "number", minimum, maximum)   None: unbounded
    ("list", NODE, skips invalid items, least number of items)
    ("map", NODE)                              an object whose every property has one type
    ("enum", open, values)
    ("object", fields)                         fields: (name, flags, NODE) each, flags as below
    ("union", tag, fields, variants, NODE for unknown tags or None, NODE without a known tag or None)
                                               variants: (tag value, flags, NODE) each
    ("either", exclusive, fields, NODEs)       told apart by form alone

Flags: `!` required, `?` nullable, `~` default on error, `0` default on null, `u` unstable. `fields` of a
union or an either hold whichever form is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from acp_proxy.acp import fitting, unions
from acp_proxy.acp.fitting import Field, Fit, MisfitError, Note
from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import TABLES, canonical, known_values, snake_case

_SCALARS: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "string": (str,),
    "object": (dict,),
    "integer": (int,),
    "number": (int, float),
}

# Bridge §10: the only set that v2 closes as well.
_CLOSED_IN_BOTH = frozenset({"ElicitationSchemaType"})

Fields = tuple[tuple[str, str, Any], ...]


class Conformed:
    """What became of a value.

    `problem` is None when `value` fits; else it reads `path: reason` and `value` is the value as it came.
    `notes` lists each change as (path, what), what being "omitted", "emptied", "respelled" or "dropped item";
    it is empty exactly when `value` is the very object that was passed in. Paths are keys and indices (those
    of the value as it came) joined by `/`, with `*` for a key of the peer's choosing. Neither paths nor
    reasons quote a value.
    """

    __slots__ = ("notes", "problem", "value")

    def __init__(self, value: Any, notes: list[Note], problem: str | None) -> None:
        self.value = value
        self.notes = notes
        self.problem = problem


def conform(
    version: Version,
    name: str,
    value: object,
    *,
    unstable: bool = True,
    synonyms: bool = False,
    keep_unknown: bool = False,
) -> Conformed:
    """Make `value` fit the type `name`, without changing `value` itself.

    With `unstable` off, unstable properties and tags count as unknown. `synonyms` adds bridge §10 steps 2 and
    3 to the repair of spelling. `keep_unknown` lets unknown values of sets that v1 closed pass as if they
    were open, for a receiver that hands them on to v2, where they are. Raises KeyError when `version` has no
    such type.
    """
    key = (version, name, unstable, synonyms, keep_unknown)
    fit = _compiled.get(key)
    if fit is None:
        fit = _compiled[key] = _reader(version, unstable, synonyms, keep_unknown).named(name)
    notes: list[Note] = []
    try:
        return Conformed(fit(value, notes), notes, None)
    except MisfitError as misfit:
        problem = f"{misfit.path}: {misfit.reason}" if misfit.path else misfit.reason
        return Conformed(value, [], problem)


_compiled: dict[tuple[Version, str, bool, bool, bool], Fit] = {}
_readers: dict[tuple[Version, bool, bool, bool], _Reader] = {}


def _reader(version: Version, unstable: bool, synonyms: bool, keep_unknown: bool) -> _Reader:
    key = (version, unstable, synonyms, keep_unknown)
    if key not in _readers:
        _readers[key] = _Reader(*key)
    return _readers[key]


class _Reader:
    """Turns table entries into fits, each once, for one set of options."""

    def __init__(self, version: Version, unstable: bool, synonyms: bool, keep_unknown: bool) -> None:
        self._version = version
        self._unstable = unstable
        self._synonyms = synonyms
        self._keep_unknown = keep_unknown
        self._named: dict[str, Fit] = {}

    def named(self, name: str) -> Fit:
        """The fit of a type of the table."""
        if name not in self._named:
            self._named[name] = self._fit(TABLES[self._version][name], name, ())
        return self._named[name]

    def _plain(self, node: Any) -> Any:
        """`node` with the names of types replaced as long as the type is nothing but another name."""
        while isinstance(node, str) and node[0].isupper():
            entry = TABLES[self._version][node]
            if not isinstance(entry, str):
                return node
            node = entry
        return node

    def _kinds(self, node: Any) -> tuple[type, ...]:
        """The Python types that make any value fit `node` at once; none if a closer look is needed."""
        node = self._plain(node)
        if isinstance(node, str):
            return _SCALARS.get(node, ())
        return ()

    def _fit(self, node: Any, name: str, outer: Fields) -> Fit:
        """The fit of `node`, found in the type `name`, on an object that has the fields `outer` as well."""
        node = self._plain(node)
        if isinstance(node, str):
            if node[0].isupper():
                if not outer:
                    return self.named(node)
                return self._fit(TABLES[self._version][node], node, outer)
            return self._primitive(node, outer)
        form = node[0]
        if form == "object":
            return self._record((*outer, *node[1]))
        if form == "union":
            return self._union(node, name, outer)
        if form == "either":
            return self._either(node, name, outer)
        if form == "list":
            return fitting.array(self._fit(node[1], name, ()), self._kind(node[1]), node[2], node[3])
        if form == "map":
            return fitting.mapping(self._fit(node[1], name, ()), self._kind(node[1]))
        if form == "enum":
            is_open = node[1] or self._opens(name)
            return fitting.word(known_values(self._version, name), self._respell(name), is_open)
        if form == "string":
            return fitting.text(node[1])
        return fitting.number(form == "integer", node[1], node[2])

    def _primitive(self, node: str, outer: Fields) -> Fit:
        if node == "any":
            return fitting.anything
        if node == "object" and outer:
            return self._record(outer)
        if node in ("integer", "number"):
            return fitting.number(node == "integer", None, None)
        return fitting.scalar(_SCALARS[node], f"{'an' if node[0] in 'aeiou' else 'a'} {node}")

    def _kind(self, node: Any) -> type | None:
        kinds = self._kinds(node)
        return kinds[0] if kinds else None

    def _record(self, fields: Fields) -> Fit:
        known = {field[0]: self._field(field) for field in fields if self._unstable or "u" not in field[1]}
        return self._with_names(fitting.record(known), known)

    def _field(self, field: tuple[str, str, Any]) -> Field:
        name, flags, node = field
        return Field(
            fit=self._fit(node, name, ()),
            kind=self._kind(node),
            required="!" in flags,
            nullable="?" in flags,
            lenient="~" in flags,
            null_default="0" in flags,
            may_empty=node[0] == "list" and node[3] == 0,
        )

    def _union(self, node: Any, name: str, outer: Fields) -> Fit:
        _, tag, fields, variants, other, untagged = node
        inner = (*outer, *fields)
        tagged = (*inner, (tag, "!", "string"))
        if other is None and untagged is None and self._opens(name):
            other = "object"
        known = {
            value: self._fit(variant, name, tagged)
            for value, flags, variant in variants
            if self._unstable or "u" not in flags
        }
        fit = unions.tagged(
            tag,
            known,
            None if other is None else self._fit(other, name, tagged),
            None if untagged is None else self._fit(untagged, name, inner),
            self._respell(name),
        )
        return self._with_names(fit, (tag,))

    def _either(self, node: Any, name: str, outer: Fields) -> Fit:
        _, exclusive, fields, options = node
        inner = (*outer, *fields)
        # With fields around it no option is settled by its Python type, and an exclusive one not by itself.
        settled = () if exclusive or inner else options
        kinds = {kind for option in settled for kind in self._kinds(option)}
        return unions.either([self._fit(option, name, inner) for option in options], exclusive, kinds)

    def _opens(self, name: str) -> bool:
        """Whether the closed set `name` is to be read as an open one."""
        return self._keep_unknown and name not in _CLOSED_IN_BOTH

    def _respell(self, name: str) -> Callable[[str], str]:
        return partial(canonical, self._version, name, synonyms=self._synonyms)

    def _with_names(self, fit: Fit, known: Iterable[str]) -> Fit:
        """`fit`, where asked for after the repair of properties spelt in snake_case."""
        if not self._synonyms:
            return fit
        names = {snake_case(name): name for name in known if snake_case(name) != name}
        return fitting.renamed(fit, names) if names else fit
