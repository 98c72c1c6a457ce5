"""One restore over one route: its parts, what overlaps, and what it gains; arrays too."""

from dataclasses import dataclass, field

import numpy as np

from kvcalc.formulas.breakeven import break_even_bandwidth
from kvcalc.formulas.overlap import extra_wait, overlapped_total, pipeline_time, pipeline_window
from kvcalc.formulas.queueing import service_within
from kvcalc.formulas.restore import RestoreTime, restore_time
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload.route import Route, plain_route
from kvcalc.planning.offload.waiting import VARIATION, Queue, Wait, queue_of
from kvcalc.quantity import Bytes, BytesPerSecond, Seconds
from kvcalc.scenario import Overrides, Scenario, TierUse

BANDWIDTH_SPREAD = 0.15
"""Relative uncertainty of a bandwidth without a range of its own [1]: published runs of one setup
spread by about as much (vLLM and LMCache reports, gathered in the offload reference, 4.22)."""


@dataclass(frozen=True)
class Restoring:
    """A restore of `size` bytes, before the prefill of what it does not cover."""

    route: Route
    overrides: Overrides
    size: Bytes
    wait: Wait
    layers: int = 1  # of the model, for a load layer by layer
    queue: Queue = field(default_factory=Queue)  # which `wait` is from
    exact: bool = False  # bare numbers: the rate is what was said, to the last digit

    @property
    def bandwidth(self) -> BytesPerSecond:
        """Rate of the route for pieces of the size it moves."""
        return self.route.bandwidth(self.size)

    @property
    def setup(self) -> Seconds:
        """Lookup and submission: what the user gave, else the route's own."""
        return self.route.setup if self.overrides.setup is None else self.overrides.setup

    @property
    def overhead(self) -> Seconds:
        """Every part beside the transfer."""
        return self.wait.mean + self.setup + self.overrides.convert + self.overrides.sync

    @property
    def fixed(self) -> Seconds:
        """Every part that no bandwidth removes: the wait at a rate is none, it falls with the transfer."""
        waits = self.queue.given if self.queue.rate is None else 0.0
        return waits + self.setup + self.overrides.convert + self.overrides.sync

    @property
    def parts(self) -> RestoreTime:
        """Where the time of the restore goes."""
        return restore_time(
            size=self.size,
            bandwidth=self.bandwidth,
            queue=self.wait.mean,
            setup=self.setup,
            convert=self.overrides.convert,
            sync=self.overrides.sync,
        )

    @property
    def is_layerwise(self) -> bool:
        """Whether each layer's KV loads while the layer before computes."""
        always = self.route.mechanism.layerwise == "always"
        return (self.route.tier.layerwise or always) and self.layers > 1

    @property
    def overlaps(self) -> bool:
        """Whether some of the transfer hides behind compute."""
        return self.overrides.window is not None or self.is_layerwise

    def exposed(self, io: Seconds, remaining: Seconds) -> Seconds:
        """Return what of a transfer nothing hides: all of it, without a window or layers."""
        if self.overrides.window is not None:
            return extra_wait(io, self.overrides.window)
        if self.is_layerwise:
            return pipeline_time(io, remaining, self.layers) - remaining
        return io

    def hidden(self, spare: Seconds, remaining: Seconds) -> Seconds:
        """Return how much of a transfer hides at the break-even, where just `spare` of it shows.

        Load layers no slower than they compute, and all but the first hide: that one may take `spare`.
        """
        if self.overrides.window is not None:
            return self.overrides.window
        if self.is_layerwise:
            return pipeline_window(np.minimum(remaining, np.maximum(spare, 0) * self.layers), self.layers)
        return 0.0

    def longest_transfer(self, spare: Seconds, remaining: Seconds, book: Notebook | None = None) -> Seconds:
        """Return how long the transfer may be for the hit to take as long as recomputing, with its wait.

        `spare` is the time that is left for the two: what a hit saves less its `fixed` parts.  Where only
        the longer part of a transfer shows, the shorter of the answers for both is that of all.
        """
        if self.queue.rate is None:
            return spare + self.hidden(spare, remaining)
        book = book or Notebook()
        if self.overrides.window is not None:
            window: Seconds = self.overrides.window
            return np.minimum(self._within(spare, 0.0, book), self._within(spare + window, 1.0, book))
        if self.is_layerwise:
            window = pipeline_window(remaining, self.layers)
            first = self._within(spare, 1 / self.layers, book)
            return np.minimum(first, self._within(spare + window, 1.0, book))
        return self._within(spare, 1.0, book)

    def break_even(
        self, recompute: Seconds, remaining: Seconds, book: Notebook | None = None
    ) -> BytesPerSecond:
        """Return the bandwidth from which a hit pays, with what overlaps and waits; arrays too.

        None does where `no_break_even` says why: a scalar raises there, an element is NaN.
        """
        if self.queue.rate is not None:
            # A faster link shortens the wait too, so the wait at the bandwidth now is no part of the answer.
            spare = recompute - remaining - self.fixed
            return self.size / self.longest_transfer(spare, remaining, book)
        overlap = {}
        if self.overlaps:
            overlap["window"] = self.hidden(recompute - remaining - self.fixed, remaining)
        found: BytesPerSecond = (book or Notebook()).run(
            break_even_bandwidth,
            size=self.size,
            prefill=recompute,
            remaining=remaining,
            overhead=self.fixed,
            **overlap,
        )
        return found

    def _within(self, budget: Seconds, shown: float, book: Notebook) -> Seconds:
        """Return the transfer of which so much shows, and whose wait takes what the budget leaves."""
        allowed: Seconds = book.run(
            service_within, budget=budget, rate=self.queue.rate, shown=shown, variation=VARIATION
        )
        return allowed

    def total(self, remaining: Seconds) -> Seconds:
        """Return the time to the first token of a hit."""
        return overlapped_total(remaining, self.exposed(self.parts.transfer, remaining), self.overhead)

    def gains(self, saved: tuple[Seconds, Seconds], remaining: Seconds) -> tuple[Seconds, Seconds]:
        """Return the least and most time that restoring saves, over the ranges of both sides.

        `saved` is what a hit saves of the prefill, at the fast and at the slow end of its range.
        """
        tier, rate = self.route.tier, self.bandwidth
        if tier.bandwidth_range is not None:
            # A mechanism's limit, the cost of each piece and the hops behind stay as they are.
            ends = tuple(self.route.at(bandwidth=end).bandwidth(self.size) for end in tier.bandwidth_range)
        elif not self.exact:
            ends = rate / (1 + BANDWIDTH_SPREAD), rate * (1 + BANDWIDTH_SPREAD)
        else:
            ends = rate, rate
        low, high = (saved[side] - self._cost(self.size / end, remaining) for side, end in enumerate(ends))
        return low, high

    def _cost(self, transfer: Seconds, remaining: Seconds) -> Seconds:
        """Return what a hit takes beside the rest of its prefill, were its transfer this long."""
        queue = 0.0 if self.queue.rate is None else self.queue.wait(transfer).mean
        return self.exposed(transfer, remaining) + queue + self.fixed


def restoring(scenario: Scenario, route: Route, size: Bytes) -> Restoring:
    """Return the restore of `size` bytes in a scenario, with the wait at its rate."""
    queue = queue_of(scenario)
    wait = queue.wait(np.asarray(size / route.bandwidth(size))[()])
    return Restoring(route, scenario.overrides, size, wait, scenario.model.shape.layers, queue)


def plain_restoring(tier: TierUse, size: float, overrides: Overrides) -> Restoring:
    """Return the restore of bare numbers."""
    queue = Queue(given=overrides.queue)
    return Restoring(plain_route(tier), overrides, size, queue.wait(0.0), queue=queue, exact=True)
