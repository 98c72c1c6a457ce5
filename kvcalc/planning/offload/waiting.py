"""How long restores wait for each other at the planned rate."""

import math
from dataclasses import dataclass

import numpy as np

from kvcalc.formulas.queueing import backlog_growth, link_utilization, mean_wait, wait_percentile
from kvcalc.planning.notebook import Notebook
from kvcalc.quantity import PerSecond, Seconds, Share
from kvcalc.scenario import Scenario
from kvcalc.wording import time_text

VARIATION = 1.0
"""Standard deviation of the transfer time over its mean [1]; assumed: prefixes of agent traces vary by as
much as their mean or more (https://vllm.ai/blog/2026-05-06-mooncake-store)."""


@dataclass(frozen=True)
class Wait:
    """The wait of a restore for those before it; infinite where the link cannot serve the load."""

    mean: Seconds
    p99: Seconds | None = None  # None where the mean was given
    utilization: Share | None = None


def restore_rate(scenario: Scenario) -> float | None:
    """Return the restores per second that one replica sees: those requests that hit."""
    rate = scenario.workload.rate
    return None if rate is None else rate * scenario.workload.hit_rate / scenario.settings.dp


@dataclass(frozen=True)
class Queue:
    """The queue in front of a tier's link: restores at a rate, or a wait that was given instead."""

    rate: PerSecond | None = None  # of restores; None where the wait does not follow from the transfer
    given: Seconds = 0.0

    def wait(self, service: Seconds) -> Wait:
        """Return the wait for transfers that take `service` seconds each; arrays too."""
        if self.rate is None:
            return Wait(self.given)
        busy = link_utilization(self.rate, service)
        # A load that is never served waits without end, which no formula of a steady state says.
        steady = np.minimum(busy, 1 - 1e-9)
        mean = mean_wait(service, steady, VARIATION)
        late = wait_percentile(mean, steady)
        return Wait(
            np.where(busy < 1, mean, math.inf)[()],
            np.where(busy < 1, late, math.inf)[()],
            busy,
        )


def queue_of(scenario: Scenario) -> Queue:
    """Return the queue of restores at the planned rate."""
    rate = restore_rate(scenario)
    if "queue" in scenario.given or scenario.overrides.queue or rate is None:
        return Queue(given=scenario.overrides.queue)
    return Queue(rate)


def wait_of(scenario: Scenario, service: Seconds) -> Wait:
    """Return the wait for transfers that take `service` seconds each; arrays too."""
    return queue_of(scenario).wait(service)


def tell_wait(tier: str, wait: Wait, scenario: Scenario, service: float, book: Notebook) -> None:
    """Say what the wait rests on, or that there is no steady state."""
    if wait.utilization is None or wait.p99 is None:
        return
    busy = float(book.run(link_utilization, rate=restore_rate(scenario), service=service))
    if busy >= 1:
        growth = float(book.run(backlog_growth, utilization=busy))
        book.warn(
            f"{tier}: unstable: restores at the planned rate keep its link busy {busy:.0%} of the time, and "
            f"the wait grows by {growth:.2g} s every second"
        )
        return
    book.run(mean_wait, service=service, utilization=busy, variation=VARIATION)
    mean, late = float(wait.mean), float(wait.p99)
    # So few may wait that the worst hundredth waits no longer than the mean, which the few make up.
    waits = f"wait {time_text(mean)} on average, {time_text(late)} in the worst hundredth"
    if late <= mean:
        waits = f"rarely wait, {time_text(mean)} on average"
    book.assume(
        f"{tier}: restores at the planned rate keep its link busy {busy:.1%} of the time and {waits} "
        "(random arrivals, transfer times that vary by their mean); --queue replaces it"
    )
