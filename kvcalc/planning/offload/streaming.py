"""The active working set: KV that does not fit the GPU, streamed in every decode step."""

import math
from typing import Any, Literal

import numpy as np

from kvcalc.formulas.breakeven import confidence, verdict
from kvcalc.formulas.working_set import streaming_step_time
from kvcalc.planning.offload.restoring import BANDWIDTH_SPREAD
from kvcalc.planning.offload.route import Route
from kvcalc.planning.speed import Speed
from kvcalc.quantity import Bytes, Count, Seconds
from kvcalc.results import Capacity, Decode, Offload

ACTIVE_WORKING_SET: Literal["active_working_set"] = "active_working_set"

BOTH_ENDS = (1 + BANDWIDTH_SPREAD, 1 / (1 + BANDWIDTH_SPREAD))
"""A streamed step over its middle [1], at the slow and at the fast end of the bandwidth."""


def working_set(speed: Speed, route: Route, capacity: Capacity, decode: Decode) -> Offload:
    """Stream the KV that does not fit in every decode step, against letting sequences take turns."""
    streamed = float(capacity.shortfall)
    bandwidth = float(route.bandwidth(streamed))
    step = decode.step_time
    streamed_step = float(streaming(route, step, streamed))
    wanted, resident = speed.scenario.workload.concurrency, float(capacity.sessions)
    turns = float(taking_turns(speed.decode.step_of(max(resident, 1.0)), wanted, resident))
    fits = math.isfinite(turns)
    low, high = gains_over_turns(turns, streamed_step)
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
        cached_total=streamed_step,
        recompute=turns,
        speedup=turns / streamed_step,
        break_even_bandwidth=streamed / turns if fits and turns > 0 else None,
        break_even_tokens=None,
        extra_wait=max(0.0, streamed_step - step),
        overlapped_total=streamed_step,
        verdict=str(streaming_verdict(turns, low, high)),
        confidence=float(confidence(low, high)) if fits else 0.0,
        mechanism=route.mechanism.name,
        reason=f"every decode step streams what does not fit; {_alternative(wanted, resident)}",
    )


def streaming(route: Route, step: Seconds, streamed: Bytes) -> Seconds:
    """Return the time of a decode step that brings `streamed` bytes with it; arrays too."""
    return streaming_step_time(step, streamed, route.bandwidth(streamed))


def taking_turns(step: Seconds, wanted: Count, resident: Count) -> Seconds:
    """Return the time in which all `wanted` sequences gain a token where `resident` fit at once; arrays too.

    `step` is that of the sequences that fit, not that of all of them, whose KV it does not read.
    Without room for one of them it never ends.
    """
    held = np.asarray(resident, dtype=float)
    return np.where(held > 0, step * wanted / np.where(held > 0, held, 1.0), math.inf)[()]


def gains_over_turns(turns: Seconds, streamed: Seconds) -> tuple[Seconds, Seconds]:
    """Return the least and most time that streaming saves over the range of its bandwidth; arrays too.

    It is none where turns never end.
    """
    slow, fast = (np.where(np.isfinite(turns), turns - streamed * end, 0.0)[()] for end in BOTH_ENDS)
    return np.minimum(slow, fast), np.maximum(slow, fast)


def streaming_verdict(turns: Seconds, low: Seconds, high: Seconds) -> Any:  # noqa: ANN401 - a word, or some
    """Return whether streaming beats taking turns; arrays too.

    Without room for one sequence nothing takes turns: streaming is neither faster nor slower than that.
    """
    return np.where(np.isfinite(turns), verdict(low, high), "too_close")


def _alternative(wanted: int, resident: float) -> str:
    if not resident:
        return "not one sequence fits without it, so there is nothing to compare with"
    sequences = "1 sequence takes" if wanted == 1 else f"{wanted:,} sequences take"
    return f"the alternative is that {sequences} turns in room for {resident:,.0f}"
