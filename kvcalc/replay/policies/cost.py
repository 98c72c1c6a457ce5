"""Cheapest to compute again first, among leaves: recompute cost that grows with the position, and frequency.

H = L + touches * cost, as GDSF has it, with the cost of computing a block behind all that stands before it.
Such a cost is lowest at the head of a chain, and evicting a head makes all behind it useless; so only
blocks without cached blocks behind them may go.
"""

from collections import Counter
from collections.abc import Collection

from kvcalc.replay.options import Options
from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import Cache, replay_blocks, sizes_of
from kvcalc.replay.policies.ranked import Ranked
from kvcalc.replay.trace import NOWHERE


class Leaves:
    """Cached blocks by H, of which only leaves are ranked."""

    def __init__(self, doubles_at: float) -> None:
        self.doubles_at = doubles_at  # in blocks
        self.leaves = Ranked()
        self.rank: dict[int, float] = {}  # of every cached block
        self.count: dict[int, int] = {}
        self.behind: Counter[int] = Counter()  # cached blocks right behind a block
        self.before: dict[int, int] = {}  # block -> the one before it
        self.age = 0.0

    def begin(self, _: int, chain: list[int]) -> None:
        """Learn which block stands before which."""
        self.before.update(zip(chain, [NOWHERE, *chain], strict=False))

    def __contains__(self, block: int) -> bool:
        return block in self.rank

    def hit(self, block: int, depth: int) -> None:
        """Count a touch and raise H to the age of now."""
        self.count[block] += 1
        self._place(block, depth)

    def add(self, block: int, depth: int) -> None:
        """Cache a block; the one before it is no leaf any more."""
        self.count[block] = 1
        parent = self.before[block]
        self.behind[parent] += 1
        if parent in self.leaves:
            self.leaves.remove(parent)
        self._place(block, depth)

    def _place(self, block: int, depth: int) -> None:
        self.rank[block] = self.age + self.count[block] * (1 + depth / self.doubles_at)
        if not self.behind[block]:
            self.leaves.put(block, (self.rank[block],))

    def evict(self, pinned: Collection[int]) -> int | None:
        """Take out the leaf of lowest H; the block before it may become one."""
        victim = self.leaves.lowest(pinned)
        if victim is None:
            return None
        self.age = self.rank.pop(victim)
        del self.count[victim]
        parent = self.before[victim]
        self.behind[parent] -= 1
        if not self.behind[parent] and parent in self.rank:
            self.leaves.put(parent, (self.rank[parent],))
        return victim


def replay(case: Case) -> Outcome:
    """Replay cost-aware eviction among leaves."""
    options = case.options if isinstance(case.options, Options) else Options()
    policy = Leaves(options.cost_doubles_at / (case.stream.trace.block_tokens or 1))
    return replay_blocks(case, Cache(policy, case.capacity, sizes_of(case)), policy.begin)
