"""A restore and a recompute -> one row of a result, part by part, with its verdict."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kvcalc.formulas.breakeven import (
    cached_total,
    confidence,
    no_break_even,
    speedup,
    verdict,
)
from kvcalc.formulas.overlap import extra_wait, overlapped_total, pipeline_time
from kvcalc.formulas.restore import restore_time
from kvcalc.formulas.transfer import effective_bandwidth
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload.layers import best_group, lead_of
from kvcalc.planning.offload.restoring import Restoring
from kvcalc.quantity import Seconds, Share
from kvcalc.results import Offload
from kvcalc.tiers import PLAIN

PREFIX_STORE: Literal["prefix_store"] = "prefix_store"

LEAST_TIMES = 1.01
"""Factor from which two times are told apart as a multiple [1]."""

IDEAL_TRANSFER = (
    "restore counts only the transfer: queue, setup, conversion and sync time are zero, as given or since "
    "nothing says otherwise"
)


@dataclass(frozen=True)
class Times:
    """What one restore is compared with: full recompute, suffix after the hit, and their ranges."""

    recompute: float
    remaining: float
    # Time that a hit saves, before the restore itself: least and most under the efficiency range.
    saved_low: float
    saved_high: float


@dataclass(frozen=True)
class Lengths:
    """The prefixes that are worth restoring: long ones may lose again, where their link saturates."""

    least: float
    most: float | None  # None where the longest that was tried still pays
    every: bool  # whether all between pay


@dataclass(frozen=True)
class Stores:
    """What storing into the tier takes at the planned rate, and whether it adds anything to the GPUs."""

    need: float | None = None  # byte/second from one GPU
    budget: float | None = None  # byte/second that its link and the device can take
    nothing: bool | None = None
    why_nothing: str = ""


NO_STORES = Stores()
"""Nothing is known of what is stored: bare numbers."""


def restore_row(
    found: Restoring,
    times: Times,
    book: Notebook,
    lengths: Lengths | None = None,
    stores: Stores = NO_STORES,
) -> Offload:
    """Return one restore against one recompute, part by part, with its verdict."""
    route, size = found.route, float(found.size)
    bandwidth, parts = float(found.bandwidth), found.parts
    serial = _quote(found, times.remaining, book)
    if float(parts.total) <= float(parts.transfer) + route.first_operation:
        book.assume(IDEAL_TRANSFER)
    wait = float(found.exposed(parts.transfer, times.remaining)) if found.overlaps else None
    total = serial if wait is None else float(found.total(times.remaining))
    low, high = map(float, found.gains((times.saved_low, times.saved_high), times.remaining))
    point, reason = _break_even(found, times, book)
    word, plain = verdict(low, high), route.mechanism.name == PLAIN
    group, layerwise = _layerwise(found, times.remaining)
    return Offload(
        tier=route.tier.name,
        mode=PREFIX_STORE,
        bytes=size,
        bandwidth=bandwidth,
        queue=float(parts.queue),
        setup=float(parts.setup),
        transfer=float(parts.transfer),
        convert=float(parts.convert),
        sync=float(parts.sync),
        restore=float(parts.total),
        remaining=times.remaining,
        cached_total=serial,
        recompute=times.recompute,
        speedup=float(factor(times.recompute, total)),
        break_even_bandwidth=point,
        break_even_tokens=None if lengths is None else lengths.least,
        break_even_tokens_most=None if lengths is None else lengths.most,
        break_even_tokens_every=None if lengths is None else lengths.every,
        extra_wait=wait,
        overlapped_total=None if wait is None else total,
        verdict=str(word),
        confidence=float(settled(low, high)),
        reason=reason or _why(str(word), times.recompute, total, point, found),
        mechanism=route.mechanism.name,
        piece_bytes=None if plain else float(route.piece(size)),
        queue_p99=None if found.wait.p99 is None else float(found.wait.p99),
        utilization=None if found.wait.utilization is None else float(found.wait.utilization),
        first_restore=None if route.rates.first is None else route.rates.first.value,
        write_need=stores.need,
        write_budget=stores.budget,
        layer_group=group,
        layerwise_total=layerwise,
        prefetch_lead=lead_of(found) if math.isfinite(float(parts.total)) else None,
        adds_nothing=stores.nothing,
        adds_nothing_reason=stores.why_nothing,
    )


def settled(low: Seconds, high: Seconds) -> Share:
    """Return how clear a verdict is; one that may never end settles nothing, unless it loses anyway.

    Arrays too.
    """
    ends = np.isfinite(low)
    known = confidence(np.where(ends, low, 0.0)[()], np.where(ends, high, 1.0)[()])
    return np.where(ends, known, np.where(high < 0, 1.0, 0.0))[()]


def _layerwise(found: Restoring, remaining: float) -> tuple[int | None, float | None]:
    """Return the best number of layers at a time and its time; None for bare numbers and endless waits."""
    if found.layers <= 1 or not math.isfinite(float(found.overhead)):
        return None, None
    return best_group(found, remaining)


def _quote(found: Restoring, remaining: float, book: Notebook) -> float:
    """Note the formulas of a row as they were called, and return the serial sum."""
    route, overrides, size = found.route, found.overrides, float(found.size)
    bandwidth, overhead = float(found.bandwidth), float(found.overhead)
    if not math.isfinite(overhead):
        return math.inf
    if route.rates.per_piece is not None and route.then is None:
        piece, cost = float(route.piece(size)), route.rates.per_piece.value
        book.run(
            effective_bandwidth,
            piece=piece,
            bandwidth=route.link_rate,
            overhead=cost,
            streams=route.rates.number("streams", 1.0),
        )
    book.run(
        restore_time,
        size=size,
        bandwidth=bandwidth,
        queue=float(found.wait.mean),
        setup=found.setup,
        convert=overrides.convert,
        sync=overrides.sync,
    )
    serial = book.run(cached_total, size=size, bandwidth=bandwidth, remaining=remaining, overhead=overhead)
    transfer = size / bandwidth
    if overrides.window is not None:
        wait = float(book.run(extra_wait, io=transfer, window=overrides.window))
        book.run(overlapped_total, remaining=remaining, extra_wait=wait, serial=overhead)
    elif found.is_layerwise:
        book.run(pipeline_time, load=transfer, compute=remaining, layers=float(found.layers))
    return float(serial)


def factor(recompute: Seconds, total: Seconds) -> Share:
    """Return how many times faster a hit is; 0 where it never ends, endless where it takes no time.

    Arrays too.
    """
    ends, takes = np.isfinite(total), total > 0
    known = speedup(recompute, np.where(ends & takes, total, 1.0)[()])
    return np.where(ends, np.where(takes, known, math.inf), 0.0)[()]


def _break_even(found: Restoring, times: Times, book: Notebook) -> tuple[float | None, str]:
    reason = str(no_break_even(times.recompute, times.remaining, float(found.fixed)))
    if reason:
        return None, reason
    return float(found.break_even(times.recompute, times.remaining, book)), ""


def _why(word: str, recompute: float, total: float, point: float | None, found: Restoring) -> str:
    ratio = recompute / total if total > 0 else math.inf
    if not math.isfinite(total):
        slow = "" if word == "too_close" else "; its bandwidth is below the break-even"
        return f"the tier's link cannot serve the planned rate: restores would wait without end{slow}"
    if word == "too_close":
        return "the ranges of prefill speed and bandwidth straddle the break-even"
    compared = "above" if point is not None and float(found.bandwidth) > point else "below"
    words = "faster" if word == "restore" else "slower"
    factor = ratio if word == "restore" else 1 / ratio if ratio else math.inf
    overlap = " with that overlap" if found.overlaps else ""
    amount = f"{factor:.3g} times" if factor >= LEAST_TIMES else "less than 1 %"
    return f"{amount} {words} than recomputing; its bandwidth is {compared} the break-even{overlap}"
