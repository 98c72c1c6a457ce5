"""Two probes side by side: a figure has changed when the intervals of both do not overlap."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcalc.documents import Section, parse_json, read_text
from kvcalc.errors import ProfileError
from kvcalc.tables import Column, Table

SCHEMA = "kvcalc.probe_compare/1"
EVIDENCE = "kvcalc.probe/1"
SMALL = 0.02
"""Relative change that is not worth a word, however sure both probes are [1]."""
MOST_BYTES = 64 * 2**20
"""Largest evidence that is read [byte]."""

Key = tuple[str, float]
Rate = tuple[float, float, float]
"""Rate with the ends of its interval [byte/second]."""


def read_evidence(path: str) -> Mapping[str, Any]:
    """Return the content of an evidence file.

    Raises
    ------
    ProfileError
        If it cannot be read, or is no evidence of a probe; names the file, and the key or the line.
    """
    data = parse_json(read_text(Path(path).expanduser(), MOST_BYTES), path, MOST_BYTES)
    top = Section.of(data, path)
    if top.data.get("schema") != EVIDENCE:
        found = top.data.get("schema")
        hint = "; give the evidence (JSON) that `kvcalc probe --evidence` wrote, not its profile"
        raise ProfileError(f"{top.where('schema')}: expected {EVIDENCE}, not {found!r:.60}{hint}")
    return top.data


def rates_of(data: Mapping[str, Any], path: str) -> dict[Key, Rate]:
    """Return rate and interval of each series and size; another tool's figure is its own interval."""
    top = Section.of(data, path)
    found: dict[Key, Rate] = {}
    for at, item in enumerate(top.items("measurements")):
        row = Section.of(item, path, f"measurements[{at}]")
        if row.data.get("bandwidth") is None:
            continue
        value = row.number("bandwidth")
        both = [value, value] if row.data.get("bandwidth_range") is None else row.items("bandwidth_range")
        if len(both) != 2 or not all(isinstance(end, (int, float)) for end in both):
            row.fail("bandwidth_range", "two numbers, low and high")
        size = row.number("chunk_bytes") * row.number("n_chunks")
        found[(_named(row), size)] = (value, float(both[0]), float(both[1]))
    return found


def _named(row: Section) -> str:
    """Return the series of a measurement, and its device where that is not the first."""
    device = row.data.get("device")
    return f"{row.text('series')} (device {device})" if device else row.text("series")


def compared_files(first: str, second: str) -> Table:
    """Return one row for each series and size that both files have."""
    sides = [(path, read_evidence(path)) for path in (first, second)]
    before, after = (rates_of(data, path) for path, data in sides)
    both = [key for key in before if key in after]
    if not both:
        raise ProfileError(f"{second}: no series and size that {first} has as well")
    rows = [(*key, before[key][0], after[key][0], *_change(before[key], after[key])) for key in both]
    changed = sum(row[-1] != "same" for row in rows)
    only = len(before) - len(both), len(after) - len(both)
    notes = [
        f"{changed} of {len(rows)} figures changed by more than both intervals allow and {SMALL:.0%}.",
        *_machines(sides[0][1], sides[1][1]),
    ]
    if any(rate[1] == rate[2] for side in (before, after) for rate in side.values()):
        notes.append("Figures of other tools come without an interval; theirs count as exact.")
    if any(only):
        notes.append(f"{only[0]} figures are only in the first file, {only[1]} only in the second.")
    columns = (
        Column("series"),
        Column("bytes", "byte"),
        Column("before", "byte/second"),
        Column("after", "byte/second"),
        Column("change", "1", share=True),
        Column("verdict"),
    )
    return Table("Two probes", columns, tuple(rows), tuple(notes), SCHEMA)


def _change(before: Rate, after: Rate) -> tuple[float, str]:
    change = after[0] / before[0] - 1 if before[0] > 0 else math.nan
    apart = after[1] > before[2] or after[2] < before[1]
    if not apart or abs(change) < SMALL:
        return change, "same"
    return change, "faster" if change > 0 else "slower"


def _machines(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return what differs between the machines, so that nobody compares apples with pears."""
    found = []
    names = [
        [item.get("name") for item in side.get("machine", {}).get("devices", [])] for side in (first, second)
    ]
    if names[0] != names[1]:
        found.append(
            "The devices differ: " + " against ".join(", ".join(map(str, n)) or "none" for n in names) + "."
        )
    places = [side.get("machine", {}).get("environment", {}) for side in (first, second)]
    for key in ("driver", "torch", "kernel", "cpu"):
        one, other = (place.get(key) for place in places)
        if one != other:
            found.append(f"{key} changed from {one} to {other}.")
    return found
