"""`kvcalc plan --trace`: a plan whose hit rate is what its own capacities hit on a trace of requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.api import scenario, with_file
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.errors import SettingsError
from kvcalc.planning.notebook import Call
from kvcalc.planning.offload import PREFIX_STORE, Route
from kvcalc.planning.plan import Plan
from kvcalc.records import record
from kvcalc.replay.machine import Machine, machine_of, rate_of, under_load
from kvcalc.replay.outcome import Case
from kvcalc.replay.policies import INFINITE, LRU, policy
from kvcalc.replay.readers import read_trace
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.serving import Service
from kvcalc.replay.serving_results import GPU
from kvcalc.replay.stream import Stream, stream_of
from kvcalc.replay.trace import Trace
from kvcalc.results import PlanResult
from kvcalc.trace_results import ALL, BEYOND, NOTHING, HitChoice, TraceHits, TraceLevel

if TYPE_CHECKING:
    from numpy.typing import NDArray

HITS = ("hit", "cached", "hit_rate")
"""Keys that say what hits, which a trace replaces."""

NEGLIGIBLE = 1e-3
"""Share of the input below which what a tier adds to the hits is not worth it [1]."""


def plan_with_trace(
    question: Question, path: str, read: Callable[[str], Trace] = read_trace
) -> tuple[PlanResult, tuple[Call, ...]]:
    """Answer a plan for the load of a trace, with the hits of its own pool and tiers, and the formulas.

    `read` reads the trace, as the user says that it is to be read.  What the question says of the load
    itself takes precedence over the trace; what it says of hits is shown beside what the trace gives.

    Raises
    ------
    ProfileError
        If the trace cannot be read.
    SettingsError
        If no machine is named, or prompts of the trace are as long as nothing.
    """
    asked = with_file(question)
    if asked.hardware is None:
        raise SettingsError("--trace: needs a machine, whose capacities are replayed; add --on")
    trace = read(path)
    loaded = under_load(asked, trace)
    machine = machine_of(loaded, trace)
    found = _replayed(machine)
    before = Plan(scenario(loaded)).answer()[0]
    some = found.hits > 0
    hit, rate = _share(found.hits, found.stream, some), float(np.mean(some))
    result, calls = Plan(scenario(_with_hits(loaded, path, hit, rate))).answer()
    given = any(name in asked.said for name in HITS)
    hits = TraceHits(
        trace=trace.name,
        dialect=trace.dialect,
        requests=trace.requests,
        block_tokens=machine.trace.block_tokens or None,
        request_rate=rate_of(trace),
        infinite_hit_rate_tokens=_share(_lru_tokens(found.stream, machine, None), found.stream),
        levels=found.levels,
        assumed=_choice(before, "said" if given else "default"),
        replayed=replace(_choice(result, "trace"), hit=hit, hit_rate=rate, hit_rate_tokens=found.rate),
        ttft_mean_without=float(found.service.alone.mean()),
        findings=tuple(one.text for one in trace.findings if one.warning),
    )
    notes = dict.fromkeys((*result.assumptions, *machine.book.assumptions, _meaning(path)))
    idle = tuple(_idle(level) for level in found.levels[1:] if float(level.own_rate_tokens) < NEGLIGIBLE)
    warnings = dict.fromkeys((*result.warnings, *idle, *machine.book.warnings, *hits.findings))
    return replace(result, trace=hits, assumptions=tuple(notes), warnings=tuple(warnings)), calls


def _idle(level: TraceLevel) -> str:
    return (
        f"{level.place}: adds {float(level.own_rate_tokens):.2%} of the input tokens to the hits on this "
        "trace, so that what restoring from it saves is next to nothing"
    )


def _with_hits(loaded: Question, path: str, hit: float, rate: float) -> Question:
    """Return the question with the hits of the trace in place of those that were said."""
    said = {name: item for name, item in loaded.said.items() if name not in HITS}
    where = f"{path}: replayed"
    # No request hits: then none hits a share of nothing.
    own = {"hit": hit, "hit_rate": rate} if rate else {"hit": 0.0}
    return replace(
        loaded, said={**said, **{name: Said(value, where, numbers=True) for name, value in own.items()}}
    )


def _meaning(path: str) -> str:
    return (
        f"hits are replayed from {path}: least recently used, prefix hits, tokens hit over input tokens, "
        "from a cold start; `kvcalc replay` shows other policies and readings"
    )


def _choice(result: PlanResult, source: str) -> HitChoice:
    """Return what a plan took for its hits, and what it concludes."""
    inputs = result.inputs
    cached, prompt = inputs["cached"], inputs["prompt"]
    hit = 1.0 if cached is None else float(cached) / float(prompt)
    rate = float(inputs["hit_rate"])
    verdicts = tuple(
        f"{row.tier}: {'adds_nothing' if row.adds_nothing else row.verdict}"
        for row in result.offload
        if row.mode == PREFIX_STORE
    )
    return HitChoice(source, hit, rate, hit * rate, verdicts)


@record
class _Replayed:
    """The replay of a trace at the capacities of a machine."""

    stream: Stream
    service: Service
    levels: tuple[TraceLevel, ...]
    hits: "NDArray[np.int64]"  # tokens of each request that all levels together hit

    @property
    def rate(self) -> float:
        """Hit tokens over input tokens."""
        return _share(self.hits, self.stream)


def _replayed(machine: Machine) -> _Replayed:
    """Replay the GPUs' pool, then each tier with all that is faster."""
    stream = stream_of(machine.trace, Semantics())
    service = machine.service(np.ones(stream.requests, bool), stream.trace)
    if service is None:
        raise SettingsError("--trace: needs a machine, whose capacities are replayed; add --on")
    tiers = sorted(machine.routes, key=lambda one: -one.link_rate)
    places = [(GPU, machine.pool, None), *((route.tier.name, route.tier.capacity, route) for route in tiers)]
    size: float | None = 0.0
    hits, served, levels = np.zeros(stream.requests, np.int64), {}, []
    for place, capacity, route in places:
        size, adds = _together(size, capacity, route)
        tokens = np.maximum(_lru_tokens(stream, machine, size), hits)
        served[place] = tokens - hits
        row = service.serving(served)
        levels.append(
            TraceLevel(
                place=place,
                capacity=capacity,
                capacity_tokens=None if capacity is None else _tokens_in(machine, capacity),
                adds=adds,
                hit_rate_tokens=_share(tokens, stream),
                own_rate_tokens=_share(tokens - hits, stream),
                requests_with_hits=float(np.mean(tokens > 0)),
                ttft_mean=row.ttft_mean,
                recompute_avoided=row.recompute_avoided,
            )
        )
        hits = tokens
    return _Replayed(stream, service, tuple(levels), hits)


def _together(faster: float | None, capacity: float | None, route: Route | None) -> tuple[float | None, str]:
    """Return the bytes of different blocks that a place holds with all that is faster; None has no end.

    A tier that stores whatever the GPUs store (write-through) holds the same blocks and more of them; one
    that takes what they evict adds its own to theirs.
    """
    if route is None:
        return capacity, ALL
    if not _inclusive(route):
        return None if capacity is None or faster is None else faster + capacity, ALL
    if capacity is None or (faster is not None and capacity > faster):
        return capacity, BEYOND
    return faster, NOTHING


def _inclusive(route: Route) -> bool:
    store = route.tier.store
    return route.mechanism.inclusive if store is None else store != "write_back"


def _lru_tokens(stream: Stream, machine: Machine, size: float | None) -> "NDArray[np.int64]":
    """Return the tokens of each request that a cache of so many bytes hits; None never evicts."""
    blocks = 0 if size is None else machine.sizing.blocks_in(size)
    if size is not None and blocks < 1:
        return np.zeros(stream.requests, np.int64)
    return policy(INFINITE if size is None else LRU)(Case(stream, blocks, Semantics())).hit_tokens


def _tokens_in(machine: Machine, size: float) -> int:
    return machine.sizing.blocks_in(size) * (machine.trace.block_tokens or 1)


def _share(tokens: "NDArray[np.int64]", stream: Stream, some: "NDArray[np.bool_] | None" = None) -> float:
    """Return tokens as a share of the input of all requests, or of some."""
    asked = stream.trace.input_tokens if some is None else stream.trace.input_tokens[some]
    hit = tokens if some is None else tokens[some]
    return float(hit.sum() / asked.sum()) if asked.sum() else 0.0
