"""Cached blocks in the order of a rank that touches change: a heap whose stale entries are skipped."""

import heapq
from collections.abc import Collection

Rank = tuple[float, ...]


class Ranked:
    """Blocks with ranks; the lowest rank goes first, and of equal ones what got its rank first."""

    def __init__(self) -> None:
        self.ranks: dict[int, tuple[Rank, int]] = {}
        self.heap: list[tuple[Rank, int, int]] = []
        self.clock = 0
        self.taken: Rank = ()  # rank of the last block that `lowest` took out

    def __contains__(self, block: int) -> bool:
        return block in self.ranks

    def put(self, block: int, rank: Rank) -> None:
        """Give a block its rank, in place of the one that it had."""
        self.clock += 1
        self.ranks[block] = rank, self.clock
        heapq.heappush(self.heap, (rank, self.clock, block))
        if len(self.heap) > 4 * len(self.ranks) + 64:
            self.heap = [(rank, clock, block) for block, (rank, clock) in self.ranks.items()]
            heapq.heapify(self.heap)

    def remove(self, block: int) -> None:
        """Forget a block."""
        del self.ranks[block]

    def lowest(self, pinned: Collection[int]) -> int | None:
        """Take out the block of lowest rank that is not pinned and return it; None where all are."""
        spared = []
        found = None
        while self.heap:
            entry = heapq.heappop(self.heap)
            rank, clock, block = entry
            if self.ranks.get(block) != (rank, clock):
                continue
            if block in pinned:
                spared.append(entry)
                continue
            del self.ranks[block]
            self.taken = rank
            found = block
            break
        for entry in spared:
            heapq.heappush(self.heap, entry)
        return found
