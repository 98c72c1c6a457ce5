"""One restore step by step beside one recompute: where the time to the first token goes."""

import math

from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.page import Cell, grid
from kvcalc.output.pages.offload import verdict
from kvcalc.output.report.figures.figure import Figure
from kvcalc.output.svg.mark import bar, drawing, line, percent, write
from kvcalc.results import Offload

_ROW, _BAR = 32, 18
_PARTS = (
    ("queue", "queue", "s6"),
    ("setup", "setup", "s2"),
    ("transfer", "transfer", "s1"),
    ("convert", "convert", "s4"),
    ("sync", "sync", "s7"),
    ("remaining", "remaining", "s3"),
)
"""Field, name and colour of each part, in the order in which they pass."""


def waterfall_figure(item: Offload) -> Figure:
    """Return the parts of a restore, each beginning where the one before it ends."""
    rows: list[tuple[Cell | str, ...]] = [(name, text(item, field)) for field, name, _ in _PARTS]
    rows.append(("total with the hit", text(item, "cached_total")))
    if item.overlapped_total is not None:
        rows.append(("with what overlaps", text(item, "overlapped_total")))
    rows.append(("recompute", text(item, "recompute")))
    says = _says(item)
    return Figure(
        title=f"{item.tier}: {'' if item.adds_nothing else 'restoring is '}{verdict(item).text}",
        says=says,
        drawing=_drawn(item, says) if math.isfinite(float(item.cached_total)) else "",
        table=grid("", ("part", "time"), "lr", rows),
        gutter="both",
    )


def _says(item: Offload) -> str:
    if not math.isfinite(float(item.cached_total)):
        return f"Restoring from {item.tier} never ends: {item.reason}."
    silent = [name for field, name, _ in _PARTS if float(getattr(item, field)) == 0]
    none = f" No time was given or found for {_list(silent)}." if silent else ""
    hit = "Were there a hit: " if item.adds_nothing else ""
    return (
        f"{hit}{text(item, 'bytes')} into each GPU at {text(item, 'bandwidth')}: {text(item, 'restore')} to "
        f"restore and {text(item, 'remaining')} to compute the rest, against {text(item, 'recompute')} to "
        f"compute all.{none}"
    )


def _list(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _drawn(item: Offload, says: str) -> str:
    total, recompute = float(item.cached_total), float(item.recompute)
    end = max(total, recompute if math.isfinite(recompute) else 0.0)
    steps: list[tuple[str, str, float, float]] = []
    at = 0.0
    for field, name, kind in _PARTS:
        took = float(getattr(item, field))
        if took > 0:
            steps.append((name, kind, at, at + took))
        at += took
    steps.append(("total", "total-fill", 0.0, total))
    if item.overlapped_total is not None:
        steps.append(("overlapped", "total-fill", 0.0, float(item.overlapped_total)))
    if math.isfinite(recompute):
        steps.append(("recompute", "other-fill", 0.0, recompute))
    drawn = []
    for row, (name, kind, start, stop) in enumerate(steps):
        top = row * _ROW + 6
        drawn += [
            write(-8, top + _BAR - 4, name, "label strong" if kind.endswith("fill") else "label", "end"),
            bar(start / end, stop / end, top, _BAR, kind, f"{name}: {_time(stop - start)}"),
            write(percent(stop / end), top + _BAR - 4, _time(stop - start), "value", dx=6),
        ]
        if row and steps[row - 1][3] == start:
            drawn.append(line(percent(start / end), top - _ROW + _BAR, percent(start / end), top, "step"))
    return drawing(len(steps) * _ROW + 4, says, *drawn)


def _time(seconds: float) -> str:
    return human(seconds, "second")
