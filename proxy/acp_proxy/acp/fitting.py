"""Makes one JSON value fit one form: the closures that `acp.shapes` composes from the table.

A `Fit` takes a value and the list of notes. It returns the same object when nothing had to change, else a
copy along the changed path, having noted each change; it raises `MisfitError` when the value cannot be made
to fit. Inputs are never mutated. Paths are relative to the value, keys joined by `/`; the enclosing fit puts
its own key in front, so a value that needs no change pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

Note = tuple[str, str]
Fit = Callable[[Any, list[Note]], Any]

OMITTED = "omitted"
EMPTIED = "emptied"
RESPELLED = "respelled"
DROPPED = "dropped item"

_ABSENT = object()


class MisfitError(Exception):
    """The value does not fit and no leniency of the schema covers it. `reason` never quotes the value."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path

    def inside(self, key: str) -> None:
        """Say that the trouble is below `key`."""
        self.path = f"{key}/{self.path}" if self.path else key

    @property
    def depth(self) -> int:
        """How far down the trouble is."""
        return self.path.count("/") + bool(self.path)


class Field(NamedTuple):
    """One known property of an object. `kind` is the Python type that needs no closer look, if there is one.

    `lenient`: a malformed value counts as omitted; `null_default`: so does null. A required list becomes
    empty (`may_empty`) instead of going away.
    """

    fit: Fit
    kind: type | None
    required: bool
    nullable: bool
    lenient: bool
    null_default: bool
    may_empty: bool


def _move_inside(key: str, notes: list[Note], start: int) -> None:
    for index in range(start, len(notes)):
        path, what = notes[index]
        notes[index] = (f"{key}/{path}" if path else key, what)


def anything(value: Any, notes: list[Note]) -> Any:
    """Whatever it is, it fits."""
    return value


def scalar(kinds: Collection[type], wanted: str) -> Fit:
    """A value whose Python type is one of `kinds`; bool is no integer, as in JSON."""

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) in kinds:
            return value
        raise MisfitError(f"expected {wanted}")

    return fit


def text(at_least: int) -> Fit:
    """A string of at least so many characters."""

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is str and len(value) >= at_least:
            return value
        raise MisfitError("expected a longer string" if type(value) is str else "expected a string")

    return fit


def number(integer: bool, low: float | None, high: float | None) -> Fit:
    """A number within bounds; `1.0` is an integer, as in JSON Schema, and stays `1.0`."""
    wanted = "an integer" if integer else "a number"

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is not int and (type(value) is not float or (integer and not value.is_integer())):
            raise MisfitError(f"expected {wanted}")
        if (low is not None and value < low) or (high is not None and value > high):
            raise MisfitError(f"expected {wanted} within bounds")
        return value

    return fit


def word(known: frozenset[str], respell: Callable[[str], str], is_open: bool) -> Fit:
    """One of a set of strings; `respell` finds the known one that a misspelling means."""

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is not str:
            raise MisfitError("expected a string")
        if value in known:
            return value
        meant = respell(value)
        if meant in known:
            notes.append(("", RESPELLED))
            return meant
        if is_open:
            return value
        raise MisfitError("unknown value")

    return fit


def array(item_fit: Fit, kind: type | None, skip_invalid: bool, at_least: int) -> Fit:
    """A list; with `skip_invalid` items that do not fit are left out."""

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is not list:
            raise MisfitError("expected an array")
        changed: dict[int, Any] = {}
        for index, item in enumerate(value):
            if type(item) is kind:
                continue
            mark = len(notes)
            try:
                new = item_fit(item, notes)
            except MisfitError as misfit:
                if not skip_invalid:
                    misfit.inside(str(index))
                    raise
                del notes[mark:]
                notes.append((str(index), DROPPED))
                changed[index] = _ABSENT
                continue
            if new is not item:
                _move_inside(str(index), notes, mark)
                changed[index] = new
        if changed:
            merged = (changed.get(index, item) for index, item in enumerate(value))
            value = [item for item in merged if item is not _ABSENT]
        if len(value) < at_least:
            raise MisfitError("expected more items")
        return value

    return fit


def mapping(value_fit: Fit, kind: type | None) -> Fit:
    """An object whose every property has one type; its keys are the peer's words, so a path says `*`."""

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is not dict:
            raise MisfitError("expected an object")
        out = value
        for key, item in value.items():
            if type(item) is kind:
                continue
            mark = len(notes)
            try:
                new = value_fit(item, notes)
            except MisfitError as misfit:
                misfit.inside("*")
                raise
            if new is not item:
                _move_inside("*", notes, mark)
                out = dict(value) if out is value else out
                out[key] = new
        return out

    return fit


def record(fields: Mapping[str, Field]) -> Fit:
    """An object with known properties; unknown ones stay as they are."""
    kinds = {name: field.kind for name, field in fields.items() if field.kind is not None}
    fits = {name: field.fit for name, field in fields.items() if field.fit is not anything}
    required = {name for name, field in fields.items() if field.required}
    nullable = {name for name, field in fields.items() if field.nullable}

    def pardon(key: str, item: Any) -> Any:
        """What stands for a malformed property: nothing, an empty list, or (None) no pardon."""
        field = fields[key]
        if field.lenient or (item is None and (field.null_default or not field.required)):
            return _ABSENT if not field.required else [] if field.may_empty else None
        return None

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is not dict:
            raise MisfitError("expected an object")
        if not value.keys() >= required:
            missing = next(name for name in fields if name in required and name not in value)
            raise MisfitError("required field is missing", missing)
        out = value
        mark = len(notes)
        for key, item in value.items():
            if kinds.get(key) is type(item):
                continue
            field_fit = fits.get(key)
            if field_fit is None or (item is None and key in nullable):
                continue
            try:
                new = field_fit(item, notes)
            except MisfitError as misfit:
                new = pardon(key, item)
                if new is None:
                    misfit.inside(key)
                    raise
                del notes[mark:]
                notes.append(("", OMITTED if new is _ABSENT else EMPTIED))
            if new is not item:
                _move_inside(key, notes, mark)
                mark = len(notes)
                out = dict(value) if out is value else out
                if new is _ABSENT:
                    del out[key]
                else:
                    out[key] = new
        return out

    return fit


def renamed(fit: Fit, names: dict[str, str]) -> Fit:
    """`fit` after properties have been given the name they are known by (`names`: misspelt → known).

    A rename is dropped when the value then does not fit, or when the known name is present as well.
    """

    def fit_renamed(value: Any, notes: list[Note]) -> Any:
        if type(value) is not dict or names.keys().isdisjoint(value):
            return fit(value, notes)
        known = {key: names[key] for key in value if key in names and names[key] not in value}
        if not known:
            return fit(value, notes)
        mark = len(notes)
        notes.extend((name, RESPELLED) for name in known.values())
        try:
            return fit({known.get(key, key): item for key, item in value.items()}, notes)
        except MisfitError:
            del notes[mark:]
            return fit(value, notes)

    return fit_renamed
