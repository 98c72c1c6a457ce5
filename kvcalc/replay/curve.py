"""The hit curve of least recently used: what every capacity hits, exactly, as a piecewise linear function.

Each group adds hits from its depth on, one block of capacity after the other until all of it is hit (or
at once, where a group is hit whole or not at all).  A last block that is not full takes tokens off where it
begins to be hit.
"""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay.depths import Depths

if TYPE_CHECKING:
    from numpy.typing import NDArray


@record
class Line:
    """A function of the capacity: linear between `knots`, right-continuous where it jumps."""

    knots: "NDArray[np.int64]"
    values: "NDArray[np.int64]"  # at each knot
    slopes: "NDArray[np.int64]"  # from each knot on

    def at(self, capacity: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the values at capacities.

        >>> line = line_of(np.array([2, 5]), np.array([1, -1]), np.array([0, 10]))
        >>> line.at(np.array([0, 2, 3, 5, 9])).tolist()
        [0, 0, 1, 13, 13]
        """
        place = np.searchsorted(self.knots, capacity, side="right") - 1
        safe = np.maximum(place, 0)
        found = self.values[safe] + self.slopes[safe] * (capacity - self.knots[safe])
        return np.where(place < 0, 0, found).astype(np.int64)


def line_of(places: "NDArray[np.int64]", slopes: "NDArray[np.int64]", jumps: "NDArray[np.int64]") -> Line:
    """Return the function whose slope and value change by so much at each place."""
    places = np.concatenate(([0], places))
    knots, index = np.unique(places, return_inverse=True)
    slope = np.zeros(len(knots), np.int64)
    jump = np.zeros(len(knots), np.int64)
    np.add.at(slope, index[1:], slopes)
    np.add.at(jump, index[1:], jumps)
    slope = np.cumsum(slope)
    rise = np.concatenate(([0], slope[:-1] * np.diff(knots)))
    return Line(knots, np.cumsum(rise + jump), slope)


@record
class Curve:
    """Hits of the counted requests at every capacity (blocks, or tokens where blocks differ)."""

    blocks: Line
    tokens: Line
    asked_blocks: int  # by the counted requests
    asked_tokens: int

    @property
    def full(self) -> int:
        """Smallest capacity that hits all there is to hit."""
        return int(self.blocks.knots[-1])

    def rates(self, capacity: "NDArray[np.int64]") -> "NDArray[np.float64]":
        """Return the token-weighted hit rates at capacities."""
        return np.asarray(self.tokens.at(capacity) / max(1, self.asked_tokens), np.float64)


def curve_of(depths: Depths, chosen: "NDArray[np.bool_] | None" = None) -> Curve:
    """Return the curve of the counted requests, or of those among them that are chosen."""
    stream, groups = depths.stream, depths.groups
    counted = stream.counted if chosen is None else stream.counted & chosen
    some = counted[groups.request]
    near, blocks, size = depths.nearest[some], groups.blocks[some], groups.size[some]
    asked = int(stream.blocks[counted].sum()), int(stream.trace.input_tokens[counted].sum())
    ends = depths.ends[counted]
    ends = ends[ends >= 0]
    if groups.whole:
        zero = np.zeros_like(near)
        return Curve(line_of(near + size, zero, blocks), line_of(near + size, zero, size), *asked)
    each = stream.trace.block_tokens
    if depths.gradual:
        ones = np.ones_like(near)
        places = np.concatenate((near, near + size))
        slopes, jumps = np.concatenate((ones, -ones)), np.zeros(2 * len(near), np.int64)
    else:
        places, slopes, jumps = near + size, np.zeros_like(near), blocks
    last_block = 1 if depths.reversed else groups.size[ends]
    short_at = depths.nearest[ends] + last_block
    short = stream.short[counted][depths.ends[counted] >= 0]
    nothing = np.zeros_like(short)
    return Curve(
        line_of(places, slopes, jumps),
        line_of(
            np.concatenate((places, short_at)),
            np.concatenate((slopes * each, nothing)),
            np.concatenate((jumps * each, -short)),
        ),
        *asked,
    )
