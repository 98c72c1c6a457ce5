"""The page of `kvcalc sweep`: what was varied, how much fits, the best row, the front, a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from kvcalc.output.fields import shown
from kvcalc.output.format import human
from kvcalc.output.page import Block, Cell, Drawing, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks
from kvcalc.output.plot import WIDTH, plot
from kvcalc.sweeping.results import SweepAxis, SweepChart, SweepLine, SweepResult
from kvcalc.tables import Column
from kvcalc.wording import counted

SHOWN = 20
"""Rows of a list on the page; files and the other formats have all of them."""

MAIN = (
    *("fits", "capacity.sessions", "capacity.utilization", "first_limit", "decode.tokens_per_second"),
    *("prefill.time", "decode.step_time", "offload.verdict", "offload.speedup", "cost_per_million_tokens"),
)
"""Columns that the page shows beside the inputs, in order; a narrow terminal drops the last ones."""

_WORDS = {
    "fits": "fits",
    "capacity.sessions": "room for",
    "capacity.utilization": "KV used",
    "first_limit": "first limit",
    "decode.tokens_per_second": "token/s",
    "prefill.time": "prefill",
    "decode.step_time": "step",
    "offload.verdict": "best tier",
    "offload.speedup": "speedup",
    "cost_per_million_tokens": "per M tokens",
}
_SIGNS = "*o+x#@"


def page(result: SweepResult) -> Page:
    """Return the page."""
    blocks: list[Block] = [Lines("", (_headline(result), *map(_axis, result.axes)))]
    goals = [goal.partition(":")[2] for goal in (result.best_by or "", *result.pareto_by) if goal]
    if result.best_by is not None:
        title = f"Best: {_way(result.best_by)}"
        rows = [result.best] if result.best is not None else []
        blocks.append(_rows(result, title, rows, goals))
    if result.pareto_by:
        title = "Pareto front: " + ", ".join(map(_way, result.pareto_by))
        blocks.append(_rows(result, title, result.pareto, goals))
    if result.chart is not None:
        blocks.append(_drawing(result, result.chart))
    if len(result.rows) and not result.pareto_by:
        blocks.append(_rows(result, "Rows", result.rows, goals))
    elif len(result.rows):
        count = "The row" if len(result.rows) == 1 else f"All {len(result.rows):,} rows"
        blocks.append(Lines("Rows", (f"{count}: with --format csv or json, or --save FILE.",)))
    return Page(_title(result), (*blocks, *remarks(result)))


def _title(result: SweepResult) -> str:
    names = [str(result.inputs[name]) for name in ("model", "on") if result.inputs.get(name)]
    return f"Sweep of {' on '.join(names)}" if names else "Sweep"


def _headline(result: SweepResult) -> Cell:
    count, fitting, answered = (int(n) for n in (result.count, result.fitting, result.answered))
    said = f"{fitting:,} of {count:,} rows fit"
    if answered < count:
        said += f"; {counted(count - answered, 'has', 'have')} no answer, column `reason` says why"
    return Cell(said + ".", "good" if fitting else "bad")


def _axis(axis: SweepAxis) -> str:
    ends = [value if isinstance(value, str) else human(value, axis.unit) for value in (axis.first, axis.last)]
    if axis.count == 1:
        return f"{axis.key}: {ends[0]}"
    return f"{axis.key}: {axis.count:,} values from {ends[0]} to {ends[1]}"


def _way(goal: str) -> str:
    way, _, name = goal.partition(":")
    return f"{'most' if way == 'max' else 'least'} {name}"


def _rows(
    result: SweepResult, title: str, rows: Sequence[Mapping[str, Any]], goals: Sequence[str]
) -> Grid | Lines:
    """Return some rows: the inputs that were varied, what was asked for, and the main columns."""
    if not rows:
        return Lines(title, ("none: no row fits",))
    known = {column.name: column for column in result.known_columns}
    names = list(dict.fromkeys((*(axis.key for axis in result.axes), *goals, *MAIN)))
    columns = [known[name] for name in names]
    few = list(islice(rows, SHOWN))
    cells: list[tuple[Cell | str, ...]] = [
        tuple(_cell(column, _shown_word(column, row)) for column in columns) for row in few
    ]
    align = "".join("r" if column.unit else "l" for column in columns)
    left = len(rows) - len(few)
    notes = (f"{left:,} more with --format csv or json, or --save FILE.",) if left else ()
    header = tuple(_WORDS.get(name, name) for name in names)
    return replace(grid(title, header, align, cells, notes), wide="turn" if len(few) == 1 else "narrow")


def _shown_word(column: Column, row: Mapping[str, object]) -> object:
    """Return the value of a cell; the verdict on a tier that adds nothing is that."""
    nothing = column.name == "offload.verdict" and row.get("offload.adds_nothing") == "yes"
    return "adds nothing" if nothing else row.get(column.name)


def _cell(column: Column, value: object) -> Cell | str:
    if column.name == "fits":
        return Cell("yes", "good") if value else Cell("no", "bad")
    text = shown(column, value)
    return text.removesuffix(" token/s") if column.name == "decode.tokens_per_second" else text


def label(result: SweepResult, line: SweepLine) -> str:
    """Return what sets a line of the chart apart: the values of the other inputs."""
    known = {column.name: column for column in result.known_columns}
    return ", ".join(f"{name} {shown(known[name], value)}" for name, value in line.inputs.items())


def _drawing(result: SweepResult, chart: SweepChart) -> Drawing:
    signs = _SIGNS[: len(chart.lines)]
    drawn = plot(
        chart.points,
        [(sign, line.values) for sign, line in zip(signs, chart.lines, strict=True)],
        chart.unit,
    )
    ends = [human(point, chart.over_unit) for point in (chart.points[0], chart.points[-1])]
    axis = " " * (drawn.left + 2) + ends[0] + ends[1].rjust(WIDTH - len(ends[0]))
    legend = [f"{sign} {label(result, line)}" for sign, line in zip(signs, chart.lines, strict=True)]
    more = [f"{chart.left_out:,.0f} more lines are not drawn"] if chart.left_out else []
    title = f"{chart.column} over {chart.over}, in powers of ten"
    return Drawing(title, (*drawn.lines, axis, *(legend if len(legend) > 1 else ()), *more))
