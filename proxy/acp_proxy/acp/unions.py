"""Makes a JSON value fit one of several forms: told apart by a tag, or by form alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from acp_proxy.acp.fitting import RESPELLED, Fit, MisfitError, Note


def tagged(
    tag: str, variants: dict[str, Fit], other: Fit | None, untagged: Fit | None, respell: Callable[[str], str]
) -> Fit:
    """A union told apart by the property `tag`; `other` takes unknown tags, `untagged` what has no known one.

    A known tag with a payload that does not fit is malformed, never `other` (LC-24), and never `untagged`
    either, although the schema of v1 alone would let it pass as that. A misspelt tag is repaired only if its
    payload fits.
    """

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) is not dict:
            raise MisfitError("expected an object")
        try:
            variant = variants[value[tag]]
        except (KeyError, TypeError):  # unknown, absent, or not even hashable
            return stray(value, notes)
        return variant(value, notes)

    def stray(value: dict[str, Any], notes: list[Note]) -> Any:
        found = value.get(tag)
        if type(found) is str:
            meant = variants.get(respell(found))
            if meant is not None:
                mark = len(notes)
                notes.append((tag, RESPELLED))
                try:
                    return meant({**value, tag: respell(found)}, notes)
                except MisfitError:
                    if other is None and untagged is None:
                        raise
                    del notes[mark:]
            if other is not None:
                return other(value, notes)
        if untagged is not None:
            return untagged(value, notes)
        if type(found) is str:
            raise MisfitError("unknown tag", tag)
        raise MisfitError("expected a string" if tag in value else "required field is missing", tag)

    return fit


def either(fits: Iterable[Fit], exclusive: bool, kinds: Collection[type]) -> Fit:
    """A union told apart by form alone. What fits unchanged wins over what can be made to fit.

    `exclusive` is JSON Schema's `oneOf`: a value that fits two forms unchanged is malformed. A value whose
    Python type is one of `kinds` fits at once.
    """
    options = tuple(fits)

    def fit(value: Any, notes: list[Note]) -> Any:
        if type(value) in kinds:
            return value
        mark = len(notes)
        unchanged = 0
        best: tuple[Any, list[Note]] | None = None
        misfits: list[MisfitError] = []
        for option in options:
            try:
                new = option(value, notes)
            except MisfitError as misfit:
                misfits.append(misfit)
            else:
                if new is value:
                    if not exclusive:
                        return value
                    unchanged += 1
                elif best is None:
                    best = new, notes[mark:]
            del notes[mark:]
        if unchanged == 1:
            return value
        if unchanged:
            raise MisfitError("fits several forms of which one may hold")
        if best is None:
            closest = max(misfits, key=lambda misfit: misfit.depth)
            raise closest if closest.depth else MisfitError("fits none of the allowed forms")
        new = fit(best[0], notes) if exclusive else best[0]
        notes.extend(best[1])
        return new

    return fit
