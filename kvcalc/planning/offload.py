"""Is restoring from a slower tier worth it: each tier in each mode against computing again."""

import math
from dataclasses import dataclass

import numpy as np

from kvcalc.errors import DomainError
from kvcalc.formulas.breakeven import (
    break_even_bandwidth,
    cached_total,
    confidence,
    no_break_even,
    shortest_worthwhile,
    speedup,
    verdict,
)
from kvcalc.formulas.overlap import extra_wait, overlapped_total
from kvcalc.formulas.restore import RestoreTime, restore_time
from kvcalc.formulas.transfer import iops_bandwidth
from kvcalc.formulas.working_set import streaming_step_time
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.pace import Pace
from kvcalc.planning.speed import Speed
from kvcalc.planning.tiers import standard_tiers
from kvcalc.quantity import Bytes, Seconds
from kvcalc.results import Capacity, Decode, Offload
from kvcalc.scenario import Overrides, Scenario, TierUse

PREFIX_STORE = "prefix_store"
ACTIVE_WORKING_SET = "active_working_set"

BANDWIDTH_SPREAD = 0.15
"""Relative uncertainty of a bandwidth without a range of its own [1]: published runs of one setup
spread by about as much (vLLM and LMCache reports, gathered in the offload reference, 4.22)."""

LONGEST_GRID = 131_072
"""Longest prefix searched for the shortest one worth restoring [token]."""

IDEAL_TRANSFER = (
    "restore counts only the transfer: no queue, setup, conversion or sync time was given or measured"
)


@dataclass(frozen=True, slots=True)
class Times:
    """What one restore is compared with: full recompute, suffix after the hit, and their ranges."""

    recompute: float
    remaining: float
    # Time that a hit saves, before the restore itself: least and most under the efficiency range.
    saved_low: float
    saved_high: float


def offload_rows(
    scenario: Scenario, speed: Speed, capacity: Capacity, decode: Decode, book: Notebook
) -> tuple[Offload, ...]:
    """Return one prefix-store row per tier, and a streaming row where the load does not fit."""
    if not tiers_of(scenario, book):
        return ()
    cached = cached_tokens(scenario, speed, book)
    rows: list[Offload] = []
    for tier in tiers_of(scenario, book):
        if cached > 0:
            rows.append(_prefix_store(scenario, speed, tier, cached, book))
        if capacity.shortfall > 0:
            rows.append(_working_set(scenario, tier, capacity, decode))
    return tuple(rows)


def tiers_of(scenario: Scenario, book: Notebook) -> tuple[TierUse, ...]:
    """Return the tiers of the question: those given, else those of the machine."""
    if scenario.tiers:
        if scenario.settings.tp > 1:
            book.assume(
                "each GPU gets the stated bandwidth of a tier for itself; divide it where GPUs share a link "
                "or a disk"
            )
        return scenario.tiers
    return standard_tiers(scenario, book)


def cached_tokens(scenario: Scenario, speed: Speed, book: Notebook) -> int:
    """Return the prompt tokens that a hit restores: whole blocks, and never the last token."""
    workload = scenario.workload
    wanted = workload.prompt if workload.cached is None else workload.cached
    if workload.cached is None:
        book.assume(
            "no --cached or --hit given: offload is judged for a hit of the whole prompt "
            f"({workload.prompt:,} tokens)"
        )
    if workload.cached == 0:
        return 0
    block = block_tokens(speed)
    restored = min(wanted, workload.prompt - 1) // block * block
    if restored < wanted:
        book.assume(
            f"a hit restores {restored:,} of {wanted:,} tokens: whole blocks of {block} only, and the last "
            "token is always computed"
        )
    return restored


def block_tokens(speed: Speed) -> int:
    """Return the tokens of one block of the engine; 1 where the engine has no blocks."""
    found = speed.layout.pool(float(speed.scenario.hardware.device.capacity)).block_tokens
    return max(1, int(found or 1))


def _prefix_store(scenario: Scenario, speed: Speed, tier: TierUse, cached: int, book: Notebook) -> Offload:
    prompt = float(scenario.workload.prompt)
    remaining = prompt - cached
    times = Times(
        recompute=float(speed.prefill.time(prompt)),
        remaining=float(speed.prefill.time(remaining, float(cached))),
        saved_low=_saved(speed, prompt, cached, speed.prefill.paces.fast),
        saved_high=_saved(speed, prompt, cached, speed.prefill.paces.slow),
    )
    size = float(speed.layout.serialized(cached, per_gpu=True))
    shortest = _shortest(scenario, speed, tier, max(1.0, remaining))
    return restore_row(tier, size, times, scenario.overrides, book, shortest)


def _saved(speed: Speed, prompt: float, cached: int, pace: Pace) -> float:
    full = float(speed.prefill.time(prompt, 0.0, pace))
    return full - float(speed.prefill.time(prompt - cached, float(cached), pace))


def restore_row(
    tier: TierUse,
    size: float,
    times: Times,
    overrides: Overrides,
    book: Notebook,
    shortest: float | None = None,
) -> Offload:
    """Return one restore against one recompute, part by part, with its verdict."""
    bandwidth = tier_bandwidth(tier)
    parts = _parts(tier, size, bandwidth, overrides, book)
    overhead = float(parts.total - parts.transfer)
    serial = book.run(
        cached_total, size=size, bandwidth=bandwidth, remaining=times.remaining, overhead=overhead
    )
    wait, total = _overlap(parts, times.remaining, overrides, float(serial), book)
    ends = gains(tier, size, (times.saved_low, times.saved_high), overrides, overhead)
    low, high = map(float, ends)
    point, reason = _break_even(size, times, overhead, book)
    word, settled = str(verdict(low, high)), float(confidence(low, high))
    return Offload(
        tier=tier.name,
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
        cached_total=float(serial),
        recompute=times.recompute,
        speedup=float(speedup(times.recompute, total)) if total > 0 else math.inf,
        break_even_bandwidth=point,
        break_even_tokens=shortest,
        extra_wait=wait,
        overlapped_total=None if wait is None else total,
        verdict=word,
        confidence=settled,
        reason=reason or _why(word, times.recompute, total, point, bandwidth),
    )


def tier_bandwidth(tier: TierUse) -> float:
    """Return what the tier delivers: the tighter of its bandwidth and its IOPS."""
    if tier.iops is not None and tier.io_size is not None:
        return float(iops_bandwidth(tier.iops, tier.io_size, tier.bandwidth))
    return tier.bandwidth


def _parts(tier: TierUse, size: float, bandwidth: float, overrides: Overrides, book: Notebook) -> RestoreTime:
    parts: RestoreTime = book.run(
        restore_time,
        size=size,
        bandwidth=bandwidth,
        queue=overrides.queue,
        setup=tier.setup if overrides.setup is None else overrides.setup,
        convert=overrides.convert,
        sync=overrides.sync,
    )
    if float(parts.total) == float(parts.transfer):
        book.assume(IDEAL_TRANSFER)
    return parts


def _overlap(
    parts: RestoreTime, remaining: float, overrides: Overrides, serial: float, book: Notebook
) -> tuple[float | None, float]:
    """Return the extra wait and the total with a window; without one, None and the serial sum."""
    if overrides.window is None:
        return None, serial
    wait = float(book.run(extra_wait, io=parts.transfer, window=overrides.window))
    fixed = float(parts.total - parts.transfer)
    return wait, float(book.run(overlapped_total, remaining=remaining, extra_wait=wait, serial=fixed))


def gains(
    tier: TierUse, size: Bytes, saved: tuple[Seconds, Seconds], overrides: Overrides, overhead: Seconds
) -> tuple[Seconds, Seconds]:
    """Return the least and most time that restoring saves, over both ranges; arrays too."""
    slow, fast = tier.bandwidth_range or (tier.bandwidth, tier.bandwidth)
    capped = tier_bandwidth(tier) / tier.bandwidth
    window = overrides.window or 0.0
    costs = [np.maximum(0.0, size / (rate * capped) - window) + overhead for rate in (slow, fast)]
    return saved[0] - costs[0], saved[1] - costs[1]


def _break_even(size: float, times: Times, overhead: float, book: Notebook) -> tuple[float | None, str]:
    reason = str(no_break_even(times.recompute, times.remaining, overhead))
    if reason:
        return None, reason
    return float(
        book.run(
            break_even_bandwidth,
            size=size,
            prefill=times.recompute,
            remaining=times.remaining,
            overhead=overhead,
        )
    ), ""


def _why(word: str, recompute: float, total: float, point: float | None, bandwidth: float) -> str:
    ratio = recompute / total if total > 0 else math.inf
    if word == "too_close":
        return "the ranges of prefill speed and bandwidth straddle the break-even"
    compared = "above" if point is not None and bandwidth > point else "below"
    words = "faster" if word == "restore" else "slower"
    factor = ratio if word == "restore" else 1 / ratio if ratio else math.inf
    return f"{factor:.3g} times {words} than recomputing; its bandwidth is {compared} the break-even"


def _shortest(scenario: Scenario, speed: Speed, tier: TierUse, suffix: float) -> float | None:
    """Return the shortest prefix worth restoring before a suffix of the same length; None if none is."""
    block = block_tokens(speed)
    longest = max(LONGEST_GRID, scenario.workload.prompt)
    # Whole blocks, but no more points than a fraction of a percent of error needs.
    step = block * max(1, longest // block // 8192)
    grid = np.arange(step, longest + 1, step, dtype=float)
    overrides = scenario.overrides
    fixed = overrides.queue + overrides.convert + overrides.sync
    fixed += tier.setup if overrides.setup is None else overrides.setup
    moved = speed.layout.serialized(grid, per_gpu=True) / tier_bandwidth(tier)
    cost = np.maximum(0.0, moved - (overrides.window or 0.0)) + fixed
    saved = speed.prefill.time(grid + suffix) - speed.prefill.time(np.full_like(grid, suffix), grid)
    try:
        return float(shortest_worthwhile(grid, saved - cost))
    except DomainError:
        return None


def _working_set(scenario: Scenario, tier: TierUse, capacity: Capacity, decode: Decode) -> Offload:
    """Stream the KV that does not fit in every decode step, against letting sequences take turns."""
    bandwidth = tier_bandwidth(tier)
    streamed = float(capacity.shortfall)
    step = decode.step_time
    streaming = float(streaming_step_time(step, streamed, bandwidth))
    wanted, resident = scenario.workload.concurrency, float(capacity.sessions)
    turns = step * wanted / resident if resident else math.inf
    low, high = sorted(
        (turns - streaming * (1 + BANDWIDTH_SPREAD), turns - streaming / (1 + BANDWIDTH_SPREAD))
    )
    fits = math.isfinite(turns)
    word = str(verdict(low, high)) if fits else "restore"
    return Offload(
        tier=tier.name,
        mode=ACTIVE_WORKING_SET,
        bytes=streamed,
        bandwidth=bandwidth,
        queue=0.0,
        setup=0.0,
        transfer=streamed / bandwidth,
        convert=0.0,
        sync=0.0,
        restore=streamed / bandwidth,
        remaining=step,
        cached_total=streaming,
        recompute=turns,
        speedup=turns / streaming,
        break_even_bandwidth=streamed / turns if fits and turns > 0 else None,
        break_even_tokens=None,
        extra_wait=max(0.0, streaming - step),
        overlapped_total=streaming,
        verdict=word,
        confidence=float(confidence(low, high)) if fits else 1.0,
        reason=(
            f"every decode step streams what does not fit; the alternative is that {wanted:,} sequences take "
            f"turns in room for {resident:,.0f}"
        ),
    )
