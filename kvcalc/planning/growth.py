"""Bytes of one sequence against its length, component by component, for a picture."""

import math

import numpy as np

from kvcalc.engines.layout import Layout
from kvcalc.results import GrowthCurve, GrowthLine

POINTS = 97
"""Lengths of a curve [1], evenly spaced in their logarithm: more than a chart has columns."""

OCTAVES = 10
"""Doublings of the length that a curve shows at least [1]."""


def growth_of(layout: Layout, longest: int) -> GrowthCurve:
    """Return the stored bytes of each component, one logical copy, at lengths up to `longest`.

    The lengths reach down to a quarter of the smallest window, so that it is seen to fill up.
    """
    caps = [part.cap_tokens for part in layout.logical if part.cap_tokens]
    shortest = max(1, min(longest >> OCTAVES, *(cap // 4 for cap in caps), longest))
    first = 2 ** math.floor(math.log2(shortest))
    ends = math.log2(first), math.log2(max(longest, 2 * first))
    lengths = np.unique(np.round(2.0 ** np.linspace(*ends, POINTS))).astype(np.float64)
    return GrowthCurve(
        tokens=tuple(int(length) for length in lengths),
        lines=tuple(
            GrowthLine(
                part.kind,
                part.layers,
                part.cap_tokens,
                tuple(float(size) for size in np.broadcast_to(part.stored_at(lengths), lengths.shape)),
            )
            for part in layout.logical
        ),
    )
