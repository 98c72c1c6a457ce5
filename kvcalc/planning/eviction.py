"""What losing one sequence costs, and from which eviction rate on the machine thrashes."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvcalc.formulas.eviction import finished_requests, first_computed, swap_time, thrash_evictions
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import ACTIVE_WORKING_SET, computing_time, moved_bytes, tiers_of, written_to
from kvcalc.planning.speed import Speed
from kvcalc.quantity import BytesPerSecond, PerSecond, Seconds, TokensPerSecond
from kvcalc.results import Decode, Eviction, Offload
from kvcalc.scenario import TierUse, Workload


def eviction_of(speed: Speed, decode: Decode, offload: tuple[Offload, ...], book: Notebook) -> Eviction:
    """Return the price of the dearest victim: a sequence that is about to finish."""
    scenario = speed.scenario
    tokens = scenario.workload.prompt + scenario.workload.generate
    time = float(computing_time(speed, float(tokens)))
    stored = [row for row in offload if row.mode != ACTIVE_WORKING_SET and not row.adds_nothing]
    best = max(stored, key=lambda row: float(row.bandwidth), default=None)
    swap = None if best is None else _swap(speed, tokens, best, book)
    return Eviction(
        recompute_time=time,
        recompute_tokens=tokens,
        swap_time=swap,
        cheapest_mode="recompute" if swap is None else str(cheapest_mode(time, swap)),
        thrash_evictions_per_second=float(
            book.run(thrash_evictions, rate=_new_tokens(speed, decode), recomputed=float(tokens))
        ),
    )


def written(tiers: Sequence[TierUse], name: str) -> float:
    """Return what one GPU can write into a tier; no bound where nothing says more than its reads."""
    tier = next(tier for tier in tiers if tier.name == name)
    rate = written_to(tier)
    return math.inf if rate is None else rate / tier.shared_by


def _new_tokens(speed: Speed, decode: Decode) -> float:
    """Return the tokens of prompts and generations per second that are computed for the first time.

    Requests come at the planned rate, and where none is given or it is more, as fast as decode ends them.
    """
    workload = speed.scenario.workload
    if workload.generate:
        return float(new_tokens(workload, decode.tokens_per_second))
    # Nothing is generated, so only prefill ends requests.
    ended = 1 / float(computing_time(speed, float(workload.prompt)))
    return float(_computed(workload, ended if workload.rate is None else workload.rate))


def new_tokens(workload: Workload, rate: TokensPerSecond) -> TokensPerSecond:
    """Return the tokens per second computed for the first time where `rate` are generated; arrays too."""
    planned = math.inf if workload.rate is None else workload.rate
    return _computed(workload, finished_requests(rate, workload.generate, planned))


def _computed(workload: Workload, requests: PerSecond) -> TokensPerSecond:
    cached = 0 if workload.cached is None else workload.cached
    return first_computed(requests, workload.prompt, workload.generate, cached, workload.hit_rate)


def cheapest_mode(recompute: Seconds, swap: Seconds) -> NDArray[np.str_]:
    """Return how a victim is brought back for least; arrays too, where a blank swap is none."""
    return np.where(swap < recompute, "swap", "recompute")


def _swap(speed: Speed, tokens: int, tier: Offload, book: Notebook) -> float:
    size, back = float(moved_bytes(speed.layout, float(tokens))), float(tier.bandwidth)
    limit = written(tiers_of(speed.scenario, Notebook()), tier.tier)
    rates = ways(speed, back, limit)
    if limit < back:
        book.assume(
            f"{tier.tier}: a swap writes at {limit / 1e9:.3g} GB/s and reads back at {back / 1e9:.3g} GB/s; "
            "write_bandwidth of the tier replaces it"
        )
    return float(book.run(swap_time, size=size, **rates).total)


def ways(speed: Speed, bandwidth: BytesPerSecond, write: BytesPerSecond) -> dict[str, BytesPerSecond]:
    """Return the rates at which a tier takes a victim and gives it back; arrays too.

    `bandwidth` is what it gives to one GPU, and `write` what it takes from one.
    """
    link = speed.scenario.hardware.device_to_host.bandwidth
    return {"out": np.minimum(np.minimum(bandwidth, write), link), "back": bandwidth}
