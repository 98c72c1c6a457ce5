"""First in, first out, without a queue: a cache holds what the last insertions brought.

Each block has the number of its insertion; one that was inserted among the last `capacity` insertions is
cached.  A request is then a few operations on the slice of its blocks.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay import _jit, _loops
from kvcalc.replay.outcome import Case, Outcome, any_tokens, kept, kept_blocks, of_prefix
from kvcalc.replay.policies.blocks import Cache, first_free, replay_blocks, sizes_of
from kvcalc.replay.semantics import ANY, ATOMIC, PIN, TAIL

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Queue:
    """Cached blocks in the order in which they came; a hit changes nothing."""

    def __init__(self) -> None:
        self.queue: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, block: int) -> bool:
        return block in self.queue

    def hit(self, block: int, depth: int) -> None:
        """Leave a block where it is."""

    def add(self, block: int, depth: int) -> None:
        """Queue a block."""
        self.queue[block] = None

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out the block that came first."""
        victim = first_free(self.queue, pinned)
        if victim is not None:
            del self.queue[victim]
        return victim


def replay(case: Case) -> Outcome:
    """Replay first in, first out."""
    if case.stream.weight_before is not None or (case.semantics.oversize == PIN):
        return replay_blocks(case, Cache(Queue(), case.capacity, sizes_of(case)))
    said, accesses = case.semantics, int(case.stream.blocks.sum())
    if said.lookup == ATOMIC and said.hits != ANY and accesses >= _jit.WORTH_COMPILING:
        loop = _jit.compiled(_loops.fifo)
        if loop is not None:
            return _compiled(case, loop)
    return _by_number(case)


def _compiled(case: Case, loop: Callable[..., int]) -> Outcome:
    """Replay block by block in machine code."""
    stream, trace, capacity = case.stream, case.stream.trace, case.capacity
    number = np.full(trace.unique_blocks, -capacity, np.int64)
    hits = np.zeros(stream.requests, np.int64)
    tail = case.semantics.touch == TAIL
    runs = (trace.run_start, trace.run_first, trace.run_blocks)
    inserted = int(loop(*runs, kept(stream, case), capacity, tail, number, hits))
    return of_prefix(stream, hits, inserted, max(0, inserted - capacity))


def _by_number(case: Case) -> Outcome:
    stream, capacity, semantics = case.stream, case.capacity, case.semantics
    hits = np.zeros(stream.requests, np.int64)
    last_hit = np.zeros(stream.requests, bool)
    number = np.full(stream.trace.unique_blocks, -capacity, np.int64)
    prefix, backwards = semantics.hits != ANY, semantics.touch == TAIL
    inserted = 0
    for request, room in enumerate(kept_blocks(stream, case).tolist()):
        chain = stream.ids(request)
        if not len(chain):
            continue
        known = number[chain]
        order = slice(None, None, -1) if backwards else slice(None)
        missing = _misses(known[:room][order], inserted - capacity)
        if semantics.lookup == ATOMIC:
            cached = known > inserted - capacity
        else:
            cached = np.concatenate((~missing[order], known[room:] > inserted - capacity))
        hits[request] = _leading(cached) if prefix else np.count_nonzero(cached)
        last_hit[request] = hits[request] == len(chain) if prefix else cached[-1]
        count = int(np.count_nonzero(missing))
        if count:
            number[chain[:room][order][missing]] = np.arange(inserted + 1, inserted + count + 1)
            inserted += count
    tokens = any_tokens(stream, hits, last_hit)
    return Outcome(hits, tokens, inserted, max(0, inserted - capacity))


def _misses(known: "NDArray[np.int64]", oldest: int) -> "NDArray[np.bool_]":
    """Return which blocks, in the order of their touch, are no longer cached when they are touched.

    Each miss inserts a block and so evicts one, which may be of the same request.  The answer is the fixed
    point; each round settles at least one more block.
    """
    missing = known <= oldest
    while missing.any():
        before = np.cumsum(missing, dtype=np.int64) - missing
        again = known <= oldest + before
        if (again == missing).all():
            break
        missing = again
    return missing


def _leading(cached: "NDArray[np.bool_]") -> int:
    """Return how many blocks are cached before the first that is not."""
    first = int(np.argmin(cached))
    return first if not cached[first] else len(cached)
