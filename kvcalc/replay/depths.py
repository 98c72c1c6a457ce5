"""How deep in the stack of recently used blocks each group of a request lies: every LRU cache at once.

A least-recently-used cache holds the top of one stack, whatever its capacity, so that a block is hit by
every cache at least as large as its depth.  With the prefix rule a block counts at the largest depth along
its chain.  `Depths` answers for any capacity from one pass over the trace.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay import _jit, _loops
from kvcalc.replay.groups import Groups
from kvcalc.replay.outcome import any_tokens, prefix_tokens
from kvcalc.replay.semantics import ANY, ATOMIC, BYPASS, HEAD, PIN, TAIL, TRUNCATE, Semantics
from kvcalc.replay.stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray


@record
class Depths:
    """Depths of the groups of a stream when their request comes; in blocks, or tokens where blocks differ."""

    stream: Stream
    groups: Groups
    semantics: Semantics
    above: "NDArray[np.int64]"  # by group: touched after all of it
    left: "NDArray[np.int64]"  # by group: all that its owner had left, the group among it

    @cached_property
    def nearest(self) -> "NDArray[np.int64]":
        """Smallest capacity less one block (size) at which a part of each group is hit."""
        kind = self.semantics
        if kind.touch == TAIL and kind.lookup == ATOMIC:
            return self.above + self.groups.offset
        if kind.touch == TAIL:
            total = self.stream.sizes[self.groups.request]
            return self.above + total - (self.groups.before - self.groups.offset) - self.groups.size
        if kind.lookup == ATOMIC and kind.hits == ANY:
            return self.above + self.left - self.groups.offset - self.groups.size
        return self.above + self.left - self.groups.size

    @property
    def gradual(self) -> bool:
        """Whether a larger cache hits a group block by block, or all of it at once."""
        kind = self.semantics
        return kind.lookup == ATOMIC and (kind.touch == TAIL or kind.hits == ANY) and not self.groups.whole

    @property
    def reversed(self) -> bool:
        """Whether the last block of a group is the first that a growing cache hits."""
        kind = self.semantics
        return kind.touch == HEAD and kind.lookup == ATOMIC and kind.hits == ANY

    def hit_blocks(self, capacity: int) -> "NDArray[np.int64]":
        """Return the blocks of each group that a cache of this capacity hits."""
        room = capacity - self.nearest
        if self.gradual:
            return np.clip(room, 0, self.groups.blocks)
        return np.where(room >= self.groups.size, self.groups.blocks, 0)

    @cached_property
    def ends(self) -> "NDArray[np.int64]":
        """The last group of each request that it hits to its end, or -1: the one with its last block."""
        last = self.groups.start[1:] - 1
        known = (np.diff(self.groups.start) > 0) & (self.stream.sizes > 0)
        reach = self.groups.before[last] + self.groups.size[last] if len(self.groups.owner) else last
        return np.where(known & (reach == self.stream.sizes), last, -1)

    def hits(self, capacity: int) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the blocks and the tokens that each request hits."""
        found = self.hit_blocks(capacity)
        requests = self.stream.requests
        blocks = np.bincount(self.groups.request, found, minlength=requests).astype(np.int64)
        if self.groups.whole:
            sizes = np.where(found > 0, self.groups.size, 0)
            return blocks, np.bincount(self.groups.request, sizes, minlength=requests).astype(np.int64)
        if self.semantics.hits != ANY:
            return blocks, prefix_tokens(self.stream, blocks)
        last_hit = np.zeros(requests, bool)
        ended = self.ends >= 0
        last_hit[ended] = found[self.ends[ended]] > 0
        return blocks, any_tokens(self.stream, blocks, last_hit)


def depths_of(stream: Stream, semantics: Semantics) -> Depths:
    """Measure the stack depth of every group in one pass."""
    groups = stream.groups
    above, left = np.zeros_like(groups.owner), np.zeros_like(groups.owner)
    arrays = (groups.start, groups.owner, groups.size, stream.sizes, above, left)
    # A step of the tree per bit of the number of requests, twice for each group and once for each request.
    steps = (2 * len(groups.owner) + stream.requests) * max(1, stream.requests.bit_length())
    _jit.run(_loops.stack_depths, arrays, 2, steps)
    return Depths(stream, groups, semantics, above, left)


def is_stack(semantics: Semantics) -> bool:
    """Tell whether the cache of one capacity holds all that a smaller one does, so that depths decide.

    What is kept of a request longer than the cache must be the top of the stack: its head when its tail is
    touched first, and all of it must pass through the cache when each block is looked up as it is touched.
    """
    return why_no_curve(semantics) is None


def why_no_curve(semantics: Semantics) -> str | None:
    """Return why these semantics have no single curve of all capacities; None where they have one."""
    kind = semantics
    if kind.oversize in (PIN, BYPASS):
        said = f"oversize={kind.oversize}"
    elif kind.oversize == TRUNCATE and (kind.touch, kind.lookup) != (TAIL, ATOMIC):
        said = f"touch={kind.touch}, lookup={kind.lookup} and oversize=truncate"
    else:
        return None
    return (
        f"With {said} a smaller cache can hold blocks that a larger one does not, so that no single curve "
        "has all capacities; oversize=thrash has one"
    )
