"""The least cost of freeing bytes: exact where few blocks may go, else greedy with a lower bound.

Each block is dropped or offloaded.  Leaves go first, the lower tier has so much room, a running session
goes as a whole, and nothing is dropped before something of its context that the lower tier holds, since
a restore gives a contiguous prefix only.  Compressing is no choice: what it loses has no price in seconds.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvcalc.quota.fixed import Allowed, Move
from kvcalc.quota.ledger import FINISHED, RUNNING, Numbers
from kvcalc.quota.segments import Segment

EXACT_BLOCKS = 20
"""Blocks up to which every choice is weighed [1]; above it a plan is greedy by cost per byte."""


@dataclass(frozen=True, slots=True)
class Cheap:
    """A plan of least cost, or near it."""

    moves: tuple[Move, ...]
    freed: float
    cost: float
    bound: float  # no plan that frees as much costs less
    exact: bool


def cheapest(segments: Sequence[Segment], need: float, room: float, allowed: Allowed, host: bool) -> Cheap:
    """Return the cheapest plan that frees `need` bytes, or as many as can be had."""
    choices = [Choice.of(one, allowed, host) for one in segments]
    blocks = sum(one.count for one in segments)
    if blocks <= EXACT_BLOCKS and _is_forest(segments):
        from kvcalc.quota.exact import solve

        moves, freed, cost = solve(segments, choices, need, room)
        return Cheap(moves, freed, cost, cost, exact=True)
    plan = _Greedy(segments, choices, need, room).make()
    return Cheap(
        tuple(plan.moves), plan.freed, plan.cost, lower_bound(segments, choices, need, plan.freed), False
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What each block of a segment costs by each choice; infinite where it is not one."""

    drop: Numbers
    store: Numbers
    whole: bool  # all or nothing: a running session

    @classmethod
    def of(cls, one: Segment, allowed: Allowed, host: bool) -> "Choice":
        """Return the choices that the operator allows; a copied block is always dropped."""
        evictable = (
            one.starts >= allowed.keep_tokens if allowed.evict_tail else np.zeros(one.count, dtype=bool)
        )
        free = (
            one.copied | evictable if one.state not in (FINISHED, RUNNING) else np.ones(one.count, dtype=bool)
        )
        storable = ~one.copied & host & (one.state != RUNNING)
        return cls(
            drop=np.where(free, one.drop, math.inf),
            store=np.where(storable, one.store, math.inf),
            whole=one.state == RUNNING and len(one.holders) == 1,
        )


def _is_forest(segments: Sequence[Segment]) -> bool:
    """Tell whether each segment stands behind at most one other."""
    parents = [deeper for one in segments for deeper in one.below]
    return len(parents) == len(set(parents))


def means_of(one: Segment, place: int) -> str:
    """Return the means by which a dropped block goes."""
    if one.state == RUNNING:
        return "preempt"
    return "free" if one.state == FINISHED or one.copied[place] else "evict_tail"


@dataclass
class _Greedy:
    """Takes the segment that costs least per byte, again and again."""

    segments: Sequence[Segment]
    choices: Sequence[Choice]
    need: float
    room: float
    moves: list[Move] = field(default_factory=list)
    freed: float = 0.0
    cost: float = 0.0

    def make(self) -> "_Greedy":
        waiting = [len(one.below) for one in self.segments]
        above: list[list[int]] = [[] for _ in self.segments]
        for index, one in enumerate(self.segments):
            for deeper in one.below:
                above[deeper].append(index)
        restored = [False] * len(self.segments)
        heap = [(self._price(i, False), i) for i, count in enumerate(waiting) if count == 0]
        heapq.heapify(heap)
        while heap and self.freed < self.need:
            price, index = heapq.heappop(heap)
            now = self._price(index, restored[index])
            if now > price and heap and now > heap[0][0]:  # the lower tier has filled since
                heapq.heappush(heap, (now, index))
                continue
            if math.isinf(now):
                break
            complete, lower = self._apply(index, restored[index])
            if not complete:
                continue
            for upper in above[index]:
                restored[upper] |= lower
                waiting[upper] -= 1
                if waiting[upper] == 0:
                    heapq.heappush(heap, (self._price(upper, restored[upper]), upper))
        return self

    def _price(self, index: int, restored: bool) -> float:
        one = self.segments[index]
        count, _, cost = self._best(index, one.count, restored)
        size = float(one.sizes[:count].sum())
        return cost / size if size else math.inf

    def _best(self, index: int, most: int, restored: bool) -> tuple[int, int, float]:
        """Return how many blocks go, how many of them are dropped rather than stored, and the cost.

        The deepest ones are dropped, the rest stored; where not all can go, as many as can.
        """
        one, choice = self.segments[index], self.choices[index]
        drop = np.concatenate([[0.0], np.cumsum(choice.drop[:most])])
        kept = np.where(one.copied[:most], choice.drop[:most], choice.store[:most])
        keep = np.concatenate([[0.0], np.cumsum(np.where(np.isinf(kept), 0.0, kept))])
        barred = np.concatenate([[0], np.cumsum(np.isinf(kept))])
        moved = np.concatenate([[0.0], np.cumsum(np.where(one.copied[:most], 0.0, one.sizes[:most]))])
        # Nothing is dropped before a block of the same context that is to be restored.
        first = int(np.argmax(one.returns)) if one.returns.any() else one.count
        count = most
        while count:
            splits = np.arange(count + 1)
            ok = np.isfinite(drop[: count + 1]) & (barred[count] == barred[: count + 1])
            ok &= moved[count] - moved[: count + 1] <= self.room
            ok &= moved[: count + 1] == moved[np.minimum(splits, 0 if restored else first)]
            if ok.any():
                returns = (moved[count] > moved[: count + 1]) | one.returns[:count].any()
                total = drop[: count + 1] + keep[count] - keep[: count + 1]
                total = np.where(ok, total + np.where(returns & (not restored), one.setup, 0.0), math.inf)
                split = int(np.argmin(total))
                return count, split, float(total[split])
            if choice.whole:
                break
            count = self._fewer(count, drop, moved)
        return 0, 0, 0.0

    def _fewer(self, count: int, drop: Numbers, moved: Numbers) -> int:
        """Return a lower count that may go: the longest that drops what it can and stores into the room."""
        finite = int(np.isfinite(drop).sum()) - 1
        reach = int(np.searchsorted(moved, moved[min(finite, count)] + self.room, side="right")) - 1
        return min(count - 1, max(reach, 0))

    def _apply(self, index: int, restored: bool) -> tuple[bool, bool]:
        """Take what is needed of a segment; tell whether it is gone, and whether the lower tier has of it."""
        one, choice = self.segments[index], self.choices[index]
        count, split, cost = self._best(index, one.count, restored)
        if not choice.whole:
            reach = int(np.searchsorted(np.cumsum(one.sizes[:count]), self.need - self.freed)) + 1
            if reach < count:
                count, split, cost = self._best(index, reach, restored)
        if not count:
            return False, False
        stored = np.arange(split, count)
        self.room -= float(one.sizes[stored][~one.copied[stored]].sum())
        self.freed += float(one.sizes[:count].sum())
        self.cost += cost
        means = [
            "offload" if place >= split and not one.copied[place] else means_of(one, place)
            for place in range(count)
        ]
        self.moves += moves_by_means(index, means)
        return count == one.count, restored or bool(
            one.returns[:count].any() or (~one.copied[split:count]).any()
        )


def moves_by_means(segment: int, means: Sequence[str], first: int = 0) -> list[Move]:
    """Return the moves of a segment's leading blocks, one for each run of one means."""
    found, start = [], 0
    for place in range(1, len(means) + 1):
        if place == len(means) or means[place] != means[start]:
            found.append(Move(segment, np.arange(first + start, first + place), means[start]))
            start = place
    return found


def lower_bound(segments: Sequence[Segment], choices: Sequence[Choice], need: float, freed: float) -> float:
    """Return what freeing as much costs at least: with room for all, and no segment waiting for another.

    Freeing j blocks of a segment costs at least its best price per byte times their bytes; the cheapest
    segments are then filled one after another, the last one in part.
    """
    prices, sizes = [], []
    for one, choice in zip(segments, choices, strict=True):
        each = np.minimum(choice.drop, choice.store)
        allowed = int(np.argmax(np.isinf(each))) if np.isinf(each).any() else one.count
        if not allowed:
            continue
        size, cost = np.cumsum(one.sizes[:allowed]), np.cumsum(each[:allowed])
        averages = cost / size
        prices.append(float(averages[-1] if choice.whole else averages.min()))
        sizes.append(float(size[-1]))
    left, total = min(need, freed), 0.0
    for place in np.argsort(prices, kind="stable").tolist():
        part = min(left, sizes[place])
        total += part * prices[place]
        left -= part
        if left <= 0:
            break
    return total
