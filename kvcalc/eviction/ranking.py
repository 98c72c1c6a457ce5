"""Who goes, in which order and mode, until enough bytes are free; and why the others stay."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvcalc.eviction import reasons
from kvcalc.eviction.crowd import Crowd, Floats
from kvcalc.eviction.policies import COST, order, ratios
from kvcalc.eviction.pricing import Prices
from kvcalc.eviction.results import FREE, Spared, Victim
from kvcalc.eviction.rules import Rules, protected
from kvcalc.eviction.sequences import LiveSequence, crowd_of
from kvcalc.formulas.pressure import victim_price

HALF = 0.5
"""Share of a victim's own blocks that stay when its tail is dropped and no need is given [1]."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked of the live sequences."""

    sequences: tuple[LiveSequence, ...]
    policy: str
    rules: Rules
    prices: Prices
    need: float | None = None  # bytes to be freed; None ranks everybody
    queue_cost: float | None = None  # seconds that the new request waits instead; None: unknown


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer."""

    victims: tuple[Victim, ...]
    protected: tuple[Spared, ...]
    kept: tuple[Spared, ...]
    freed: float
    cost: float
    fallback: str | None


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to let one sequence go."""

    place: int
    mode: str
    cost: float
    freed: float
    dropped: float
    tier: int = -1


@dataclass
class _Desk:
    """The victims so far, and what is still missing; lives as long as one ranking."""

    case: Case
    crowd: Crowd
    ways: list[_Way] = field(default_factory=list)

    def __post_init__(self) -> None:
        sequences, block = self.case.sequences, self.case.prices.block
        own = [s.tokens_done if s.blocks is None else s.blocks * block for s in sequences]
        self.held = np.array(own, dtype=float)
        self.shared = np.minimum(
            np.array([s.shared_blocks * block for s in sequences], dtype=float), self.held
        )
        self.freed = self.case.prices.freed(self.held, self.shared)
        self.recompute = self.case.prices.recompute(self.crowd.done, self.shared)
        self.room = [host.capacity for _, host in self.case.prices.hosts]

    @property
    def missing(self) -> float:
        """Bytes that are still to be freed."""
        if self.case.need is None:
            return np.inf
        return self.case.need - sum(way.freed for way in self.ways)

    def take(self, way: _Way) -> None:
        """Let a sequence go."""
        self.ways.append(way)
        if way.tier >= 0:
            self.room[way.tier] -= way.freed

    def whole(self, place: int) -> _Way:
        """Drop all that the sequence has to itself."""
        kept = min(float(self.shared[place]), float(self.crowd.done[place]))
        dropped = float(self.crowd.done[place]) - kept
        return _Way(place, "recompute", float(self.recompute[place]), float(self.freed[place]), dropped)

    def tails(self) -> tuple[Floats, Floats, Floats]:
        """Return for each sequence: tokens kept, bytes freed and cost, if only its tail goes."""
        prices, missing = self.case.prices, self.missing
        if np.isinf(missing):
            blocks = np.floor((self.held - self.shared) / prices.block * HALF)
            kept = self.shared + blocks * prices.block
        else:
            kept = prices.tail(self.held, self.shared, missing)
        return kept, prices.freed(self.held, kept), prices.recompute(self.crowd.done, kept)

    def tail(self, place: int) -> _Way:
        """Drop no more of the end than is needed."""
        kept, freed, cost = (float(array[place]) for array in self.tails())
        return _Way(place, "tail", cost, freed, max(0.0, float(self.crowd.done[place]) - kept))

    def swapped(self, place: int) -> _Way | None:
        """Move it to the tier that is back soonest and has room; None where none has."""
        size = float(self.freed[place])
        fits = [tier for tier, room in enumerate(self.room) if room >= size]
        if not fits:
            return None
        times = {tier: float(self.case.prices.swap(np.array(size), tier)) for tier in fits}
        tier = min(times, key=times.__getitem__)
        return _Way(place, "swap", times[tier], size, 0.0, tier)

    def cheapest(self, places: list[int]) -> _Way:
        """Return the way that frees a useful byte at the least cost, the lowest ratio among equals."""
        missing, candidates = self.missing, np.array(places)
        kept, tail_freed, tail_cost = self.tails()
        cuts = np.isfinite(missing) & (kept > self.shared)
        offers = [
            ("recompute", -1, self.recompute, self.freed),
            ("tail", -1, np.where(cuts, tail_cost, np.inf), tail_freed),
            *(("swap", tier, *self._swaps(tier)) for tier in range(len(self.room))),
        ]
        prices = np.array([_price(cost, freed, missing)[candidates] for _, _, cost, freed in offers])
        # Prices that differ by the rounding of their sums are equal.
        equal = prices <= np.min(prices) * (1 + 1e-9)
        finite = np.minimum(ratios(self.crowd)[candidates], np.finfo(float).max)
        score = np.where(equal, finite, np.inf)
        offer, index = np.unravel_index(int(np.argmin(score)), score.shape)
        mode, tier, cost, freed = offers[int(offer)]
        place = int(candidates[index])
        stays = {"recompute": self.shared, "tail": kept, "swap": self.crowd.done}[mode]
        dropped = max(0.0, float(self.crowd.done[place] - stays[place]))
        return _Way(place, mode, float(cost[place]), float(freed[place]), dropped, tier)

    def _swaps(self, tier: int) -> tuple[Floats, Floats]:
        """Return what swapping to a tier costs and frees, endless where it has no room."""
        cost = self.case.prices.swap(self.freed, tier)
        return np.where(self.freed <= self.room[tier], cost, np.inf), self.freed


def _price(cost: Floats, freed: Floats, missing: float) -> Floats:
    """Return the cost of a useful byte: what is freed beyond the need is worth nothing."""
    useful = np.minimum(freed, missing)
    known = (useful > 0) & np.isfinite(cost)
    return np.where(known, victim_price(np.where(known, cost, 0.0), np.where(known, useful, 1.0)), np.inf)


def rank(case: Case) -> Ranking:
    """Return who goes and why, and who stays and why."""
    desk = _Desk(case, crowd_of(case.sequences))
    safe = protected(case.rules, desk.crowd)
    _release(desk)
    _evict(desk, [i for i in range(len(desk.crowd)) if not safe[i] and not desk.crowd.finished[i]])
    queue = _queueing_is_cheaper(desk)
    if queue:
        desk.ways = [way for way in desk.ways if way.mode == FREE]
    freed = sum(way.freed for way in desk.ways)
    short = not desk.ways if case.need is None else freed < case.need
    names = [case.sequences[way.place].id for way in desk.ways]
    return Ranking(
        victims=tuple(_victim(desk, way) for way in desk.ways),
        protected=tuple(
            Spared(s.id, reasons.protection(case.rules, s))
            for s, is_safe in zip(case.sequences, safe, strict=True)
            if is_safe
        ),
        kept=tuple(
            Spared(s.id, _why_kept(desk, index, queue))
            for index, s in enumerate(case.sequences)
            if not safe[index] and s.id not in names
        ),
        freed=freed,
        cost=sum(way.cost for way in desk.ways),
        fallback=case.rules.fallback if short else None,
    )


def waiting_time(running: Sequence[LiveSequence], need: float, prices: Prices, step: float) -> float | None:
    """Return the seconds until so many bytes are free because sequences end; None if they never are.

    `step` is the time in which each running sequence gains a token.
    """
    desk = _Desk(Case(tuple(running), "", Rules(), prices), crowd_of(running))
    first = np.argsort(desk.crowd.remaining, kind="stable")
    enough = np.flatnonzero(np.cumsum(desk.freed[first]) >= need)
    return float(desk.crowd.remaining[first[enough[0]]]) * step if len(enough) else None


def _release(desk: _Desk) -> None:
    """Take what finished sequences still hold; it costs nothing."""
    for place in np.flatnonzero(desk.crowd.finished & (desk.freed > 0)):
        if desk.missing > 0:
            desk.take(_Way(int(place), FREE, 0.0, float(desk.freed[place]), 0.0))


def _evict(desk: _Desk, candidates: list[int]) -> None:
    """Let candidates go in the policy's order until nothing is missing."""
    case = desk.case
    if case.rules.preempt_mode == "queue":
        return
    left = [place for place in candidates if desk.freed[place] > 0]
    if case.policy != COST:
        left = [int(place) for place in order(case.policy, desk.crowd, case.rules) if place in set(left)]
    while left and desk.missing > 0:
        way = desk.cheapest(left) if case.policy == COST else _in_mode(desk, left[0])
        left.remove(way.place)
        desk.take(way)
    if case.policy == COST:
        _spare_the_superfluous(desk)


def _spare_the_superfluous(desk: _Desk) -> None:
    """Let those stay, the dearest first, without whom the later victims free enough."""
    for way in sorted(desk.ways, key=lambda way: -way.cost):
        if way.mode != FREE and -desk.missing >= way.freed:
            desk.ways.remove(way)


def _in_mode(desk: _Desk, place: int) -> _Way:
    """Return the way that the rules' mode prescribes; without room in a tier it is recompute."""
    mode = desk.case.rules.preempt_mode
    if mode == "tail":
        return desk.tail(place)
    return (desk.swapped(place) if mode == "swap" else None) or desk.whole(place)


def _queueing_is_cheaper(desk: _Desk) -> bool:
    """Tell whether the new request would wait less long than its victims cost."""
    cost, queue = sum(way.cost for way in desk.ways), desk.case.queue_cost
    return desk.case.policy == COST and queue is not None and queue < cost


def _victim(desk: _Desk, way: _Way) -> Victim:
    sequence = desk.case.sequences[way.place]
    ratio = float(ratios(desk.crowd)[way.place])
    tier = desk.case.prices.hosts[way.tier][0] if way.tier >= 0 else ""
    return Victim(
        id=sequence.id,
        reason=reasons.eviction(
            desk.case.policy, desk.case.rules, sequence, way.mode, way.cost, way.freed, tier
        ),
        cost=way.cost,
        benefit=float(sequence.tokens_remaining),
        ratio=ratio if np.isfinite(ratio) and not sequence.finished else None,
        mode=way.mode,
        freed_bytes=way.freed,
        dropped_tokens=way.dropped,
    )


def _why_kept(desk: _Desk, place: int, queue: bool) -> str:
    case, sequence = desk.case, desk.case.sequences[place]
    if desk.freed[place] <= 0:
        return reasons.SHARED if sequence.shared_blocks else reasons.EMPTY
    if queue:
        return reasons.queueing(case.queue_cost or 0.0)
    if case.rules.preempt_mode == "queue":
        return reasons.QUEUE_MODE
    return reasons.NOT_NEEDED if desk.missing <= 0 else reasons.NOT_NAMED
