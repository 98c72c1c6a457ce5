"""What moving and computing KV costs: rates that the user gives, or those of a model on a machine.

All bytes of a ledger are those of one GPU, as engines keep a block table for each rank.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvcalc.engines import lay_out
from kvcalc.formulas.eviction import recompute_time
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.planning.tiers import standard_tiers
from kvcalc.quota.ledger import RUNNING, Ledger
from kvcalc.results import Source
from kvcalc.scenario import Scenario, TierUse

RATIO = 2.0
"""How many times smaller compressing makes a block where nothing is given [1]: 8 bits for 16, as fp8 KV
(https://blog.vllm.ai/2026/04/22/fp8-kvcache.html)."""

ASSUMED_LINK = 25e9
"""Rate of the host link where nothing is given [byte/second]; assumed: PCIe 4.0 x16 has 32 GB/s before
protocol and copies."""

ASSUMED_PREFILL = 12_500.0
"""Prefill speed where nothing is given [token/second]; assumed: 0.08 ms a token, the figure with which
operators' rules of thumb for eviction reckon."""

MISMATCH = 0.02
"""Difference between the ledger's bytes per token and the model's above which a warning is due [1]:
padding of pages to a multiple stays below it."""

LONG = 32_768.0
"""Length whose prefill is shown as one rate [token]."""

Recompute = Callable[[Any, Any], Any]
"""Seconds of computing `new` tokens behind `cached` ones; arrays and scalars alike."""


@dataclass(frozen=True, slots=True)
class Given:
    """Rates that the user gave; None leaves them to the model, or to what is assumed."""

    bandwidth: float | None = None  # byte/second, both ways
    setup: float | None = None  # second
    prefill_rate: float | None = None  # token/second
    step_time: float | None = None  # second of one decode step


@dataclass(frozen=True, slots=True)
class Rates:
    """What the plan reckons with."""

    out: float  # byte/second, device to host
    back: float  # byte/second, host to device
    setup: float  # second, of a restore
    recompute: Recompute
    ratio: float = RATIO
    step_time: float | None = None  # second of one decode step


def rates_of(
    given: Given,
    ledger: Ledger,
    scenario: Scenario | None,
    tiers: tuple[TierUse, ...],
    book: Notebook,
    ratio: float = RATIO,
) -> Rates:
    """Return the rates, noting where each is from."""
    speed = None
    if scenario is not None:
        speed = speed_of(scenario, lay_out(scenario.model.shape, scenario.settings), book)
        _compare(speed, ledger, book)
    out, back, setup = _link(given, scenario, tiers, book)
    return Rates(
        out=out,
        back=back,
        setup=setup,
        recompute=_recompute(given, speed, book),
        ratio=ratio,
        step_time=_step(given, speed, ledger, book),
    )


def _link(
    given: Given, scenario: Scenario | None, tiers: tuple[TierUse, ...], book: Notebook
) -> tuple[float, float, float]:
    if given.bandwidth is not None:
        book.source("bandwidth", Source("given", "--bandwidth"))
        return given.bandwidth, given.bandwidth, given.setup or 0.0
    found = tiers or (standard_tiers(scenario, book) if scenario is not None else ())
    if not found:
        book.source("bandwidth", Source("assumed", "PCIe 4.0 x16 after protocol and copies"))
        book.warn(
            f"no --bandwidth, --tier or --on given: the host link is assumed to carry {ASSUMED_LINK / 1e9:g} "
            "GB/s each way"
        )
        return ASSUMED_LINK, ASSUMED_LINK, given.setup or 0.0
    tier = found[0]
    book.source("bandwidth", tier.source or Source("given", f"--tier {tier.name}"))
    out = tier.bandwidth
    if scenario is not None:
        out = min(out, scenario.hardware.device_to_host.bandwidth)
    return out, tier.bandwidth, float(tier.setup or 0.0) if given.setup is None else given.setup


def _recompute(given: Given, speed: Speed | None, book: Notebook) -> Recompute:
    if given.prefill_rate is None and speed is not None:
        book.source("prefill", Source("derived", "FLOP count, dense peak and prefill efficiency"))
        prefill = speed.prefill

        def modelled(new: Any, cached: Any) -> Any:  # noqa: ANN401 - scalars and arrays
            return prefill.time(new, cached)

        return modelled
    rate = given.prefill_rate or ASSUMED_PREFILL
    if given.prefill_rate is None:
        book.source("prefill", Source("assumed", "0.08 ms a token"))
        book.warn(
            f"no --prefill-rate or --model with --on given: prefill is assumed to run at {rate:,.0f} token/s"
        )
    else:
        book.source("prefill", Source("given", "--prefill-rate"))

    def linear(new: Any, _cached: Any) -> Any:  # noqa: ANN401 - scalars and arrays
        return recompute_time(new, 1.0 / rate)

    return linear


def _step(given: Given, speed: Speed | None, ledger: Ledger, book: Notebook) -> float | None:
    """Return the time of one decode step of all running sessions."""
    running = ledger.sessions.state == RUNNING
    if given.step_time is not None:
        book.source("step_time", Source("given", "--step-time"))
        return given.step_time
    if speed is None or not running.any():
        return None
    book.source("step_time", Source("derived", "the decode model at the running sessions' mean context"))
    context = float(np.mean(ledger.sessions.tokens[running]))
    hardware = speed.scenario.hardware
    step = speed.decode.step(
        float(running.sum()), context, hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid
    )
    return float(step.total) / float(speed.decode.gained)


def _compare(speed: Speed, ledger: Ledger, book: Notebook) -> None:
    """Warn where the ledger's blocks are not those of the model."""
    expected, found = float(speed.layout.bytes_per_token_per_gpu), ledger.bytes_per_token
    if expected > 0 and abs(found - expected) > MISMATCH * expected:
        book.warn(
            f"the ledger has {found:,.0f} bytes a token, {speed.scenario.model.shape.name} on one GPU "
            f"{expected:,.0f}: is it another KV dtype, or are they bytes of all ranks?"
        )
