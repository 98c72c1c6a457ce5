"""ARC: one list of blocks seen once, one of blocks seen more often, and a share that adapts to ghosts.

A touch of a block whose ghost is still known moves the target towards the list that it was evicted from.
Source: Megiddo and Modha, ARC: a self-tuning, low overhead replacement cache, FAST 2003, figure 4.  The
target is a real number there; a list is over its share when it is longer than the target's whole blocks.
"""

from collections import OrderedDict
from collections.abc import Collection

from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies.blocks import first_free, replay_blocks
from kvcalc.replay.policies.uniform import require_one_size

Queue = OrderedDict[int, None]


class Arc:
    """The four lists of ARC; the first of each is the least recently used."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.once: Queue = OrderedDict()  # T1
        self.often: Queue = OrderedDict()  # T2
        self.once_ghosts: Queue = OrderedDict()  # B1
        self.often_ghosts: Queue = OrderedDict()  # B2
        self.target = 0.0  # p, of T1
        self.evictions = 0
        self.inserted = 0

    def __contains__(self, block: int) -> bool:
        return block in self.once or block in self.often

    def touch(self, block: int, depth: int, pinned: Collection[int]) -> bool:
        """Touch a block, cache it if it is not; tell whether it was a hit."""
        if block in self.often:
            self.often.move_to_end(block)
            return True
        if block in self.once:
            del self.once[block]
            self.often[block] = None
            return True
        if block in self.once_ghosts:
            step = max(1.0, len(self.often_ghosts) / len(self.once_ghosts))
            self.target = min(float(self.capacity), self.target + step)
            if self._replace(False, pinned):
                del self.once_ghosts[block]
                self._insert(self.often, block)
        elif block in self.often_ghosts:
            step = max(1.0, len(self.once_ghosts) / len(self.often_ghosts))
            self.target = max(0.0, self.target - step)
            if self._replace(True, pinned):
                del self.often_ghosts[block]
                self._insert(self.often, block)
        elif self._room(pinned):
            self._insert(self.once, block)
        return False

    def _insert(self, queue: Queue, block: int) -> None:
        queue[block] = None
        self.inserted += 1

    def _room(self, pinned: Collection[int]) -> bool:
        """Make room for a block of which nothing is known (case IV)."""
        first = len(self.once) + len(self.once_ghosts)
        total = first + len(self.often) + len(self.often_ghosts)
        if first >= self.capacity:
            if len(self.once) < self.capacity:
                self.once_ghosts.popitem(last=False)
                return self._replace(False, pinned)
            return self._drop(self.once, None, pinned)
        if total >= self.capacity:
            if total >= 2 * self.capacity and self.often_ghosts:
                self.often_ghosts.popitem(last=False)
            return self._replace(False, pinned)
        return True

    def _replace(self, from_often: bool, pinned: Collection[int]) -> bool:
        """Evict from the list that is over its share; tell whether there is room now."""
        if len(self.once) + len(self.often) < self.capacity:
            return True
        size, target = len(self.once), int(self.target)
        first = size > 0 and (size > target or (from_often and size == target))
        order = [(self.once, self.once_ghosts), (self.often, self.often_ghosts)]
        return any(self._drop(*lists, pinned) for lists in (order if first else order[::-1]))

    def _drop(self, queue: Queue, ghosts: Queue | None, pinned: Collection[int]) -> bool:
        victim = first_free(queue, pinned)
        if victim is None:
            return False
        del queue[victim]
        if ghosts is not None:
            ghosts[victim] = None
        self.evictions += 1
        return True


def replay(case: Case) -> Outcome:
    """Replay ARC."""
    require_one_size(case, "arc")
    return replay_blocks(case, Arc(case.capacity))
