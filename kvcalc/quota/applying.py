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
