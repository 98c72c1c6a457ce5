"""What losing one sequence costs, and from which eviction rate on the machine thrashes."""

import math

from kvcalc.formulas.eviction import swap_time, thrash_evictions
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import ACTIVE_WORKING_SET, computing_time
from kvcalc.planning.speed import Speed
from kvcalc.quantity import PerSecond, TokensPerSecond
from kvcalc.results import Decode, Eviction, Offload
from kvcalc.scenario import Workload


def eviction_of(speed: Speed, decode: Decode, offload: tuple[Offload, ...], book: Notebook) -> Eviction:
    """Return the price of the dearest victim: a sequence that is about to finish."""
    scenario = speed.scenario
    tokens = scenario.workload.prompt + scenario.workload.generate
    time = float(computing_time(speed, float(tokens)))
    stored = [row for row in offload if row.mode != ACTIVE_WORKING_SET and not row.adds_nothing]
    swap = _swap(speed, tokens, max((float(row.bandwidth) for row in stored), default=None), book)
    return Eviction(
        recompute_time=time,
        recompute_tokens=tokens,
        swap_time=swap,
        cheapest_mode="swap" if swap is not None and swap < time else "recompute",
        thrash_evictions_per_second=float(
            book.run(thrash_evictions, rate=_new_tokens(speed, decode), recomputed=float(tokens))
        ),
    )


def _new_tokens(speed: Speed, decode: Decode) -> float:
    """Return the tokens of prompts and generations per second that are computed for the first time.

    Requests come at the planned rate, and where none is given or it is more, as fast as decode ends them.
    """
    workload = speed.scenario.workload
    finished = float(decode.tokens_per_second) / workload.generate if workload.generate else math.inf
    requests = min(finished, math.inf if workload.rate is None else workload.rate)
    if math.isinf(requests):  # nothing is generated, so only prefill ends requests
        requests = 1 / float(computing_time(speed, float(workload.prompt)))
    return float(first_computed(workload, requests))


def first_computed(workload: Workload, requests: PerSecond) -> TokensPerSecond:
    """Return the tokens per second that so many requests have computed for the first time; arrays too."""
    hit = workload.hit_rate * (0 if workload.cached is None else workload.cached)
    return requests * (workload.prompt - hit + workload.generate)


def _swap(speed: Speed, tokens: int, bandwidth: float | None, book: Notebook) -> float | None:
    if bandwidth is None:
        return None
    size = float(speed.layout.serialized(tokens, per_gpu=True))
    link = speed.scenario.hardware.device_to_host
    parts = book.run(swap_time, size=size, out=min(bandwidth, link.bandwidth), back=bandwidth)
    return float(parts.total)
