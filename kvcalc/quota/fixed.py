"""The fixed order: free, offload, compress past the watermark, evict tails if allowed, preempt if asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kvcalc.formulas.quota import compressed_blocks, compression_time
from kvcalc.quota.ledger import FINISHED, RUNNING, SUSPENDED, Flags, Integers, Ledger
from kvcalc.quota.rates import Rates
from kvcalc.quota.segments import Segment


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator lets a plan do."""

    compress: bool = True
    evict_tail: bool = False
    keep_tokens: int = 0  # of a context whose tail is evicted
    preempt: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Blocks of one segment that go by one means, the leaf's first."""

    segment: int
    places: Integers  # in the segment
    means: str
    packed: int = 0  # blocks that were compressed to free these


@dataclass
class FixedOrder:
    """A plan while it is made."""

    ledger: Ledger
    segments: Sequence[Segment]
    rates: Rates
    allowed: Allowed
    need: float  # byte
    room: float  # byte that the lower tier takes
    moves: list[Move] = field(default_factory=list)
    freed: float = 0.0

    def __post_init__(self) -> None:
        self.taken: list[Flags] = [np.zeros(one.count, dtype=bool) for one in self.segments]
        self.stored = [False] * len(
            self.segments
        )  # whether something of it, or behind it, is in the lower tier
        self.barred = [False] * len(self.segments)  # whether the lower tier had no room for the rest

    def make(self) -> "FixedOrder":
        """Go through the means in their order until enough is freed."""
        for index in self._ordered(FINISHED):
            self._take(index, self._open(index), "free")
        for index in self._ordered(SUSPENDED):
            self._offload(index, room=0.0, bar=False)  # what is copied already, from the leaf on
        if self.ledger.host.capacity is not None:
            for index in self._ordered(SUSPENDED):
                self._offload(index, self.room, bar=True)
            if self.allowed.compress:
                for index in self._ordered(SUSPENDED):
                    self._compress(index)
        if self.allowed.evict_tail:
            for index in self._by_length():
                self._evict(index)
        if self.allowed.preempt:
            for index in self._ordered(RUNNING):
                self._take(index, self._open(index), "preempt", whole=True)
        return self

    @property
    def enough(self) -> bool:
        """Whether the bytes that were asked for are freed."""
        return self.freed >= self.need

    def done(self, index: int) -> bool:
        """Tell whether a segment is gone."""
        return bool(self.taken[index].all())

    def _ready(self, index: int) -> bool:
        return all(self.done(deeper) for deeper in self.segments[index].below)

    def _open(self, index: int) -> Integers:
        return np.flatnonzero(~self.taken[index])

    def _ordered(self, state: int) -> Iterator[int]:
        """Yield segments of one state, coldest session first; a shared one after all who hold it."""
        ranks = self._ranks
        found = [index for index, one in enumerate(self.segments) if one.state == state]
        yield from sorted(
            found,
            key=lambda i: (
                max(ranks[who] for who in self.segments[i].holders),
                -int(self.segments[i].starts[0]),
                len(self.segments[i].holders),
            ),
        )

    @property
    def _ranks(self) -> dict[int, int]:
        """Order of the sessions: long idle first; of running ones that with least done for what is left."""
        sessions = self.ledger.sessions
        whose = sorted({who for one in self.segments for who in one.holders})
        idle = np.nan_to_num(sessions.idle[whose], nan=0.0)
        left = np.nan_to_num(sessions.remaining[whose], nan=0.0)
        price = sessions.tokens[whose] / np.maximum(left, 1.0)
        running = sessions.state[whose] == RUNNING
        order = np.lexsort((np.arange(len(whose)), np.where(running, price, -idle)))
        return {whose[place]: rank for rank, place in enumerate(order.tolist())}

    def _take(self, index: int, places: Integers, means: str, whole: bool = False, packed: int = 0) -> None:
        """Take blocks in their order, no more than are needed, or the whole segment."""
        if self.enough or not places.size or not self._ready(index):
            return
        sizes = self.segments[index].sizes[places]
        if not whole:
            reach = np.searchsorted(np.cumsum(sizes), self.need - self.freed) + 1
            places, sizes = places[:reach], sizes[:reach]
        self.taken[index][places] = True
        self.freed += float(sizes.sum())
        self.moves.append(Move(index, places, means, packed))

    def _offload(self, index: int, room: float, bar: bool) -> None:
        """Offload from the leaf on what has room; copied blocks need none and count as free."""
        if self.enough or not self._ready(index):
            return
        one, places = self.segments[index], self._open(index)
        needs = np.where(one.copied[places], 0.0, one.sizes[places])
        fits = int(np.searchsorted(np.cumsum(needs), room, side="right"))
        self.barred[index] = bar and fits < places.size
        for run in _runs(places[:fits], one.copied):
            means = "free" if one.copied[run[0]] else "offload"
            before = self.freed
            self._take(index, run, means)
            if self.freed > before:
                self.stored[index] = True
                if means == "offload":
                    self.room -= self.freed - before

    def _compress(self, index: int) -> None:
        """Compress what the watermark kept out; the freed blocks are the leaf's."""
        one = self.segments[index]
        if self.enough or not self.barred[index] or not self._ready(index):
            return
        for group in np.unique(one.groups).tolist():
            if self.ledger.groups[group].state:
                continue
            places = self._open(index)
            places = places[one.groups[places] == group]
            count = float(places.size)
            most = int(count - float(compressed_blocks(count, self.rates.ratio)))
            wanted = int(np.ceil((self.need - self.freed) / self.ledger.groups[group].bytes))
            free = min(most, max(0, wanted))
            if free:
                self._take(
                    index, places[:free], "compress", whole=True, packed=self._packed(free, int(count))
                )

    def _packed(self, free: int, most: int) -> int:
        """Return how many blocks must be compressed to free so many."""
        counts = np.arange(free, most + 1, dtype=float)
        gains = counts - np.asarray(compressed_blocks(counts, self.rates.ratio))
        return int(counts[np.argmax(gains >= free)])

    def _by_length(self) -> list[int]:
        found = [index for index, one in enumerate(self.segments) if one.state == SUSPENDED]
        return sorted(found, key=lambda i: (len(self.segments[i].holders), -self.segments[i].tokens, i))

    def _evict(self, index: int) -> None:
        """Drop the tail of a context, but never before something of it that is in the lower tier."""
        if self._stored_behind(index):
            return
        one, places = self.segments[index], self._open(index)
        places = places[one.starts[places] >= self.allowed.keep_tokens]
        for run in _runs(places, one.copied):
            if one.copied[run[0]]:
                self._take(index, run, "free")
                return
            self._take(index, run, "evict_tail")

    def _stored_behind(self, index: int) -> bool:
        return self.stored[index] or any(self._stored_behind(deeper) for deeper in self.segments[index].below)


def _runs(places: Integers, copied: Flags) -> list[Integers]:
    """Cut places where copied blocks and others meet."""
    if not places.size:
        return []
    kinds = copied[places]
    return np.split(places, np.flatnonzero(kinds[1:] != kinds[:-1]) + 1)


def move_costs(
    moves: Sequence[Move], segments: Sequence[Segment], rates: Rates
) -> list[tuple[float, float, float]]:
    """Return for each move the seconds now, the seconds later by their chance, and the bytes moved now."""
    found: list[tuple[float, float, float]] = []
    restored: set[int] = set()
    for move in moves:
        one, places = segments[move.segment], move.places
        size = float(one.sizes[places].sum())
        if move.means == "compress":
            packed = move.packed * float(one.sizes[places[0]])
            kept = (move.packed - places.size) * float(one.sizes[places[0]])
            found.append(
                (float(compression_time(packed, rates.ratio, rates.out, rates.back)), 0.0, packed + kept)
            )
            continue
        offloaded = move.means == "offload"
        now = size / rates.out if offloaded else 0.0
        later = float((one.store if offloaded else one.drop)[places].sum()) - now
        if (offloaded or one.returns[places].any()) and not _in(restored, move.segment, segments):
            restored.add(move.segment)
            later += one.setup
        found.append((now, max(0.0, later), size if offloaded else 0.0))
    return found


def _in(restored: set[int], index: int, segments: Sequence[Segment]) -> bool:
    """Tell whether the fixed time of a restore is counted already: for a segment, or for one behind it."""
    return index in restored or any(_in(restored, deeper, segments) for deeper in segments[index].below)
