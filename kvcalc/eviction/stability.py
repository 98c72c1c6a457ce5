"""Whether a load fits an engine, in closed form: what a simulation should come near to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kvcalc.eviction.load import Requests
from kvcalc.eviction.results import StabilityRow
from kvcalc.eviction.steps import StepTimes
from kvcalc.eviction.tactics import Limits
from kvcalc.formulas.pressure import (
    expected_occupancy,
    expected_running,
    growth_evictions,
    loop_gain,
    overrun_probability,
    overrun_slope,
    safe_concurrency,
)

_ROUNDS = 200  # of eviction -> recompute -> load, each nearer to where it settles
_LEAST = 1e-9  # seconds of GPU time of one request, which no engine undercuts
_HALVINGS = 20  # of the range in which the turning rate is looked for
_SETTLED = 1e-9  # change of the lost share at which it has


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request asks of an engine, on average, and how much the tokens held vary."""

    generate: float  # tokens
    held: float  # tokens that a running sequence holds, over its life
    deviation: float  # of these, over all running sequences
    prefill: float  # seconds of GPU time
    step: float  # seconds of a decode step beside its sequences
    share: float  # seconds that one sequence adds to it
    recompute: float  # seconds of GPU time to compute one victim again

    @classmethod
    def of(cls, requests: Requests, times: StepTimes) -> "Demand":
        """Return the demand of a load; a sequence counts for as many steps as it generates tokens."""
        prompt, generate = requests.prompt.astype(float), requests.generate.astype(float)
        weight = generate / generate.sum()
        held = float((weight * (prompt + generate / 2)).sum())
        square = float((weight * (prompt * prompt + prompt * generate + generate * generate / 3)).sum())
        cached = requests.cached.astype(float)
        per_sequence = (times.decode[-1] - times.decode[1]) / max(1, times.most - 1)
        return cls(
            generate=float(generate.mean()),
            held=held,
            deviation=max(np.sqrt(max(square - held * held, 0.0)), 1e-9),
            prefill=float(np.mean(times.prefill_time(prompt - cached, cached))),
            step=times.decode[1] - per_sequence,
            share=per_sequence + times.context[-1] * held,
            recompute=float(times.prefill_time(held)),
        )

    def spare(self, rate: float, lost: float) -> float:
        """Return the share of the time that prefill, growth of the step and recompute leave."""
        return 1 - rate * (self.prefill + self.generate * self.share) - lost


Run = Callable[..., Any]
"""Calls a formula by the names of its arguments."""


def _call(formula: Callable[..., Any], **arguments: Any) -> Any:  # noqa: ANN401 - any formula
    return formula(**arguments)


def stability_of(
    rate: float, demand: Demand, limits: Limits, times: StepTimes, note: Run = _call
) -> StabilityRow:
    """Return what closed forms say of requests that arrive at `rate` per second.

    `note` calls each formula where it has settled, so that a notebook may keep the calls.
    """
    pool = float(limits.blocks * limits.block)
    blank = StabilityRow(
        rate=rate,
        running=None,
        occupancy=None,
        overrun_probability=None,
        safe_concurrency=float(
            note(safe_concurrency, held=demand.held, deviation=demand.deviation, pool=pool)
        ),
        evictions_per_second=None,
        loop_gain=None,
        stable=False,
        reason="the GPU has not enough time: prefill and decode of what arrives take more than all of it",
    )
    lost, row = 0.0, blank
    for _ in range(_ROUNDS):
        spare = demand.spare(rate, lost)
        if spare <= 0:
            return _runaway(row, blank)
        row = _at(rate, demand, spare, pool, blank, _call)
        before, lost = lost, float(demand.recompute * (row.evictions_per_second or 0.0))
        if abs(lost - before) < _SETTLED:
            break
    return _judged(_at(rate, demand, spare, pool, blank, note), times.most)


def turning_rate(demand: Demand, limits: Limits, times: StepTimes) -> float:
    """Return the highest rate of requests [1/second] that the closed forms call stable."""
    low, high = 0.0, 1 / max(demand.prefill + demand.generate * demand.share, _LEAST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if stability_of(middle, demand, limits, times).stable:
            low = middle
        else:
            high = middle
    return low


def _at(
    rate: float, demand: Demand, spare: float, pool: float, blank: StabilityRow, run: Run
) -> StabilityRow:
    """Return the figures where `spare` of the time is left for decode."""
    running = float(run(expected_running, rate=rate, generate=demand.generate, step=demand.step, spare=spare))
    growth = rate * demand.generate
    lengths = {"running": running, "held": demand.held, "pool": pool}
    overrun = float(run(overrun_probability, deviation=demand.deviation, **lengths))
    slope = float(run(overrun_slope, deviation=demand.deviation, **lengths))
    loop = {"growth": growth, "freed": demand.held}
    return replace(
        blank,
        running=running,
        occupancy=float(run(expected_occupancy, **lengths)),
        overrun_probability=overrun,
        evictions_per_second=float(run(growth_evictions, overrun=overrun, **loop)),
        loop_gain=float(
            run(loop_gain, cost=demand.recompute, slope=slope, running=running, spare=spare, **loop)
        ),
    )


def _runaway(row: StabilityRow, blank: StabilityRow) -> StabilityRow:
    """Say what happens where the loop has taken all of the time."""
    if row.running is None:
        return blank
    return replace(
        row,
        running=None,
        occupancy=None,
        loop_gain=max(row.loop_gain or 0.0, 1.0),
        reason="the loop gain exceeds 1: recompute of victims fills the pool again, until nothing else runs",
    )


def _judged(row: StabilityRow, most: int) -> StabilityRow:
    running, occupancy, gain = row.running or 0.0, row.occupancy or 0.0, row.loop_gain or 0.0
    if gain > 1:
        reason = f"the loop gain is {gain:.2f}: each eviction causes more than one other"
    elif occupancy > 1:
        reason = f"the pool would have to hold {occupancy:.2f} times what it holds"
    elif running > most:
        reason = f"{running:.0f} sequences would have to run at once, of {most} that the engine runs"
    else:
        return replace(row, stable=True, reason="the load fits, and evictions die out")
    return replace(row, reason=reason)
