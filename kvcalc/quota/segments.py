"""A tenant's reclaimable blocks as segments: runs that the same sessions hold, with what each block costs.

A session's own tail is one segment, a prefix that several of its tenant's sessions share another.  A
segment goes leaves first, and only after everything behind it in every session that holds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kvcalc.formulas.quota import drop_cost, offload_cost
from kvcalc.formulas.transfer import burst_time
from kvcalc.quota.holdings import CLEAR, Holdings
from kvcalc.quota.intervals import Blocks
from kvcalc.quota.ledger import RUNNING, SUSPENDED, Flags, Integers, Ledger, Numbers
from kvcalc.quota.rates import Rates


@dataclass(frozen=True, slots=True)
class Segment:
    """Blocks that the same sessions hold, the leaf's first."""

    holders: tuple[int, ...]
    state: int  # of the most active holder
    tokens: int  # of the longest holder
    blocks: Blocks
    sizes: Numbers  # byte
    groups: Integers
    copied: Flags  # whether a lower tier holds the block
    starts: Integers  # tokens before each block
    reuse: float  # chance that a holder comes back
    drop: Numbers  # second expected from dropping a block: computed again, or restored where copied
    store: Numbers  # second expected from offloading a block; of a copied one, the way back alone
    setup: float  # second expected once, if anything of it is to be restored
    below: tuple[int, ...] = ()  # segments that must be gone first

    @property
    def count(self) -> int:
        """How many blocks it has."""
        return int(self.blocks.size)

    @property
    def returns(self) -> Flags:
        """Whether dropping each block leaves its session with something to restore from a lower tier."""
        return self.copied & (self.state == SUSPENDED)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of one tenant whose blocks are clear, with the key of the sessions that hold each block."""

    holder: Integers
    block: Blocks
    group: Integers
    start: Integers
    segment: Integers


def segments_of(ledger: Ledger, holdings: Holdings, rates: Rates, preempt: bool) -> tuple[Segment, ...]:
    """Return the segments of the tenant of `holdings`; running sessions have some only if preempted."""
    pairs, names = _clear_pairs(ledger, holdings, preempt)
    if not pairs.block.size:
        return ()
    holders = _holders(pairs, names)
    first = np.array([group[0] for group in holders])
    own = pairs.holder == first[pairs.segment]  # each block once
    segment, block, group, start = (
        part[own] for part in (pairs.segment, pairs.block, pairs.group, pairs.start)
    )
    order = np.lexsort((group, -start, segment))
    segment, block, group, start = segment[order], block[order], group[order], start[order]
    bounds = np.searchsorted(segment, np.arange(names + 1))
    state_of = np.zeros(ledger.span, dtype=np.int64)
    state_of[holdings.block] = holdings.state
    sessions = ledger.sessions
    reuse = np.array([1.0 - float(np.prod(1.0 - sessions.reuse[list(group)])) for group in holders])
    lengths = np.array([int(sessions.tokens[list(group)].max()) for group in holders])
    running = state_of[block[bounds[:-1]]] == RUNNING
    reuse[running] = 1.0  # a preempted session comes back
    copied = ledger.flagged(ledger.copied)[block]
    size = ledger.size_of[block]
    again = _recompute(ledger, rates, segment, group, start, lengths, bounds)
    restore = np.asarray(burst_time(size, rates.back))
    chance = reuse[segment]
    drop = np.asarray(drop_cost(np.where(copied, restore, again), chance))
    store = np.where(copied, chance * restore, offload_cost(size, rates.out, rates.back, chance))
    below = _below(pairs, start, bounds)
    return tuple(
        Segment(
            holders=holders[index],
            state=int(state_of[block[low]]),
            tokens=int(lengths[index]),
            blocks=block[low:high],
            sizes=size[low:high],
            groups=group[low:high],
            copied=copied[low:high],
            starts=start[low:high],
            reuse=float(reuse[index]),
            drop=drop[low:high],
            store=store[low:high],
            setup=float(reuse[index]) * rates.setup,
            below=below[index],
        )
        for index, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    )


def _clear_pairs(ledger: Ledger, holdings: Holdings, preempt: bool) -> tuple[_Pairs, int]:
    clear = np.zeros(ledger.span, dtype=bool)
    clear[holdings.block] = holdings.reason(preempt) == CLEAR
    mine = ledger.tenant_of == (holdings.tenant[0] if holdings.tenant.size else -1)
    holder, block, group = ledger.holder[mine], ledger.block[mine], ledger.group[mine]
    start = token_starts(ledger, holder, group)
    chosen = clear[block]
    holder, block, group, start = holder[chosen], block[chosen], group[chosen], start[chosen]
    _, segment = np.unique(_keys(ledger, holder, block), return_inverse=True)
    names = int(segment.max()) + 1 if segment.size else 0
    return _Pairs(holder, block, group, start, segment), names


def _keys(ledger: Ledger, holder: Integers, block: Blocks) -> np.ndarray:
    """Return a number for the set of sessions that hold each pair's block: the sum of 64 random bits each.

    Two sets have the same sum once in 2^64, and the numbers are the same in every run.
    """
    bits = np.random.default_rng(0).integers(1, 2**63, size=len(ledger.sessions.ids), dtype=np.uint64)
    sums = np.zeros(ledger.span, dtype=np.uint64)
    np.add.at(sums, block, bits[holder])
    return sums[block]


def token_starts(ledger: Ledger, holder: Integers, group: Integers) -> Integers:
    """Return how many tokens of its session stand before the block of each pair, given whole sessions.

    A window's blocks are the last ones of a session, and a recurrent state stands behind all of them.
    """
    if not holder.size:
        return np.zeros(0, dtype=np.int64)
    fresh = np.concatenate([[True], (holder[1:] != holder[:-1]) | (group[1:] != group[:-1])])
    begins = np.flatnonzero(fresh)
    runs = np.diff(np.append(begins, holder.size))
    place = np.arange(holder.size) - np.repeat(begins, runs)
    tokens = ledger.sessions.tokens[holder]
    starts = np.zeros(holder.size, dtype=np.int64)
    for index, one in enumerate(ledger.groups):
        chosen = group == index
        if one.state:
            starts[chosen] = tokens[chosen]
        elif one.window is None:
            starts[chosen] = place[chosen] * one.tokens
        else:
            missing = -(-tokens // one.tokens) - np.repeat(runs, runs)
            starts[chosen] = ((place + np.maximum(0, missing)) * one.tokens)[chosen]
    return starts


def _holders(pairs: _Pairs, names: int) -> list[tuple[int, ...]]:
    """Return the sessions of each segment."""
    width = np.int64(pairs.holder.max() + 1)
    both = np.unique(pairs.segment * width + pairs.holder)
    segment, holder = both // width, (both % width).tolist()
    bounds = np.searchsorted(segment, np.arange(names + 1)).tolist()
    return [tuple(holder[low:high]) for low, high in pairwise(bounds)]


def _below(pairs: _Pairs, start: Integers, bounds: Integers) -> list[tuple[int, ...]]:
    """Return for each segment those that stand next behind it in a session that holds both."""
    depth = np.maximum.reduceat(start, bounds[:-1])  # of each segment's deepest block
    shared = np.bincount(np.unique(pairs.segment * np.int64(pairs.holder.max() + 1) + pairs.holder)
                         // np.int64(pairs.holder.max() + 1))  # fmt: skip
    rank = np.empty(depth.size, dtype=np.int64)
    rank[np.lexsort((np.arange(depth.size), shared, -depth))] = np.arange(depth.size)  # deepest first
    width = np.int64(depth.size)
    chains = np.unique(pairs.holder * width + rank[pairs.segment])
    segment_at = np.empty(depth.size, dtype=np.int64)
    segment_at[rank] = np.arange(depth.size)
    session, place = chains // width, segment_at[chains % width]
    follows = np.flatnonzero(session[1:] == session[:-1])
    found: list[set[int]] = [set() for _ in range(depth.size)]
    for deeper, shallower in zip(place[follows].tolist(), place[follows + 1].tolist(), strict=True):
        found[shallower].add(deeper)
    return [tuple(sorted(one)) for one in found]


def _recompute(
    ledger: Ledger,
    rates: Rates,
    segment: Integers,
    group: Integers,
    start: Integers,
    lengths: Integers,
    bounds: Integers,
) -> Numbers:
    """Return the time of computing each block again, given that the ones behind it are computed too.

    Differences of whole tails, so that they add up to what the tail costs.  A recurrent state cannot be had
    without the whole context.
    """
    width = np.array([one.tokens for one in ledger.groups])[group]
    states = np.array([one.state for one in ledger.groups])[group]
    ends = np.where(states, lengths[segment], np.minimum(start + width, lengths[segment]))
    deeper = np.append(np.iinfo(np.int64).max, start[:-1])
    deeper[bounds[:-1]] = np.iinfo(np.int64).max
    # What stays between two blocks, and what a block of another group covers, is not computed again.
    own = np.maximum(0, np.minimum(ends, deeper) - start).astype(float)
    total = np.cumsum(own)
    new = total - (total - own)[bounds[:-1]][segment]
    cached = np.maximum.reduceat(ends, bounds[:-1])[segment] - new
    whole = np.logical_or.reduceat(states, bounds[:-1])[segment]
    new, cached = np.where(whole, lengths[segment], new), np.where(whole, 0.0, cached)
    tails = np.asarray(rates.recompute(new, cached), dtype=float)
    marginal = tails.copy()
    marginal[1:] -= tails[:-1]
    marginal[bounds[:-1]] = tails[bounds[:-1]]
    costs: Numbers = np.maximum(0.0, marginal)
    return costs


def names_of(ledger: Ledger, holders: Sequence[int]) -> str:
    """Return the session that a step names: of several, the last one, and how many share it."""
    name = ledger.sessions.ids[holders[-1]]
    return name if len(holders) == 1 else f"{name} and {len(holders) - 1} more"
