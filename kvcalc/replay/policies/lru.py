"""Least recently used: what a request left behind is one entry, so that one capacity takes no time.

With tails touched first, evicting the least recently used block is evicting a leaf of the prefix tree while
the running request is pinned, as engines with such a tree do.
"""

from dataclasses import replace as changed

import numpy as np

from kvcalc.replay import _loops
from kvcalc.replay.depths import depths_of, is_stack
from kvcalc.replay.groups import Groups, groups_of
from kvcalc.replay.outcome import Case, Outcome, kept, of_prefix
from kvcalc.replay.policies.blocks import Cache, replay_blocks, sizes_of
from kvcalc.replay.policies.fifo import Queue
from kvcalc.replay.semantics import ATOMIC, BYPASS, HEAD, PIN, PREFIX, THRASH, Semantics


class Recency(Queue):
    """Cached blocks in the order of their last touch."""

    def hit(self, block: int, depth: int) -> None:
        """Put a block last."""
        self.queue.move_to_end(block)


def replay(case: Case) -> Outcome:
    """Replay least recently used in the cheapest exact form that the semantics allow."""
    said = _effective(case)
    if case.stream.weight_before is not None or said.oversize == PIN:
        return by_blocks(case)
    if said.lookup == ATOMIC and (said.touch != HEAD or said.hits == PREFIX):
        return by_entries(changed(case, semantics=said))
    if said.touch == HEAD and said.hits == PREFIX:
        return by_entries(changed(case, semantics=said))
    if is_stack(said):
        return by_depths(case, said)
    return by_blocks(case)


def by_blocks(case: Case) -> Outcome:
    """Replay block by block, as the definition says."""
    return replay_blocks(case, Cache(Recency(), case.capacity, sizes_of(case)))


def _effective(case: Case) -> Semantics:
    """Return the semantics, without what they say of requests too long for the cache if there is none.

    Blocks looked up one by one may be evicted by those of their own request, long or not, unless pinned.
    """
    if case.semantics.oversize == PIN and case.semantics.lookup != ATOMIC:
        return case.semantics
    if len(case.stream.sizes) and case.stream.sizes.max() > case.capacity:
        return case.semantics
    return changed(case.semantics, oversize=THRASH)


def by_entries(case: Case) -> Outcome:
    """Replay one entry a request: a running pointer to the oldest, no queue and no single blocks."""
    stream, said = case.stream, case.semantics
    keep = kept(stream, case)
    groups = _groups(case, keep)
    arrays = (groups.start, groups.owner, groups.size)
    start, owner, size = (array.tolist() for array in arrays)
    hits, left = [0] * stream.requests, [0] * stream.requests
    if said.touch == HEAD:
        end = [0] * stream.requests
        before = groups.before.tolist()
        used = _loops.lru_head(start, owner, size, before, keep.tolist(), case.capacity, left, end, hits)
    else:
        used = _loops.lru_tail(start, owner, size, keep.tolist(), case.capacity, left, hits)
    found = np.array(hits, np.int64)
    inserted = int(np.where(keep > 0, keep - found, 0).sum())
    return of_prefix(stream, found, inserted, inserted - used)


def _groups(case: Case, keep: "np.typing.NDArray[np.int64]") -> Groups:
    """Return the groups; a request that bypasses the cache owns nothing."""
    if case.semantics.oversize == BYPASS and (keep < case.stream.sizes).any():
        return groups_of(case.stream, keep > 0)
    return case.stream.groups


def by_depths(case: Case, said: Semantics) -> Outcome:
    """Replay from the depths of all groups."""
    found = depths_of(case.stream, said)
    blocks, tokens = found.hits(case.capacity)
    inserted = int((case.stream.blocks - blocks).sum())
    unique = min(case.capacity, case.stream.distinct)
    return Outcome(blocks, tokens, inserted, inserted - unique)
