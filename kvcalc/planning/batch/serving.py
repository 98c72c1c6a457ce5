"""Columns of a batch on memory, decode and prefill."""

from typing import Any

import numpy as np

from kvcalc.formulas.capacity import (
    bandwidth_utilization,
    capacity_shortfall,
    capacity_utilization,
    first_limit,
    sequences_of_replica,
)
from kvcalc.formulas.cost import generation_cost
from kvcalc.formulas.decode import tokens_per_second
from kvcalc.planning.bandwidth import sustained, target_rate, traffic
from kvcalc.planning.batch.loads import Loads
from kvcalc.planning.decode import DecodeModel, context_between
from kvcalc.planning.speed import Speed

Answers = dict[str, Any]
"""Columns by the dotted key that the same quantity has in a plan's JSON."""


def serving(speed: Speed, budget: float, loads: Loads) -> Answers:
    """Return whether each load fits, what limits it first, and how fast prefill and decode are."""
    found = _capacity(speed, budget, loads) | _decode(speed.decode, loads) | _prefill(speed, loads)
    return found | _cost(speed, found)


def _capacity(speed: Speed, pool: float, loads: Loads) -> Answers:
    decode, settings = speed.decode, speed.scenario.settings
    tokens = loads.prompt + loads.generate
    need = speed.layout.occupied(tokens) * sequences_of_replica(loads.concurrency, settings.dp)
    used = capacity_utilization(need, pool) if pool else np.full_like(tokens, np.inf)
    rate = speed.scenario.workload.rate if loads.rate is None else loads.rate
    target = target_rate(loads.concurrency, loads.generate, rate)  # type: ignore[arg-type]
    context = context_between(loads.prompt, loads.generate)
    read, limit = traffic(decode, loads.concurrency, context, target), sustained(decode)
    busy = bandwidth_utilization(read, limit)
    return {
        "capacity.need": need,
        "capacity.budget": np.full_like(tokens, pool),
        "capacity.utilization": used,
        "capacity.shortfall": capacity_shortfall(need, pool),
        "capacity.sessions": speed.layout.sessions(pool, tokens) * settings.dp,
        "bandwidth.need": read,
        "bandwidth.budget": np.full_like(tokens, limit),
        "bandwidth.utilization": busy,
        "bandwidth.target_tokens_per_second": target * np.ones_like(tokens),
        "first_limit": first_limit(used, busy),
    }


def _decode(model: DecodeModel, loads: Loads) -> Answers:
    context = context_between(loads.prompt, loads.generate)
    steps = model.steps(model.stage_batch(loads.concurrency), context)
    time = steps.middle.total
    return {
        "decode.step_time": time,
        "decode.range.low": steps.fast.total,
        "decode.range.high": steps.slow.total,
        "decode.tokens_per_second": tokens_per_second(loads.concurrency * model.gained, time),
        "decode.bound": steps.middle.stage.bound,
    }


def _prefill(speed: Speed, loads: Loads) -> Answers:
    given, paces = speed.scenario.overrides.prefill, speed.prefill.paces
    flops = np.asarray(speed.prefill.flops(loads.prompt)) * np.ones_like(loads.prompt)
    times: Answers
    if given is not None:
        times = dict.fromkeys(("time", "range.low", "range.high"), np.full_like(loads.prompt, given))
    else:
        times = {
            "time": speed.prefill.time(loads.prompt),
            "range.low": speed.prefill.time(loads.prompt, 0.0, paces.fast),
            "range.high": speed.prefill.time(loads.prompt, 0.0, paces.slow),
        }
    return {"prefill.flops": flops} | {f"prefill.{name}": values for name, values in times.items()}


def _cost(speed: Speed, found: Answers) -> Answers:
    price, pace = speed.scenario.overrides.price, found["decode.tokens_per_second"]
    if price is None:
        return {}
    return {"cost_per_million_tokens": generation_cost(pace, price, speed.scenario.gpus)}
