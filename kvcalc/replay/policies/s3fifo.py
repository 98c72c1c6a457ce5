"""S3-FIFO: a small queue that new blocks must be hit in, a main queue, and ghosts of what left the small one.

Small has a tenth of the cache.  A block that leaves it goes to main if it was hit more than once, else it
becomes a ghost; a ghost that comes again enters main.  Main spares a block as often as it was hit, at most
three times.  Evictions come from small while it is over its share, also while the cache fills.
Source: Yang and others, FIFO queues are all you need for cache eviction, SOSP 2023, algorithm 1.
"""

from collections import OrderedDict
from collections.abc import Collection

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import replay_blocks
from kvcalc.replay.policies.uniform import require_one_size

SMALL_SHARE = 0.1
"""Share of the cache that new blocks pass through [1]; source: the paper's section 4.1."""

MOST_HITS = 3
"""Hits of a block that are remembered, two bits' worth; source: same."""

PROMOTE = 1
"""A block hit more often than this while in the small queue goes to the main one; source: algorithm 1."""


class S3Fifo:
    """Two queues and the ghosts; the first of each is the oldest."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.share = max(1, int(SMALL_SHARE * capacity))
        self.small: OrderedDict[int, int] = OrderedDict()
        self.main: OrderedDict[int, int] = OrderedDict()
        self.ghosts: OrderedDict[int, None] = OrderedDict()
        self.evictions = 0
        self.inserted = 0

    def __contains__(self, block: int) -> bool:
        return block in self.small or block in self.main

    def touch(self, block: int, depth: int, pinned: Collection[int]) -> bool:
        """Touch a block, cache it if it is not; tell whether it was a hit."""
        for queue in (self.small, self.main):
            if block in queue:
                queue[block] = min(queue[block] + 1, MOST_HITS)
                return True
        while len(self.small) + len(self.main) >= self.capacity:
            if not self._evict(pinned):
                return False
        if block in self.ghosts:
            del self.ghosts[block]
            self.main[block] = 0
        else:
            self.small[block] = 0
        self.inserted += 1
        return False

    def _evict(self, pinned: Collection[int]) -> bool:
        """Let blocks move on until one is gone; tell whether one is."""
        if len(self.small) >= self.share or not self.main:
            return self._from_small(pinned) or self._from_main(pinned)
        return self._from_main(pinned) or self._from_small(pinned)

    def _from_small(self, pinned: Collection[int]) -> bool:
        for _ in range(len(self.small)):
            block, hits = self.small.popitem(last=False)
            if block in pinned:
                self.small[block] = hits
            elif hits > PROMOTE:
                self.main[block] = 0
            else:
                self.ghosts[block] = None
                if len(self.ghosts) > self.capacity - self.share:
                    self.ghosts.popitem(last=False)
                self.evictions += 1
                return True
        return False

    def _from_main(self, pinned: Collection[int]) -> bool:
        for _ in range((MOST_HITS + 1) * len(self.main)):
            block, hits = self.main.popitem(last=False)
            if block in pinned:
                self.main[block] = hits
            elif hits > 0:
                self.main[block] = hits - 1
            else:
                self.evictions += 1
                return True
        return False


def replay(case: Case) -> Outcome:
    """Replay S3-FIFO."""
    require_one_size(case, "s3fifo")
    return replay_blocks(case, S3Fifo(case.capacity))
