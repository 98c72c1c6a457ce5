"""One restore against one recompute, from bare numbers or from a model and a machine."""

from dataclasses import dataclass

from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import Times, cached_tokens, restore_row, tiers_of
from kvcalc.planning.speed import speed_of
from kvcalc.results import Offload, RestoreResult, Source
from kvcalc.scenario import Overrides, Scenario, TierUse


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
    if scenario is None:
        size, times, tiers = _bare(given, overrides, book)
    else:
        size, times, tiers = _modelled(given, scenario, book)
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


def _modelled(given: Given, scenario: Scenario, book: Notebook) -> tuple[float, Times, tuple[TierUse, ...]]:
    layout = lay_out(scenario.model.shape, scenario.settings)
    speed = speed_of(scenario, layout, book)
    prompt = float(scenario.workload.prompt)
    cached = cached_tokens(scenario, speed, book)
    size = float(layout.serialized(cached, per_gpu=True)) if given.size is None else given.size
    band = (
        speed.prefill.efficiency if speed.prefill.source != "model" else scenario.hardware.prefill_efficiency
    )
    if speed.prefill.source == "model":
        book.source("prefill", Source("derived", "FLOP count, dense peak and prefill efficiency"))
        book.assume(f"prefill reaches {band.low:.0%} to {band.high:.0%} of {scenario.hardware.name}'s peak")

    def times_at(share: float) -> tuple[float, float]:
        left = given.remaining
        if left is None:
            left = float(speed.prefill.time(prompt - cached, float(cached), share))
        return float(speed.prefill.time(prompt, 0.0, share)), left

    middle, fast, slow = times_at(band.mid), times_at(band.high), times_at(band.low)
    times = Times(middle[0], middle[1], fast[0] - fast[1], slow[0] - slow[1])
    tiers = given.tiers or tiers_of(scenario, book)
    if not tiers:
        raise SettingsError(f"--bandwidth: missing; {scenario.hardware.name} has no host tier of its own")
    return size, times, tiers
