"""Greedy dual size frequency at unit cost: frequency over size, with an age that grows as blocks go.

H = L + touches / size, where L is the H of the last block that went (Cherkasova, HP Labs 98-69, 1998).  With
blocks of one size this is LFU with dynamic aging.
"""

from collections.abc import Collection, Sequence

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import Cache, replay_blocks, sizes_of
from kvcalc.replay.policies.ranked import Ranked


class GreedyDual:
    """Cached blocks by H."""

    def __init__(self, sizes: Sequence[int] | None = None) -> None:
        self.sizes = sizes
        self.cached = Ranked()
        self.count: dict[int, int] = {}
        self.age = 0.0

    def __contains__(self, block: int) -> bool:
        return block in self.cached

    def hit(self, block: int, depth: int) -> None:
        """Count a touch and raise H to the age of now."""
        self.count[block] = self.count.get(block, 0) + 1
        size = 1 if self.sizes is None else max(1, self.sizes[block])
        self.cached.put(block, (self.age + self.count[block] / size,))

    add = hit

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out the block of lowest H, which becomes the age."""
        victim = self.cached.lowest(pinned)
        if victim is not None:
            self.age = self.cached.taken[0]
            del self.count[victim]
        return victim


def replay(case: Case) -> Outcome:
    """Replay GDSF."""
    return replay_blocks(case, Cache(GreedyDual(sizes_of(case)), case.capacity, sizes_of(case)))
