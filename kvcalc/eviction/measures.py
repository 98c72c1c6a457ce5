"""The figures of one run: percentiles, rates and shares from a record."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvcalc.eviction.load import Requests
from kvcalc.eviction.records import Record
from kvcalc.eviction.results import Percentiles, SimulatedRow
from kvcalc.eviction.steps import StepTimes
from kvcalc.eviction.tactics import Limits
from kvcalc.formulas.eviction import eviction_loss, is_thrashing, recomputed_share

GROWTH = 0.05
"""Share of the arrivals [1] by which the requests in the system may grow over the second half of a run:
a stable queue fluctuates, an unstable one keeps a share of all arrivals for good."""

_SHARES = (0.50, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run: what arrived, where, and what became of it."""

    policy: str
    load: float  # arrival rate over the one that was asked
    rate: float  # requests per second
    requests: Requests
    limits: Limits
    times: StepTimes
    record: Record

    def row(self, deadline: float) -> SimulatedRow:
        """Return the figures of the run; `deadline` is the longest total time [second] that is good."""
        record, arrival = self.record, self.requests.arrival
        span = record.duration or float("nan")
        total = record.end - arrival
        whole = ~record.truncated & ~record.rejected
        evictions = int(record.evictions.sum())
        again = int(record.recomputed.sum())
        share = float(recomputed_share(again, record.processed - again)) if record.processed else 0.0
        frequency = evictions / span
        return SimulatedRow(
            policy=self.policy,
            rate=self.rate,
            load=self.load,
            requests=len(self.requests),
            ttft=_percentiles(record.first - arrival),
            itl=Percentiles(*record.gaps.percentiles(_SHARES)),
            total=_percentiles(total),
            goodput=float((whole & (total <= deadline)).sum()) / span,
            throughput=float((~np.isnan(record.end)).sum()) / span,
            tokens_per_second=float(record.generated.sum()) / span,
            evictions=evictions,
            evictions_per_second=frequency,
            evicted_share=float((record.evictions > 0).mean()),
            recomputed_share=share,
            repeat_evictions=int((record.evictions > 1).sum()),
            most_evictions=int(record.evictions.max()),
            near_complete_evictions=record.near_complete,
            held_back=record.held_back,
            truncated=int(record.truncated.sum()),
            rejected=int(record.rejected.sum()),
            occupancy=record.used / span / self.limits.blocks,
            running=record.active / span,
            swapped_bytes=record.swapped,
            eviction_value=self._value(again, evictions, frequency),
            thrashing=bool(is_thrashing(frequency, share)),
            stable=self._stable(),
        )

    def _value(self, again: int, evictions: int, frequency: float) -> float:
        """Return recompute cost times eviction frequency: the share of the GPU's time that is lost."""
        cost = float(self.times.prefill_time(again / evictions)) if evictions else 0.0
        return float(eviction_loss(cost, frequency))

    def _stable(self) -> bool:
        """Tell whether the second half of the arrivals left no more in the system than the first."""
        arrival = self.requests.arrival
        half, last = len(arrival) // 2, float(arrival[-1])
        came = len(arrival) - half
        gone = self.record.end[~np.isnan(self.record.end)]
        left = came - int(((gone > arrival[half]) & (gone <= last)).sum())
        # A run shorter than a queue needs to settle says nothing: as many as run at once may be left.
        return left <= max(GROWTH * came, 2 * self.record.active / (self.record.duration or 1.0))


def _percentiles(times: NDArray[np.float64]) -> Percentiles:
    known = times[~np.isnan(times)]
    if not len(known):
        return Percentiles(None, None, None)
    # The time of a request that was measured, none between two: a percentile is somebody's time.
    return Percentiles(*(float(p) for p in np.quantile(known, _SHARES, method="inverted_cdf")))
