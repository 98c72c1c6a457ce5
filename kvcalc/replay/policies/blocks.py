"""A cache of single blocks: what frequency policies need, and every policy under unusual semantics.

A policy says which block goes; everything else stands here.  It is slower than caches of segments by the
number of blocks in a segment, and is used where a policy can tell blocks of one segment apart.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import numpy as np

from kvcalc.replay.outcome import Case, Outcome, kept_blocks
from kvcalc.replay.semantics import ANY, ATOMIC, PIN, TAIL

NOTHING_PINNED: frozenset[int] = frozenset()


class Policy(Protocol):
    """Which blocks are cached, and which goes next."""

    def __contains__(self, block: int) -> bool:
        """Tell whether a block is cached."""

    def hit(self, block: int, depth: int) -> None:
        """Take notice of a touch of a cached block, at this place of its request."""

    def add(self, block: int, depth: int) -> None:
        """Cache a block; there is room."""

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out one block that is not pinned and return it; None where all are."""


class Whole(Protocol):
    """A policy that makes room itself, since what it evicts depends on what comes in."""

    @property
    def evictions(self) -> int:
        """Blocks that left to make room."""

    @property
    def inserted(self) -> int:
        """Blocks that were put in."""

    def __contains__(self, block: int) -> bool:
        """Tell whether a block is cached."""

    def touch(self, block: int, depth: int, pinned: Collection[int]) -> bool:
        """Touch a block, cache it if it is not; tell whether it was a hit."""


class Cache:
    """Blocks up to a capacity, under a policy."""

    def __init__(self, policy: Policy, capacity: int, sizes: Sequence[int] | None = None) -> None:
        self.policy = policy
        self.capacity = capacity
        self.sizes = sizes  # by block; 1 each when None
        self.used = 0
        self.evictions = 0
        self.inserted = 0

    def __contains__(self, block: int) -> bool:
        return block in self.policy

    def touch(self, block: int, depth: int, pinned: Collection[int]) -> bool:
        """Touch a block, cache it if it is not; tell whether it was a hit."""
        if block in self.policy:
            self.policy.hit(block, depth)
            return True
        size = 1 if self.sizes is None else self.sizes[block]
        if size > self.capacity:
            return False
        while self.used + size > self.capacity:
            victim = self.policy.evict(pinned)
            if victim is None:
                return False
            self.used -= 1 if self.sizes is None else self.sizes[victim]
            self.evictions += 1
        self.policy.add(block, depth)
        self.used += size
        self.inserted += 1
        return False


def replay_blocks(case: Case, cache: Whole, begin: Callable[[int, list[int]], None] | None = None) -> Outcome:
    """Replay a stream block by block; `begin` is told of each request before its blocks are touched."""
    stream, said = case.stream, case.semantics
    hits = np.zeros(stream.requests, np.int64)
    tokens = np.zeros(stream.requests, np.int64)
    count_tokens = _token_counter(case)
    rooms = kept_blocks(stream, case).tolist()
    for request, room in enumerate(rooms):
        chain = stream.ids(request).tolist()
        found = [block in cache for block in chain] if said.lookup == ATOMIC else []
        if begin is not None:
            begin(request, chain)
        pinned: Collection[int] = set(chain) if said.oversize == PIN else NOTHING_PINNED
        depths: Iterable[int] = range(room - 1, -1, -1) if said.touch == TAIL else range(room)
        if said.lookup == ATOMIC:
            for depth in depths:
                cache.touch(chain[depth], depth, pinned)
        else:
            found = [False] * room
            for depth in depths:
                found[depth] = cache.touch(chain[depth], depth, pinned)
            found += [block in cache for block in chain[room:]]
        if said.hits != ANY and False in found:
            del found[found.index(False) :]
        hits[request] = sum(found)
        tokens[request] = count_tokens(request, chain, found)
    return Outcome(hits, tokens, cache.inserted, cache.evictions)


def _token_counter(case: Case) -> Callable[[int, list[int], list[bool]], int]:
    weights = case.stream.trace.block_weight
    if weights is not None:
        by_block = weights.tolist()
        return lambda _, chain, found: sum(
            by_block[block] for block, hit in zip(chain, found, strict=False) if hit
        )
    each, short = case.stream.trace.block_tokens, case.stream.short.tolist()

    def counted(request: int, chain: list[int], found: list[bool]) -> int:
        last = len(found) == len(chain) and bool(found) and found[-1]
        return sum(found) * each - (short[request] if last else 0)

    return counted


def sizes_of(case: Case) -> "list[int] | None":
    """Return what each block takes of the cache; None where that is 1."""
    weights = case.stream.trace.block_weight
    return None if weights is None else weights.tolist()


def first_free(blocks: Iterable[int], pinned: Collection[int]) -> int | None:
    """Return the first block that is not pinned."""
    return next((block for block in blocks if block not in pinned), None)
