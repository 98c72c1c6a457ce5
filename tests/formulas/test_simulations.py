"""Queues played out event by event, against the formulas."""

import numpy as np
import pytest

from kvcalc.formulas.queueing import mean_wait, service_within, shared_service, wait_percentile

COUNT = 400_000
SERVICE = 0.05


def waits(service, rate, seed=5):
    """Return the wait of each arrival at one link that serves them in order (D. Lindley's recursion)."""
    gaps = np.random.default_rng(seed).exponential(1 / rate, len(service))
    steps = np.cumsum(service[:-1] - gaps[1:])
    lowest = np.minimum.accumulate(np.concatenate([[0.0], steps]))
    return np.concatenate([[0.0], steps]) - lowest


@pytest.mark.parametrize("load", [0.3, 0.7])
@pytest.mark.parametrize("variation", [0.0, 1.0, 1.5])
def test_mean_wait_of_any_spread_of_transfer_times(load, variation):
    draw = np.random.default_rng(3)
    if variation == 0:
        service = np.full(COUNT, SERVICE)
    else:  # gamma of that mean and spread
        shape = 1 / variation**2
        service = draw.gamma(shape, SERVICE / shape, COUNT)
    found = waits(service, load / SERVICE).mean()
    assert mean_wait(SERVICE, load, variation) == pytest.approx(found, rel=0.05)


def test_the_worst_hundredth_of_exponential_transfers():
    service = np.random.default_rng(3).exponential(SERVICE, COUNT)
    found = np.quantile(waits(service, 0.7 / SERVICE), 0.99)
    assert wait_percentile(mean_wait(SERVICE, 0.7), 0.7) == pytest.approx(found, rel=0.05)


def test_transfers_that_share_a_link_in_slices():
    """Play out equal shares: all transfers under way advance together until the next arrives or ends."""
    draw, load, count = np.random.default_rng(7), 0.6, 30_000
    arrivals = np.cumsum(draw.exponential(SERVICE / load, count))
    sizes = draw.gamma(0.5, SERVICE / 0.5, count)
    under_way, now, index, total = {}, 0.0, 0, 0.0
    while index < count or under_way:
        next_arrival = arrivals[index] if index < count else np.inf
        first = min(under_way, key=under_way.get) if under_way else None
        ends = now + under_way[first] * len(under_way) if under_way else np.inf
        passed = (min(ends, next_arrival) - now) / max(1, len(under_way))
        for key in under_way:
            under_way[key] -= passed
        now = min(ends, next_arrival)
        if ends <= next_arrival:
            total += now - arrivals[first]
            del under_way[first]
        else:
            under_way[index] = sizes[index]
            index += 1
    assert shared_service(sizes.mean(), load) == pytest.approx(total / count, rel=0.08)


@pytest.mark.parametrize(
    ("rate", "shown", "variation"), [(4.0, 1.0, 1.0), (12.0, 0.0, 1.0), (8.0, 0.25, 1.5)]
)
def test_the_transfer_that_a_budget_allows_takes_the_budget(rate, shown, variation):
    """Play the queue of transfers of that length: what shows of one, and its wait, are the budget."""
    budget = 0.1
    length = service_within(budget, rate, shown, variation)
    shape = 1 / variation**2
    service = np.random.default_rng(3).gamma(shape, length / shape, COUNT)
    assert shown * length + waits(service, rate).mean() == pytest.approx(budget, rel=0.05)
