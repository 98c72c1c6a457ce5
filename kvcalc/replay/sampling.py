"""A replay of a sample of blocks, chosen by their hash (SHARDS): for traces too large to replay whole.

A block is followed in every request or in none, so that a cache of a share R of the blocks, replayed on a
share R of them, hits as often as the whole.  The number of blocks is fixed, which fixes R.  Popular blocks
are in the sample or not; the accesses that it has too few or too many are put down as hits of the smallest
cache (SHARDS-adj).  Source: Waldspurger and others, FAST 2015, section 3; the error is the spread of
`PARTS` disjoint parts of the sample.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.records import record
from kvcalc.replay.asked import Asked
from kvcalc.replay.cells import Cell
from kvcalc.replay.curve import Curve, curve_of
from kvcalc.replay.depths import depths_of
from kvcalc.replay.results import HitPoint, Knee, ReplayLoad, ReplayRow, Sampling, Scan
from kvcalc.replay.stream import stream_of
from kvcalc.replay.tenants import SHARED
from kvcalc.replay.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

CAPACITIES = ("capacity_blocks", "capacity_tokens", "capacity_bytes")

PARTS = 8
"""Disjoint parts of a sample whose spread gives the error [1]."""

FEWEST = 32
"""Blocks of a sample that a cache must hold for its hits to be those of the whole [1]; chosen: the cache of
each of the `PARTS` then holds 4."""

MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Multipliers of splitmix64; source: Steele, Lea and Flood, OOPSLA 2014."""

STEP = 0x9E3779B97F4A7C15
"""Increment of splitmix64; source: same."""


@record
class Sample:
    """A trace of some of the blocks of another."""

    trace: Trace
    rate: float  # share of the blocks that were followed
    scale: float  # accesses of the sample over those that its rate lets expect

    def blocks(self, capacity: int) -> int:
        """Return the capacity for the sample of a cache."""
        return max(1, round(capacity * self.rate))

    def adjusted(self, hit_rate: float) -> float:
        """Return a hit rate of the sample with the accesses that it should have had."""
        return min(1.0, max(0.0, 1 - (1 - hit_rate) * self.scale))


def hashes(count: int) -> "NDArray[np.float64]":
    """Return an even number between 0 and 1 for each block id.

    >>> bool(abs(hashes(10_000).mean() - 0.5) < 0.01)
    True
    """
    with np.errstate(over="ignore"):
        mixed = (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(STEP)
        for shift, mixer in zip((30, 27), MIXERS, strict=True):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(mixer)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def sample_of(trace: Trace, low: float, high: float) -> Sample:
    """Return the blocks whose hash lies between two numbers."""
    chosen = hashes(trace.unique_blocks)
    kept = (chosen >= low) & (chosen < high)
    before = np.concatenate(([0], np.cumsum(kept)))
    first = before[trace.run_first]
    blocks = before[trace.run_first + trace.run_blocks] - first
    some = blocks > 0
    start = np.concatenate(([0], np.cumsum(some)))[trace.run_start]
    rate = high - low
    made = replace(trace, run_first=first[some], run_blocks=blocks[some], run_start=start, component=None)
    made = replace(made, input_tokens=_tokens(trace, made, kept))
    return Sample(made, rate, int(blocks.sum()) / max(1.0, rate * trace.accesses))


def _tokens(trace: Trace, made: Trace, kept: "NDArray[np.bool_]") -> "NDArray[np.int64]":
    """Return the tokens of the blocks of each request that were kept; a last block may not be full."""
    counts = trace.request_blocks
    short = np.clip(counts * trace.block_tokens - trace.input_tokens, 0, trace.block_tokens)
    ends = trace.run_start[1:] - 1
    last = np.where(counts > 0, trace.run_first[ends] + trace.run_blocks[ends] - 1, 0)
    tokens = made.request_blocks * trace.block_tokens
    return tokens - np.where((counts > 0) & kept[last], short, 0)


def sampled(trace: Trace, asked: Asked) -> Sample | None:
    """Return the sample that is asked for; None where it would be the whole trace.

    Raises
    ------
    SettingsError
        If so few blocks tell nothing, or tiers, quotas or blocks of different sizes are asked for as well.
    """
    if asked.sample is None or asked.sample >= trace.unique_blocks:
        return None
    if asked.sample < FEWEST:
        raise SettingsError(f"--sample: {asked.sample} blocks are too few; follow {FEWEST} or more")
    if asked.tiers or asked.quota != SHARED or trace.block_tokens == 0:
        raise SettingsError("--sample: not with --tier, --quota or blocks of different sizes")
    if asked.machine is not None and asked.machine.speed is not None:
        raise SettingsError("--sample: not with --on, whose times are those of whole requests")
    if asked.semantics.output != "ignored":
        raise SettingsError("--sample: not with --output cached, whose turns a sample does not show")
    return sample_of(trace, 0.0, asked.sample / trace.unique_blocks)


def shrunk(cells: tuple[Cell, ...], sample: Sample) -> tuple[Cell, ...]:
    """Return the cells as the sample has them."""
    return tuple(
        replace(cell, task=replace(cell.task, capacity=sample.blocks(cell.task.capacity))) for cell in cells
    )


def grown_row(row: ReplayRow, sample: Sample, load: ReplayLoad, error: float) -> ReplayRow:
    """Return a row of the sample as one of the whole trace; `load` is that of the whole trace."""
    rates = ("hit_rate", "hit_rate_tokens", "hit_rate_blocks", "hit_rate_requests")
    counts = ("recomputed_tokens", "restored_bytes", "inserted_blocks", "evictions")
    new: dict[str, Any] = {name: sample.adjusted(getattr(row, name)) for name in rates}
    new |= _over(row, counts, sample.rate)
    new["hit_tokens"] = new["hit_rate_tokens"] * load.input_tokens
    new["hit_blocks"] = new["hit_rate_blocks"] * load.blocks
    new["computed_tokens"] = load.input_tokens - new["hit_tokens"]
    new |= {
        name: min(1.0, getattr(row, name) * sample.scale) for name in ("lost_to_capacity", "lost_to_policy")
    }
    return replace(row, **new, tenants=(), sampling_error=error)


def grown_curve(curve: tuple[HitPoint, ...], sample: Sample) -> tuple[HitPoint, ...]:
    """Return the points of the sample's curve as points of the whole trace, but for those of a few blocks."""
    return tuple(_grown_point(point, sample) for point in curve if point.capacity_blocks >= FEWEST)


def _grown_point(point: HitPoint, sample: Sample) -> HitPoint:
    new = _over(point, CAPACITIES, sample.rate)
    new |= {name: sample.adjusted(getattr(point, name)) for name in ("hit_rate_tokens", "hit_rate_blocks")}
    if point.gained_per_gib is not None:
        new["gained_per_gib"] = min(1.0, point.gained_per_gib * sample.scale)
    return replace(point, **new)


def grown_knee(knee: Knee | None, sample: Sample) -> Knee | None:
    """Return the knee of the sample's curve as one of the whole trace; None at a few blocks."""
    if knee is None or knee.capacity_blocks < FEWEST:
        return None
    rate = sample.adjusted(float(knee.hit_rate_tokens))
    return replace(knee, **_over(knee, CAPACITIES, sample.rate), hit_rate_tokens=rate)


def grown_scan(scan: Scan | None, sample: Sample) -> Scan | None:
    """Return the loop of the sample as one of the whole trace; None of a few blocks."""
    if scan is None or scan.distance_blocks < FEWEST:
        return None
    return replace(scan, **_over(scan, ("distance_blocks",), sample.rate))


def too_few(trace: Trace, sample: Sample, cells: tuple[Cell, ...]) -> str | None:
    """Return a warning of capacities that are a few blocks of the sample; None where there are none."""
    sizes = {cell.capacity.text: cell.task.capacity for cell in cells if cell.capacity is not None}
    small = {text: size for text, size in sizes.items() if size * sample.rate < FEWEST}
    if not small:
        return None
    enough = math.ceil(FEWEST * trace.unique_blocks / min(small.values()))
    advice = f"--sample {enough}" if enough < trace.unique_blocks else "leaving out --sample"
    return (
        f"--sample: {', '.join(small)} hold less than {FEWEST} of the blocks that are followed, too few to "
        f"trust their hit rates; {advice} helps"
    )


def _over(part: object, names: tuple[str, ...], rate: float) -> dict[str, Any]:
    """Return fields of a part over the rate, where they are known."""
    found = {name: getattr(part, name) for name in names}
    return {name: None if value is None else value / rate for name, value in found.items()}


def sampling_of(sample: Sample, errors: "Mapping[int | None, float]") -> Sampling:
    """Return what was followed, and how far the sample may be off at worst."""
    finite = [error for size, error in errors.items() if size is not None]
    return Sampling(sample.rate, int((sample.trace.request_blocks > 0).sum()), max(finite, default=0.0))


def errors_of(
    trace: Trace, sample: Sample, asked: Asked, cells: tuple[Cell, ...]
) -> "dict[int | None, float]":
    """Return how far the sample may be off, by capacity in blocks; None is the one without end.

    The standard error of the parts' mean, and how far this mean is from the sample's own rate: parts hold an
    eighth of its blocks, so that what smaller samples get wrong shows in it.
    """
    sizes = list(dict.fromkeys(None if cell.capacity is None else cell.task.capacity for cell in cells))
    edges = np.linspace(0.0, sample.rate, PARTS + 1).tolist()
    rates = np.array([_rates(sample_of(trace, *span), asked, sizes) for span in pairwise(edges)])
    spread = np.std(rates, axis=0, ddof=1) / np.sqrt(PARTS)
    drift = rates.mean(axis=0) - _rates(sample, asked, sizes)
    return dict(zip(sizes, np.hypot(spread, drift).tolist(), strict=True))


def _rates(sample: Sample, asked: Asked, sizes: list[int | None]) -> "NDArray[np.float64]":
    """Return what LRU hits at each capacity by a sample."""
    curve = _curve(sample.trace, asked)
    at = np.array([curve.full if size is None else sample.blocks(size) for size in sizes])
    return 1 - (1 - curve.rates(at)) * sample.scale


def _curve(trace: Trace, asked: Asked) -> Curve:
    said = replace(asked.semantics, touch="tail", oversize="truncate", lookup="atomic")
    return curve_of(depths_of(stream_of(trace, said), said))
