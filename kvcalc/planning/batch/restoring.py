"""Columns of a batch on the tiers: the restore that gains most, and streaming what does not fit."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kvcalc.formulas.breakeven import no_break_even, verdict
from kvcalc.planning.batch.columns import nothing_word
from kvcalc.planning.batch.loads import Loads, Numbers
from kvcalc.planning.decode import context_between
from kvcalc.planning.eviction import written
from kvcalc.planning.offload import (
    Restoring,
    Route,
    adds_nothing,
    block_tokens,
    computing_time,
    held_alike,
    in_chunks,
    moved_bytes,
    ranks_kept,
    restored_tokens,
    restoring,
    stored,
)
from kvcalc.planning.offload.rows import factor, settled
from kvcalc.planning.offload.streaming import gains_over_turns, streaming, streaming_verdict, taking_turns
from kvcalc.planning.speed import Speed

Columns = dict[str, Any]


def restoring_columns(
    speed: Speed, routes: Sequence[Route], loads: Loads, served: Columns, pool: float
) -> Columns:
    """Return the prefix store with the largest speedup of each row, and the working set with it.

    `speed` is that of a scenario with `loads` on it, and `pool` the KV memory of each GPU.  `fastest` is the
    highest bandwidth of all prefix stores that add anything, which an eviction would use, and `fastest_write`
    what that store takes.
    """
    wanted = loads.prompt if loads.cached is None else loads.cached
    cached: Any = restored_tokens(wanted, loads.prompt, block_tokens(speed))
    if not routes:
        return {}
    # What is stored meanwhile crosses the same link the other way.
    busy = [replace(route, opposite=stored(speed, route, cached)) for route in routes]
    stores = [_prefix_store(speed, route, cached) for route in busy]
    nothing = [
        _nothing(speed, route, found["bytes"], pool) for route, found in zip(busy, stores, strict=True)
    ]
    sets = [_working_set(speed, route, loads, served) for route in busy]
    some = [np.broadcast_to(np.asarray(found["bytes"]) > 0, np.shape(cached)) for found in stores]
    # A prefix without one whole chunk hits nothing in its tier, which is then none of those to choose from.
    stores = [_where(there, found) | words for there, found, words in zip(some, stores, nothing, strict=True)]
    hits, short = np.logical_or.reduce(some) & (cached > 0), served["capacity.shortfall"] > 0
    names = [route.tier.name for route in routes]
    rates = [
        np.broadcast_to(np.where(_adds(found), found["bandwidth"], np.nan), hits.shape) for found in stores
    ]
    fastest = np.fmax.reduce(rates)
    limits = [written([route.tier], route.tier.name) for route in routes]
    # The first of equals, as a plan takes it.
    limit = np.select([rate == fastest for rate in rates], limits, np.inf)
    return {
        **_best("offload", names, stores, hits),
        **_best("working_set", names, sets, short),
        "fastest": np.where(hits, fastest, np.nan),
        "fastest_write": limit,
    }


def _where(there: Any, found: Columns) -> Columns:  # noqa: ANN401 - truth by rows
    rates = {name: np.where(there, found[name], np.nan) for name in ("bandwidth", "speedup")}
    return {**found, **rates}


def _best(prefix: str, names: Sequence[str], tiers: Iterable[Columns], exists: Any) -> Columns:  # noqa: ANN401
    """Return the columns of the tier with the largest speedup, row by row; empty where none exists.

    A tier that adds nothing is taken only where none adds anything.
    """
    tiers = tuple(tiers)
    gains = np.stack([np.broadcast_to(found["speedup"], exists.shape) for found in tiers])
    there = ~np.isnan(gains)
    adding = there & np.stack([np.broadcast_to(_adds(found), exists.shape) for found in tiers])
    best = np.argmax(np.where(np.where(adding.any(axis=0), adding, there), gains, -np.inf), axis=0)
    chosen = {"tier": np.array(names, dtype=object)[best]}
    for name in tiers[0]:
        stacked = [np.broadcast_to(found[name], exists.shape) for found in tiers]
        chosen[name] = stacked[0] if len(tiers) == 1 else np.choose(best, stacked)
    return {
        f"{prefix}.{name}": np.where(exists, values, "" if values.dtype == object else np.nan)
        for name, values in chosen.items()
    }


def _nothing(speed: Speed, route: Route, size: Numbers, pool: float) -> Columns:
    found = adds_nothing(route, held_alike(speed, route, pool), size * ranks_kept(speed, route))
    words: Any = (
        nothing_word(None) if found is None else np.where(found, nothing_word(True), nothing_word(False))
    )
    return {"adds_nothing": np.asarray(words, dtype=object)}


def _adds(found: Columns) -> Any:  # noqa: ANN401 - truth by rows
    """Return in which rows a tier adds something, or may."""
    return np.asarray(found.get("adds_nothing", "")) != nothing_word(True)


def _prefix_store(speed: Speed, route: Route, cached: Numbers) -> Columns:
    """Return the restore of each row over one route, against computing the prompt again."""
    scenario = speed.scenario
    cached = np.asarray(in_chunks(route, cached))
    prompt: Any = scenario.workload.prompt
    found = restoring(scenario, route, moved_bytes(speed.layout, cached))
    paces = speed.prefill.paces
    recompute: Any = computing_time(speed, prompt)
    remaining: Any = computing_time(speed, prompt - cached, cached)
    fast, slow = (
        computing_time(speed, prompt, 0.0, pace) - computing_time(speed, prompt - cached, cached, pace)
        for pace in (paces.fast, paces.slow)
    )
    parts, total = found.parts, found.total(remaining)
    low, high = found.gains((np.minimum(fast, slow), np.maximum(fast, slow)), remaining)
    return {
        "bytes": found.size,
        "bandwidth": found.bandwidth,
        "queue": parts.queue,
        "setup": parts.setup,
        "transfer": parts.transfer,
        "restore": parts.total,
        "remaining": remaining,
        "total": total,
        "recompute": recompute,
        "speedup": factor(recompute, total),
        "break_even_bandwidth": _break_even(found, recompute, remaining),
        "verdict": verdict(low, high),
        "confidence": settled(low, high),
    }


def _break_even(found: Restoring, recompute: Numbers, remaining: Numbers) -> Numbers:
    """Return the bandwidth from which each restore pays; NaN where none does, or it never ends."""
    if found.queue.rate is None:
        return np.asarray(found.break_even(recompute, remaining))
    none = np.asarray(no_break_even(recompute, remaining, found.fixed) != "")
    return np.asarray(found.break_even(np.where(none, np.nan, recompute), remaining))


def _working_set(speed: Speed, route: Route, loads: Loads, served: Columns) -> Columns:
    """Return streaming what does not fit in every decode step, against letting sequences take turns."""
    streamed, step = served["capacity.shortfall"], served["decode.step_time"]
    time = streaming(route, step, streamed)
    resident = served["capacity.sessions"]
    context = context_between(loads.prompt, loads.generate)
    shorter = speed.decode.step_of(np.maximum(resident, 1.0), context)
    turns = taking_turns(shorter, loads.concurrency, resident)
    return {
        "step_time": time,
        "recompute": turns,
        "speedup": turns / time,
        "verdict": streaming_verdict(turns, *gains_over_turns(turns, time)),
    }
