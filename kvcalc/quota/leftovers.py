"""What a plan could have taken of a tenant but did not, and why."""

from collections import defaultdict

import numpy as np

from kvcalc.quota.fixed import Allowed, FixedOrder
from kvcalc.quota.ledger import FINISHED, RUNNING
from kvcalc.quota.results import Left
from kvcalc.quota.segments import Segment


def left_of(plan: FixedOrder, allowed: Allowed) -> tuple[Left, ...]:
    """Return the blocks that are clear of every reason and still there, by means and by why."""
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    compressed = {move.segment for move in plan.moves if move.means == "compress"}
    for index, one in enumerate(plan.segments):
        open_blocks = ~plan.taken[index]
        if not open_blocks.any():
            continue
        for copied in (False, True):
            chosen = open_blocks & (one.copied == copied)
            if chosen.any():
                means = _means(one, copied, plan, index)
                total = found[means, _why(plan, means, index in compressed, allowed)]
                total[0] += int(chosen.sum())
                total[1] += float(np.sum(one.sizes[chosen]))
    return tuple(Left(means, int(count), size, why) for (means, why), (count, size) in sorted(found.items()))


def _means(one: Segment, copied: bool, plan: FixedOrder, index: int) -> str:
    if one.state == RUNNING:
        return "preempt"
    if one.state == FINISHED or copied:
        return "free"
    return "evict_tail" if plan.barred[index] or plan.ledger.host.capacity is None else "offload"


def _why(plan: FixedOrder, means: str, compressed: bool, allowed: Allowed) -> str:
    if plan.enough:
        return "not needed"
    if compressed:
        return "what is left of compressed blocks"
    if means == "evict_tail" and not allowed.evict_tail:
        return "the lower tier has no room, and tails may not be evicted"
    if means == "evict_tail":
        return "kept tokens of its context, or behind it lies what the lower tier holds"
    return "something behind it stays"
