"""The chart of a sweep as a picture file, through matplotlib, which is an extra."""

import io
from pathlib import Path

from kvcalc.output.chart import COLOURS
from kvcalc.output.format import human
from kvcalc.output.pages.sweep import label
from kvcalc.sweeping.results import SweepChart, SweepResult

MANY = 40
"""Points of a line [1] above which no markers are drawn."""

DECADES = 30.0
"""Largest over smallest [1] from which an axis is logarithmic."""


def picture(result: SweepResult, file: str) -> bytes:
    """Return the picture as the bytes of a file of this name's kind."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    chart = result.chart
    if chart is None:
        raise ValueError("the sweep has no chart")
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    marker = "o" if len(chart.points) <= MANY else ""
    for line, colour in zip(chart.lines, COLOURS, strict=False):
        values = [float("nan") if value is None else value for value in line.values]
        axes.plot(
            chart.points, values, marker=marker, markersize=4, label=_plain(label(result, line)), color=colour
        )
    if _wide(list(chart.points)):
        axes.set_xscale("log")
    if _wide([value for line in chart.lines for value in line.values if value is not None]):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: human(value, chart.over_unit))
    axes.yaxis.set_major_formatter(lambda value, _: human(value, chart.unit))
    axes.set_xlabel(chart.over)
    axes.set_ylabel(chart.column)
    axes.set_title(_plain(_title(result, chart)), fontsize="medium")
    axes.grid(alpha=0.3)
    if len(chart.lines) > 1:
        axes.legend()
    kind, out = Path(file).suffix.lower().removeprefix("."), io.BytesIO()
    # Without a date and with one salt, the same question gives the same file.
    with mpl.rc_context({"svg.hashsalt": "kvcalc"}):
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _title(result: SweepResult, chart: SweepChart) -> str:
    names = [str(result.inputs[name]) for name in ("model", "on") if result.inputs.get(name)]
    more = f" ({chart.left_out:,.0f} more lines are not drawn)" if chart.left_out else ""
    return f"{chart.column} over {chart.over}" + (f": {' on '.join(names)}" if names else "") + more


def _plain(text: str) -> str:
    """Keep a name from being read as a formula to typeset."""
    return text.replace("$", r"\$")


def _wide(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES
