"""Curves as characters: logarithmic values over evenly spaced points, one sign a curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvcalc.output.format import human

WIDTH, HEIGHT = 64, 16
"""Columns and rows of a plot, which fits 80 columns with its labels [1]."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a point and a value stand in the plot."""

    points: Sequence[float]
    low: float  # exponents of the values at the bottom and on top
    high: float

    @classmethod
    def of(cls, points: Sequence[float], values: Sequence[float]) -> "Scale":
        """Return the scale that holds all values, a decade at least."""
        low = math.log10(min(values, default=1.0))
        return cls(points, low, max(math.log10(max(values, default=10.0)), low + 1))

    def index(self, column: int) -> int:
        """Return which point stands in a column."""
        return round(column * (len(self.points) - 1) / (WIDTH - 1))

    def column(self, point: float) -> int:
        """Return the column of the nearest point."""
        nearest = min(range(len(self.points)), key=lambda index: abs(self.points[index] - point))
        return round(nearest * (WIDTH - 1) / max(1, len(self.points) - 1))

    def row(self, value: float) -> int:
        """Return the row of a value, the largest on top."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round((1 - min(1.0, max(0.0, share))) * (HEIGHT - 1))

    def decades(self) -> list[float]:
        """Return the powers of ten on the axis, no more than every third row."""
        powers = range(math.ceil(self.low), math.floor(self.high) + 1)
        step = 1 + (3 * len(powers)) // HEIGHT
        return [10.0**power for power in powers if power % step == 0] or [10.0**self.high]


@dataclass(frozen=True, slots=True)
class Plot:
    """The lines of a plot down to its lower axis, and what it takes to write under it."""

    lines: tuple[str, ...]
    left: int  # columns of the labels on the left
    scale: Scale


def plot(
    points: Sequence[float],
    series: Sequence[tuple[str, Sequence[float | None]]],
    unit: str,
    mark: float | None = None,
) -> Plot:
    """Return curves of one unit over `points`, later ones above; `mark` is a point with an upright line."""
    scale = Scale.of(points, [value for _, values in series for value in values if value])
    rows = [[" "] * WIDTH for _ in range(HEIGHT)]
    if mark is not None and points[0] <= mark <= points[-1]:
        for signs in rows:
            signs[scale.column(mark)] = ":"
    for sign, values in series:
        for column in range(WIDTH):
            value = values[scale.index(column)]
            if value:
                rows[scale.row(value)][column] = sign
    marks = {scale.row(value): human(value, unit) for value in scale.decades()}
    left = max(map(len, marks.values()))
    lines = [f"{marks.get(row, ''):>{left}} |{''.join(signs).rstrip()}" for row, signs in enumerate(rows)]
    return Plot((*lines, " " * left + " +" + "-" * WIDTH), left, scale)
