"""The most that any policy could hit: evict what is used again latest.

Blocks of a chain are used again no later than those behind them, so that the latest used one is always a
leaf and what is cached of a request is a prefix of it.  All blocks that request q is the next to touch
form one entry, which is evicted from its end; when q comes, the size of its entry is what it hits.
A block may be refused, so that this is a bound also for policies that bypass the cache; a cache that
must take every block, the Belady of cache simulators, is `belady_insert`.
"""

import heapq
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay.groups import NOBODY, Pieces, last_owner, pieces_of
from kvcalc.replay.outcome import Case, Outcome, of_prefix, whole_blocks
from kvcalc.replay.stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray


def next_users(stream: Stream) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]":
    """Return where each request's groups start, the next request to touch each, and its size.

    Blocks that nobody touches again have the number of requests as their next one.
    """
    pieces = pieces_of(stream)
    last = stream.requests - 1
    backwards = Pieces(
        last - pieces.request[::-1], pieces.segment[::-1], pieces.blocks[::-1], pieces.size[::-1]
    )
    found = last_owner(backwards)[::-1]
    following = np.where(found == NOBODY, stream.requests, last - found)
    request = pieces.request
    changes = np.ones(len(request), bool)
    changes[1:] = (request[1:] != request[:-1]) | (following[1:] != following[:-1])
    heads = np.flatnonzero(changes)
    size = np.add.reduceat(pieces.size, heads) if len(heads) else pieces.size
    start = np.searchsorted(request[heads], np.arange(stream.requests + 1))
    return start, following[heads], size


def replay(case: Case) -> Outcome:
    """Replay the bound; where blocks differ in size, parts of blocks count, so that it stays one."""
    stream, capacity = case.stream, case.capacity
    start, following, size = (array.tolist() for array in next_users(stream))
    held = [0] * (stream.requests + 1)
    hits = np.zeros(stream.requests, np.int64)
    latest: list[int] = []
    used = evicted = 0
    for request, needed in enumerate(stream.sizes.tolist()):
        found = held[request]
        hits[request] = found
        held[request] = 0
        used += needed - found
        for group in range(start[request], start[request + 1]):
            user = following[group]
            if held[user] == 0:
                heapq.heappush(latest, -user)
            held[user] += size[group]
        while used > capacity:
            user = -latest[0]
            take = min(used - capacity, held[user])
            held[user] -= take
            used -= take
            evicted += take
            if held[user] == 0:
                heapq.heappop(latest)
    inserted = int((stream.sizes - hits).sum())
    if stream.trace.block_weight is None:
        return of_prefix(stream, hits, inserted, evicted)
    whole = whole_blocks(stream, hits)
    return Outcome(whole, hits, int((stream.blocks - whole).sum()), None)
