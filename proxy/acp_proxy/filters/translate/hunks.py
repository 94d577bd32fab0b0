"""The hunks of a unified diff between two texts, in bounded time whatever the texts are.

A text is cut at LF and nowhere else (`str.splitlines` also cuts at CR, form feed, U+2028 and more, which no
patch tool does), and each line keeps its LF: that way "x" and "x" without a newline differ, as they must.

difflib reads well but needs quadratic time and more on long or repetitive input, and an agent's diff is
translated between two frames of everybody's traffic. So: equal ends are cut off first; a small rest goes to
difflib; a larger one is split at lines that occur once on either side (the idea of patience diff); and when
that does not help, or the budget is spent, the rest is replaced whole. Always a correct patch, at worst a
plain one.
"""

from __future__ import annotations

from bisect import bisect_left
from difflib import SequenceMatcher

CONTEXT = 3

# Line pairs difflib may compare in one region. Its worst case is cubic (alternating lines that match one at a
# time): about 10 ms at this size, half a second at ten times it.
_REGION_PAIRS = 20_000
# The same for a whole diff, with the lines walked through to split regions counted in.
_BUDGET = 400_000

_NO_NEWLINE = "\n\\ No newline at end of file\n"

# old start, old end, new start, new end; 0-based, ends exclusive
Region = tuple[int, int, int, int]


def lines_of(text: str) -> list[str]:
    """Cut a text after each LF; only the last line may lack one. An empty text has no lines."""
    parts = text.split("\n")
    last = parts.pop()
    lines = [part + "\n" for part in parts]
    if last:
        lines.append(last)
    return lines


def unified_hunks(old: str, new: str) -> str:
    """Write the hunks that turn `old` into `new`, with three lines of context; none for equal texts."""
    before, after = lines_of(old), lines_of(new)
    out: list[str] = []
    for group in _grouped(_regions(before, after)):
        _write_hunk(out, before, after, group)
    return "".join(out)


def _grouped(regions: list[Region]) -> list[list[Region]]:
    groups: list[list[Region]] = []
    for region in regions:
        if groups and region[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(region)
        else:
            groups.append([region])
    return groups


def _write_hunk(out: list[str], before: list[str], after: list[str], group: list[Region]) -> None:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first[0])
    tail = min(CONTEXT, len(before) - last[1])
    old_start, old_end = first[0] - lead, last[1] + tail
    new_start, new_end = first[2] - lead, last[3] + tail
    out.append(f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@\n")
    at = old_start
    for old_from, old_to, new_from, new_to in group:
        _write_lines(out, " ", before[at:old_from])
        _write_lines(out, "-", before[old_from:old_to])
        _write_lines(out, "+", after[new_from:new_to])
        at = old_to
    _write_lines(out, " ", before[at:old_end])


def _span(start: int, end: int) -> str:
    """Line range as Git writes it: from 1, no count for a single line, the line before for an empty range."""
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _write_lines(out: list[str], mark: str, lines: list[str]) -> None:
    if not lines:
        return
    out.extend([mark + line for line in lines])
    if not lines[-1].endswith("\n"):
        out.append(_NO_NEWLINE)


def _regions(before: list[str], after: list[str]) -> list[Region]:
    """Find what differs, in order; two regions always have an equal line between them."""
    found: list[Region] = []
    budget = _BUDGET
    open_regions: list[Region] = [(0, len(before), 0, len(after))]
    while open_regions:
        region = _trimmed(before, after, open_regions.pop())
        old_from, old_to, new_from, new_to = region
        old_count, new_count = old_to - old_from, new_to - new_from
        if not old_count and not new_count:
            continue
        if not old_count or not new_count:
            found.append(region)
        elif old_count * new_count <= min(_REGION_PAIRS, budget):
            budget -= old_count * new_count
            found.extend(_compared(before, after, region))
        else:
            budget -= old_count + new_count
            gaps = _split(before, after, region) if budget > 0 else []
            if gaps:
                open_regions.extend(reversed(gaps))
            else:
                found.append(region)
    return found


def _trimmed(before: list[str], after: list[str], region: Region) -> Region:
    old_from, old_to, new_from, new_to = region
    while old_from < old_to and new_from < new_to and before[old_from] == after[new_from]:
        old_from += 1
        new_from += 1
    while old_from < old_to and new_from < new_to and before[old_to - 1] == after[new_to - 1]:
        old_to -= 1
        new_to -= 1
    return old_from, old_to, new_from, new_to


def _compared(before: list[str], after: list[str], region: Region) -> list[Region]:
    old_from, old_to, new_from, new_to = region
    matcher = SequenceMatcher(None, before[old_from:old_to], after[new_from:new_to], autojunk=False)
    return [
        (old_from + i1, old_from + i2, new_from + j1, new_from + j2)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def _split(before: list[str], after: list[str], region: Region) -> list[Region]:
    """Cut a region at the longest run of once-only lines that stand in the same order on both sides."""
    old_from, old_to, new_from, new_to = region
    old_places = _once_only(before, old_from, old_to)
    new_places = _once_only(after, new_from, new_to)
    shared = [
        (at, new_places[line]) for line, at in old_places.items() if new_places.get(line, -1) >= 0 <= at
    ]
    gaps: list[Region] = []
    for old_at, new_at in _increasing(shared):
        gaps.append((old_from, old_at, new_from, new_at))
        old_from, new_from = old_at + 1, new_at + 1
    if gaps:
        gaps.append((old_from, old_to, new_from, new_to))
    return gaps


def _once_only(lines: list[str], start: int, end: int) -> dict[str, int]:
    """Give the place of each line of a range, in order; -1 for a line that comes more than once."""
    places: dict[str, int] = {}
    for at in range(start, end):
        line = lines[at]
        places[line] = -1 if line in places else at
    return places


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pick the longest subsequence whose second members rise; the first members already do."""
    ends: list[int] = []
    ending: list[int] = []
    previous: list[int] = []
    for index, (_, new_at) in enumerate(pairs):
        length = bisect_left(ends, new_at)
        previous.append(ending[length - 1] if length else -1)
        if length == len(ends):
            ends.append(new_at)
            ending.append(index)
        else:
            ends[length] = new_at
            ending[length] = index
    chosen: list[tuple[int, int]] = []
    index = ending[-1] if ending else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = previous[index]
    chosen.reverse()
    return chosen
