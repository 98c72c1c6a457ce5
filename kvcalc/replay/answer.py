"""`kvcalc replay`: a trace, capacities, policies and semantics in; rows, the curve and what they say out."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from kvcalc.bodies import public
from kvcalc.errors import SettingsError
from kvcalc.records import record
from kvcalc.replay import answers
from kvcalc.replay.asked import Asked, refuse_unknown, tier_in_python, usual_write, whole_number
from kvcalc.replay.capacities import PerBlock, Sizing
from kvcalc.replay.cells import Cell, cells_of
from kvcalc.replay.curve import Curve, curve_of
from kvcalc.replay.depths import depths_of, is_stack, why_no_curve
from kvcalc.replay.grid import Told, run_grid
from kvcalc.replay.options import USUAL, Options
from kvcalc.replay.outcome import Outcome
from kvcalc.replay.policies import BELADY, LRU
from kvcalc.replay.results import ReplayLoad, ReplayResult, ReplayRow
from kvcalc.replay.rows import Ruler
from kvcalc.replay.semantics import (
    ATOMIC,
    IGNORED,
    KEEP,
    MEANINGS,
    PREFIX,
    TAIL,
    TIME,
    TOKEN,
    TRUNCATE,
    Semantics,
)
from kvcalc.replay.stream import Stream, in_time, stream_of
from kvcalc.replay.tenants import MEANINGS as QUOTA_MEANINGS
from kvcalc.replay.tenants import SHARED
from kvcalc.replay.tiers import INCLUSIVE
from kvcalc.replay.tiers import MEANINGS as TIER_MEANINGS
from kvcalc.replay.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvcalc.replay.sampling import Sample


@record
class Replayed:
    """A replay with what its numbers are made of, for whoever prices its hits."""

    trace: Trace  # as it was replayed
    stream: Stream  # under the semantics
    cells: tuple[Cell, ...]
    outcomes: tuple[Outcome, ...]  # by cell
    curve: Curve | None
    seconds: float
    sample: "Sample | None" = None  # that was replayed instead of the trace


def replay_trace(
    trace: "Trace | str",
    capacities: "Sequence[int | str]" = (),
    policies: Sequence[str] = (),
    *,
    bytes_per_token: float | None = None,
    sizing: Sizing | None = None,
    touch: str = TAIL,
    oversize: str = TRUNCATE,
    weight: str = TOKEN,
    partial_block: str = KEEP,
    output: str = IGNORED,
    warmup: float = 0.0,
    lookup: str = ATOMIC,
    order: str = TIME,
    hits: str = PREFIX,
    tiers: "Sequence[str | tuple[str, int | str]]" = (),
    inclusion: str = INCLUSIVE,
    write: str | None = None,
    quota: str = SHARED,
    shares: Mapping[str, float] | None = None,
    options: Options = USUAL,
    refine: int | None = None,
    shared_prefix: int = 0,
    sample: int | None = None,
    workers: int | None = 1,
    scheduler: str | None = None,
    told: Told | None = None,
    **unknown: Never,
) -> ReplayResult:
    """Answer what finite caches really hit on a trace of requests.

    Parameters
    ----------
    trace : a trace, or the path of one
    capacities : texts with units, or numbers of blocks; shares of all blocks when empty
    policies : names of policies beside FIFO, LRU, Belady and infinite, which are always there
    bytes_per_token : KV of one token, for capacities in bytes; or `sizing`, of a model's own layout
    touch, oversize, weight, partial_block, output, warmup, lookup, order, hits : what a hit means, the
        switches of `kvcalc.replay.semantics.Semantics`
    tiers : slower ones, the fastest first: ``("dram", "512 GB")`` or ``"dram=512 GB"``
    inclusion, write : of the tiers; `write` is write_through, for exclusive tiers write_back
    quota, shares : how tenants share the cache, and the part of each by name; equal parts without any
    options : what single policies take beside the trace
    refine, shared_prefix : tokens of finer blocks to split those of the trace into, and of the prefix that
        all requests share
    sample : blocks to follow at most, chosen by hash
    workers : processes to use, None for as many as there is work for; above 1 a script must stand under
        ``if __name__ == "__main__"``
    scheduler : address of a Dask scheduler, whose workers are used instead
    told : called as cells of the grid are done
    unknown : nothing; what is said elsewhere is refused with where

    Examples
    --------
    >>> from kvcalc.replay.trace import build_trace
    >>> result = replay_trace(build_trace([[0, 1], [0, 2], [0, 1]], 16), [3])
    >>> [(row.policy, row.hit_blocks) for row in result.rows]
    [('fifo', 3), ('lru', 3), ('belady', 3), ('infinite', 3)]
    """
    refuse_unknown(unknown, replay_trace)
    found = _read(trace)
    asked = Asked(
        capacities=tuple(capacities),
        policies=tuple(policies),
        semantics=Semantics(touch, oversize, weight, partial_block, output, warmup, lookup, order, hits),
        sizing=sizing or _per_token(bytes_per_token, refine or found.block_tokens),
        tiers=tuple(map(tier_in_python, tiers)),
        inclusion=inclusion,
        write=write or usual_write(inclusion),
        quota=quota,
        shares=dict(shares or {}),
        options=options,
        refine=whole_number("refine", refine),
        shared_prefix=whole_number("shared_prefix", shared_prefix),
        sample=whole_number("sample", sample),
        workers=whole_number("workers", workers),
        scheduler=scheduler,
    )
    return answer(found, asked, told)[0]


def _read(trace: "Trace | str") -> Trace:
    if not isinstance(trace, str):
        return trace
    from kvcalc.replay.readers import read_trace

    return read_trace(trace)


def _per_token(size: float | None, block: int) -> Sizing | None:
    """Return the sizes of blocks (of one token where blocks differ) whose tokens take so many bytes."""
    return None if size is None else PerBlock(size * (block or 1))


def answer(trace: Trace, asked: Asked, told: Told | None = None) -> tuple[ReplayResult, Replayed]:
    """Replay the grid of capacities and policies and say what it means, together with what it is made of."""
    found = replayed(trace, asked, told)
    machine, stream = asked.machine, found.stream
    service = None if machine is None else machine.service(stream.counted, stream.trace)
    followed = None if found.sample is None else found.sample.rate
    ruler = Ruler(stream, asked.semantics, asked.sizing, service, followed)
    curve = found.curve
    load = _load(found.trace, stream, ruler)
    result = ReplayResult(
        inputs=_inputs(found, asked),
        sources={},
        warnings=_warnings(found),
        assumptions=_assumptions(asked),
        load=load,
        rows=_rows(found, ruler),
        curve=() if curve is None else answers.points_of(curve, ruler),
        no_curve=why_no_curve(asked.semantics),
        knee=None if curve is None else answers.knee_of(curve, ruler),
        scan=None if curve is None else answers.scan_of(curve),
        rounding=answers.rounding_of(found.stream),
        sampling=None,
        findings=tuple(one.text for one in found.trace.findings),
        seconds=found.seconds,
        requests_per_second=len(found.cells) * found.trace.requests / max(found.seconds, 1e-9),
    )
    return (result if found.sample is None else _grown(result, found, asked)), found


def _grown(result: ReplayResult, found: Replayed, asked: Asked) -> ReplayResult:
    """Return the result of a sample as one of the whole trace."""
    from kvcalc.replay import sampling

    sample = found.sample
    assert sample is not None
    whole = stream_of(found.trace, asked.semantics)
    load = _load(found.trace, whole, Ruler(whole, asked.semantics, asked.sizing))
    errors = sampling.errors_of(found.trace, sample, asked, found.cells)
    few = sampling.too_few(found.trace, sample, found.cells)
    return replace(
        result,
        warnings=result.warnings if few is None else (few, *result.warnings),
        load=load,
        rows=tuple(
            sampling.grown_row(row, sample, load, errors[cell.task.capacity if cell.capacity else None])
            for row, cell in zip(result.rows, found.cells, strict=True)
        ),
        curve=sampling.grown_curve(result.curve, sample),
        knee=sampling.grown_knee(result.knee, sample),
        scan=sampling.grown_scan(result.scan, sample),
        rounding=answers.rounding_of(whole),
        sampling=sampling.sampling_of(sample, errors),
    )


def replayed(trace: Trace, asked: Asked, told: Told | None = None) -> Replayed:
    """Replay the grid of capacities and policies."""
    if trace.requests == 0:
        raise SettingsError(f"{trace.name}: holds no request")
    if asked.refine is not None:
        from kvcalc.replay.refine import refined

        ordered = in_time(trace) if asked.semantics.order == TIME else trace
        trace = refined(ordered, asked.refine, asked.shared_prefix)
    cells = cells_of(trace, asked)
    started = time.perf_counter()
    sample, followed, tasks = None, trace, [cell.task for cell in cells]
    if asked.sample is not None:
        from kvcalc.replay import sampling

        sample = sampling.sampled(trace, asked)
        if sample is not None:
            followed = sample.trace
            tasks = [cell.task for cell in sampling.shrunk(cells, sample)]
    stream = stream_of(followed, asked.semantics)
    outcomes = run_grid(tasks, stream, followed, asked.semantics, asked.workers, asked.scheduler, told)
    curve = curve_of(depths_of(stream, asked.semantics)) if is_stack(asked.semantics) else None
    return Replayed(trace, stream, cells, outcomes, curve, time.perf_counter() - started, sample)


def _rows(found: Replayed, ruler: Ruler) -> tuple[ReplayRow, ...]:
    infinite = found.outcomes[-1]
    pairs = list(zip(found.cells, found.outcomes, strict=True))
    best = {cell.task.capacity: outcome for cell, outcome in pairs if cell.task.policy == BELADY}
    shared = {
        cell.task.capacity: outcome
        for cell, outcome in pairs
        if cell.task.policy == LRU and cell.quota == SHARED and cell.task.tiers is None
    }
    return tuple(
        ruler.row(
            cell,
            outcome,
            best.get(cell.task.capacity, infinite),
            infinite,
            None if cell.quota == SHARED else shared[cell.task.capacity],
        )
        for cell, outcome in pairs
    )


def _inputs(found: Replayed, asked: Asked) -> dict[str, Any]:
    sizes = dict.fromkeys(cell.capacity.text for cell in found.cells if cell.capacity is not None)
    policies = dict.fromkeys(cell.task.policy for cell in found.cells)
    inputs: dict[str, Any] = {"trace": found.trace.name, "capacities": list(sizes)}
    inputs |= {"policies": list(policies), **public(asked.semantics)}
    if asked.tiers:
        inputs |= {"inclusion": asked.inclusion, "write": asked.write}
    if asked.quota != SHARED:
        inputs |= {"quota": asked.quota, "shares": dict(asked.shares)}
    if asked.refine is not None:
        inputs |= {"refine": asked.refine, "shared_prefix": asked.shared_prefix}
    return inputs


def _load(trace: Trace, stream: Stream, ruler: Ruler) -> ReplayLoad:
    times = trace.time
    counted = stream.counted
    whole = stream.distinct if trace.block_weight is None else int(trace.block_weight.sum())
    return ReplayLoad(
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


def _warnings(found: Replayed) -> tuple[str, ...]:
    lines = [one.text for one in found.trace.findings if one.warning]
    stacks = [cell.task.tiers for cell in found.cells if cell.task.tiers is not None]
    lines += dict.fromkeys(line for stack in stacks for line in stack.idle)
    scan = None if found.curve is None else answers.scan_of(found.curve)
    sizes = dict.fromkeys(cell.capacity for cell in found.cells if cell.capacity is not None)
    rate = 1.0 if found.sample is None else found.sample.rate
    small = [one.text for one in sizes if scan is not None and one.blocks * rate < scan.distance_blocks]
    if scan is not None and small:
        lines.append(
            f"a cyclic scan: {scan.share_of_reuse:.0%} of all reuse comes back after about "
            f"{scan.distance_blocks / rate:,.0f} blocks, and {', '.join(small)} hold less: LRU evicts one "
            "just before it is used again, so that more capacity gains little until all of the loop fits"
        )
    return tuple(lines)


def _assumptions(asked: Asked) -> tuple[str, ...]:
    semantics = asked.semantics
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
    lines += [f"{name}={word}: {words[word]}" for name, word, words in _beside(asked)]
    return tuple(lines)


def _beside(asked: Asked) -> "Iterator[tuple[str, str, Mapping[str, str]]]":
    """Yield the switches of tiers and quotas, where there are any, with what their words mean."""
    if asked.tiers:
        yield "inclusion", asked.inclusion, TIER_MEANINGS["inclusion"]
        yield "write", asked.write, TIER_MEANINGS["write"]
    if asked.quota != SHARED:
        yield "quota", asked.quota, QUOTA_MEANINGS
