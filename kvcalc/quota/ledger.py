"""A snapshot of a KV pool: which session of which tenant holds which block.

Everything about blocks is an array over pairs (session, block), in the order of the file, so that five
million of them are read and judged in seconds.  Blocks of several pools are numbered through.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kvcalc.quota.intervals import Blocks

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

STATES = ("finished", "suspended", "running")
"""What a session is doing; later ones are harder to take blocks from."""

FINISHED, SUSPENDED, RUNNING = range(3)


@dataclass(frozen=True)
class Pool:
    """Pages that are handed out by one free list."""

    name: str
    blocks: int
    first: int = 0  # number of its first block, counted through all pools


@dataclass(frozen=True)
class Group:
    """Layers that share a block table; a request needs blocks in every group of its model."""

    name: str
    tokens: int  # of one block
    bytes: float  # of one block
    pool: int = 0  # which pool its blocks are from
    window: int | None = None  # tokens kept at most
    state: bool = False  # a recurrent state: one block a session, whatever its length

    @property
    def bytes_per_token(self) -> float:
        """Bytes of one token in this group; none where a token adds nothing in the long run."""
        return 0.0 if self.state else self.bytes / self.tokens

    def kept(self, tokens: Integers) -> Integers:
        """Return how many tokens of sessions this group keeps."""
        return tokens if self.window is None else np.minimum(tokens, self.window)


@dataclass(frozen=True)
class Tenant:
    """Who holds blocks, and what it may hold."""

    name: str
    quota: float | None = None  # byte
    by_tokens: bool = False  # the quota was given in tokens: bytes of tokens count against it, not of blocks
    soft: bool = False  # may be exceeded between two checks
    floor: float = 0.0  # byte that no neighbour may take
    active: bool = True  # an inactive tenant's suspended sessions are as good as finished
    length_p50: int | None = None  # token; of its sessions, for admission
    length_p95: int | None = None
    arrivals: float | None = None  # sessions per second
    check: float | None = None  # second between two checks of a soft quota
    writes: float | None = None  # byte/second of new KV
    reuse_gap: float | None = None  # second until it comes back to a prefix


@dataclass(frozen=True)
class Sessions:
    """All sessions, one element of each array a session."""

    ids: tuple[str, ...]
    tenant: Integers
    state: Integers
    tokens: Integers
    idle: Numbers  # second since its last use; NaN where not said
    reuse: Numbers  # chance that its KV is needed again
    remaining: Numbers  # tokens still to generate; NaN where not said


@dataclass(frozen=True)
class Host:
    """The host DRAM that blocks are offloaded into."""

    capacity: float | None = None  # byte
    watermark: float = 1.0  # share that may be filled
    used: float = 0.0  # byte


@dataclass(frozen=True)
class Waiting:
    """A request that waits for blocks."""

    id: str
    tokens: int
    tenant: str = ""


@dataclass(frozen=True)
class Ledger:
    """One consistent snapshot; `holder`, `block` and `group` are pairs in the order of the file."""

    file: str
    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    tenants: tuple[Tenant, ...]
    sessions: Sessions
    holder: Integers  # session of each pair
    block: Blocks
    group: Integers
    pinned: Blocks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    leased: Blocks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    copied: Blocks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # also in the lower tier
    host: Host = field(default_factory=Host)
    waiting: tuple[Waiting, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def blocks(self) -> int:
        """Blocks of all pools."""
        return sum(pool.blocks for pool in self.pools)

    @cached_property
    def span(self) -> int:
        """One more than the largest block number in use: the length of arrays over blocks."""
        used = (self.block, self.pinned, self.leased, self.copied)
        return 1 + max((int(part.max()) for part in used if part.size), default=-1)

    @cached_property
    def references(self) -> Integers:
        """How many sessions hold each block."""
        return np.bincount(self.block, minlength=self.span)

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Whether each block is taken: held by a session, pinned, or in a transfer."""
        taken = self.references > 0
        taken[self.pinned] = True
        taken[self.leased] = True
        return taken

    @cached_property
    def group_of(self) -> Integers:
        """Group of each block; -1 where it is free."""
        found = np.full(self.span, -1, dtype=np.int64)
        if len(self.groups) == 1:
            found[self.used] = 0
            return found
        found[self.block] = self.group
        alone = np.flatnonzero(self.used & (found < 0))  # pinned or in a transfer, but held by no session
        bounds = np.array([pool.first + pool.blocks for pool in self.pools])
        first_group = np.array(
            [
                next(i for i, group in enumerate(self.groups) if group.pool == pool)
                for pool in range(len(bounds))
            ]
        )
        found[alone] = first_group[np.searchsorted(bounds, alone, side="right")]
        return found

    @cached_property
    def size_of(self) -> Numbers:
        """Bytes of each block; 0 where it is free."""
        sizes = np.array([*(group.bytes for group in self.groups), 0.0])
        return sizes[self.group_of]  # -1, a free block, is the last one

    @cached_property
    def tenant_of(self) -> Integers:
        """Tenant of each pair."""
        return self.sessions.tenant[self.holder]

    @cached_property
    def state_of(self) -> Integers:
        """State of each session as reclaiming sees it: what an inactive tenant suspended is finished."""
        inactive = np.array([not tenant.active for tenant in self.tenants], dtype=bool)
        state = self.sessions.state
        if not inactive.any():
            return state
        return np.where(inactive[self.sessions.tenant] & (state == SUSPENDED), FINISHED, state)

    def flagged(self, blocks: Blocks) -> NDArray[np.bool_]:
        """Return an array over blocks that is true for the given ones."""
        flags = np.zeros(self.span, dtype=bool)
        flags[blocks] = True
        return flags

    @property
    def used_bytes(self) -> float:
        """Bytes of all blocks that are taken."""
        return float(self.size_of[self.used].sum())

    @property
    def capacity(self) -> float:
        """Bytes of all pools."""
        return float(sum(pool.blocks * self.page(index) for index, pool in enumerate(self.pools)))

    def page(self, pool: int) -> float:
        """Return the bytes of one block of a pool."""
        return next(group.bytes for group in self.groups if group.pool == pool)

    @property
    def bytes_per_token(self) -> float:
        """Bytes of one further token of a long session, over all groups that grow."""
        return sum(group.bytes_per_token for group in self.groups if group.window is None)

    def free_blocks(self) -> tuple[int, ...]:
        """Return how many blocks of each pool are free."""
        found = []
        for pool in self.pools:
            taken = int(self.used[pool.first : pool.first + pool.blocks].sum())
            found.append(pool.blocks - taken)
        return tuple(found)

    def tenant_index(self, name: str) -> int:
        """Return the number of a tenant, or -1."""
        return next((index for index, tenant in enumerate(self.tenants) if tenant.name == name), -1)

    def needed(self, tokens: int) -> tuple[int, ...]:
        """Return how many blocks a session of `tokens` tokens needs in each group."""
        from kvcalc.formulas.quota import block_count

        return tuple(
            1 if group.state else int(block_count(float(group.kept(np.int64(tokens))), group.tokens))  # type: ignore[arg-type]
            for group in self.groups
        )

    def session_bytes(self, tokens: int) -> float:
        """Return the bytes that a session of `tokens` tokens takes in whole blocks."""
        return sum(count * group.bytes for count, group in zip(self.needed(tokens), self.groups, strict=True))
