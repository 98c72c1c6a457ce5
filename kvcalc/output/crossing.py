"""Restoring against recomputing over one input, as a drawing of characters."""

from textwrap import wrap

from kvcalc.offload_results import BreakEvenCurve
from kvcalc.output.format import human
from kvcalc.output.page import Drawing
from kvcalc.output.plot import WIDTH, Scale, plot

_SIGNS = "*o"
_MARKS = 4  # values of the variable under the axis, besides the first


def crossing(curve: BreakEvenCurve) -> Drawing:
    """Return both lines of a curve, with an upright line of colons at the break-even."""
    series = [(sign, line.values) for sign, line in zip(_SIGNS, curve.lines, strict=True)]
    drawn = plot(curve.points, series, curve.lines[0].unit, curve.break_even)
    return Drawing(
        title(curve),
        (
            *drawn.lines,
            " " * drawn.left + "  " + _axis(curve, drawn.scale),
            "",
            *(f"{sign}  {line.name}" for sign, line in zip(_SIGNS, curve.lines, strict=True)),
            *wrap(f":  {said(curve)}", WIDTH + drawn.left, subsequent_indent="   "),
        ),
    )


def title(curve: BreakEvenCurve) -> str:
    """Return what the curve compares."""
    return f"{curve.lines[0].name} and {curve.lines[1].name} over {_NAMES[curve.variable]}, {curve.tier}"


def said(curve: BreakEvenCurve) -> str:
    """Return the break-even in words, or why there is none."""
    if curve.break_even is None:
        return f"no break-even: {curve.reason}"
    point = human(curve.break_even, curve.unit, share=curve.unit == "1")
    return f"break-even at {point}: {curve.reason}"


_NAMES = {
    "bandwidth": "the bandwidth",
    "prefix": "the length of the prefix",
    "hit": "the share of requests that hit",
    "interval": "the time until a prefix is used again",
    "piece": "the size of one piece",
}


def _axis(curve: BreakEvenCurve, scale: Scale) -> str:
    """Return some values of the variable, each above its column's end."""
    line = [" "] * (WIDTH + 24)
    free = 0
    for step in range(_MARKS + 1):
        column = round(step * (WIDTH - 1) / _MARKS)
        text = human(curve.points[scale.index(column)], curve.unit, share=curve.unit == "1")
        start = max(0, min(column, WIDTH - len(text)))
        if start >= free:
            line[start : start + len(text)] = text
            free = start + len(text) + 2
    return "".join(line).rstrip()
