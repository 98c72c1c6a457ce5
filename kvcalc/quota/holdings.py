"""What each tenant holds, block by block: how many references it has, and what may become of the block."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kvcalc.quota.intervals import Blocks
from kvcalc.quota.ledger import FINISHED, RUNNING, SUSPENDED, Flags, Integers, Ledger, Numbers

REASONS = ("", "pinned", "leased", "shared", "running")
"""Why a block cannot be had from a tenant; the first that holds is given."""

CLEAR, PINNED, LEASED, SHARED, BUSY = range(5)


@dataclass(frozen=True)
class Holdings:
    """One row for each block that a tenant holds, however many of its sessions do."""

    ledger: Ledger
    tenant: Integers
    block: Blocks
    own: Integers  # references of this tenant's sessions
    state: Integers  # the most active of its sessions that hold the block

    @classmethod
    def of(cls, ledger: Ledger, tenant: int | None = None) -> "Holdings":
        """Return the rows of all tenants, or of one."""
        whose, block, state = ledger.tenant_of, ledger.block, ledger.state_of[ledger.holder]
        if tenant is not None:
            chosen = whose == tenant
            whose, block, state = whose[chosen], block[chosen], state[chosen]
        alone = ledger.references[block] == 1  # most blocks: one row each, and no need to sort
        private = cls(ledger, whose[alone], block[alone], alone[alone].astype(np.int64), state[alone])
        if alone.all():
            return private
        whose, block, state = whose[~alone], block[~alone], state[~alone]
        key = whose * np.int64(ledger.span) + block
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        return cls(
            ledger,
            tenant=np.concatenate([private.tenant, key[starts] // ledger.span]),
            block=np.concatenate([private.block, key[starts] % ledger.span]),
            own=np.concatenate([private.own, np.diff(np.append(starts, key.size))]),
            state=np.concatenate([private.state, np.maximum.reduceat(state[order], starts)]),
        )

    @cached_property
    def size(self) -> Numbers:
        """Bytes of each row's block."""
        return self.ledger.size_of[self.block]

    @cached_property
    def pinned(self) -> Flags:
        """Whether the block is pinned."""
        return self.ledger.flagged(self.ledger.pinned)[self.block]

    @cached_property
    def leased(self) -> Flags:
        """Whether the block is in a transfer."""
        return self.ledger.flagged(self.ledger.leased)[self.block]

    @cached_property
    def copied(self) -> Flags:
        """Whether a lower tier holds a copy."""
        return self.ledger.flagged(self.ledger.copied)[self.block]

    @cached_property
    def shared(self) -> Flags:
        """Whether another tenant's session holds the block too."""
        return self.ledger.references[self.block] > self.own

    def reason(self, preempt: bool = False) -> Integers:
        """Return the number in `REASONS` of why a block can never be had; running counts unless preempted."""
        busy = (self.state == RUNNING) & (not preempt)
        rules = [self.pinned, self.leased, self.shared, busy]
        return np.select(rules, [PINNED, LEASED, SHARED, BUSY], CLEAR).astype(np.int64)

    def means(self) -> dict[str, Flags]:
        """Return which blocks each means could free, all others being clear of reasons.

        A block is in one of free, offload and preempt; compressing and evicting take what could be
        offloaded, where the lower tier has no room.
        """
        clear = self.reason(preempt=True) == CLEAR
        backed = (self.state == FINISHED) | ((self.state == SUSPENDED) & self.copied)
        return {
            "free": clear & backed,
            "offload": clear & (self.state == SUSPENDED) & ~self.copied,
            "preempt": clear & (self.state == RUNNING),
        }

    def by_tenant(self, weights: Numbers) -> Numbers:
        """Return the sum of a value over each tenant's rows."""
        tenants = len(self.ledger.tenants)
        return np.bincount(self.tenant, weights=weights, minlength=tenants).astype(float)
