"""Every policy on the same arrivals, at the load that was asked and at others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvcalc.eviction.engine import Engine
from kvcalc.eviction.findings import advice, findings_of, lru_is_enough
from kvcalc.eviction.load import Requests
from kvcalc.eviction.measures import Run
from kvcalc.eviction.results import Finding, Limit, SimulatedRow, StabilityRow
from kvcalc.eviction.stability import Demand, stability_of, turning_rate
from kvcalc.eviction.steps import StepTimes
from kvcalc.eviction.tactics import Limits, Tactic

LOADS = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Loads that are simulated beside the one that was asked, as multiples of it [1]."""

SWEEP = 4000
"""Most requests [1] that are simulated at those other loads: enough for a P99, and soon done."""

AROUND = (0.8, 1.2)
"""Loads around the one at which closed forms see it turn unstable, as multiples of that [1]."""

LARGER = 1.2
"""By how much a pool is enlarged to see whether memory or the policy is the problem [1]."""

Progress = Callable[[int, int], None]
"""Told how many requests are done, of how many."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated."""

    requests: Requests  # at the rate that was asked
    rate: float  # requests per second
    limits: Limits
    times: StepTimes
    tactics: tuple[Tactic, ...]
    deadline: float  # longest total time [second] of a good request
    loads: tuple[float, ...] | None = None  # multiples of the rate; None: `LOADS`, and around the turn


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came out."""

    rows: tuple[SimulatedRow, ...]
    stability: tuple[StabilityRow, ...]
    turning_rate: float
    limits: tuple[Limit, ...]
    findings: tuple[Finding, ...]
    lru_is_enough: bool
    advice: str


def simulate(setup: Setup, progress: Progress | None = None) -> Simulated:
    """Run every tactic under every load, and say what the figures mean."""
    demand = Demand.of(setup.requests, setup.times)
    turn = turning_rate(demand, setup.limits, setup.times)
    loads = _loads(setup, turn)
    work = [(tactic, load, _subset(setup, load)) for tactic in setup.tactics for load in loads]
    whole, done = sum(len(requests) for _, _, requests in work), 0
    rows: list[SimulatedRow] = []
    for tactic, load, requests in work:

        def tick(finished: int, before: int = done) -> None:
            if progress is not None:
                progress(before + finished, whole)

        rows.append(run(setup, tactic, load, requests, tick).row(setup.deadline))
        done += len(requests)
        tick(0, done)
    enough = lru_is_enough(rows)
    tokens = float(np.mean(setup.requests.prompt + setup.requests.generate))
    cooled = [tactic.name for tactic in setup.tactics if tactic.rules.cooldown > 0]
    forms = {load: stability_of(setup.rate * load, demand, setup.limits, setup.times) for load in loads}
    return Simulated(
        rows=tuple(rows),
        stability=tuple(forms.values()),
        turning_rate=turn,
        limits=tuple(_limit(tactic.name, rows) for tactic in setup.tactics),
        findings=findings_of(rows, cooled, _larger(setup, rows)),
        lru_is_enough=enough,
        advice=advice(rows, tokens, enough, forms[1.0]),
    )


def run(
    setup: Setup,
    tactic: Tactic,
    load: float = 1.0,
    requests: Requests | None = None,
    tick: Callable[[int], None] | None = None,
) -> Run:
    """Run one tactic under one load; `requests` are those that arrive, at the rate that was asked."""
    arriving = (setup.requests if requests is None else requests).faster(load)
    record = Engine(arriving, setup.limits, setup.times, tactic, tick=tick).run()
    return Run(tactic.name, load, setup.rate * load, arriving, setup.limits, setup.times, record)


def _loads(setup: Setup, turn: float) -> list[float]:
    """Return the loads that are simulated, low to high: by default some on both sides of the turn."""
    if setup.loads is not None:
        return sorted({1.0, *setup.loads})
    around = {turn * factor / setup.rate for factor in AROUND if turn > 0}
    low, high = min(LOADS), max(LOADS)
    return sorted({*LOADS, *(load for load in around if not low <= load <= high)})


def _subset(setup: Setup, load: float) -> Requests:
    """Return the requests that are simulated under a load: all of them at the one that was asked."""
    return setup.requests if load == 1 else setup.requests.first(SWEEP)


def _larger(setup: Setup, rows: Sequence[SimulatedRow]) -> SimulatedRow | None:
    """Return the first policy that thrashes, with a larger pool."""
    thrashing = next((row.policy for row in rows if row.load == 1 and row.thrashing), None)
    tactic = next((tactic for tactic in setup.tactics if tactic.name == thrashing), None)
    if tactic is None:
        return None
    limits = replace(setup.limits, blocks=int(setup.limits.blocks * LARGER))
    again = replace(setup, limits=limits)
    return run(again, tactic, requests=setup.requests.first(SWEEP)).row(setup.deadline)


def _limit(policy: str, rows: Sequence[SimulatedRow]) -> Limit:
    own = [row for row in rows if row.policy == policy]
    return Limit(
        policy=policy,
        unstable_rate=min((float(row.rate) for row in own if not row.stable), default=None),
        close_admission_rate=min((float(row.rate) for row in own if row.thrashing), default=None),
    )
