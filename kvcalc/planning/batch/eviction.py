"""Columns of a batch on what losing one sequence costs."""

from typing import Any

import numpy as np

from kvcalc.formulas.eviction import swap_time, thrash_evictions
from kvcalc.planning.batch.loads import Loads
from kvcalc.planning.eviction import cheapest_mode, new_tokens, ways
from kvcalc.planning.offload import computing_time, moved_bytes
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
            rate=new_tokens(speed.scenario.workload, served["decode.tokens_per_second"]), recomputed=tokens
        ),
    }
    fastest = restored.get("fastest")
    if fastest is None:
        return found | {"eviction.cheapest_mode": np.full(len(loads), "recompute", dtype=object)}
    size = moved_bytes(speed.layout, tokens)
    swap = swap_time(size=size, **ways(speed, fastest, restored["fastest_write"])).total
    return found | {
        "eviction.swap_time": swap,
        "eviction.cheapest_mode": cheapest_mode(time, swap).astype(object),
    }
