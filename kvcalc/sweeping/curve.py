"""The lines of a sweep's chart: one column over the first input of numbers, a line for each of the others."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.sweeping.chunks import Chunk, Words
from kvcalc.sweeping.grid import Grid
from kvcalc.sweeping.results import SweepChart, SweepLine

LINES = 6
"""Lines of one chart at most [1]; more are not told apart."""


@dataclass
class Curve:
    """Gathers the rows that a chart needs while chunks go by."""

    grid: Grid
    name: str  # of the column that is drawn
    unit: str
    _found: dict[int, dict[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose the axis to draw over: the first one of numbers with several values."""
        numbers = [axis for axis in self.grid.axes if not axis.is_words and len(axis.values) > 1]
        if not numbers:
            raise SettingsError("--chart: needs an input of two numbers or more to draw over")
        self.over = numbers[0]
        self.others = [axis for axis in self.grid.ordered if axis is not self.over]

    def see(self, chunk: Chunk) -> None:
        """Take the rows of a chunk into account."""
        values = chunk.columns[self.name]
        assert not isinstance(values, Words)
        rows = np.arange(chunk.start, chunk.start + len(chunk), dtype=np.int64)
        digits = self.grid.digits(rows)
        line = np.zeros(len(chunk), dtype=np.int64)
        for axis in self.others:
            line = line * len(axis.values) + digits[axis.key]
        for index in np.flatnonzero(line < LINES):
            points = self._found.setdefault(int(line[index]), {})
            points[int(digits[self.over.key][index])] = float(values[index])

    @property
    def chart(self) -> SweepChart:
        """What was gathered."""
        lines = []
        for number, points in sorted(self._found.items()):
            every = [points.get(place, float("nan")) for place in range(len(self.over.values))]
            values = tuple(None if np.isnan(value) else value for value in every)
            lines.append(SweepLine(self._inputs(number), values))
        whole = int(np.prod([len(axis.values) for axis in self.others], dtype=np.int64))
        points_of = tuple(float(value) for value in self.over.values)
        left = max(0, whole - len(lines))
        return SweepChart(self.name, self.unit, self.over.key, self.over.unit, points_of, tuple(lines), left)

    def _inputs(self, number: int) -> dict[str, Any]:
        """Return the values of the other inputs along a line."""
        found: dict[str, Any] = {}
        for axis in reversed(self.others):
            number, place = divmod(number, len(axis.values))
            if len(axis.values) > 1:
                found[axis.key] = axis.values[place]
        return dict(reversed(found.items()))
