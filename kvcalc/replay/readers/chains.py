"""Are block ids chain hashes?  Checked on runs; ids that are not are chained here.

An id is a chain hash when it always has the same predecessor: it then stands for a whole prefix.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay.trace import NOWHERE, runs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_AT_ONCE = 1 << 20
"""Blocks that are written out at a time while ids are chained [1]."""


@record
class Runs:
    """The ids of all requests: `first` and `blocks` of each run, and where each request's runs start."""

    first: "NDArray[np.int64]"
    blocks: "NDArray[np.int64]"
    start: "NDArray[np.int64]"

    @property
    def unique(self) -> int:
        """One more than the largest id."""
        return int((self.first + self.blocks).max()) if len(self.first) else 0


@record
class Chained:
    """Runs whose ids are chain hashes, and what had to be done for it."""

    runs: Runs
    conflicting: int  # ids that had several predecessors; 0: the file's ids are chain hashes
    repeating: int  # requests that had an id twice
    component: "NDArray[np.int64] | None"  # by new id: the old one


def compacted(runs: Runs) -> Runs:
    """Return the runs with ids renumbered so that no number is unused; their order stays."""
    if not len(runs.first):
        return runs
    starts, ends = _union(runs.first, runs.first + runs.blocks)
    base = np.cumsum(ends - starts) - (ends - starts)
    group = np.searchsorted(starts, runs.first, side="right") - 1
    return Runs(base[group] + runs.first - starts[group], runs.blocks, runs.start)


def merged(runs: Runs) -> Runs:
    """Return the runs with those made one that follow each other within a request."""
    if not len(runs.first):
        return runs
    heads = np.empty(len(runs.first), dtype=bool)
    heads[0] = True
    heads[1:] = runs.first[1:] != (runs.first + runs.blocks)[:-1]
    heads[runs.start[:-1][runs.start[:-1] < len(heads)]] = True
    places = np.flatnonzero(heads)
    return Runs(runs.first[places], np.add.reduceat(runs.blocks, places), np.searchsorted(places, runs.start))


def kept(runs: Runs, keep: "NDArray[np.bool_]") -> Runs:
    """Return the runs of those requests alone that `keep` marks."""
    of_run = np.repeat(keep, np.diff(runs.start))
    counts = np.diff(runs.start)[keep]
    start = np.concatenate(([0], np.cumsum(counts)))
    return Runs(runs.first[of_run], runs.blocks[of_run], start)


def _union(starts: "NDArray[np.int64]", ends: "NDArray[np.int64]") -> "tuple[NDArray[np.int64], ...]":
    """Return the disjoint spans that the half-open spans cover together, in order."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate(([True], starts[1:] > ends[:-1]))
    places = np.flatnonzero(opens)
    return starts[places], ends[np.append(places[1:] - 1, len(ends) - 1)]


def conflicting(runs: Runs) -> int:
    """Return how many ids have more than one predecessor.

    >>> two = runs_of(np.array([0, 1, 5, 1]), np.array([0, 2, 4]))
    >>> conflicting(Runs(*two))
    1
    """
    if not len(runs.first):
        return 0
    before = np.empty_like(runs.first)
    before[1:] = (runs.first + runs.blocks - 1)[:-1]
    heads = runs.start[:-1][np.diff(runs.start) > 0]
    before[heads] = NOWHERE
    order = np.lexsort((before, runs.first))
    first, before = runs.first[order], before[order]
    differs = (first[1:] == first[:-1]) & (before[1:] != before[:-1])
    wrong = [first[1:][differs]]
    long = runs.blocks > 1
    if long.any():
        # Inside a run the predecessor of an id is the number before it.
        starts, ends = _union(runs.first[long] + 1, (runs.first + runs.blocks)[long])
        span = np.searchsorted(starts, first, side="right") - 1
        inside = (span >= 0) & (first < ends[np.maximum(span, 0)])
        wrong.append(first[inside & (before != first - 1)])
    return len(np.unique(np.concatenate(wrong)))


def chained(runs: Runs) -> Chained:
    """Return runs of chain hashes; ids that are none get a new id for each prefix they end."""
    count = conflicting(runs)
    if count == 0:
        return Chained(runs, 0, 0, None)
    unique, known, component = runs.unique, {}, []  # type: int, dict[int, int], list[int]
    repeating, made = 0, []
    for ids, starts in _expanded(runs):
        new, ends = [], starts.tolist()
        whole = ids.tolist()
        for begin, end in pairwise(ends):
            request, parent = whole[begin:end], NOWHERE
            repeating += len(set(request)) < len(request)
            for block in request:
                key = (parent + 1) * unique + block
                parent = known.get(key, NOWHERE)
                if parent == NOWHERE:
                    parent = known[key] = len(known)
                    component.append(block)
                new.append(parent)
        made.append(runs_of(np.array(new, np.int64), starts))
    return Chained(joined(made), count, repeating, np.array(component, np.int64))


def joined(parts: "list[tuple[NDArray[np.int64], ...]]") -> Runs:
    """Return the runs of parts of a trace, one after the other."""
    nothing = np.zeros(0, np.int64)
    before, starts = 0, [np.zeros(1, np.int64)]
    for first, _, start in parts:
        starts.append(start[1:] + before)
        before += len(first)
    return Runs(
        np.concatenate([nothing, *(part[0] for part in parts)]),
        np.concatenate([nothing, *(part[1] for part in parts)]),
        np.concatenate(starts),
    )


def _expanded(runs: Runs) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]":
    """Yield the ids of some requests at a time, and where each request starts among them."""
    before = np.concatenate(([0], np.cumsum(runs.blocks)))[runs.start]
    begin = 0
    while begin < len(before) - 1:
        end = max(begin + 1, int(np.searchsorted(before, before[begin] + MOST_AT_ONCE, side="right")) - 1)
        low, high = runs.start[begin], runs.start[end]
        first, blocks = runs.first[low:high], runs.blocks[low:high]
        total = int(blocks.sum())
        offset = np.arange(total) - np.repeat(np.cumsum(blocks) - blocks, blocks)
        yield np.repeat(first, blocks) + offset, before[begin : end + 1] - before[begin]
        begin = end
