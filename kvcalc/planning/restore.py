"""One restore against one recompute, from bare numbers or from a model and a machine."""

from dataclasses import dataclass

import numpy as np

from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.formulas.breakeven import break_even_bandwidth
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import Times, block_tokens, cached_tokens, restore_row, tiers_of
from kvcalc.planning.pace import Pace
from kvcalc.planning.prefill import tell_source
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.results import CurvePoint, Offload, RestoreResult
from kvcalc.scenario import Overrides, Scenario, TierUse

SHORTEST_CURVE = 256
"""First prefix length of the break-even curve [token]; each next one is twice as long."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the user said of a restore, in base units; None leaves it to the model."""

    size: float | None  # bytes to restore
    remaining: float | None  # prefill of what the hit does not cover [second]
    tiers: tuple[TierUse, ...] = ()


def restore_of(
    given: Given, overrides: Overrides, scenario: Scenario | None, inputs: dict[str, object], book: Notebook
) -> RestoreResult:
    """Return one row per bandwidth or tier, and the break-even that they share."""
    curve: tuple[CurvePoint, ...] = ()
    if scenario is None:
        size, times, tiers = _bare(given, overrides, book)
    else:
        layout = lay_out(scenario.model.shape, scenario.settings)
        speed = speed_of(scenario, layout, book)
        size, times, tiers = _modelled(given, speed, book)
        curve = curve_of(speed, tiers[0])
    rows = tuple(restore_row(tier, size, times, overrides, book) for tier in tiers)
    for tier in tiers:
        if tier.source is not None:
            book.source(f"{tier.name}.bandwidth", tier.source)
    return RestoreResult(
        inputs=inputs,
        sources=book.sources,
        warnings=tuple(book.warnings),
        assumptions=tuple(book.assumptions),
        rows=rows,
        break_even_bandwidth=rows[0].break_even_bandwidth,
        reason=_reason(rows),
        curve=curve,
    )


def curve_of(speed: Speed, tier: TierUse) -> tuple[CurvePoint, ...]:
    """Return the break-even bandwidth over doubling prefix lengths, before the suffix that was asked."""
    scenario, block = speed.scenario, block_tokens(speed)
    workload, overrides = scenario.workload, scenario.overrides
    cached = workload.prompt if workload.cached is None else workload.cached
    suffix = max(1.0, float(workload.prompt - cached))
    longest = scenario.model.shape.max_tokens or workload.prompt
    lengths = [SHORTEST_CURVE * 2**step for step in range(24) if SHORTEST_CURVE * 2**step < longest]
    grid = np.unique([length // block * block for length in (*lengths, longest) if length >= block])
    prefix = grid.astype(float)
    full = speed.prefill.time(prefix + suffix)
    remaining = speed.prefill.time(np.full_like(prefix, suffix), prefix)
    moved = speed.layout.serialized(prefix, per_gpu=True)
    overhead = overrides.queue + overrides.convert + overrides.sync
    overhead += tier.setup if overrides.setup is None else overrides.setup
    points = break_even_bandwidth(moved, full, remaining, overhead)
    columns = np.column_stack([prefix, moved, full, remaining, points]).tolist()
    return tuple(
        CurvePoint(
            cached=cached,
            bytes=size,
            recompute=recompute,
            remaining=left,
            break_even_bandwidth=None if np.isnan(point) else point,
        )
        for cached, size, recompute, left, point in columns
    )


def _reason(rows: tuple[Offload, ...]) -> str | None:
    return rows[0].reason if rows[0].break_even_bandwidth is None else None


def _bare(given: Given, overrides: Overrides, book: Notebook) -> tuple[float, Times, tuple[TierUse, ...]]:
    hint = "or name a MODEL and --on a machine"
    if given.size is None:
        raise SettingsError(f"--bytes: missing; give the KV to restore, {hint}")
    if not given.tiers:
        raise SettingsError(f"--bandwidth: missing; give one or more rates, {hint}")
    if overrides.prefill is None:
        raise SettingsError(f"--prefill: missing; give the time of a full recompute, {hint}")
    remaining = given.remaining
    if remaining is None:
        book.assume("no --remaining given: the hit covers the whole prompt and nothing is left to compute")
        remaining = 0.0
    saved = overrides.prefill - remaining
    return given.size, Times(overrides.prefill, remaining, saved, saved), given.tiers


def _modelled(given: Given, speed: Speed, book: Notebook) -> tuple[float, Times, tuple[TierUse, ...]]:
    scenario, layout = speed.scenario, speed.layout
    prompt = float(scenario.workload.prompt)
    cached = cached_tokens(scenario, speed, book)
    size = float(layout.serialized(cached, per_gpu=True)) if given.size is None else given.size
    tell_source(speed.prefill, "prefill", book)

    def times_at(pace: Pace) -> tuple[float, float]:
        left = given.remaining
        if left is None:
            left = float(speed.prefill.time(prompt - cached, float(cached), pace))
        return float(speed.prefill.time(prompt, 0.0, pace)), left

    paces = speed.prefill.paces
    middle, fast, slow = times_at(paces.middle), times_at(paces.fast), times_at(paces.slow)
    times = Times(middle[0], middle[1], fast[0] - fast[1], slow[0] - slow[1])
    tiers = given.tiers or tiers_of(scenario, book)
    if not tiers:
        raise SettingsError(f"--bandwidth: missing; {scenario.hardware.name} has no host tier of its own")
    return size, times, tiers
