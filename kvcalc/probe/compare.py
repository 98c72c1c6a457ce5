"""Two probes side by side: a figure has changed when the intervals of both do not overlap."""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvcalc.documents import Section, parse_json, read_text
from kvcalc.errors import ProfileError
from kvcalc.probe.flags import FLAGS
from kvcalc.records import record
from kvcalc.tables import Column, Table

SCHEMA = "kvcalc.probe_compare/1"
EVIDENCE = "kvcalc.probe/1"
SMALL = 0.02
"""Relative change that is not worth a word, however sure both probes are [1]."""
MOST_BYTES = 64 * 2**20
"""Largest evidence that is read [byte]."""

Key = tuple[str, float]


@record
class Rate:
    """One figure of a file."""

    value: float  # [byte/second]
    low: float  # end of its interval [byte/second]
    high: float  # [byte/second]
    flags: tuple[str, ...]  # what is wrong with it


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
        if len(both) != 2 or not all(_is_number(end) for end in both):
            row.fail("bandwidth_range", "two numbers, low and high")
        size = row.number("chunk_bytes") * row.number("n_chunks")
        told = row.data.get("flags")
        flags = tuple(name for name in FLAGS if isinstance(told, list) and name in told)
        found[(_named(row), size)] = Rate(value, float(both[0]), float(both[1]), flags)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max


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
    rows = [_row(key, before[key], after[key]) for key in both]
    changed = sum(row[5] != "same" for row in rows)
    doubted = sum(bool(row[6]) for row in rows)
    only = len(before) - len(both), len(after) - len(both)
    notes = [
        f"{changed} of {len(rows)} figures changed by more than both intervals allow and {SMALL:.0%}.",
        *_partial(sides),
        *_asked(sides[0][1], sides[1][1]),
        *_machines(sides[0][1], sides[1][1]),
    ]
    if doubted:
        notes.append(f"{doubted} of them have flags; what differs there may be noise.")
    if any(rate.low == rate.high for side in (before, after) for rate in side.values()):
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
        Column("flags"),
    )
    return Table("Two probes", columns, tuple(rows), tuple(notes), SCHEMA)


def _row(key: Key, before: Rate, after: Rate) -> tuple[str, float, float, float, float, str, str]:
    change, verdict = _change(before, after)
    doubts = [
        f"{name} ({'both' if name in before.flags and name in after.flags else side})"
        for name, flag in FLAGS.items()
        for side, flags in (("before", before.flags), ("after", after.flags))
        if name in flags and flag.severity != "note"
    ]
    return *key, before.value, after.value, change, verdict, ", ".join(dict.fromkeys(doubts))


def _change(before: Rate, after: Rate) -> tuple[float, str]:
    change = after.value / before.value - 1 if before.value > 0 else math.nan
    apart = after.low > before.high or after.high < before.low
    if not apart or abs(change) < SMALL:
        return change, "same"
    return change, "faster" if change > 0 else "slower"


def _partial(sides: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return which files are of a probe that ended early, each once."""
    paths = dict.fromkeys(path for path, side in sides if side.get("complete") is not True)
    return [f"{path} is partial: its probe ended early (complete: false)." for path in paths]


def _asked(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return what was asked for or measured with in other ways."""
    found = []
    for words, path in _SETTINGS.items():
        one, other = (_at(side, path) for side in (first, second))
        if one != other:
            found.append(f"{words} differs: {_told(one, path)} against {_told(other, path)}.")
    return found


_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "The level": ("level",),
    "The version of kvcalc": ("version",),
    "The tool": ("inputs", "tool"),
    "The seed": ("inputs", "seed"),
    "The file system of the disk": ("machine", "disk", "filesystem"),
    "The file on the disk": ("machine", "disk", "file"),
}
"""What a note calls a value of the evidence -> where it stands."""


def _at(side: Any, path: Sequence[str]) -> object:  # noqa: ANN401 - as the file holds it
    for name in path:
        side = side.get(name) if isinstance(side, Mapping) else None
    return side


def _told(value: object, path: Sequence[str]) -> str:
    if value is None:
        return "none"
    if path[-1] == "file" and isinstance(value, (int, float)):
        return f"{value / 2**20:g} MiB"
    return f"{value!s:.60}"


def _machines(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return what differs between the machines, so that nobody compares apples with pears."""
    found = []
    names = [_names(_at(side, ("machine", "devices"))) for side in (first, second)]
    if names[0] != names[1]:
        found.append(f"The devices differ: {names[0] or 'none'} against {names[1] or 'none'}.")
    for key in ("driver", "torch", "kernel", "cpu"):
        one, other = (_at(side, ("machine", "environment", key)) for side in (first, second))
        if one != other:
            found.append(f"{key} changed from {one} to {other}.")
    return found


def _names(devices: object) -> str:
    listed = devices if isinstance(devices, list) else []
    return ", ".join(f"{_at(device, ('name',))!s:.80}" for device in listed)
