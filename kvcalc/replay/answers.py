"""What a curve says: the points to show, the knee, a loop larger than the cache, the cost of whole blocks."""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay.curve import Curve
from kvcalc.replay.results import BlockRounding, HitPoint, Knee, Scan
from kvcalc.replay.rows import Ruler
from kvcalc.replay.stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS = 64
"""Capacities of the curve that a result shows, spread evenly over their logarithm."""

GIB = 2.0**30

SATURATED = 0.999
"""Share of the hits of an infinite cache from which a larger one is not worth drawing [1]."""

SCAN_WIDTH = 1.25
"""Reuse that comes back within this factor of one distance counts as one loop [1]; chosen."""

SCAN_SHARE = 0.5
"""Share of all reuse that one loop must hold to be warned of [1]; chosen: then most of what a larger cache
would hit begins to be hit at one size."""


def points_of(curve: Curve, ruler: Ruler) -> tuple[HitPoint, ...]:
    """Return the curve at capacities from one block to all that is ever hit."""
    if curve.full < 1:
        return ()
    sizes = np.unique(np.geomspace(1, curve.full, POINTS).round().astype(np.int64))
    tokens, blocks = curve.tokens.at(sizes), curve.blocks.at(sizes)
    gains = np.append(np.diff(tokens) / np.diff(sizes), 0.0)
    more = _with_one_gib_more(sizes, ruler)
    gained = None if more is None else (curve.tokens.at(more) - tokens) / max(1, curve.asked_tokens)
    return tuple(
        HitPoint(
            capacity_blocks=size,
            capacity_tokens=ruler.capacity_tokens(size),
            capacity_bytes=ruler.bytes_of(size),
            hit_rate_tokens=hit / max(1, curve.asked_tokens),
            hit_rate_blocks=hit_blocks / max(1, curve.asked_blocks),
            gained_tokens_per_block=gain,
            gained_per_gib=None if gained is None else float(gained[index]),
        )
        for index, (size, hit, hit_blocks, gain) in enumerate(
            zip(sizes.tolist(), tokens.tolist(), blocks.tolist(), gains.tolist(), strict=True)
        )
    )


def _with_one_gib_more(sizes: "NDArray[np.int64]", ruler: Ruler) -> "NDArray[np.int64] | None":
    """Return the blocks that caches hold with one GiB more; None where the bytes of a block are unknown."""
    unit = ruler.bytes_of(1)
    if unit is None:
        return None
    share = 1.0 if ruler.followed is None else ruler.followed
    return sizes + round(GIB / unit * share)


def knee_of(curve: Curve, ruler: Ruler) -> Knee | None:
    """Return the point farthest above the line from an empty cache to one that hits nearly all there is."""
    total = int(curve.tokens.values[-1])
    if total <= 0:
        return None
    knots = curve.tokens.knots
    values = np.maximum.accumulate(curve.tokens.values)
    end = int(np.searchsorted(values, SATURATED * total))
    span, height = max(1, int(knots[end])), max(1, int(values[end]))
    above = values[: end + 1] / height - knots[: end + 1] / span
    best = int(np.argmax(above))
    size, hits = int(knots[best]), int(curve.tokens.values[best])
    return Knee(
        capacity_blocks=size,
        capacity_tokens=ruler.capacity_tokens(size),
        capacity_bytes=ruler.bytes_of(size),
        hit_rate_tokens=hits / max(1, curve.asked_tokens),
        share_of_infinite=hits / total,
    )


def scan_of(curve: Curve) -> Scan | None:
    """Return the distance at which most reuse comes back, if there is one: a loop over so many blocks."""
    total = int(curve.blocks.values[-1])
    if total <= 0:
        return None
    low = np.maximum(np.union1d(curve.blocks.knots, curve.blocks.knots + 1), 1)
    high = np.floor(low * SCAN_WIDTH).astype(np.int64)
    inside = curve.blocks.at(high) - curve.blocks.at(low - 1)
    best = len(inside) - 1 - int(np.argmax(inside[::-1]))  # the largest distance of those that hold as much
    share = int(inside[best]) / total
    if share < SCAN_SHARE or int(low[best]) <= 1:
        return None
    return Scan(distance_blocks=int(low[best]), share_of_reuse=share)


def rounding_of(stream: Stream) -> BlockRounding:
    """Bound what finer blocks could add to the hits of an infinite cache.

    A request that leaves the chains of earlier ones inside a block may have shared all of that block but one
    token, if any earlier request had another block at that place.
    """
    each = stream.trace.block_tokens
    if each == 0:
        return BlockRounding(None, None, None)
    groups = stream.groups
    hits = np.bincount(groups.request, groups.blocks, minlength=stream.requests).astype(np.int64)
    rest = stream.trace.input_tokens - hits * each
    lost = np.where(hits < stream.blocks, np.clip(rest, 0, each - 1), np.clip(rest, 0, each - 1) * (rest > 0))
    lost = np.where(_had_other(stream, hits), lost, 0)[stream.counted]
    asked = int(stream.trace.input_tokens[stream.counted].sum())
    return BlockRounding(each, int(lost.sum()), int(lost.sum()) / max(1, asked))


def _had_other(stream: Stream, hits: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Tell where an earlier request was there to branch from: any but the first, at least at its head."""
    earlier = np.arange(stream.requests) > 0
    return earlier | (hits > 0)
