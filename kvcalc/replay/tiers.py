"""Several caches behind one another: exclusive or inclusive, and when a block is written to the next one.

Every tier evicts what was not touched for longest.  Two arrangements are one cache to whoever asks:
exclusive tiers that take what the faster one evicts hit what one cache of their sum hits, and
inclusive tiers that are written at once hit what the largest of them hits.  Those two are answered from stack
depths; the others block by block.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record
from kvcalc.replay.depths import depths_of, is_stack
from kvcalc.replay.outcome import Case, Outcome, Part
from kvcalc.replay.policies.blocks import replay_blocks
from kvcalc.replay.policies.uniform import require_one_size
from kvcalc.replay.semantics import ATOMIC, PREFIX, TAIL

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXCLUSIVE, INCLUSIVE = "exclusive", "inclusive"
INCLUSIONS = (EXCLUSIVE, INCLUSIVE)

WRITE_BACK, WRITE_THROUGH, SELECTIVE = "write_back", "write_through", "selective"
WRITES = (WRITE_THROUGH, SELECTIVE, WRITE_BACK)
"""When a block goes to the next tier: at once, from its second touch on, or when the faster one evicts it."""

MEANINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "inclusion": {
            EXCLUSIVE: "a block is in one tier alone, so that tiers add up",
            INCLUSIVE: "a block may be in several tiers, and a hit leaves it in the slower one",
        },
        "write": {
            WRITE_THROUGH: "a block goes to all tiers when it is stored in the fastest",
            SELECTIVE: "a block goes to the next tier from its second touch on",
            WRITE_BACK: "a block goes to the next tier when the faster one evicts it",
        },
    }
)
"""Switch -> word -> what it means, in one line."""

SELECTIVE_TOUCHES = 2
"""Touches from which a block is worth writing; source: write_through_selective of SGLang's HiCache."""


@record
class Stack:
    """Tiers, the fastest first."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]  # blocks
    inclusion: str = INCLUSIVE
    write: str = WRITE_THROUGH

    def __post_init__(self) -> None:
        """Refuse what is unknown or contradicts itself."""
        for name, word, words in (("inclusion", self.inclusion, INCLUSIONS), ("write", self.write, WRITES)):
            if word not in words:
                raise SettingsError(f"{name}: unknown word {word!r:.60}{did_you_mean(word, words)}")
        if self.inclusion == EXCLUSIVE and self.write == WRITE_THROUGH:
            raise SettingsError(
                "write: exclusive tiers hold no block twice, so nothing is written through; "
                "use --write write_back or selective"
            )

    @property
    def idle(self) -> tuple[str, ...]:
        """Return what to say of tiers that hold nothing but what a faster one holds."""
        if (self.inclusion, self.write) != (INCLUSIVE, WRITE_THROUGH):
            return ()
        faster = np.maximum.accumulate(self.sizes).tolist()
        return tuple(
            f"{name}: {size:,} blocks are no more than the {before:,} of a faster tier; they are written "
            "through and stay in both, so that it adds nothing"
            for name, size, before in zip(self.names[1:], self.sizes[1:], faster[:-1], strict=True)
            if size <= before
        )

    @property
    def capacity(self) -> int:
        """Different blocks that all tiers hold together."""
        return sum(self.sizes) if self.inclusion == EXCLUSIVE else max(self.sizes)


def replay(case: Case, stack: Stack) -> Outcome:
    """Replay tiers; `case.capacity` is what they hold together."""
    require_one_size(case, "lru on tiers")
    said = case.semantics
    if said.hits != PREFIX or said.touch != TAIL or said.lookup != ATOMIC:
        raise SettingsError("tiers: are replayed with touch=tail, lookup=atomic and hits=prefix alone")
    natural = (EXCLUSIVE, WRITE_BACK), (INCLUSIVE, WRITE_THROUGH)
    growing = stack.inclusion == EXCLUSIVE or list(stack.sizes) == sorted(stack.sizes)
    if (stack.inclusion, stack.write) in natural and growing and is_stack(said):
        return by_depths(case, stack)
    return by_blocks(case, stack)


def by_depths(case: Case, stack: Stack) -> Outcome:
    """Answer the two natural arrangements from the stack depths of the trace."""
    stream = case.stream
    depths = depths_of(stream, case.semantics)
    reach = np.cumsum(stack.sizes) if stack.inclusion == EXCLUSIVE else np.array(stack.sizes)
    faster = np.zeros(stream.requests, np.int64), np.zeros(stream.requests, np.int64)
    parts = []
    asked, arriving = int(stream.blocks.sum()), 0
    for index, (name, size) in enumerate(zip(stack.names, stack.sizes, strict=True)):
        blocks, tokens = depths.hits(int(reach[index]))
        own = blocks - faster[0], tokens - faster[1]
        inserted = asked - int(blocks.sum()) if index == 0 or stack.inclusion == INCLUSIVE else arriving
        gone = 0 if index == 0 or stack.inclusion == INCLUSIVE else int(own[0].sum())
        held = min(int(reach[index]), stream.distinct) - (
            0 if index == 0 else _below(reach, index, stack, case)
        )
        evicted = inserted - gone - held
        parts.append(Part(name, size, *own, inserted, evicted))
        faster, arriving = (blocks, tokens), evicted
    return Outcome(*faster, parts[0].inserted, parts[-1].evictions, tuple(parts))


def _below(reach: "NDArray[np.int64]", index: int, stack: Stack, case: Case) -> int:
    """Return what of a tier's reach the faster tiers hold instead of it."""
    if stack.inclusion == INCLUSIVE:
        return 0
    return min(int(reach[index - 1]), case.stream.distinct)


class Tiers:
    """Tiers of single blocks."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.held: list[OrderedDict[int, None]] = [OrderedDict() for _ in stack.sizes]
        self.touches: dict[int, int] = {}
        self.written = [0] * len(stack.sizes)
        self.evicted = [0] * len(stack.sizes)

    @property
    def inserted(self) -> int:
        """Blocks that entered the fastest tier."""
        return self.written[0]

    @property
    def evictions(self) -> int:
        """Blocks that left the slowest tier."""
        return self.evicted[-1]

    def __contains__(self, block: int) -> bool:
        return any(block in held for held in self.held)

    def where(self, block: int) -> int | None:
        """Return the fastest tier that holds a block."""
        return next((index for index, held in enumerate(self.held) if block in held), None)

    def touch(self, block: int, depth: int, pinned: Collection[int]) -> bool:
        """Touch a block in all tiers that hold it, and bring it to the fastest."""
        self.touches[block] = self.touches.get(block, 0) + 1
        place = self.where(block)
        if self.stack.inclusion == EXCLUSIVE:
            if place is not None and place > 0:
                del self.held[place][block]
        else:
            for held in self.held[1:]:
                if block in held:
                    held.move_to_end(block)
            if self.stack.write != WRITE_BACK and self._worth(block):
                for index in range(1, len(self.held)):
                    if block not in self.held[index]:
                        self._put(index, block)
        if place == 0:
            self.held[0].move_to_end(block)
        else:
            self._put(0, block)
        return place is not None

    def _worth(self, block: int) -> bool:
        return self.stack.write != SELECTIVE or self.touches[block] >= SELECTIVE_TOUCHES

    def _put(self, index: int, block: int) -> None:
        """Put a block into a tier, and what that evicts into the next one if it is to go there."""
        held = self.held[index]
        held[block] = None
        self.written[index] += 1
        if len(held) <= self.stack.sizes[index]:
            return
        victim, _ = held.popitem(last=False)
        self.evicted[index] += 1
        down = index + 1
        moves = self.stack.inclusion == EXCLUSIVE or self.stack.write == WRITE_BACK
        if down < len(self.held) and moves and self._worth(victim) and victim not in self.held[down]:
            self._put(down, victim)


def by_blocks(case: Case, stack: Stack) -> Outcome:
    """Replay tiers block by block."""
    tiers = Tiers(stack)
    stream = case.stream
    found = np.zeros((len(stack.sizes), stream.requests), np.int64)
    last = np.full(stream.requests, -1)

    def begin(request: int, chain: list[int]) -> None:
        for depth, block in enumerate(chain):
            place = tiers.where(block)
            if place is None:
                return
            found[place, request] += 1
            if depth == len(chain) - 1:
                last[request] = place

    outcome = replay_blocks(case, tiers, begin)
    each, short = stream.trace.block_tokens, stream.short
    parts = [
        Part(
            name,
            size,
            found[index],
            found[index] * each - np.where(last == index, short, 0),
            tiers.written[index],
            tiers.evicted[index],
        )
        for index, (name, size) in enumerate(zip(stack.names, stack.sizes, strict=True))
    ]
    return Outcome(outcome.hit_blocks, outcome.hit_tokens, tiers.inserted, tiers.evictions, tuple(parts))
