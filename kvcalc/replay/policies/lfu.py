"""Least frequently used: evict what was touched least often since it came in; of those the longest untouched.

A block that is evicted starts again from one.  This is the LFU of libcachesim.
"""

from collections import OrderedDict
from collections.abc import Collection

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import Cache, first_free, replay_blocks, sizes_of


class Frequency:
    """Cached blocks in queues by the number of their touches."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}
        self.queues: dict[int, OrderedDict[int, None]] = {}
        self.lowest = 1

    def __contains__(self, block: int) -> bool:
        return block in self.count

    def hit(self, block: int, depth: int) -> None:
        """Move a block to the queue of one touch more."""
        count = self.count[block]
        self._leave(block, count)
        if count == self.lowest and count not in self.queues:
            self.lowest = count + 1
        self._join(block, count + 1)

    def add(self, block: int, depth: int) -> None:
        """Start a block at one touch."""
        self._join(block, 1)
        self.lowest = 1

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out the block of fewest touches that is longest there."""
        for count in self._counts(pinned):
            victim = first_free(self.queues[count], pinned)
            if victim is not None:
                self._leave(victim, count)
                del self.count[victim]
                return victim
        return None

    def _counts(self, pinned: Collection[int]) -> list[int]:
        """Return the numbers of touches that may hold a victim, the lowest first."""
        if self.queues and self.lowest not in self.queues:
            self.lowest = min(self.queues)
        return sorted(self.queues) if pinned else [self.lowest] if self.queues else []

    def _leave(self, block: int, count: int) -> None:
        queue = self.queues[count]
        del queue[block]
        if not queue:
            del self.queues[count]

    def _join(self, block: int, count: int) -> None:
        self.count[block] = count
        self.queues.setdefault(count, OrderedDict())[block] = None


def replay(case: Case) -> Outcome:
    """Replay least frequently used."""
    return replay_blocks(case, Cache(Frequency(), case.capacity, sizes_of(case)))
