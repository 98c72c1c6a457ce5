"""`kvcalc replay`: a trace, capacities, policies and semantics in; rows, the curve and what they say out."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.records import record
from kvcalc.replay import answers
from kvcalc.replay.capacities import Capacity, PerBlock, Sizing, capacity_of
from kvcalc.replay.curve import Curve, curve_of
from kvcalc.replay.depths import depths_of, is_stack
from kvcalc.replay.grid import Told, run_grid
from kvcalc.replay.outcome import Outcome
from kvcalc.replay.policies import ALWAYS, BELADY, INFINITE, policy
from kvcalc.replay.results import Load, ReplayResult
from kvcalc.replay.rows import Cell, Ruler
from kvcalc.replay.semantics import MEANINGS, Semantics
from kvcalc.replay.stream import Stream, stream_of
from kvcalc.replay.tasks import Task
from kvcalc.replay.trace import Trace

if TYPE_CHECKING:
    from kvcalc.replay.machine import Machine
    from kvcalc.replay.tenants import Quotas
    from kvcalc.replay.tiers import Stack

DEFAULT_SHARES = ("1 %", "5 %", "10 %", "25 %", "50 %")
"""Capacities where none is asked for, of all different blocks of the trace."""


@record
class Asked:
    """What a replay is asked beside its trace."""

    capacities: tuple[int | str, ...] = ()
    policies: tuple[str, ...] = ()
    semantics: Semantics = Semantics()
    sizing: Sizing | None = None
    tiers: "Stack | None" = None
    quotas: "Quotas | None" = None
    options: object = None  # what policies take beside the trace: rules, costs
    workers: int | None = 1  # None: as many as there are cores and work for
    scheduler: str | None = None
    machine: "Machine | None" = None  # a model on a machine, for what hits do there


def replay_trace(
    trace: "Trace | str",
    capacities: "Sequence[int | str]" = (),
    policies: Sequence[str] = (),
    semantics: Semantics | None = None,
    *,
    bytes_per_token: float | None = None,
    sizing: Sizing | None = None,
    workers: int | None = 1,
    scheduler: str | None = None,
    told: Told | None = None,
    **said: Any,  # noqa: ANN401 - any switch of the semantics
) -> ReplayResult:
    """Answer what finite caches really hit on a trace of requests.

    Parameters
    ----------
    trace : a trace, or the path of one
    capacities : texts with units, or numbers of blocks; shares of all blocks when empty
    policies : names of policies beside FIFO, LRU, Belady and infinite, which are always there
    semantics : the switches; or give them by name, such as ``touch="head"``
    bytes_per_token : KV of one token, for capacities in bytes; or `sizing`, of a model's own layout
    workers : processes to use; with more than one, a script must stand under ``if __name__ == "__main__"``
    scheduler : address of a Dask scheduler, whose workers are used instead
    told : called as cells of the grid are done

    Examples
    --------
    >>> from kvcalc.replay.trace import build_trace
    >>> result = replay_trace(build_trace([[0, 1], [0, 2], [0, 1]], 16), [3])
    >>> [(row.policy, row.hit_blocks) for row in result.rows]
    [('fifo', 3), ('lru', 3), ('belady', 3), ('infinite', 3)]
    """
    if isinstance(trace, str):
        from kvcalc.replay.readers import read_trace

        trace = read_trace(trace)
    if semantics is None:
        semantics = semantics_of(said)
    elif said:
        raise SettingsError(f"{next(iter(said))}: give `semantics` or single switches, not both")
    if sizing is None and bytes_per_token is not None:
        sizing = PerBlock(bytes_per_token * (trace.block_tokens or 1))
    asked = Asked(tuple(capacities), tuple(policies), semantics, sizing, workers=workers, scheduler=scheduler)
    return answer(trace, asked, told)


def semantics_of(said: dict[str, Any]) -> Semantics:
    """Return semantics from switches by name; unknown ones are refused."""
    from dataclasses import fields

    from kvcalc.errors import did_you_mean

    known = tuple(item.name for item in fields(Semantics))
    for name in said:
        if name not in known:
            raise SettingsError(f"{name}: unknown switch{did_you_mean(name, known)}")
    return Semantics(**said)


def answer(trace: Trace, asked: Asked, told: Told | None = None) -> ReplayResult:
    """Replay the grid of capacities and policies, and say what it means."""
    if trace.requests == 0:
        raise SettingsError(f"{trace.name}: holds no request")
    sizes = _capacities(trace, asked)
    names = _policies(asked.policies)
    started = time.perf_counter()
    stream = stream_of(trace, asked.semantics)
    grid = _grid(names, sizes, asked)
    cells = [cell for cell, _, _ in grid]
    outcomes = run_grid(cells, stream, trace, asked.semantics, asked.workers, asked.scheduler, told)
    depths = depths_of(stream, asked.semantics) if is_stack(asked.semantics) else None
    curve = None if depths is None else curve_of(depths)
    seconds = time.perf_counter() - started
    service = None if asked.machine is None else asked.machine.service(stream.counted, stream.trace)
    ruler = Ruler(stream, asked.semantics, asked.sizing, service)
    rows = _rows(grid, outcomes, ruler)
    return ReplayResult(
        inputs=_inputs(trace, asked, sizes, names),
        sources={},
        warnings=_warnings(trace, sizes, curve, ruler),
        assumptions=_assumptions(asked.semantics),
        load=_load(trace, stream, ruler),
        rows=rows,
        curve=() if curve is None else answers.points_of(curve, ruler),
        knee=None if curve is None else answers.knee_of(curve, ruler),
        scan=None if curve is None else answers.scan_of(curve),
        rounding=answers.rounding_of(stream),
        quota_cost=None,
        sampling=None,
        findings=tuple(one.text for one in trace.findings),
        seconds=seconds,
        requests_per_second=len(cells) * trace.requests / max(seconds, 1e-9),
    )


def _capacities(trace: Trace, asked: Asked) -> tuple[Capacity, ...]:
    said = asked.capacities or DEFAULT_SHARES
    found = [capacity_of(one, trace, asked.sizing) for one in said] if asked.capacities else _shares(trace)
    return tuple(sorted({one.blocks: one for one in found}.values(), key=lambda one: one.blocks))


def _shares(trace: Trace) -> list[Capacity]:
    """Return the default capacities; of a tiny trace those that hold a block."""
    whole = trace.unique_blocks if trace.block_weight is None else int(trace.block_weight.sum())
    found = [Capacity(text, int(float(text.split()[0]) / 100 * whole)) for text in DEFAULT_SHARES]
    return [one for one in found if one.blocks] or [Capacity("100 %", max(1, whole))]


def _policies(asked: Sequence[str]) -> tuple[str, ...]:
    for name in asked:
        policy(name)
    first = [name for name in ALWAYS if name not in (BELADY, INFINITE)]
    return tuple(dict.fromkeys([*first, *(name for name in asked if name not in ALWAYS), BELADY, INFINITE]))


GridCell = tuple[Task, Capacity | None, str]


def _grid(names: Sequence[str], sizes: Sequence[Capacity], asked: Asked) -> list[GridCell]:
    """Return the cells to replay with their capacity and quota; infinite once."""
    cells: list[GridCell] = []
    for size in sizes:
        cells += [
            (Task(name, size.blocks, asked.options), size, "shared") for name in names if name != INFINITE
        ]
    cells.append((Task(INFINITE, 0), None, "shared"))
    return cells


def _rows(grid: Sequence[GridCell], outcomes: Sequence[Outcome], ruler: Ruler) -> tuple[Any, ...]:
    infinite = outcomes[-1]
    best = {
        cell.capacity: outcome
        for (cell, _, _), outcome in zip(grid, outcomes, strict=True)
        if cell.policy == BELADY
    }
    return tuple(
        ruler.row(Cell(cell.policy, size, outcome, quota), best.get(cell.capacity, infinite), infinite)
        for (cell, size, quota), outcome in zip(grid, outcomes, strict=True)
    )


def _inputs(trace: Trace, asked: Asked, sizes: Sequence[Capacity], names: Sequence[str]) -> dict[str, Any]:
    from kvcalc.bodies import public

    return {
        "trace": trace.name,
        "capacities": [one.text for one in sizes],
        "policies": list(names),
        **public(asked.semantics),
    }


def _load(trace: Trace, stream: Stream, ruler: Ruler) -> Load:
    times = trace.time
    counted = stream.counted
    whole = stream.distinct if trace.block_weight is None else int(trace.block_weight.sum())
    return Load(
        trace=trace.name,
        dialect=trace.dialect,
        requests=trace.requests,
        counted_requests=int(counted.sum()),
        input_tokens=ruler.asked_tokens,
        output_tokens=int(stream.trace.output_tokens[counted].sum()),
        blocks=ruler.asked_blocks,
        distinct_blocks=stream.distinct,
        distinct_bytes=ruler.bytes_of(whole),
        block_tokens=trace.block_tokens or None,
        sessions=len(trace.sessions),
        tenants=len(trace.tenants),
        duration=None if np.isnan(times).any() else float(times.max() - times.min()),
    )


def _warnings(trace: Trace, sizes: Sequence[Capacity], curve: Curve | None, ruler: Ruler) -> tuple[str, ...]:
    found = [one.text for one in trace.findings if one.warning]
    scan = None if curve is None else answers.scan_of(curve)
    small = [one.text for one in sizes if scan is not None and one.blocks < scan.distance_blocks]
    if scan is not None and small:
        found.append(
            f"a loop over more than the cache: {scan.share_of_reuse:.0%} of all reuse comes back after about "
            f"{scan.distance_blocks:,} blocks, and {', '.join(small)} hold less; LRU then evicts each block "
            "just before it is used again"
        )
    return tuple(found)


def _assumptions(semantics: Semantics) -> tuple[str, ...]:
    lines = [
        f"{name}={getattr(semantics, name)}: {words[getattr(semantics, name)]}"
        for name, words in MEANINGS.items()
    ]
    share = semantics.warmup
    lines.append(
        f"warmup={share:g}: "
        + (
            f"the first {share:.0%} of the requests fill the cache and are not counted"
            if share
            else "cold start"
        )
    )
    return tuple(lines)
