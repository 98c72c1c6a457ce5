"""The page of `kvcalc evict simulate`: the policies at the load asked, the loads, and what it means."""

from dataclasses import replace

from kvcalc.eviction.results import SimulatedRow, SimulateResult, StabilityRow
from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.load_chart import drawings
from kvcalc.output.page import Cell, Drawing, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import footer

NEGLIGIBLE = "~0"
"""What stands for a figure below `RARE`."""

RARE = 1e-6
"""Figure below which a page shows none [1, or per second]: a chance in a million, or an eviction in twelve
days, is beyond what the closed forms can tell."""


def page(result: SimulateResult) -> Page:
    """Return times and waste by policy, the chart over loads, the closed forms and the findings."""
    asked = [row for row in result.rows if row.load == 1]
    rate = human(asked[0].rate, "1/second") if asked else ""
    blocks: tuple[Grid | Lines | Drawing, ...] = (
        _times(asked),
        _waste(asked),
        Lines("", (Cell(result.advice, "bold"),)),
        *_findings(result),
        *drawings(result),
        _limits(result),
        _stability(result),
        *footer(result),
    )
    return Page(f"Eviction policies on the same arrivals, {rate}", blocks)


def _times(rows: list[SimulatedRow]) -> Grid:
    header = (
        "policy",
        "TTFT P50",
        "P95",
        "P99",
        "ITL P50",
        "P95",
        "P99",
        "total P50",
        "P95",
        "P99",
        "goodput",
    )
    lines: list[tuple[Cell | str, ...]] = [
        (
            row.policy,
            *(text(part, p) for part in (row.ttft, row.itl, row.total) for p in ("p50", "p95", "p99")),
            text(row, "goodput"),
        )
        for row in rows
    ]
    return grid("Times", header, "l" + "r" * (len(header) - 1), lines)


def _waste(rows: list[SimulatedRow]) -> Grid:
    names = (
        *("evictions_per_second", "recomputed_share", "evicted_share", "repeat_evictions", "most_evictions"),
        *("near_complete_evictions", "truncated", "occupancy"),
    )
    header = ("policy", "evictions", "recomputed", "evicted", "twice", "most", "near end", "cut", "pool", "")
    lines: list[tuple[Cell | str, ...]] = [
        (row.policy, *(text(row, name) for name in names), _state(row)) for row in rows
    ]
    return grid("What evicting wastes", header, "l" + "r" * len(names) + "l", lines)


def _state(row: SimulatedRow) -> Cell:
    if not row.stable:
        return Cell("unstable", "bad")
    return Cell("thrashing", "bad") if row.thrashing else Cell("stable", "good")


def _findings(result: SimulateResult) -> tuple[Lines, ...]:
    lines = tuple(Cell(f"{item.policy}: {item.text}", "warn") for item in result.findings)
    return (Lines("What this is not", lines, bullet=True),) if lines else ()


def _limits(result: SimulateResult) -> Grid:
    rows: list[tuple[Cell | str, ...]] = [
        tuple(text(limit, name) for name in ("policy", "unstable_rate", "close_admission_rate"))
        for limit in result.limits
    ]
    header = ("policy", "unstable from", "close admission from")
    note = f"Closed forms see it turn unstable at {text(result, 'turning_rate')}."
    return grid("Lowest simulated load", header, "lrr", rows, (note,))


def _stability(result: SimulateResult) -> Grid:
    names = (
        "rate",
        "running",
        "occupancy",
        "overrun_probability",
        "evictions_per_second",
        "loop_gain",
        "reason",
    )
    header = ("load", "running", "pool", "overrun", "evictions", "loop gain", "")
    rows: list[tuple[Cell | str, ...]] = [
        tuple(_shown(row, name) for name in names) for row in result.stability
    ]
    safe = text(result.stability[0], "safe_concurrency") if result.stability else ""
    note = f"At most {safe} sequences at once overrun the pool no more often than once in a hundred times."
    return replace(grid("In closed form", header, "rrrrrrl", rows, (note,)), wide="under")


def _shown(row: StabilityRow, name: str) -> str:
    """Return a figure for people; one below `RARE` is none."""
    value = getattr(row, name)
    return NEGLIGIBLE if isinstance(value, float) and 0 < value < RARE else text(row, name)
