"""All combinations of the values of several axes, as rows with numbers, divided into chunks.

Rows that share a launch stand together: the axes that change the launch vary slowest, those of the
load fastest, each kind in the order given.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.catalog.scenarios import Question
from kvcalc.sweeping.axes import Axis, applied

CHUNK_ROWS = 65_536
"""Rows of a chunk [1]: some tens of megabytes with all columns."""

CHUNK_LAUNCHES = 256
"""Launches of a chunk at most [1]: each takes milliseconds, so that a chunk takes seconds."""

CHUNK_PLANS = 64
"""Rows of a chunk that can only be planned one by one [1], each of which takes tens of milliseconds."""


@dataclass(frozen=True)
class Grid:
    """A question and the axes over which it is asked."""

    question: Question
    axes: tuple[Axis, ...]  # as they were given
    alone: bool  # rows can only be planned one by one
    chunk_rows: int  # of every chunk but the last

    @cached_property
    def ordered(self) -> tuple[Axis, ...]:
        """The axes from the slowest to the fastest."""
        return (*self.launches, *self.loads)

    @cached_property
    def launches(self) -> tuple[Axis, ...]:
        """The axes that change the launch."""
        return tuple(axis for axis in self.axes if not axis.is_load)

    @cached_property
    def loads(self) -> tuple[Axis, ...]:
        """The axes of the load."""
        return tuple(axis for axis in self.axes if axis.is_load)

    @cached_property
    def rows_of_launch(self) -> int:
        """Rows that share a launch."""
        return math.prod(len(axis.values) for axis in self.loads)

    @cached_property
    def count(self) -> int:
        """Rows of the whole grid."""
        return self.rows_of_launch * math.prod(len(axis.values) for axis in self.launches)

    @classmethod
    def of(cls, question: Question, axes: tuple[Axis, ...], alone: bool = False) -> "Grid":
        """Return the grid, divided into chunks that take seconds and some tens of megabytes."""
        rows = math.prod(len(axis.values) for axis in axes if axis.is_load)
        return cls(question, axes, alone, min(CHUNK_ROWS, CHUNK_PLANS if alone else CHUNK_LAUNCHES * rows))

    @cached_property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.count // self.chunk_rows)

    def span(self, number: int) -> tuple[int, int]:
        """Return the first row of a chunk, and the one behind its last."""
        return number * self.chunk_rows, min(self.count, (number + 1) * self.chunk_rows)

    def digits(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return which value of each axis, by its key, some rows have."""
        found: dict[str, NDArray[np.int64]] = {}
        for axis in reversed(self.ordered):
            rows, found[axis.key] = np.divmod(rows, len(axis.values))
        return found

    def asked(self, row: int) -> tuple[Question, dict[str, Any]]:
        """Return the question of a row's launch, and its load by key."""
        digits = {name: int(place[0]) for name, place in self.digits(np.array([row])).items()}
        values = {axis.key: axis.values[digits[axis.key]] for axis in self.axes}
        question = applied(self.question, self.launches, [values[axis.key] for axis in self.launches])
        return question, {axis.key: values[axis.key] for axis in self.loads}
