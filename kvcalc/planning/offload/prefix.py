"""Is restoring a prefix from a slower tier worth it: each tier against computing again."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kvcalc.formulas.breakeven import shortest_worthwhile
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload.restoring import restoring
from kvcalc.planning.offload.route import Route, moved_bytes, route_of
from kvcalc.planning.offload.rows import Lengths, Stores, Times, restore_row
from kvcalc.planning.offload.stores import (
    adds_nothing,
    held_alike,
    ranks_kept,
    stored,
    tell_opposite,
    tell_stores,
    why_nothing,
    write_budget,
    write_need,
)
from kvcalc.planning.offload.streaming import working_set
from kvcalc.planning.offload.waiting import tell_wait
from kvcalc.planning.pace import Pace
from kvcalc.planning.speed import Speed
from kvcalc.planning.tiers import standard_tiers
from kvcalc.quantity import Seconds, Tokens
from kvcalc.results import Capacity, Decode, Offload
from kvcalc.scenario import Scenario, TierUse

CAPTURED_TOKENS = 512
"""Most tokens of a step that engines run as a captured graph [token]: the default of vLLM."""

CAPTURED_FIXED = 0.003
"""Most that such a step costs beside its computing, in place of a prefill's own fixed cost [second].

Restores of Llama-3.2-1B on an H100 leave 3.3 ms at length zero, everything included
(https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html); a server in front of the engine adds to it.
"""

LONGEST_GRID = 131_072
"""Longest prefix searched for the shortest one worth restoring [token]."""


@dataclass(frozen=True)
class Hit:
    """How a prompt divides: what is restored and what is left to compute."""

    prompt: float
    cached: int

    @property
    def new(self) -> float:
        """Tokens left to compute."""
        return self.prompt - self.cached


def offload_rows(
    scenario: Scenario, speed: Speed, capacity: Capacity, decode: Decode, book: Notebook
) -> tuple[Offload, ...]:
    """Return one prefix-store row per tier, and a streaming row where the load does not fit."""
    tiers = tiers_of(scenario, book)
    if not tiers:
        return ()
    cached = cached_tokens(scenario, speed, book)
    if cached > 0 and scenario.workload.prompt <= CAPTURED_TOKENS and speed.prefill.source == "model":
        book.assume(
            f"offload is judged against steps of up to {CAPTURED_TOKENS} tokens that run as captured graphs: "
            f"{CAPTURED_FIXED * 1e3:g} ms beside their computing, less than the prefill of a server takes"
        )
    rows: list[Offload] = []
    for tier in tiers:
        route = loaded_route(speed, tier, cached, book)
        chunk = route.mechanism.chunk_tokens
        if cached > 0 and chunk is not None and not in_chunks(route, cached):
            book.warn(
                f"{tier.name}: {cached:,} cached tokens hold no whole chunk of {chunk:,} that "
                f"{route.mechanism.name} keeps; nothing hits there"
            )
        elif cached > 0:
            rows.append(prefix_store(speed, route, cached, book, pool=float(capacity.budget)))
        if capacity.shortfall > 0:
            rows.append(working_set(speed, route, capacity, decode))
    return tuple(rows)


def loaded_route(speed: Speed, tier: TierUse, cached: int, book: Notebook) -> Route:
    """Return the route from a tier, with what is stored meanwhile across the same link the other way."""
    route = route_of(speed, tier, book)
    return replace(route, opposite=stored(speed, route, cached))


def tiers_of(scenario: Scenario, book: Notebook) -> tuple[TierUse, ...]:
    """Return the tiers of the question: those given, else those of the machine."""
    if not scenario.tiers:
        return standard_tiers(scenario, book)
    alone = [tier.name for tier in scenario.tiers if tier.shared_by == 1]
    if scenario.settings.tp > 1 and alone:
        named = "a tier" if len(alone) == len(scenario.tiers) else " and ".join(alone)
        book.assume(
            f"each GPU gets the stated bandwidth of {named} for itself; say shared_by in a tier where GPUs "
            "share a link or a disk"
        )
    return scenario.tiers


def cached_tokens(scenario: Scenario, speed: Speed, book: Notebook) -> int:
    """Return the prompt tokens that a hit restores: whole blocks, and never the last token."""
    workload = scenario.workload
    wanted = workload.prompt if workload.cached is None else workload.cached
    if workload.cached is None:
        book.assume(
            "no --cached or --hit given: offload is judged for a hit of the whole prompt "
            f"({workload.prompt:,} tokens)"
        )
    if workload.cached == 0:
        return 0
    block = block_tokens(speed)
    restored = int(restored_tokens(wanted, workload.prompt, block))
    if restored < wanted:
        book.assume(
            f"a hit restores {restored:,} of {wanted:,} tokens: whole blocks of {block} only, and the last "
            "token is always computed"
        )
    return restored


def restored_tokens(wanted: Tokens, prompt: Tokens, block: int) -> Tokens:
    """Return the tokens of whole blocks that a hit restores of a prompt, never its last one; arrays too."""
    return np.minimum(wanted, prompt - 1) // block * block


def block_tokens(speed: Speed) -> int:
    """Return the tokens of one block of the engine; 1 where the engine has no blocks."""
    found = speed.layout.pool(float(speed.scenario.hardware.device.capacity)).block_tokens
    return max(1, int(found or 1))


def whole_chunks(route: Route, cached: int, book: Notebook) -> int:
    """Return the tokens of whole chunks, where the mechanism keeps nothing smaller."""
    chunk = route.mechanism.chunk_tokens
    if chunk is None or cached % chunk == 0:
        return cached
    kept = int(in_chunks(route, cached))
    book.assume(
        f"{route.tier.name}: {kept:,} of {cached:,} tokens are restored, whole chunks of {chunk} only; the "
        "rest is computed"
    )
    return kept


def in_chunks(route: Route, cached: Tokens) -> Tokens:
    """Return the tokens of the whole chunks of a route; arrays too."""
    chunk = route.mechanism.chunk_tokens
    return cached if chunk is None else cached // chunk * chunk


def computing_time(speed: Speed, new: Tokens, cached: Tokens = 0.0, pace: Pace | None = None) -> Seconds:
    """Return the prefill of what a hit leaves, or of the whole prompt without one; arrays too.

    So few tokens as a full hit or a short prompt leaves run like a decode step, without the launches of
    a prefill.  Both sides of a comparison go by this rule.
    """
    pace = pace or speed.prefill.paces.middle
    if speed.prefill.source == "calibrated":
        return speed.prefill.time(new, cached, pace)
    short = np.asarray(new) <= CAPTURED_TOKENS
    launched = speed.prefill.time(new, cached, pace)
    if not np.any(short):
        return launched
    captured = speed.prefill.time(new, cached, replace(pace, fixed=np.minimum(pace.fixed, CAPTURED_FIXED)))
    return np.where(short, captured, launched)[()]


def times_of(speed: Speed, hit: Hit, remaining: float | None = None) -> Times:
    """Return the prefill with and without the hit; a given `remaining` stands for the suffix."""
    paces = speed.prefill.paces

    def both(pace: Pace) -> tuple[float, float]:
        full = float(computing_time(speed, hit.prompt, 0.0, pace))
        if remaining is not None:
            return full, remaining
        return full, float(computing_time(speed, hit.new, float(hit.cached), pace))

    middle, fast, slow = both(paces.middle), both(paces.fast), both(paces.slow)
    # A short hit may cost a slow prefill no less than a fast one, where both compute as many steps.
    saved = sorted((fast[0] - fast[1], slow[0] - slow[1]))
    return Times(middle[0], middle[1], saved[0], saved[1])


def prefix_store(
    speed: Speed,
    route: Route,
    cached: int,
    book: Notebook,
    *,
    pool: float | None = None,
    size: float | None = None,
    remaining: float | None = None,
) -> Offload:
    """Return the restore of a hit over one route, with what is stored meanwhile.

    `pool` is the KV memory of each GPU, where it is known; `size` and `remaining` were given instead of the
    model's.
    """
    scenario, given = speed.scenario, size is not None or remaining is not None
    hit = Hit(float(scenario.workload.prompt), whole_chunks(route, cached, book))
    size = float(moved_bytes(speed.layout, float(hit.cached))) if size is None else size
    stores = _stores(speed, route, hit.cached, size, pool)
    tell_stores(speed, route, stores.need, size, pool, book)
    tell_opposite(route, size, stores.need, book)
    found = restoring(scenario, route, size)
    service = size / float(found.bandwidth)
    tell_wait(route.tier.name, found.wait, scenario, service, book)
    if route.rates.first is not None:
        book.assume(
            f"{route.tier.name}: the first restore between two servers takes "
            f"{route.rates.first.value:g} s more"
        )
    # What was given is of one length, and says nothing of others.
    lengths = None if given else _lengths(speed, route, max(1.0, hit.new))
    return restore_row(found, times_of(speed, hit, remaining), book, lengths, stores)


def _stores(speed: Speed, route: Route, cached: int, size: float, pool: float | None) -> Stores:
    scenario, writes = speed.scenario, write_need(speed, route, cached)
    link = scenario.hardware.device_to_host.bandwidth
    held = None if pool is None else held_alike(speed, route, pool)
    whole = size * ranks_kept(speed, route)
    nothing = adds_nothing(route, held, whole)
    return Stores(
        need=None if writes is None else float(writes),
        budget=None if writes is None else write_budget(route, link),
        nothing=nothing,
        why_nothing=why_nothing(route, held, whole) if nothing else "",
    )


def worthwhile(tokens: NDArray[np.float64], gain: Seconds) -> Lengths | None:
    """Return which lengths of a grid, from the shortest up, are worth restoring; None where none is."""
    pays = np.asarray(gain) > 0
    if not pays.any():
        return None
    last = int(np.flatnonzero(pays)[-1])
    least = float(shortest_worthwhile(tokens, gain))
    every = bool(pays[: last + 1][tokens[: last + 1] >= least].all())
    return Lengths(least, None if last == len(tokens) - 1 else float(tokens[last]), every)


def _lengths(speed: Speed, route: Route, suffix: float) -> Lengths | None:
    """Return the prefixes worth restoring before a suffix of the same length; None if none is."""
    scenario, block = speed.scenario, route.mechanism.chunk_tokens or block_tokens(speed)
    longest = max(LONGEST_GRID, scenario.workload.prompt)
    # Whole blocks, but no more points than a fraction of a percent of error needs.
    step = block * max(1, longest // block // 8192)
    grid = np.arange(step, longest + 1, step, dtype=float)
    found = restoring(scenario, route, moved_bytes(speed.layout, grid))
    remaining = computing_time(speed, np.full_like(grid, suffix), grid)
    cost = found.exposed(found.parts.transfer, remaining) + found.overhead
    saved = computing_time(speed, grid + suffix) - remaining
    return worthwhile(grid, np.where(np.isfinite(cost), saved - cost, -1.0))
