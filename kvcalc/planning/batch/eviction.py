"""Columns of a batch on what losing one sequence costs."""

from typing import Any

import numpy as np

from kvcalc.formulas.eviction import swap_time, thrash_evictions
from kvcalc.planning.batch.loads import Loads
from kvcalc.planning.eviction import first_computed
from kvcalc.planning.offload import computing_time
from kvcalc.planning.speed import Speed


def evicting(speed: Speed, loads: Loads, served: dict[str, Any], restored: dict[str, Any]) -> dict[str, Any]:
    """Return the price of the dearest victim: a sequence that is about to finish.

    `speed` is that of a scenario with `loads` on it.
    """
    tokens = loads.prompt + loads.generate
    time = computing_time(speed, tokens)
    found = {
        "eviction.recompute_time": time,
        "eviction.thrash_evictions_per_second": thrash_evictions(
            rate=_new_tokens(speed, loads, served), recomputed=tokens
        ),
    }
    fastest = restored.get("fastest")
    if fastest is None:
        return found | {"eviction.cheapest_mode": np.full(len(loads), "recompute", dtype=object)}
    size = speed.layout.serialized(tokens, per_gpu=True)
    link = speed.scenario.hardware.device_to_host.bandwidth
    swap = swap_time(size=size, out=np.minimum(fastest, link), back=fastest).total
    mode = np.where(swap < time, "swap", "recompute").astype(object)
    return found | {"eviction.swap_time": swap, "eviction.cheapest_mode": mode}


def _new_tokens(speed: Speed, loads: Loads, served: dict[str, Any]) -> Any:  # noqa: ANN401 - an array
    """Return the tokens per second that are computed for the first time, at the planned rate or decode's."""
    workload = speed.scenario.workload
    requests = served["decode.tokens_per_second"] / loads.generate
    if workload.rate is not None:
        requests = np.minimum(requests, workload.rate)
    return first_computed(workload, requests)
