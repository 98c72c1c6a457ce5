"""One restore against one recompute, from bare numbers or from a model and a machine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.formulas.breakeven import ROUNDING
from kvcalc.offload_results import CurvePoint
from kvcalc.planning.curves import Case, break_even_over
from kvcalc.planning.gains import GivenSaving, ModelledSaving, Saving, gains_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import (
    Restoring,
    Route,
    Times,
    block_tokens,
    cached_tokens,
    computing_time,
    in_chunks,
    loaded_route,
    moved_bytes,
    plain_restoring,
    prefix_store,
    restore_row,
    restoring,
    tiers_of,
)
from kvcalc.planning.partial import plain_split, split_of
from kvcalc.planning.prefill import tell_source
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.planning.uncertainty import NO_DOUBT, Doubt, judged
from kvcalc.results import Offload, RestoreResult
from kvcalc.scenario import Overrides, Scenario, TierUse

SHORTEST_CURVE = 256
"""First prefix length of the break-even curve [token]; each next one is twice as long."""

DOUBLINGS = 24
"""Lengths of that curve at most [1]: the last, 2^31 tokens, is longer than any model's context."""


@dataclass(frozen=True)
class Given:
    """What the user said of a restore, in base units; None leaves it to the model."""

    size: float | None  # bytes to restore
    remaining: float | None  # prefill of what the hit does not cover [second]
    tiers: tuple[TierUse, ...] = ()
    doubt: Doubt = NO_DOUBT
    over: str | None = None  # input over which the break-even is drawn


def restore_of(
    given: Given, overrides: Overrides, scenario: Scenario | None, inputs: dict[str, object], book: Notebook
) -> RestoreResult:
    """Return one row per bandwidth or tier, and the break-even that they share."""
    curve: tuple[CurvePoint, ...] = ()
    routes: Mapping[str, Route] = {}
    saving: Saving
    if scenario is None:
        size, times, tiers = _bare(given, overrides, book)
        rows = tuple(_plain_row(plain_restoring(tier, size, overrides), times, book) for tier in tiers)
        saving = GivenSaving(size, times.recompute, times.remaining, given.doubt.given)
        case = Case(rows[0], tiers[0], plain_restoring(tiers[0], size, overrides))
    else:
        layout = lay_out(scenario.model.shape, scenario.settings)
        speed = speed_of(scenario, layout, book)
        tiers = _tiers(given, scenario, book)
        rows = _modelled(given, speed, tiers, book)
        saving = ModelledSaving(speed, given.size, given.remaining)
        cached = cached_tokens(scenario, speed, Notebook())
        routes = {tier.name: loaded_route(speed, tier, cached, Notebook()) for tier in tiers}
        route = routes[tiers[0].name]
        found = restoring(scenario, route, float(rows[0].bytes))
        case = Case(rows[0], tiers[0], found, speed, route)
        curve = curve_of(speed, route)
    named = {tier.name: tier for tier in tiers}
    gains = gains_of(
        rows, named, saving, given.doubt.given, overrides.window, scenario=scenario, routes=routes
    )
    rows, tornado = judged(gains, given.doubt)
    if given.over is not None and len(tiers) > 1:
        book.assume(f"the curve is that of {tiers[0].name}; each other tier has its own, were it named alone")
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
        tornado=tornado,
        break_even_curve=None if given.over is None else break_even_over(given.over, case),
    )


def curve_of(speed: Speed, route: Route) -> tuple[CurvePoint, ...]:
    """Return the break-even bandwidth over doubling prefix lengths, before the suffix that was asked."""
    scenario, block = speed.scenario, block_tokens(speed)
    workload = scenario.workload
    cached = workload.prompt if workload.cached is None else workload.cached
    suffix = max(1.0, float(workload.prompt - cached))
    longest = scenario.model.shape.max_tokens or workload.prompt
    lengths = [SHORTEST_CURVE * 2**step for step in range(DOUBLINGS) if SHORTEST_CURVE * 2**step < longest]
    grid = np.unique([length // block * block for length in (*lengths, longest) if length >= block])
    prefix = grid.astype(float)
    full = computing_time(speed, prefix + suffix)
    remaining = computing_time(speed, np.full_like(prefix, suffix), prefix)
    moved = moved_bytes(speed.layout, prefix)
    found = restoring(scenario, route, moved)
    spare = full - remaining - found.fixed
    pays = spare > ROUNDING * full
    points = np.where(pays, moved / found.longest_transfer(np.where(pays, spare, 1.0), remaining), np.nan)
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


def _tiers(given: Given, scenario: Scenario, book: Notebook) -> tuple[TierUse, ...]:
    tiers = given.tiers or tiers_of(scenario, book)
    if not tiers:
        raise SettingsError(f"--bandwidth: missing; {scenario.hardware.name} has no host tier of its own")
    return tiers


def _modelled(given: Given, speed: Speed, tiers: tuple[TierUse, ...], book: Notebook) -> tuple[Offload, ...]:
    cached = cached_tokens(speed.scenario, speed, book)
    tell_source(speed.prefill, "prefill", book)
    rows: list[Offload] = []
    for tier in tiers:
        route = loaded_route(speed, tier, cached, book)
        row = prefix_store(speed, route, cached, book, size=given.size, remaining=given.remaining)
        kept = int(in_chunks(route, cached))
        if kept > 0 and np.isfinite(float(row.restore)):
            row = replace(row, split=split_of(speed, route, row, kept))
        rows.append(row)
    return tuple(rows)


def _plain_row(found: Restoring, times: Times, book: Notebook) -> Offload:
    row = restore_row(found, times, book)
    return replace(row, split=plain_split(found, row))
