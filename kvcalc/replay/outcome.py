"""What one replay of one cache found, request by request."""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay.semantics import BYPASS, TRUNCATE, Semantics
from kvcalc.replay.stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray


@record
class Case:
    """One cache to replay: everything that a policy needs."""

    stream: Stream
    capacity: int  # blocks, or tokens where blocks differ
    semantics: Semantics
    options: "object" = None  # what one policy alone takes


@record
class Part:
    """What one tier of a cache gave and took."""

    name: str
    capacity: int
    hit_blocks: "NDArray[np.int64]"
    hit_tokens: "NDArray[np.int64]"
    inserted: int
    evictions: int


@record
class Outcome:
    """Hits of each request, and what the cache did for them."""

    hit_blocks: "NDArray[np.int64]"
    hit_tokens: "NDArray[np.int64]"
    inserted: int  # blocks that were put into the cache
    evictions: int | None  # blocks that were taken out of it for others; None where parts of blocks were
    tiers: tuple[Part, ...] = ()
    quotas: tuple[int, ...] = ()  # by tenant, where each has its own


def of_prefix(stream: Stream, hit_blocks: "NDArray[np.int64]", inserted: int, evictions: int) -> Outcome:
    """Return the outcome of requests that each hit so many of their first blocks."""
    return Outcome(hit_blocks, prefix_tokens(stream, hit_blocks), inserted, evictions)


def prefix_tokens(stream: Stream, hit_blocks: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the tokens of the first so many blocks of each request; of a last block what is in it."""
    weights = stream.trace.block_weight
    if weights is None:
        tokens = hit_blocks * stream.trace.block_tokens
        return np.where(hit_blocks == stream.blocks, tokens - stream.short, tokens)
    found = [int(weights[stream.ids(r)[:hit]].sum()) for r, hit in enumerate(hit_blocks.tolist())]
    return np.array(found, np.int64)


def any_tokens(
    stream: Stream, hit_blocks: "NDArray[np.int64]", last_hit: "NDArray[np.bool_]"
) -> "NDArray[np.int64]":
    """Return the tokens of so many blocks of each request, the last among them or not."""
    tokens = hit_blocks * stream.trace.block_tokens
    return np.where(last_hit, tokens - stream.short, tokens)


def whole_blocks(stream: Stream, sizes: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return how many first blocks of each request fit into a prefix of this size."""
    weights = stream.trace.block_weight
    if weights is None:
        return sizes
    found = [
        int(np.searchsorted(np.cumsum(weights[stream.ids(r)]), size, side="right"))
        for r, size in enumerate(sizes.tolist())
    ]
    return np.array(found, np.int64)


def kept(stream: Stream, case: Case) -> "NDArray[np.int64]":
    """Return what of each request goes into the cache, head first: the rule of those that are too long.

    Truncated ones leave as much of their head as fits, those that bypass the cache nothing; the others go
    through it whole, and pinning decides only as their blocks come.  In blocks, or in tokens where blocks
    differ.
    """
    sizes = stream.sizes
    if case.semantics.oversize == TRUNCATE:
        return np.minimum(sizes, case.capacity)
    if case.semantics.oversize == BYPASS:
        return np.where(sizes > case.capacity, 0, sizes)
    return sizes


def kept_blocks(stream: Stream, case: Case) -> "NDArray[np.int64]":
    """Return how many blocks of each request, head first, go into the cache."""
    room = kept(stream, case)
    if stream.trace.block_weight is None:
        return room
    whole = (room > 0) | (room == stream.sizes)  # a block may have no tokens
    return np.where(whole, whole_blocks(stream, room), 0)
