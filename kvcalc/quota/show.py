"""Who holds what: tenants against their quotas, blocks against tokens, promises against the pool."""

import numpy as np

from kvcalc.formulas.capacity import capacity_utilization
from kvcalc.formulas.quota import compressed_blocks, tier_room, unfilled_bytes
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.quota.admission import admission_of, neighbours_of
from kvcalc.quota.charging import MEANINGS, RULES, against_quota, charges, group_tokens, unfilled
from kvcalc.quota.holdings import CLEAR, Holdings
from kvcalc.quota.ledger import RUNNING, Flags, Host, Ledger, Numbers
from kvcalc.quota.rates import RATIO
from kvcalc.quota.results import GroupRow, PoolTotals, QuotaShowResult, TenantRow


def show(ledger: Ledger, rule: str = RULES[0]) -> tuple[QuotaShowResult, tuple[Call, ...]]:
    """Return what each tenant holds, is charged and could give back, with the formulas as called."""
    book = Notebook()
    for note in ledger.notes:
        book.warn(note)
    book.assume(MEANINGS[rule])
    holdings = Holdings.of(ledger)
    rows = _rows(ledger, holdings, rule)
    pool = _totals(ledger, book)
    _warn(ledger, rows, pool, book)
    groups, admission = _groups(ledger, book), admission_of(ledger, book)
    neighbours = neighbours_of(ledger, book)
    result = QuotaShowResult(
        inputs={"ledger": ledger.file, "rule": rule},
        sources={},
        warnings=tuple(book.warnings),
        assumptions=tuple(book.assumptions),
        rule=rule,
        bytes_per_token=ledger.bytes_per_token,
        pool=pool,
        groups=groups,
        rows=rows,
        admission=admission,
        neighbours=neighbours,
    )
    return result, tuple(book.calls)


def _rows(ledger: Ledger, holdings: Holdings, rule: str) -> tuple[TenantRow, ...]:
    size, sessions, tenants = holdings.size, ledger.sessions, len(ledger.tenants)

    def held(flags: Flags) -> Numbers:
        return holdings.by_tenant(np.where(flags, size, 0.0))

    means = holdings.means()
    by_rule = {name: charges(holdings, name) for name in RULES}
    counted = against_quota(ledger, by_rule[rule])
    empty = unfilled(ledger)
    used = holdings.by_tenant(size)
    running = np.bincount(sessions.tenant[sessions.state == RUNNING], minlength=tenants)
    columns = {
        "sessions": np.bincount(sessions.tenant, minlength=tenants),
        "running": running,
        "blocks": np.bincount(holdings.tenant, minlength=tenants),
        "used": used,
        "charged": by_rule[rule],
        "charged_owner": by_rule["owner"],
        "charged_full": by_rule["full"],
        "charged_fractional": by_rule["fractional"],
        "tokens": np.bincount(sessions.tenant, weights=sessions.tokens, minlength=tenants),
        "resident_tokens": _resident(ledger, holdings),
        "token_bytes": used - empty,
        "unfilled": empty,
        "fragmentation": np.divide(empty, used, out=np.zeros(tenants), where=used > 0),
        "pinned": held(holdings.pinned),
        "shared": held(holdings.shared),
        "leased": held(holdings.leased),
        "free": held(means["free"]),
        "offload": held(means["offload"]),
        "compress": _compressed(holdings, means["offload"]),
        "evict_tail": held(means["offload"]),
        "preempt": held(means["preempt"]),
        "unreclaimable": held(holdings.reason(preempt=True) != CLEAR),
    }
    quotas = np.array([np.inf if tenant.quota is None else tenant.quota for tenant in ledger.tenants])
    columns["over"] = np.maximum(0.0, counted - quotas)
    lists = {name: column.tolist() for name, column in columns.items()}
    return tuple(
        TenantRow(
            tenant=tenant.name,
            quota=tenant.quota,
            kind="soft" if tenant.soft else "hard",
            floor=tenant.floor,
            **{name: column[index] for name, column in lists.items()},
        )
        for index, tenant in enumerate(ledger.tenants)
    )


def _resident(ledger: Ledger, holdings: Holdings) -> Numbers:
    """Return the slots with a token in each tenant's distinct blocks of the group that keeps most."""
    tenants = len(ledger.tenants)
    most = np.zeros(tenants)
    for index, group in enumerate(ledger.groups):
        if group.state:
            continue
        own = ledger.group_of[holdings.block] == index
        slots = np.bincount(holdings.tenant[own], minlength=tenants) * float(group.tokens)
        held, filled = group_tokens(ledger, index)
        empty = np.bincount(ledger.sessions.tenant, weights=held * group.tokens - filled, minlength=tenants)
        most = np.maximum(most, slots - empty)
    return most


def _compressed(holdings: Holdings, cold: Flags) -> Numbers:
    """Return what compressing cold blocks would free: whole blocks of each tenant and size."""
    ledger, total = holdings.ledger, np.zeros(len(holdings.ledger.tenants))
    groups = ledger.group_of[holdings.block]
    for index, group in enumerate(ledger.groups):
        if group.state:  # a recurrent state is not compressed
            continue
        chosen = cold & (groups == index)
        counts = np.bincount(holdings.tenant[chosen], minlength=total.size).astype(float)
        total += (counts - np.asarray(compressed_blocks(counts, RATIO))) * group.bytes
    return total


def _groups(ledger: Ledger, book: Notebook) -> tuple[GroupRow, ...]:
    free, found = ledger.free_blocks(), []
    taken = np.bincount(ledger.group_of[ledger.used], minlength=len(ledger.groups))
    for index, group in enumerate(ledger.groups):
        held, filled = group_tokens(ledger, index)
        if not group.state:
            book.run(
                unfilled_bytes,
                blocks=float(held.sum()),
                block=float(group.tokens),
                tokens=float(filled.sum()),
                size=group.bytes,
            )
        found.append(
            GroupRow(
                group=group.name,
                block_tokens=group.tokens,
                block_bytes=group.bytes,
                bytes_per_token=group.bytes_per_token,
                pool_blocks=ledger.pools[group.pool].blocks,
                blocks=int(taken[index]),
                free_blocks=free[group.pool],
                block_table_entries=int(held.sum()),
            )
        )
    return tuple(found)


def _totals(ledger: Ledger, book: Notebook) -> PoolTotals:
    size, references = ledger.size_of, ledger.references
    quotas = sum(tenant.quota or 0.0 for tenant in ledger.tenants)
    floors = sum(tenant.floor for tenant in ledger.tenants)
    capacity, used = ledger.capacity, ledger.used_bytes
    return PoolTotals(
        blocks=ledger.blocks,
        bytes=capacity,
        used_blocks=int(ledger.used.sum()),
        used=used,
        free=capacity - used,
        shared=float(size[references > 1].sum()),
        saved_by_sharing=float((size * np.maximum(0, references - 1)).sum()),
        pinned=float(size[ledger.pinned].sum()),
        leased=float(size[ledger.leased].sum()),
        unheld=float(size[ledger.used & (references == 0)].sum()),
        unfilled=float(unfilled(ledger).sum()),
        quotas=quotas,
        floors=floors,
        oversubscription=float(book.run(capacity_utilization, need=quotas, capacity=capacity)),
        floor_share=float(capacity_utilization(floors, capacity)),
        dram=ledger.host.capacity,
        dram_used=ledger.host.used,
        dram_room=room(ledger.host, book),
    )


def room(host: Host, book: Notebook) -> float:
    """Return the bytes that may still be offloaded; none where the ledger names no DRAM."""
    if host.capacity is None:
        return 0.0
    return float(book.run(tier_room, capacity=host.capacity, watermark=host.watermark, used=host.used))


def _warn(ledger: Ledger, rows: tuple[TenantRow, ...], pool: PoolTotals, book: Notebook) -> None:
    if pool.quotas > pool.bytes:
        book.warn(
            f"oversubscribed: the quotas add up to {pool.oversubscription:.3g} times the pool, so not every "
            "tenant can use its quota at once"
        )
    if pool.floors > pool.bytes:
        book.warn(f"the floors add up to {pool.floor_share:.3g} times the pool: they cannot all be kept")
    unlimited = [tenant.name for tenant in ledger.tenants if tenant.quota is None]
    if unlimited:
        book.assume(f"{_names(unlimited)} {'has' if len(unlimited) == 1 else 'have'} no quota")
    over = [row.tenant for row in rows if row.over > 0]
    if over:
        book.warn(f"{_names(over)} {'is' if len(over) == 1 else 'are'} over quota")


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
