"""SIEVE: one queue, one bit a block, and a hand that walks from the oldest and spares what was hit.

A block stays where it is when it is hit; the hand clears bits and evicts the first block without one.
Source: Zhang and others, SIEVE is simpler than LRU, NSDI 2024.
"""

from collections.abc import Collection

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import Cache, replay_blocks, sizes_of

NONE = -1


class Sieve:
    """A doubly linked queue, newest at the head."""

    def __init__(self) -> None:
        self.visited: dict[int, bool] = {}
        self.newer: dict[int, int] = {}
        self.older: dict[int, int] = {}
        self.head = self.tail = self.hand = NONE

    def __contains__(self, block: int) -> bool:
        return block in self.visited

    def hit(self, block: int, depth: int) -> None:
        """Set the bit."""
        self.visited[block] = True

    def add(self, block: int, depth: int) -> None:
        """Queue a block at the head."""
        self.visited[block] = False
        self.newer[block], self.older[block] = NONE, self.head
        if self.head != NONE:
            self.newer[self.head] = block
        else:
            self.tail = block
        self.head = block

    def evict(self, pinned: Collection[int]) -> int | None:
        """Walk the hand to the first block that was not hit since it last passed."""
        victim = self.hand if self.hand != NONE else self.tail
        for _ in range(2 * len(self.visited) + 1):
            if victim in pinned:
                pass
            elif self.visited[victim]:
                self.visited[victim] = False
            else:
                self.hand = self.newer[victim]
                self._unlink(victim)
                return victim
            following = self.newer[victim]
            victim = following if following != NONE else self.tail
        return None

    def _unlink(self, block: int) -> None:
        newer, older = self.newer.pop(block), self.older.pop(block)
        if newer != NONE:
            self.older[newer] = older
        else:
            self.head = older
        if older != NONE:
            self.newer[older] = newer
        else:
            self.tail = newer
        del self.visited[block]


def replay(case: Case) -> Outcome:
    """Replay SIEVE."""
    return replay_blocks(case, Cache(Sieve(), case.capacity, sizes_of(case)))
