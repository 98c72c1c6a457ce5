"""Perfect LFU: evict what was touched least often since the trace began, whether it was cached or not.

Counts of evicted blocks are remembered, which no engine does; of equal counts the longest untouched goes.
"""

from collections import Counter
from collections.abc import Collection

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import Cache, replay_blocks, sizes_of
from kvcalc.replay.policies.ranked import Ranked


class History:
    """Cached blocks by the number of all their touches."""

    def __init__(self) -> None:
        self.cached = Ranked()
        self.count: Counter[int] = Counter()

    def __contains__(self, block: int) -> bool:
        return block in self.cached

    def hit(self, block: int, depth: int) -> None:
        """Count a touch."""
        self.count[block] += 1
        self.cached.put(block, (self.count[block],))

    add = hit

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out the block of fewest touches."""
        return self.cached.lowest(pinned)


def replay(case: Case) -> Outcome:
    """Replay perfect LFU."""
    return replay_blocks(case, Cache(History(), case.capacity, sizes_of(case)))
