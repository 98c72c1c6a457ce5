"""Bytes against context as a drawing of characters: both axes in powers, one sign a component."""

import math

from kvcalc.output.format import human, label, tokens_text
from kvcalc.output.page import Drawing
from kvcalc.output.plot import WIDTH, Scale, plot
from kvcalc.results import GrowthCurve

_SIGNS = "*o+x#@%&"
_SUM = "."


def drawing(growth: GrowthCurve) -> Drawing:
    """Return a chart with logarithmic axes, on which a capped or constant part is a flat line."""
    totals = sums(growth)
    series = [(_SIGNS[index % len(_SIGNS)], line.bytes) for index, line in enumerate(growth.lines)]
    if len(series) > 1:
        series.insert(0, (_SUM, totals))
    drawn = plot(growth.tokens, series, "byte")
    lines = [*drawn.lines, " " * drawn.left + "  " + _lengths(drawn.scale)]
    return Drawing(
        "Bytes of one sequence against its length, both in powers", (*lines, *_legend(growth, totals))
    )


def sums(growth: GrowthCurve) -> tuple[float, ...]:
    """Return the bytes of all components together at each length."""
    return tuple(float(sum(sizes)) for sizes in zip(*(line.bytes for line in growth.lines), strict=True))


def names(growth: GrowthCurve) -> list[str]:
    """Return each component as a legend names it, with its layers and the length at which it is full."""
    return [
        f"{label(line.kind)}, {line.layers} {'layer' if line.layers == 1 else 'layers'}"
        + (f", full at {human(line.cap_tokens, 'token')}" if line.cap_tokens else "")
        for line in growth.lines
    ]


def _lengths(scale: Scale) -> str:
    """Return the powers of two under the axis, as many as find room, and the unit."""
    line = [" "] * (WIDTH + 24)
    free = 0
    power = math.ceil(math.log2(scale.points[0]))
    while 2**power <= scale.points[-1]:
        text, start = f"{2**power:,}", _column(scale, 2**power)
        if start >= free and start + len(text) <= WIDTH:
            line[start : start + len(text)] = text
            free = start + len(text) + 3
        power += 2
    return "".join(line).rstrip() + " tokens"


def _column(scale: Scale, length: float) -> int:
    """Return the column of a length, also between two points."""
    first, last = math.log2(scale.points[0]), math.log2(scale.points[-1])
    return round((math.log2(length) - first) / (last - first) * (WIDTH - 1))


def _legend(growth: GrowthCurve, totals: tuple[float, ...]) -> list[str]:
    """Return sign, name and bytes at both ends of the axis, one component a line."""
    shown = [
        (_SIGNS[index % len(_SIGNS)], name, line.bytes)
        for index, (name, line) in enumerate(zip(names(growth), growth.lines, strict=True))
    ]
    if len(shown) > 1:
        shown.append((_SUM, "all", totals))
    rows = [("", "", f"at {tokens_text(growth.tokens[0])}", f"at {tokens_text(growth.tokens[-1])}")]
    rows += [(sign, name, human(sizes[0], "byte"), human(sizes[-1], "byte")) for sign, name, sizes in shown]
    name, first, last = (max(len(row[column]) for row in rows) for column in (1, 2, 3))
    return ["", *(f"{row[0]:1}  {row[1]:<{name}}  {row[2]:>{first}}  {row[3]:>{last}}" for row in rows)]
