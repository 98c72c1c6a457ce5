"""Goodput and P99 against load as drawings of characters: one sign a policy, a line where it thrashes."""

import math
from collections.abc import Callable

from kvcalc.eviction.results import SimulatedRow, SimulateResult
from kvcalc.output.format import human
from kvcalc.output.page import Drawing

_WIDTH, _HEIGHT = 56, 10  # columns and rows of the plot, which fits 80 columns with its labels
_SIGNS = "*o+x#@%&"
_LINE = "|"


def by_policy(result: SimulateResult) -> dict[str, list[SimulatedRow]]:
    """Return the rows of each policy, from low load to high."""
    found: dict[str, list[SimulatedRow]] = {}
    for row in result.rows:
        found.setdefault(row.policy, []).append(row)
    return {policy: sorted(rows, key=lambda row: float(row.rate)) for policy, rows in found.items()}


def thrash_rate(result: SimulateResult) -> float | None:
    """Return the lowest load at which the thrash rule closes admission under any policy."""
    rates = [limit.close_admission_rate for limit in result.limits]
    return min((float(rate) for rate in rates if rate is not None), default=None)


def drawings(result: SimulateResult) -> tuple[Drawing, ...]:
    """Return both charts; none where fewer than two loads have an answer."""
    if len({row.rate for row in result.rows if row.total.p99 is not None}) < 2:
        return ()
    series = by_policy(result)
    goodput = {name: [(float(r.rate), float(r.goodput)) for r in rows] for name, rows in series.items()}
    tail = {
        name: [(float(r.rate), float(r.total.p99)) for r in rows if r.total.p99 is not None]
        for name, rows in series.items()
    }
    return (
        _drawing("Goodput against load", goodput, "1/second", result, logarithmic=False),
        _drawing("P99 of the total time against load, in powers", tail, "second", result, logarithmic=True),
    )


Points = dict[str, list[tuple[float, float]]]


def _drawing(title: str, series: Points, unit: str, result: SimulateResult, logarithmic: bool) -> Drawing:
    values = [value for points in series.values() for _, value in points]
    rates = [rate for points in series.values() for rate, _ in points]
    low, high = (min(values), max(values)) if logarithmic else (0.0, max(values))
    scale = _scale(low, high, logarithmic)
    left, right = min(rates), max(rates)

    def column(rate: float) -> int:
        return round((rate - left) / (right - left or 1) * (_WIDTH - 1))

    rows = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    line = thrash_rate(result)
    if line is not None:
        for signs in rows:
            signs[column(line)] = _LINE
    for index, points in enumerate(series.values()):
        for rate, value in points:
            rows[scale(value)][column(rate)] = _SIGNS[index % len(_SIGNS)]
    marks = {0: human(high, unit), _HEIGHT - 1: human(low, unit)}
    width = max(map(len, marks.values()))
    lines = [f"{marks.get(row, ''):>{width}} |{''.join(signs).rstrip()}" for row, signs in enumerate(rows)]
    lines.append(" " * width + " +" + "-" * _WIDTH)
    ends = human(left, "1/second"), human(right, "1/second")
    lines.append(" " * (width + 2) + ends[0] + ends[1].rjust(_WIDTH - len(ends[0])))
    return Drawing(title, (*lines, *_legend(list(series), line)))


def _scale(low: float, high: float, logarithmic: bool) -> Callable[[float], int]:
    """Return what gives the row of a value, the largest on top."""
    shape: Callable[[float], float] = math.log if logarithmic else float

    def place(value: float) -> int:
        if high <= low:
            return _HEIGHT - 1
        share = (shape(value) - shape(low)) / (shape(high) - shape(low))
        return round((1 - min(1.0, max(0.0, share))) * (_HEIGHT - 1))

    return place


def _legend(names: list[str], line: float | None) -> list[str]:
    shown = "   ".join(f"{_SIGNS[index % len(_SIGNS)]} {name}" for index, name in enumerate(names))
    rule = [] if line is None else [f"{_LINE} close admission: 5 evictions/s or 20 % recomputed"]
    return [shown, *rule]
