"""What would flip each answer: the value of one input at which a verdict changes, others fixed."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kvcalc.engines.inverse import longest_context
from kvcalc.engines.layout import Layout
from kvcalc.formulas.capacity import sequences_of_replica
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import (
    ACTIVE_WORKING_SET,
    Route,
    block_tokens,
    cached_tokens,
    computing_time,
    loaded_route,
    moved_bytes,
    restoring,
    stored,
    tiers_of,
    whole_chunks,
)
from kvcalc.planning.speed import Speed
from kvcalc.quantity import Tokens
from kvcalc.results import Bandwidth, Capacity, Flip, Offload
from kvcalc.scenario import Scenario

_GRID = 8192
"""Hits tried at first, evenly over the prompt [1]."""

EFFECTIVE = "effective bandwidth"
"""What a tier's mechanism makes of its stated bandwidth, in the key of a flip."""

_LEAST_EFFICIENCY = 1e-4  # of the dense peak at which a flip is looked for


def flips_of(
    scenario: Scenario,
    layout: Layout,
    speed: Speed,
    capacity: Capacity,
    bandwidth: Bandwidth,
    offload: tuple[Offload, ...],
) -> tuple[Flip, ...]:
    """Return the flips of fit, first limit and each tier, in that order."""
    return (
        *_fit(scenario, layout, capacity),
        *_first_limit(scenario, capacity, bandwidth),
        *(
            flip
            for row in offload
            if row.mode != ACTIVE_WORKING_SET and not row.adds_nothing
            for flip in _tier(scenario, speed, row)
        ),
    )


def _fit(scenario: Scenario, layout: Layout, capacity: Capacity) -> Iterator[Flip]:
    workload, fits = scenario.workload, float(capacity.shortfall) <= 0
    sessions = int(capacity.sessions)
    if fits:
        yield Flip("concurrency", workload.concurrency, sessions + 1, "does not fit", "1")
    elif sessions >= 1:
        yield Flip("concurrency", workload.concurrency, sessions, "fits", "1")
    running = int(sequences_of_replica(workload.concurrency, scenario.settings.dp))
    longest = longest_context(layout, float(capacity.budget), running)
    now = workload.prompt + workload.generate
    if longest is None:
        return
    if fits:
        yield Flip("prompt + generate", now, longest + 1, "does not fit", "token")
    elif longest > 0:
        yield Flip("prompt + generate", now, longest, "fits", "token")


def _first_limit(scenario: Scenario, capacity: Capacity, bandwidth: Bandwidth) -> Iterator[Flip]:
    """Throughput at which the other limit comes first: B_w grows with it and C_w does not."""
    share, used = float(capacity.utilization), float(bandwidth.utilization)
    if used <= 0 or not math.isfinite(share) or share <= 0:
        return
    target = float(bandwidth.target_tokens_per_second)
    at = target * share / used
    other = "capacity" if used > share else "bandwidth"
    yield Flip("tokens per second", target, at, f"first limit: {other}", "token/second")


def _tier(scenario: Scenario, speed: Speed, row: Offload) -> Iterator[Flip]:
    tier = next(tier for tier in tiers_of(scenario, Notebook()) if tier.name == row.tier)
    route = loaded_route(speed, tier, cached_tokens(scenario, speed, Notebook()), Notebook())
    other = "recompute" if float(row.speedup) > 1 else "restore"  # too close to call has a faster side too
    if row.break_even_bandwidth is not None:
        at = float(row.break_even_bandwidth)
        # What a mechanism reaches is not what the tier states; a flip must not be taken for the latter.
        rate = "bandwidth" if row.bandwidth == tier.bandwidth else EFFECTIVE
        key = f"tiers.{row.tier}.{rate}"
        yield Flip(key, float(row.bandwidth), at, other, "byte/second", row.tier)
    if row.verdict == "restore":
        yield from _cached(scenario, speed, row, route)
    if speed.prefill.source == "model":
        yield from _efficiency(scenario, speed, row, route, other)


def _cached(scenario: Scenario, speed: Speed, row: Offload, route: Route) -> Iterator[Flip]:
    """Most tokens of this prompt whose hit does not pay; none where one restored block pays already."""
    prompt = scenario.workload.prompt
    block = route.mechanism.chunk_tokens or block_tokens(speed)
    full = float(computing_time(speed, float(prompt)))

    def pays(hits: Tokens) -> np.ndarray:
        # The less of a prompt hits, the more of it is stored across the same link.
        busy = replace(route, opposite=stored(speed, route, hits))
        found = restoring(scenario, busy, moved_bytes(speed.layout, hits))
        remaining = computing_time(speed, prompt - hits, hits)
        cost = found.exposed(found.parts.transfer, remaining) + found.overhead
        return np.asarray(remaining + cost < full)

    step = block * max(1, prompt // block // _GRID)
    low, high = 0, prompt  # no hit pays at `low`; one does by `high`, else there is no flip
    for width in (step, block):  # coarse, then to the block
        grid = np.arange(low + width, high, width, dtype=float)
        paying = grid[pays(grid)]
        if not paying.size:
            return
        high = int(paying[0]) + 1
        low = int(paying[0]) - width
    if low >= block:
        now = prompt if scenario.workload.cached is None else scenario.workload.cached
        yield Flip("cached", float(now), float(low + block - 1), "recompute", "token", row.tier)


def _efficiency(scenario: Scenario, speed: Speed, row: Offload, route: Route, other: str) -> Iterator[Flip]:
    """Prefill efficiency, of attention too, at which recomputing takes as long as the hit.

    What a hit gains falls as computing gets cheaper, in pieces that are straight in 1 / eta.
    """
    prompt = float(scenario.workload.prompt)
    cached = float(whole_chunks(route, cached_tokens(scenario, speed, Notebook()), Notebook()))
    found = restoring(scenario, route, float(row.bytes))
    dearer = np.geomspace(1.0, 1 / _LEAST_EFFICIENCY, _GRID)
    pace = replace(speed.prefill.paces.middle, products=1 / dearer, attention=1 / dearer)
    remaining = computing_time(speed, prompt - cached, cached, pace)
    gain = np.asarray(computing_time(speed, prompt, 0.0, pace) - found.total(remaining))
    crossed = np.flatnonzero((gain[:-1] <= 0) & (gain[1:] > 0))
    if not crossed.size:
        return
    below = slice(crossed[0], crossed[0] + 2)
    at = 1 / float(np.interp(0.0, gain[below], dearer[below]))
    now = scenario.hardware.prefill_efficiency.mid
    yield Flip("prefill_efficiency", now, at, other, "1", row.tier)
