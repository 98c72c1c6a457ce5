"""Whom a policy lets go in the middle of a run, and what becomes of the victim."""

from dataclasses import dataclass, field

import numpy as np

from kvcalc.eviction.crowd import Crowd, Flags, Floats
from kvcalc.eviction.policies import COST, QUEUE, order
from kvcalc.eviction.rules import UNGUARDED, Rules, protected
from kvcalc.eviction.steps import StepTimes
from kvcalc.formulas.eviction import swap_time
from kvcalc.formulas.pressure import victim_price

KEPT = 0.5
"""Share of a victim's blocks that stay when only its tail is dropped [1]; assumed, where no file says."""

WATERMARK = 0.01
"""Share of the pool that admission leaves free [1], as vLLM's block manager did:
https://github.com/vllm-project/vllm/blob/v0.6.0/vllm/core/block_manager_v1.py"""


@dataclass(frozen=True)
class Host:
    """Memory outside the device that victims may be swapped to."""

    out: float  # byte/second, device to host
    back: float  # byte/second, host to device
    capacity: float = np.inf  # byte
    setup: float = 0.0  # seconds before the first byte moves


@dataclass(frozen=True)
class Limits:
    """What one engine instance holds."""

    blocks: int
    block: int  # tokens in one
    bytes_per_token: float = 1.0
    watermark: float = WATERMARK
    max_len: int | None = None  # longest sequence [token]; None: as long as the pool
    host: Host | None = None

    @property
    def longest(self) -> int:
        """Most tokens that one sequence may hold."""
        pool = self.blocks * self.block
        return pool if self.max_len is None else min(pool, self.max_len)

    @property
    def spare(self) -> int:
        """Blocks that admission leaves free."""
        return int(self.watermark * self.blocks)

    def count(self, tokens: int) -> int:
        """Return the blocks of so many tokens."""
        return -(-tokens // self.block)


@dataclass(frozen=True)
class Tactic:
    """One policy as a simulation runs it."""

    name: str
    policy: str = "lru"
    mode: str = "recompute"
    rules: Rules = field(default=UNGUARDED)
    keep: float = KEPT

    @property
    def reserves(self) -> bool:
        """Whether a request waits until the pool has room for all that it will ever hold."""
        return QUEUE in (self.policy, self.mode)


@dataclass(frozen=True)
class Choice:
    """One victim: its place in the crowd, and what becomes of it."""

    place: int
    mode: str
    kept: int = 0  # blocks that stay


def choose(
    tactic: Tactic, crowd: Crowd, need: int, limits: Limits, times: StepTimes, room: float
) -> Choice | None:
    """Return who goes next so that `need` blocks become free, or None where nobody may.

    `room` is what is left of the host's memory, in bytes.
    """
    safe = protected(tactic.rules, crowd)
    blocks = np.ceil(crowd.done / limits.block)
    if tactic.policy == COST:
        return _cheapest(crowd, ~safe & (blocks > 0), blocks, need, limits, times, room)
    for place in order(tactic.policy, crowd, tactic.rules):
        if not safe[place] and blocks[place] > 0:
            return _treated(tactic, int(place), int(blocks[place]), float(crowd.done[place]), limits, room)
    return None


def _treated(tactic: Tactic, place: int, blocks: int, done: float, limits: Limits, room: float) -> Choice:
    """Return what the tactic's mode makes of a victim; a full host leaves only recompute."""
    if tactic.mode == "tail":
        return Choice(place, "tail", min(int(blocks * tactic.keep), blocks - 1))
    if tactic.mode == "swap" and limits.host is not None and done * limits.bytes_per_token <= room:
        return Choice(place, "swap")
    return Choice(place, "recompute")


def _cheapest(
    crowd: Crowd,
    may_go: Flags,
    blocks: Floats,
    need: int,
    limits: Limits,
    times: StepTimes,
    room: float,
) -> Choice | None:
    """Return the victim and mode that free a useful byte at the least cost."""
    if not may_go.any():
        return None
    size = limits.block * limits.bytes_per_token
    useful = np.maximum(np.minimum(blocks, need), 1) * size
    tail = np.minimum(np.maximum(blocks - need, 0), blocks - 1)
    kept = tail * limits.block
    ways = {
        "recompute": (np.asarray(times.prefill_time(crowd.done)), useful),
        "tail": (
            np.asarray(times.prefill_time(np.maximum(crowd.done - kept, 0.0), kept)),
            np.maximum(np.minimum(blocks - tail, need), 1) * size,
        ),
    }
    if limits.host is not None:
        moved = crowd.done * limits.bytes_per_token
        link = swap_time(moved, limits.host.out, limits.host.back).total + limits.host.setup
        ways["swap"] = (np.where(moved <= room, link, np.inf), useful)
    prices = {mode: np.where(may_go, victim_price(*way), np.inf) for mode, way in ways.items()}
    mode = min(prices, key=lambda name: float(np.min(prices[name])))
    place = int(np.argmin(prices[mode]))
    return Choice(place, mode, int(tail[place]) if mode == "tail" else 0)
