"""Bytes against context as a drawing of characters: both axes in powers, one sign a component."""

import math
from collections.abc import Sequence

from kvcalc.output.format import human, label, tokens_text
from kvcalc.output.page import Drawing
from kvcalc.results import GrowthCurve

_WIDTH, _HEIGHT = 64, 16  # columns and rows of the plot, which fits 80 columns with its labels
_SIGNS = "*o+x#@%&"
_SUM = "."


def drawing(growth: GrowthCurve) -> Drawing:
    """Return a chart with logarithmic axes, on which a capped or constant part is a flat line."""
    totals = sums(growth)
    series = [(_SIGNS[index % len(_SIGNS)], line.bytes) for index, line in enumerate(growth.lines)]
    if len(series) > 1:
        series.insert(0, (_SUM, totals))
    scale = _Scale(growth.tokens, [size for _, sizes in series for size in sizes if size > 0])
    rows = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for sign, sizes in series:
        for column in range(_WIDTH):
            size = sizes[scale.index(column)]
            if size > 0:
                rows[scale.row(size)][column] = sign
    marks = {scale.row(size): human(size, "byte") for size in scale.decades()}
    left = max(map(len, marks.values()))
    lines = [f"{marks.get(row, ''):>{left}} |{''.join(signs).rstrip()}" for row, signs in enumerate(rows)]
    lines.append(" " * left + " +" + "-" * _WIDTH)
    lines.append(" " * left + "  " + _lengths(scale))
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


class _Scale:
    """Where a length and a size stand in the plot."""

    def __init__(self, tokens: Sequence[float], sizes: Sequence[float]) -> None:
        self.tokens = tokens
        self.low = math.log10(min(sizes, default=1.0))
        self.high = max(math.log10(max(sizes, default=10.0)), self.low + 1)

    def index(self, column: int) -> int:
        """Return which length stands in a column; lengths are evenly spaced in their logarithm."""
        return round(column * (len(self.tokens) - 1) / (_WIDTH - 1))

    def row(self, size: float) -> int:
        """Return the row of a size, the largest on top."""
        share = (math.log10(size) - self.low) / (self.high - self.low)
        return round((1 - min(1.0, max(0.0, share))) * (_HEIGHT - 1))

    def decades(self) -> list[float]:
        """Return the powers of ten on the axis, no more than every third row."""
        powers = range(math.ceil(self.low), math.floor(self.high) + 1)
        step = 1 + (3 * len(powers)) // _HEIGHT
        return [10.0**power for power in powers if power % step == 0] or [10.0**self.high]

    def column(self, length: float) -> int:
        """Return the column of a length."""
        first, last = math.log2(self.tokens[0]), math.log2(self.tokens[-1])
        return round((math.log2(length) - first) / (last - first) * (_WIDTH - 1))


def _lengths(scale: _Scale) -> str:
    """Return the powers of two under the axis, as many as find room, and the unit."""
    line = [" "] * (_WIDTH + 24)
    free = 0
    power = math.ceil(math.log2(scale.tokens[0]))
    while 2**power <= scale.tokens[-1]:
        text, start = f"{2**power:,}", scale.column(2**power)
        if start >= free and start + len(text) <= _WIDTH:
            line[start : start + len(text)] = text
            free = start + len(text) + 3
        power += 2
    return "".join(line).rstrip() + " tokens"


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
