"""A trace before any cache: reuse, working set, sessions, lengths, and what rounding to blocks loses."""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay import sharing
from kvcalc.replay.describe_results import (
    BlockRow,
    DescribeResult,
    FindingRow,
    InfiniteCache,
    LengthRow,
    Popularity,
    Rounding,
    SessionFacts,
    TimeRow,
    TraceSize,
    WindowRow,
)
from kvcalc.replay.trace import NOWHERE, Finding, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS = 12
"""Into how many parts the time of a trace is cut [1]."""
WINDOWS = (60.0, 600.0, 3600.0, 86400.0)
"""Windows of the working set, as far as they are shorter than the trace [second]."""
LARGEST_BLOCK = 4096
"""Largest block whose hits are told; hybrids of vLLM have some 2,000 tokens, on Ascend 4,096 [token]."""
COUNTED_REUSE = 0.1
"""Share of the most used blocks whose accesses are told [1]."""


@record
class _Shared:
    """What the parts of a description have in common."""

    trace: Trace
    order: "NDArray[np.int64]"  # requests in the order of time
    hits: "NDArray[np.int64]"  # blocks of each request that any earlier one had
    hit_tokens: "NDArray[np.int64]"
    block_tokens: "NDArray[np.int64]"  # of each different block


def describe_trace(path: str, dialect: str | None = None, block_tokens: int | None = None) -> DescribeResult:
    """Return what a trace file says of itself, before any cache.

    Parameters
    ----------
    path : the file, plain, .gz or .zst, or a folder
    dialect : the name of its dialect; recognised from its first lines when None
    block_tokens : tokens of a block, where the file does not say [token]

    Raises
    ------
    ProfileError
        If the file cannot be read; names file and line.
    """
    from kvcalc.replay.readers import Asked, read_trace

    return describe(read_trace(path, dialect, Asked(block_tokens)))


def describe(trace: Trace) -> DescribeResult:
    """Return what a trace says of itself, before any cache."""
    order = sharing.in_time(trace)
    hits = sharing.before(trace, order)
    size = (
        np.full(trace.unique_blocks, trace.block_tokens) if trace.block_weight is None else trace.block_weight
    )
    shared = _Shared(trace, order, hits, sharing.prefix_tokens(trace, hits), size)
    rows, live = _over_time(shared)
    return DescribeResult(
        inputs={"trace": trace.name, "dialect": trace.dialect, "order": "time"},
        sources={},
        warnings=tuple(one.text for one in trace.findings if one.warning),
        assumptions=(),
        trace=_size(shared),
        infinite=_infinite(shared),
        sessions=_sessions(shared),
        lengths=_lengths(shared),
        working_sets=_windows(shared),
        rounding=_rounding(shared) if trace.block_tokens else None,
        popularity=_popularity(trace),
        live_tokens_max=live,
        rows=rows,
        findings=tuple(_finding(one) for one in trace.findings),
    )


def _finding(one: Finding) -> FindingRow:
    return FindingRow(one.name, one.count, one.text, one.lines, one.warning)


def _size(shared: _Shared) -> TraceSize:
    trace = shared.trace
    duration = float(np.nanmax(trace.time) - np.nanmin(trace.time)) if _has_times(trace) else None
    return TraceSize(
        dialect=trace.dialect,
        requests=trace.requests,
        block_accesses=trace.accesses,
        unique_blocks=trace.unique_blocks,
        block_tokens=trace.block_tokens or None,
        input_tokens=int(trace.input_tokens.sum()),
        output_tokens=int(trace.output_tokens.sum()),
        unique_tokens=int(shared.block_tokens.sum()),
        duration=duration,
        request_rate=trace.requests / duration if duration else None,
    )


def _has_times(trace: Trace) -> bool:
    return not np.isnan(trace.time).all()


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _infinite(shared: _Shared) -> InfiniteCache:
    trace, hits, tokens = shared.trace, shared.hits, shared.hit_tokens
    blocks, asked = trace.request_blocks, int(trace.input_tokens.sum())
    late = shared.order[trace.requests // 2 :]
    within = None
    if trace.sessions:
        own = sharing.prefix_tokens(trace, sharing.before_in_session(trace, shared.order))
        within = _share(own.sum(), asked)
    found = sharing.component_hits(trace, shared.order)
    return InfiniteCache(
        hit_rate_tokens=_share(tokens.sum(), asked),
        hit_rate_blocks=_share(hits.sum(), blocks.sum()),
        hit_rate_requests=float(np.mean(tokens / np.maximum(trace.input_tokens, 1))),
        hit_rate_tokens_last_half=_share(tokens[late].sum(), trace.input_tokens[late].sum()),
        within_session=within,
        across_sessions=None if within is None else _share(tokens.sum(), asked) - within,
        component_hits=None if found is None else _share(found, asked),
        requests_with_hits=float(np.mean(hits > 0)),
    )


def _sessions(shared: _Shared) -> SessionFacts | None:
    trace = shared.trace
    if not trace.sessions:
        return None
    named = trace.session != NOWHERE
    counts = np.bincount(trace.session[named], minlength=len(trace.sessions))
    same, own = sharing.shared_with_last(trace, shared.order)
    asked = np.bincount(trace.session[own], trace.request_blocks[own], len(trace.sessions))
    again = np.bincount(trace.session[own], same[own], len(trace.sessions))
    rates = again[asked > 0] / asked[asked > 0]
    begin, end = _spans(trace)
    timed = ~np.isnan(begin)
    mean, most = _at_once(begin[timed], end[timed])
    return SessionFacts(
        sessions=len(trace.sessions),
        requests_median=float(np.median(counts)),
        requests_max=int(counts.max()),
        duration_median=float(np.median((end - begin)[timed])) if timed.any() else None,
        at_once_mean=mean,
        at_once_max=most,
        consecutive_median=float(np.median(rates)) if len(rates) else 0.0,
        consecutive_mean=float(np.mean(rates)) if len(rates) else 0.0,
    )


def _spans(trace: Trace) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Return the first and the last time of each session; NaN where it has none."""
    begin, end = np.full(len(trace.sessions), np.inf), np.full(len(trace.sessions), -np.inf)
    known = (trace.session != NOWHERE) & ~np.isnan(trace.time)
    np.minimum.at(begin, trace.session[known], trace.time[known])
    np.maximum.at(end, trace.session[known], trace.time[known])
    begin[np.isinf(begin)] = end[np.isinf(end)] = np.nan
    return begin, end


def _at_once(begin: "NDArray[np.float64]", end: "NDArray[np.float64]") -> tuple[float | None, int | None]:
    """Return how many sessions were open, as a mean over time and at most."""
    if not len(begin):
        return None, None
    whole = float(end.max() - begin.min())
    events = sorted(
        [(time, 1) for time in begin.tolist()] + [(time, -1) for time in end.tolist()], key=_opened
    )
    most = open_now = 0
    for _, change in events:
        open_now += change
        most = max(most, open_now)
    return (float((end - begin).sum()) / whole if whole else float(len(begin))), most


def _opened(event: tuple[float, int]) -> tuple[float, int]:
    """Order events by time; what opens comes before what closes."""
    return event[0], -event[1]


def _lengths(shared: _Shared) -> tuple[LengthRow, ...]:
    trace = shared.trace
    parts = {
        "input": trace.input_tokens,
        "of it hit by an infinite cache": shared.hit_tokens,
        "of it computed": trace.input_tokens - shared.hit_tokens,
        "output": trace.output_tokens,
    }
    return tuple(_length(part, values) for part, values in parts.items())


def _length(part: str, values: "NDArray[np.int64]") -> LengthRow:
    half, nine, most = np.percentile(values, (50, 90, 99), method="inverted_cdf").tolist()
    return LengthRow(part, float(values.mean()), half, nine, most, int(values.max()))


def _distinct(shared: _Shared, place: "NDArray[np.int64]") -> "NDArray[np.float64]":
    """Return the tokens in different blocks that are asked for in each part of the time."""
    trace = shared.trace
    again = sharing.repeated_blocks(trace, shared.order, place)
    whole = sharing.prefix_tokens(trace, trace.request_blocks)
    fresh = whole - sharing.prefix_tokens(trace, again)
    if trace.block_tokens:  # a block takes its whole space, also one that is not full
        fresh = (trace.request_blocks - again) * trace.block_tokens
    return np.bincount(place, fresh, int(place.max()) + 1).astype(np.float64)


def _windows(shared: _Shared) -> tuple[WindowRow, ...]:
    trace = shared.trace
    if np.isnan(trace.time).any():
        return ()
    since = trace.time - trace.time.min()
    result = []
    for window in WINDOWS:
        if window < since.max():
            sets = _distinct(shared, (since // window).astype(np.int64))
            result.append(WindowRow(window, float(sets.mean()), float(sets.max())))
    return tuple(result)


def _over_time(shared: _Shared) -> tuple[tuple[TimeRow, ...], float | None]:
    """Return the parts of the trace's time, and the most that was live at once."""
    trace = shared.trace
    if np.isnan(trace.time).any():
        return (), None
    since = trace.time - trace.time.min()
    length = float(since.max()) / PARTS or 1.0
    place = np.minimum((since / length).astype(np.int64), PARTS - 1)
    first, last = sharing.lifetimes(trace, shared.order)
    again = last > first
    change = np.zeros(trace.requests + 1)
    np.add.at(change, first[again], shared.block_tokens[again])
    np.add.at(change, last[again], -shared.block_tokens[again])
    live = np.cumsum(change)
    ends = np.searchsorted(place[shared.order], np.arange(PARTS), side="right")
    new = trace.request_blocks - shared.hits
    fresh = new * trace.block_tokens if trace.block_tokens else _new_weights(shared)
    sums = {
        name: np.bincount(place, values, PARTS)
        for name, values in (("input", trace.input_tokens), ("hit", shared.hit_tokens), ("new", fresh))
    }
    requests, sets = np.bincount(place, minlength=PARTS), _distinct(shared, place)
    sets = np.append(sets, np.zeros(PARTS - len(sets)))
    rows = tuple(
        TimeRow(
            start=part * length,
            requests=int(requests[part]),
            input_tokens=int(sums["input"][part]),
            hit_rate_tokens=_share(sums["hit"][part], sums["input"][part]) if sums["input"][part] else None,
            new_tokens=int(sums["new"][part]),
            working_set=int(sets[part]),
            live_tokens=int(live[max(0, ends[part] - 1)]),
        )
        for part in range(PARTS)
    )
    return rows, float(live.max())


def _new_weights(shared: _Shared) -> "NDArray[np.int64]":
    trace = shared.trace
    return sharing.prefix_tokens(trace, trace.request_blocks) - shared.hit_tokens


def _rounding(shared: _Shared) -> Rounding:
    trace, hits, size = shared.trace, shared.hits, shared.trace.block_tokens
    asked = int(trace.input_tokens.sum())
    whole = np.minimum(hits * size, trace.input_tokens)
    rest = trace.input_tokens - whole
    # A prompt's last token is computed in any case, so that it cannot be what a finer block adds.
    most = np.minimum(np.maximum(rest - 1, 0), size - 1)
    most[shared.order[:1]] = 0  # nothing was there before the first request
    larger = [size * 2**power for power in range(13) if size * 2**power <= max(LARGEST_BLOCK, size)]
    own = _share(whole.sum(), asked)
    rows = []
    for block in larger:
        coarse = whole if block == size else hits * size // block * block
        rate = _share(coarse.sum(), asked)
        rows.append(BlockRow(block, rate, own - rate, float(np.mean(coarse == 0))))
    return Rounding(
        shortest_reusable_prefix=size,
        requests_below=int((trace.input_tokens < size).sum()),
        never_cached=int(np.maximum(trace.input_tokens - trace.request_blocks * size, 0).sum()),
        finer_at_most=_share(most.sum(), asked),
        rows=tuple(rows),
    )


def _popularity(trace: Trace) -> Popularity:
    counts = sharing.accesses_by_block(trace)
    if not len(counts):
        return Popularity(0.0, 0.0, 0)
    again = np.sort(counts - 1)[::-1]
    top = max(1, round(COUNTED_REUSE * len(counts)))
    return Popularity(
        used_once=float(np.mean(counts == 1)),
        top_tenth=_share(again[:top].sum(), again.sum()),
        most=int(counts.max()),
    )
