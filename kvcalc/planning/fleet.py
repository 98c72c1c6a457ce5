"""What a tier does to a fleet: saturation, waiting, and what tokens cost, with it and without."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvcalc.formulas.decode import tokens_per_second
from kvcalc.formulas.energy import mean_power
from kvcalc.formulas.queueing import link_utilization, mean_wait, mixture_variation
from kvcalc.formulas.reuse import expected_time, mixed_throughput
from kvcalc.offload_results import Fleet, FleetSide
from kvcalc.planning.decode import mean_context
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import PREFIX_STORE
from kvcalc.planning.offload.waiting import VARIATION
from kvcalc.planning.speed import Speed
from kvcalc.results import Offload
from kvcalc.scenario import Scenario, TierUse

WAITING_POWER = 0.28
"""Share of its power limit that a GPU draws while it waits for KV [1] (https://arxiv.org/abs/2601.19910)."""


@dataclass(frozen=True)
class Mix:
    """Requests of two kinds: those that hit a tier, and those that compute everything."""

    hit: float  # share of the requests
    miss_compute: float  # seconds of GPU
    hit_compute: float  # seconds of GPU
    miss_time: float  # seconds to the first token, without waiting for the GPU
    hit_time: float
    link: float  # seconds that one hit keeps the path busy

    @property
    def service(self) -> float:
        """Mean GPU time of a request."""
        return float(expected_time(self.hit, self.miss_compute, self.hit_compute))


def fleet_of(
    speed: Speed, sessions: float, rows: tuple[Offload, ...], tiers: tuple[TierUse, ...], book: Notebook
) -> Fleet | None:
    """Return both sides of a fleet of which `sessions` sequences fit at once, all replicas together.

    None without a rate of requests, without anything to restore, or where not one sequence fits.  Requests
    restore from the tier that is fastest for them, of those that add anything to the GPUs; without one
    every prompt is computed on both sides.  A restore leaves the GPU to other requests.
    """
    scenario = speed.scenario
    stored = [row for row in rows if row.mode == PREFIX_STORE]
    rate = scenario.workload.rate
    if rate is None or not stored or sessions < 1:
        return None
    adding = [row for row in stored if not row.adds_nothing]
    row = min(adding or stored, key=lambda item: float(_total(item)))
    tier = next(tier for tier in tiers if tier.name == row.tier)
    full = float(row.recompute)
    hit = scenario.workload.hit_rate if adding else 0.0
    alone = Mix(0.0, full, full, full, full, 0.0)
    mixed = Mix(hit, full, float(row.remaining), full, float(_total(row)), float(row.transfer))
    replicas = float(scenario.settings.dp)
    storage = (tier.price or 0.0) * (tier.capacity or 0.0)
    decode = _decode_rate(speed, sessions, book)
    without = _side(scenario, alone, decode, "", 0.0, book)
    with_tiers = _side(scenario, mixed, decode, tier.name, storage, book)
    limit = with_tiers.limited_by
    counted = (tier.name,) if adding else ()
    book.assume(
        f"in the fleet {hit:.0%} of requests hit a tier, prefill times vary by their mean, and a restore "
        "leaves the GPU to other requests; prefill and decode each saturate as if they had the GPUs alone"
    )
    return Fleet(
        rate=rate,
        replicas=replicas,
        hit_share=hit,
        tiers=counted,
        link_utilization=float(link_utilization(rate * hit, mixed.link, replicas)),
        decode_rate=decode,
        limited_by="compute" if limit == "prefill" else limit,
        without=without,
        with_tiers=with_tiers,
        gain=float(with_tiers.saturation_rate / without.saturation_rate),
        not_counted=tuple(item.tier for item in stored if item.tier not in counted),
        reason=_counted(row.tier, stored, adding),
    )


def _counted(chosen: str, stored: Sequence[Offload], adding: Sequence[Offload]) -> str:
    """Return in words which tier the fleet counts, and what the others would change."""
    nothing = [row.tier for row in stored if row.adds_nothing]
    if not adding:
        return f"no hit is counted, and every prompt is computed: {_same(nothing)}"
    said = []
    others = [row.tier for row in adding if row.tier != chosen]
    if others:
        said.append(
            f"every hit is restored from {chosen}, from which a hit is ready first; hits that only "
            f"{_names(others)} would have, and what they would carry, are not counted"
        )
    if nothing:
        said.append(f"no other hit is counted: {_same(nothing)}")
    return "; ".join(said) or f"every hit is restored from {chosen}, the only tier"


def _same(tiers: Sequence[str]) -> str:
    return f"{_names(tiers)} {'adds' if len(tiers) == 1 else 'add'} nothing"


def _names(tiers: Sequence[str]) -> str:
    return " and ".join(tiers)


def _total(row: Offload) -> float:
    return float(row.cached_total if row.overlapped_total is None else row.overlapped_total)


def _decode_rate(speed: Speed, sessions: float, book: Notebook) -> float:
    """Return the requests per second whose tokens are generated where all that fit decode at once."""
    model, workload, settings = speed.decode, speed.scenario.workload, speed.scenario.settings
    hardware = speed.scenario.hardware
    if settings.max_seqs is not None:
        sessions = min(sessions, settings.max_seqs * settings.dp)
    share, sustained = hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid
    step = model.step(model.stage_batch(sessions), mean_context(workload), share, sustained).total
    rate = book.run(tokens_per_second, batch=sessions * model.gained, step=float(step))
    return float(rate) / workload.generate if workload.generate else math.inf


def _side(
    scenario: Scenario, mix: Mix, decode: float, tier: str, storage: float, book: Notebook
) -> FleetSide:
    """Return one side of the fleet, with what limits it: prefill, decode or the path to the tier."""
    workload, replicas = scenario.workload, float(scenario.settings.dp)
    rate = workload.rate or 0.0
    busy = float(book.run(link_utilization, rate=rate, service=mix.service, servers=replicas))
    prompt = float(workload.prompt)
    computed = replicas * float(
        book.run(
            mixed_throughput, hit=mix.hit, miss=prompt / mix.miss_compute, restored=prompt / mix.hit_compute
        )
    )
    carried = replicas * prompt / (mix.hit * mix.link) if mix.hit * mix.link > 0 else np.inf
    tokens, limit = min((computed, "prefill"), (carried, tier), (decode * prompt, "decode"))
    variation = float(
        book.run(
            mixture_variation,
            share=mix.hit,
            first=mix.miss_compute,
            second=mix.hit_compute,
            variation=VARIATION,
        )
    )
    wait, pooled = _waits(mix.service, busy, variation, replicas)
    time = float(expected_time(mix.hit, mix.miss_time, mix.hit_time)) if mix.hit else mix.miss_time
    steady = wait is not None and np.isfinite(time) and rate < decode
    wait, pooled = (wait, pooled) if rate < decode else (None, None)
    price, power = scenario.overrides.price, scenario.hardware.device.power
    per_dollar = None if price is None else tokens / (price * scenario.gpus + storage)
    # The GPUs wait only for the path: where decode is what limits, they decode.
    worked = 1.0 if limit == "decode" else tokens / computed
    drawn = None if power is None else float(mean_power(power, worked, WAITING_POWER))
    return FleetSide(
        utilization=busy,
        wait=wait,
        pooled_wait=pooled,
        ttft=wait + time if wait is not None and steady else None,
        saturation_rate=tokens / prompt,
        limited_by=limit,
        tokens_per_second=tokens,
        tokens_per_dollar=per_dollar,
        cost_per_million_tokens=None if per_dollar is None else 1e6 / per_dollar,
        tokens_per_joule=None if drawn is None else tokens / (drawn * scenario.gpus),
        reason="" if steady else _unstable(busy, rate, decode),
    )


def _unstable(busy: float, rate: float, decode: float) -> str:
    if rate >= decode:
        return (
            f"unstable: decode finishes at most {decode:.3g} requests per second with as many at once as "
            "fit, so requests wait without end"
        )
    if busy >= 1:
        return f"unstable: prefill keeps the GPUs busy {busy:.0%} of the time, so requests wait without end"
    return "unstable: the path to the tier cannot carry the planned rate, so restores wait without end"


def _waits(
    service: float, busy: float, variation: float, replicas: float
) -> tuple[float | None, float | None]:
    """Return the mean wait with a queue for each replica, and with one for all; None where it never ends."""
    if busy >= 1:
        return None, None
    return float(mean_wait(service, busy, variation)), float(mean_wait(service, busy, variation, replicas))
