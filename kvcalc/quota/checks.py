"""What a ledger must not contradict: itself.  Each refusal names file, key and id."""

from dataclasses import replace

import numpy as np

from kvcalc.errors import ProfileError
from kvcalc.formulas.quota import block_count
from kvcalc.quota.exceptions import Listed
from kvcalc.quota.ledger import RUNNING, Ledger


def check(ledger: Ledger, listed: dict[str, Listed]) -> Ledger:
    """Return the ledger if it is consistent, with notes on what a reader should know.

    Raises
    ------
    ProfileError
        If an id stands twice, a block is held twice, a count does not match, or a quota is below pins.
    """
    _unique_ids(ledger)
    _held_once(ledger)
    _one_group(ledger)
    _shared(ledger, listed["shared"])
    _copies(ledger)
    _enough_blocks(ledger)
    _quota_above_pins(ledger)
    return replace(ledger, notes=_notes(ledger))


def _unique_ids(ledger: Ledger) -> None:
    ids = ledger.sessions.ids
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(name for name in ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ProfileError(f"{ledger.file}: sessions: the id {twice!r} stands twice")


def _held_once(ledger: Ledger) -> None:
    if ledger.references.max(initial=0) <= 1:
        return
    keys = ledger.holder * np.int64(ledger.span) + ledger.block
    keys.sort()
    again = np.flatnonzero(np.diff(keys) == 0)
    if again.size:
        session, block = divmod(int(keys[again[0]]), ledger.span)
        raise ProfileError(
            f"{ledger.file}: sessions: {ledger.sessions.ids[session]}: blocks: block {block} is held twice"
        )


def _one_group(ledger: Ledger) -> None:
    if len(ledger.groups) == 1:
        return
    strange = ledger.group_of[ledger.block] != ledger.group
    if strange.any():
        at = int(np.argmax(strange))
        raise ProfileError(
            f"{ledger.file}: sessions: {ledger.sessions.ids[int(ledger.holder[at])]}: blocks: block "
            f"{ledger.block[at]} is in two KV groups"
        )


def _shared(ledger: Ledger, shared: Listed) -> None:
    """Hold stated sharing against the block tables; without a list it follows from them."""
    counts = np.zeros(max(ledger.span, int(shared.blocks.max(initial=-1)) + 1), dtype=np.int64)
    counts[: ledger.span] = ledger.references
    for where, blocks, stated in shared.counts:
        wrong = counts[blocks] != stated
        if wrong.any():
            block = int(blocks[np.argmax(wrong)])
            raise ProfileError(
                f"{where}: states {stated} references to block {block}, but {_sessions(counts[block])}"
            )
    if not shared.said:
        return
    alone = counts[shared.blocks] < 2
    if alone.any():
        block = int(shared.blocks[np.argmax(alone)])
        raise ProfileError(
            f"{ledger.file}: shared: block {block} is listed as shared, but {_sessions(counts[block])}"
        )
    hidden = counts > 1
    hidden[shared.blocks] = False
    if hidden.any():
        block = int(np.argmax(hidden))
        names = [ledger.sessions.ids[int(who)] for who in ledger.holder[ledger.block == block][:2]]
        raise ProfileError(
            f"{ledger.file}: shared: block {block} is held by {' and '.join(names)} but not listed as shared"
        )


def _sessions(count: int) -> str:
    return f"{count} session holds it" if count == 1 else f"{count} sessions hold it"


def _copies(ledger: Ledger) -> None:
    gone = ~ledger.used[ledger.copied]
    if gone.any():
        block = int(ledger.copied[np.argmax(gone)])
        raise ProfileError(f"{ledger.file}: copies: block {block} is a copy of nothing: no session holds it")


def _enough_blocks(ledger: Ledger) -> None:
    """Refuse running sessions whose tokens have no block; a suspended one may be partly in a lower tier."""
    sessions = ledger.sessions
    for index, group in enumerate(ledger.groups):
        of_group = ledger.holder if len(ledger.groups) == 1 else ledger.holder[ledger.group == index]
        held = np.bincount(of_group, minlength=len(sessions.ids))
        if group.state:
            needed = np.ones(len(sessions.ids))
        else:
            needed = np.asarray(block_count(group.kept(sessions.tokens).astype(float), float(group.tokens)))
        short = (held < needed) & (sessions.state == RUNNING) & (sessions.tokens > 0)
        if short.any():
            at = int(np.argmax(short))
            name = f" of group {group.name}" if group.name else ""
            raise ProfileError(
                f"{ledger.file}: sessions: {sessions.ids[at]}: running with {sessions.tokens[at]} tokens, "
                f"which need {needed[at]:.0f} blocks{name}, but it holds {held[at]}"
            )


def _quota_above_pins(ledger: Ledger) -> None:
    if not ledger.pinned.size:
        return
    pinned = ledger.flagged(ledger.pinned)[ledger.block]
    if not pinned.any():
        return
    keys = np.unique(ledger.tenant_of[pinned] * np.int64(ledger.span) + ledger.block[pinned])
    held = np.bincount(
        keys // ledger.span, weights=ledger.size_of[keys % ledger.span], minlength=len(ledger.tenants)
    )
    for tenant, size in zip(ledger.tenants, held.tolist(), strict=True):
        if tenant.quota is not None and size > tenant.quota:
            raise ProfileError(
                f"{ledger.file}: tenants.{tenant.name}.quota: {tenant.quota:,.0f} bytes are below its pinned "
                f"blocks, {size:,.0f} bytes"
            )


def _notes(ledger: Ledger) -> tuple[str, ...]:
    if not ledger.pinned.size or not ledger.block.size:
        return ()
    pinned = ledger.flagged(ledger.pinned)[ledger.block]
    follows = np.zeros(pinned.size, dtype=bool)
    follows[1:] = (ledger.holder[1:] == ledger.holder[:-1]) & (ledger.group[1:] == ledger.group[:-1])
    loose = pinned & follows
    loose[1:] &= ~pinned[:-1]
    if not loose.any():
        return ()
    at = int(np.argmax(loose))
    return (
        f"block {ledger.block[at]} of session {ledger.sessions.ids[int(ledger.holder[at])]} is pinned but "
        "the block before it is not: once that one is gone the pin serves no request",
    )
