"""Restoring against recomputing over one input: bandwidth, prefix, hit rate, reuse interval or piece size."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kvcalc.errors import DomainError, SettingsError, did_you_mean
from kvcalc.formulas.cost import break_even_hit_share, break_even_interval, storage_cost, time_cost
from kvcalc.formulas.overlap import overlapped_total
from kvcalc.formulas.transfer import burst_time, effective_bandwidth, piece_for_bandwidth
from kvcalc.offload_results import BreakEvenCurve, CurveLine
from kvcalc.planning.offload import (
    Lengths,
    Restoring,
    Route,
    block_tokens,
    computing_time,
    moved_bytes,
    restoring,
    worthwhile,
)
from kvcalc.planning.speed import Speed
from kvcalc.quantity import BytesPerSecond, Real, Seconds
from kvcalc.results import Offload
from kvcalc.scenario import Scenario, TierUse

POINTS = 97
"""Values of the variable on a curve [1]: more than a chart has columns."""

REACH = 64.0
"""How far a curve reaches on either side of where it is read [1]."""

COPY_OVERHEAD = 3.5e-6
"""Fixed cost of one copy [second] where the mechanism states none: cudaMemcpyAsync on an H100
(https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html)."""

USUAL_INTERVAL = 3600.0
"""Reuse interval in the middle of a curve without a break-even [second]; assumed: an hour, so that
`REACH` spans from one minute, a chat that goes on, to days."""

SMALLEST_PIECE, LARGEST_PIECE = 2.0**12, 2.0**26
"""Ends of the curve over the size of one copy [byte]: a page of host memory, below which no engine copies,
and 64 MiB, where the cost of a copy no longer counts beside its transfer on any link."""

NO_LENGTH_ON_GRID = "no prefix length on the grid is worth restoring"
"""Why a curve over the prefix has no crossing."""

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """One row whose input is varied, with what a model adds to it; both None in bare numbers."""

    row: Offload
    tier: TierUse
    found: Restoring
    speed: Speed | None = None
    route: Route | None = None

    def total(self, bandwidth: BytesPerSecond) -> Seconds:
        """Return the time to the first token of the hit at other rates, with its overlap."""
        row, transfer = self.row, burst_time(self.row.bytes, bandwidth)
        shown = self.found.exposed(transfer, row.remaining)
        queue = self.found.queue.wait(transfer).mean
        return overlapped_total(row.remaining, shown, queue + row.setup + row.convert + row.sync)

    @property
    def saving(self) -> float:
        """GPU time that a hit saves: a restore leaves the GPU to other requests."""
        return float(self.row.recompute - self.row.remaining)

    def asked(self, variable: str) -> tuple[Scenario, Route, Speed]:
        """Return the scenario, or refuse a curve that bare numbers cannot give."""
        if self.speed is None or self.route is None:
            raise SettingsError(f"--curve {variable}: needs MODEL and --on a machine")
        return self.speed.scenario, self.route, self.speed


def break_even_over(variable: str, case: Case) -> BreakEvenCurve:
    """Return both sides over one variable, and where they cross.

    Raises
    ------
    SettingsError
        If the variable is unknown, or its curve needs a price, a rate or a model that was not given.
    """
    if variable not in _CURVES:
        known = did_you_mean(variable, list(_CURVES)) or f"; known are {', '.join(_CURVES)}"
        raise SettingsError(f"--curve: unknown variable {variable!r}{known}")
    return _CURVES[variable](case)


def _bandwidth(case: Case) -> BreakEvenCurve:
    row = case.row
    point = None if row.break_even_bandwidth is None else float(row.break_even_bandwidth)
    rates = _around(float(row.bandwidth), point)
    total = case.total(rates)
    return _curve(
        "bandwidth",
        "byte/second",
        case,
        rates,
        [("with the hit", "second", total), ("recompute", "second", _flat(row.recompute, rates))],
        point,
        "above it restoring is faster" if point is not None else row.reason,
    )


def _prefix(case: Case) -> BreakEvenCurve:
    scenario, route, speed = case.asked("prefix")
    workload, block = scenario.workload, route.mechanism.chunk_tokens or block_tokens(speed)
    cached = workload.prompt if workload.cached is None else workload.cached
    suffix = max(1.0, float(workload.prompt - cached))
    longest = max(scenario.model.shape.max_tokens or workload.prompt, 2 * block)
    lengths = np.unique(np.geomspace(block, longest, POINTS) // block * block)
    remaining = computing_time(speed, np.full_like(lengths, suffix), lengths)
    found = restoring(scenario, route, moved_bytes(speed.layout, lengths))
    total, full = found.total(remaining), computing_time(speed, lengths + suffix)
    pays = worthwhile(lengths, full - total)
    point = None if pays is None else pays.least
    reason = NO_LENGTH_ON_GRID if pays is None else _where_it_pays(pays)
    return _curve(
        "prefix",
        "token",
        case,
        lengths,
        [("with the hit", "second", total), ("recompute", "second", full)],
        point,
        reason,
    )


def _where_it_pays(pays: Lengths) -> str:
    """Return on which side of the crossing restoring is faster."""
    every = "" if pays.every else " but not at every length"
    if pays.most is None:
        return f"from this length on restoring is faster{every}, on the grid of the curve"
    return (
        f"from this length up to {pays.most:,.0f} tokens restoring is faster{every}, on the grid of the curve"
    )


def _hit(case: Case) -> BreakEvenCurve:
    """Money saved per second over the share of requests that hit, against the price of the whole tier."""
    scenario, _, _ = case.asked("hit")
    price, storage, whose = _prices(case, scenario, "hit")
    rate, capacity = scenario.workload.rate, case.tier.capacity
    if rate is None:
        raise SettingsError("--curve hit: needs --rate, the requests per second")
    if capacity is None:
        raise SettingsError(f"--curve hit: needs the capacity of {case.tier.name}, which its price is for")
    per_second = storage * capacity
    saved = float(time_cost(max(case.saving, 0.0), price, _gpus(scenario)))
    shares = np.linspace(0.0, 1.0, POINTS)
    try:
        point = float(break_even_hit_share(per_second, rate, saved))
        reason = (
            "from this share on the tier pays for itself"
            if point <= 1
            else "even if every request hit, the tier would cost more than the GPU time it saves"
        )
    except DomainError as error:
        point, reason = np.inf, str(error)
    lines = [
        ("GPU time saved", "USD/second", shares * rate * saved),
        ("price of the tier", "USD/second", _flat(per_second, shares)),
    ]
    return _curve("hit", "1", case, shares, lines, point if point <= 1 else None, reason + whose)


def _interval(case: Case) -> BreakEvenCurve:
    """Cost of keeping the prefix until it is used again, against the GPU time that one hit saves."""
    scenario, _, _ = case.asked("interval")
    price, storage, whose = _prices(case, scenario, "interval")
    saved = float(time_cost(max(case.saving, 0.0), price, _gpus(scenario)))
    size = float(case.row.bytes) * scenario.settings.tp * scenario.settings.pp  # kept on all ranks together
    try:
        point: float | None = float(break_even_interval(saved, size, storage))
        reason = "prefixes that are used again sooner are worth keeping"
    except DomainError as error:
        point, reason = None, str(error)
    times = _around(point or USUAL_INTERVAL, point)
    lines = [
        ("GPU time saved", "USD", _flat(saved, times)),
        ("keeping the prefix", "USD", storage_cost(size, times, storage)),
    ]
    return _curve("interval", "second", case, times, lines, point, reason + whose)


def _piece(case: Case) -> BreakEvenCurve:
    row, tier = case.row, case.tier
    link, cost, streams = float(tier.bandwidth), COPY_OVERHEAD, 1.0
    if case.route is not None:
        rates = case.route.rates
        link = float(case.route.link_rate)
        streams = rates.number("streams", 1.0)
        cost = rates.number("per_piece", COPY_OVERHEAD)
    pieces = np.geomspace(SMALLEST_PIECE, LARGEST_PIECE, POINTS)
    total = case.total(effective_bandwidth(pieces, link, cost, streams))
    point, reason = None, row.reason
    if row.break_even_bandwidth is not None:
        try:
            point = float(piece_for_bandwidth(row.break_even_bandwidth, link, cost, streams))
            reason = f"larger pieces make restoring faster, at {cost * 1e6:.3g} us for each piece"
        except DomainError as error:
            reason = str(error)
    return _curve(
        "piece",
        "byte",
        case,
        pieces,
        [("with the hit", "second", total), ("recompute", "second", _flat(row.recompute, pieces))],
        point,
        reason,
    )


_CURVES: Mapping[str, Callable[[Case], BreakEvenCurve]] = MappingProxyType(
    {"bandwidth": _bandwidth, "prefix": _prefix, "hit": _hit, "interval": _interval, "piece": _piece}
)


def _prices(case: Case, scenario: Scenario, variable: str) -> tuple[float, float, str]:
    """Return the prices of one GPU and of the tier's storage, with whose the latter is if nobody said it."""
    price, storage, whose = scenario.overrides.price, case.tier.price, ""
    kind = None if case.route is None else case.route.kind
    if storage is None and kind is not None and kind.price is not None:
        storage = kind.price.value
        whose = f"; {kind.title} is taken to cost {kind.price.note}, which price= of the tier replaces"
    if price is None:
        raise SettingsError(f"--curve {variable}: needs --price of one GPU, for example '2.5 USD/hour'")
    if storage is None:
        raise SettingsError(
            f"--curve {variable}: needs the price of {case.tier.name}, for example "
            f"--tier '{case.tier.name}=512 GB@54 GB/s,price=0.2 USD/GB/month'"
        )
    return price, storage, whose


def _gpus(scenario: Scenario) -> int:
    """Return the GPUs that one prefill holds."""
    return scenario.settings.tp * scenario.settings.pp


def _around(value: float, point: float | None) -> _Numbers:
    """Return values around where the question stands and where it turns, evenly in their logarithm."""
    found = [value] if point is None else [value, float(point)]
    return np.geomspace(min(found) / REACH, max(found) * REACH, POINTS)


def _flat(value: Real, points: _Numbers) -> _Numbers:
    return np.full_like(points, float(value))


def _curve(
    variable: str,
    unit: str,
    case: Case,
    points: _Numbers,
    lines: Sequence[tuple[str, str, Real]],
    break_even: float | None,
    reason: str,
) -> BreakEvenCurve:
    return BreakEvenCurve(
        variable=variable,
        unit=unit,
        tier=case.tier.name,
        points=tuple(points.tolist()),
        lines=tuple(
            CurveLine(
                name,
                kind,
                tuple(
                    float(value) if np.isfinite(value) else None
                    for value in np.broadcast_to(np.asarray(values, dtype=float), points.shape)
                ),
            )
            for name, kind, values in lines
        ),
        break_even=break_even,
        reason=reason,
    )
