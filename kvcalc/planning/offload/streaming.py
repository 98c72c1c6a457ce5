"""The active working set: KV that does not fit the GPU, streamed in every decode step."""

import math
from typing import Literal

from kvcalc.formulas.breakeven import confidence, verdict
from kvcalc.formulas.working_set import streaming_step_time
from kvcalc.planning.offload.restoring import BANDWIDTH_SPREAD
from kvcalc.planning.offload.route import Route
from kvcalc.results import Capacity, Decode, Offload
from kvcalc.scenario import Scenario

ACTIVE_WORKING_SET: Literal["active_working_set"] = "active_working_set"


def working_set(scenario: Scenario, route: Route, capacity: Capacity, decode: Decode) -> Offload:
    """Stream the KV that does not fit in every decode step, against letting sequences take turns."""
    streamed = float(capacity.shortfall)
    bandwidth = float(route.bandwidth(streamed))
    step = decode.step_time
    streaming = float(streaming_step_time(step, streamed, bandwidth))
    wanted, resident = scenario.workload.concurrency, float(capacity.sessions)
    turns = step * wanted / resident if resident else math.inf
    low, high = sorted(
        (turns - streaming * (1 + BANDWIDTH_SPREAD), turns - streaming / (1 + BANDWIDTH_SPREAD))
    )
    fits = math.isfinite(turns)
    # Without room for one sequence nothing takes turns: streaming is neither faster nor slower than that.
    word = str(verdict(low, high)) if fits else "too_close"
    return Offload(
        tier=route.tier.name,
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
        confidence=float(confidence(low, high)) if fits else 0.0,
        mechanism=route.mechanism.name,
        reason=f"every decode step streams what does not fit; {_alternative(wanted, resident)}",
    )


def _alternative(wanted: int, resident: float) -> str:
    if not resident:
        return "not one sequence fits without it, so there is nothing to compare with"
    sequences = "1 sequence takes" if wanted == 1 else f"{wanted:,} sequences take"
    return f"the alternative is that {sequences} turns in room for {resident:,.0f}"
