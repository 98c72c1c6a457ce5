"""Belady's rule for a cache that takes every block: evict what is touched again latest, of those the deepest.

`belady` may refuse a block and so hits a little more; this one is what cache simulators call Belady.
"""

from collections.abc import Collection

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.belady import next_users
from kvcalc.replay.policies.blocks import Cache, replay_blocks, sizes_of
from kvcalc.replay.policies.ranked import Ranked


class Foresight:
    """Cached blocks by the next request that touches them."""

    def __init__(self, case: Case) -> None:
        start, following, size = next_users(case.stream)
        self.start, self.following = start.tolist(), following.tolist()
        self.size = size.tolist()
        self.sizes = sizes_of(case)
        self.next: dict[int, int] = {}
        self.cached = Ranked()

    def begin(self, request: int, chain: list[int]) -> None:
        """Look up when each block of a request is touched again."""
        place = 0
        for group in range(self.start[request], self.start[request + 1]):
            left = self.size[group]
            while left > 0:
                self.next[chain[place]] = self.following[group]
                left -= 1 if self.sizes is None else self.sizes[chain[place]]
                place += 1

    def __contains__(self, block: int) -> bool:
        return block in self.cached

    def hit(self, block: int, depth: int) -> None:
        """Rank a block by its next touch, the deeper of one request first."""
        self.cached.put(block, (-self.next[block], -depth))

    add = hit

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out the block that is touched again latest."""
        return self.cached.lowest(pinned)


def replay(case: Case) -> Outcome:
    """Replay Belady's rule with every block taken."""
    policy = Foresight(case)
    return replay_blocks(case, Cache(policy, case.capacity, sizes_of(case)), policy.begin)
