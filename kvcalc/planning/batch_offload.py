"""The best tier of each load of a batch, by the same formulas as a single plan."""

from dataclasses import dataclass

import numpy as np

from kvcalc.formulas.breakeven import break_even_bandwidth, cached_total, no_break_even, speedup, verdict
from kvcalc.formulas.overlap import extra_wait, overlapped_total
from kvcalc.formulas.restore import restore_time
from kvcalc.formulas.working_set import streaming_step_time
from kvcalc.planning.batch import BatchResult, Loads, Numbers, Texts
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import BANDWIDTH_SPREAD, block_tokens, gains, tier_bandwidth, tiers_of
from kvcalc.planning.speed import Speed
from kvcalc.scenario import TierUse


@dataclass(frozen=True, slots=True)
class BestTier:
    """Verdict and break-even of the tier and mode that gain most; blank where there is none."""

    verdict: Texts
    break_even: Numbers


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One tier in one mode, for all rows."""

    there: np.ndarray  # rows to which it applies
    speedup: Numbers
    verdict: Texts
    break_even: Numbers


def best_tiers(speed: Speed, loads: Loads, cached: Numbers, batch: BatchResult) -> BestTier:
    """Return the best tier of each load; `cached` prompt tokens hit, before they are cut to whole blocks."""
    block = block_tokens(speed)
    restored = np.minimum(cached, loads.prompt - 1) // block * block
    best = BestTier(np.full(len(loads), None, dtype=object), np.full(len(loads), np.nan))
    most = np.full(len(loads), -np.inf)
    for tier in tiers_of(speed.scenario, Notebook()):
        for found in (_prefix_store(speed, tier, loads, restored), _working_set(tier, loads, batch)):
            better = found.there & (found.speedup > most)
            most[better] = found.speedup[better]
            best.verdict[better] = found.verdict[better]
            best.break_even[better] = found.break_even[better]
    return best


def _prefix_store(speed: Speed, tier: TierUse, loads: Loads, restored: Numbers) -> _Candidate:
    overrides, prefill = speed.scenario.overrides, speed.prefill
    new = loads.prompt - restored
    recompute, remaining = prefill.time(loads.prompt), prefill.time(new, restored)
    low, high = (
        prefill.time(loads.prompt, 0.0, pace) - prefill.time(new, restored, pace)
        for pace in (prefill.paces.fast, prefill.paces.slow)
    )
    size, bandwidth = speed.layout.serialized(restored, per_gpu=True), tier_bandwidth(tier)
    parts = restore_time(
        size=size,
        bandwidth=bandwidth,
        queue=overrides.queue,
        setup=tier.setup if overrides.setup is None else overrides.setup,
        convert=overrides.convert,
        sync=overrides.sync,
    )
    overhead = parts.total - parts.transfer
    total = cached_total(size, bandwidth, remaining, overhead)
    if overrides.window is not None:
        total = overlapped_total(remaining, extra_wait(parts.transfer, overrides.window), overhead)
    ends = gains(tier, size, (low, high), overrides, overhead)
    none = no_break_even(recompute, remaining, overhead) != ""
    point = break_even_bandwidth(size, recompute, remaining, overhead)
    return _Candidate(
        there=restored > 0,
        speedup=np.asarray(speedup(recompute, total)),
        verdict=np.asarray(verdict(*ends), dtype=object),
        break_even=np.where(none, np.nan, point),
    )


def _working_set(tier: TierUse, loads: Loads, batch: BatchResult) -> _Candidate:
    short = batch.kv_shortfall > 0
    streaming = streaming_step_time(batch.step_time, batch.kv_shortfall, tier_bandwidth(tier))
    resident = np.where(batch.sessions > 0, batch.sessions, 1.0)
    turns = np.where(batch.sessions > 0, batch.step_time * loads.concurrency / resident, np.inf)
    ends = turns - streaming * (1 + BANDWIDTH_SPREAD), turns - streaming / (1 + BANDWIDTH_SPREAD)
    return _Candidate(
        there=short,
        speedup=turns / streaming,
        verdict=np.asarray(verdict(*ends), dtype=object),
        break_even=np.where(np.isfinite(turns), batch.kv_shortfall / turns, np.nan),
    )
