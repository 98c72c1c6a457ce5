"""The ledger after blocks were freed: references go one by one, and shared blocks stay."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kvcalc.quota.intervals import Blocks
from kvcalc.quota.ledger import FINISHED, RUNNING, SUSPENDED, Flags, Ledger, Sessions


def without_blocks(ledger: Ledger, freed: Blocks, released: Sequence[int], offloaded: float = 0.0) -> Ledger:
    """Return the ledger without `freed` blocks, and without all references of `released` sessions.

    A preempted session waits to be computed again; a finished one that let go of everything is forgotten.
    """
    gone = np.zeros(ledger.span, dtype=bool)
    gone[freed] = True
    lets_go = np.zeros(len(ledger.sessions.ids), dtype=bool)
    lets_go[list(released)] = True
    stays = ~gone[ledger.block] & ~lets_go[ledger.holder]
    state = ledger.sessions.state.copy()
    state[lets_go & (state == RUNNING)] = SUSPENDED
    forgotten = lets_go & (state == FINISHED)
    after = replace(
        ledger,
        sessions=replace(ledger.sessions, state=state),
        holder=ledger.holder[stays],
        block=ledger.block[stays],
        group=ledger.group[stays],
        copied=ledger.copied[~gone[ledger.copied]],
        host=replace(ledger.host, used=ledger.host.used + offloaded),
    )
    return _without_sessions(after, forgotten) if forgotten.any() else after


def without_tenant(ledger: Ledger, tenant: int) -> Ledger:
    """Return the ledger without a tenant: each of its sessions lets go of its blocks, others keep theirs.

    Pinned blocks stay, and so do blocks in a transfer.
    """
    for session in np.flatnonzero(ledger.sessions.tenant == tenant).tolist():
        ledger = released(ledger, session)
    mine = ledger.sessions.tenant == tenant
    left = _without_sessions(ledger, mine)
    number = left.sessions.tenant - (left.sessions.tenant > tenant)
    tenants = tuple(one for index, one in enumerate(ledger.tenants) if index != tenant)
    waiting = tuple(item for item in ledger.waiting if item.tenant != ledger.tenants[tenant].name)
    return replace(left, tenants=tenants, sessions=replace(left.sessions, tenant=number), waiting=waiting)


def released(ledger: Ledger, session: int) -> Ledger:
    """Return the ledger after one session let go of its references, one block at a time."""
    stays = ledger.holder != session
    after = replace(ledger, holder=ledger.holder[stays], block=ledger.block[stays], group=ledger.group[stays])
    kept = np.zeros(ledger.span, dtype=bool)
    kept[: after.span] = after.used
    return replace(after, copied=ledger.copied[kept[ledger.copied]])


def cached_prefix(ledger: Ledger, blocks: Blocks) -> int:
    """Return how many leading blocks of a request's prefix are still there to be hit."""
    inside = blocks < ledger.span
    there = np.zeros(blocks.size, dtype=bool)
    there[inside] = ledger.used[blocks[inside]]
    return blocks.size if there.all() else int(np.argmin(there))


def _without_sessions(ledger: Ledger, gone: Flags) -> Ledger:
    kept = np.flatnonzero(~gone)
    number = np.cumsum(~gone) - 1
    old = ledger.sessions
    sessions = Sessions(
        ids=tuple(old.ids[index] for index in kept.tolist()),
        tenant=old.tenant[kept],
        state=old.state[kept],
        tokens=old.tokens[kept],
        idle=old.idle[kept],
        reuse=old.reuse[kept],
        remaining=old.remaining[kept],
    )
    stays = ~gone[ledger.holder]
    return replace(
        ledger,
        sessions=sessions,
        holder=number[ledger.holder[stays]],
        block=ledger.block[stays],
        group=ledger.group[stays],
    )
