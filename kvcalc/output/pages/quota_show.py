"""The page of `kvcalc quota show`: tenants against quotas, blocks against tokens, what was promised."""

from kvcalc.output.fields import text
from kvcalc.output.format import binary_text, bytes_text, human
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks
from kvcalc.quota.charging import MEANINGS
from kvcalc.quota.results import QuotaShowResult, TenantRow

_SHOWN = 50
"""Tenants that a page shows; all are in JSON and CSV."""


def page(result: QuotaShowResult) -> Page:
    """Return the totals, then a grid for what tenants hold, one for what they could give back, and plans."""
    rows = sorted(result.rows, key=lambda row: -float(row.charged))[:_SHOWN]
    more = len(result.rows) - len(rows)
    blocks: tuple[Grid | Lines, ...] = (
        Lines("", _totals(result)),
        *([_groups(result)] if len(result.groups) > 1 else []),
        _holding(result, rows, more),
        _waste(rows),
        _means(rows),
        *_admission(result),
        *_neighbours(result),
        *remarks(result),
    )
    return Page(f"Ledger {result.inputs['ledger']}, shared blocks charged {result.rule}", blocks)


def _totals(result: QuotaShowResult) -> tuple[Cell | str, ...]:
    pool = result.pool
    first = Cell(
        f"{text(pool, 'used_blocks')} of {text(pool, 'blocks')} blocks are used: "
        f"{bytes_text(float(pool.used))} of {bytes_text(float(pool.bytes))}.",
        "bold",
    )
    token = (
        f"One token takes {human(result.bytes_per_token, 'byte/token')} "
        f"({binary_text(float(result.bytes_per_token))}). Without a token in them: "
        f"{bytes_text(float(pool.unfilled))}. Pinned: {text(pool, 'pinned')}; in transfers: "
        f"{text(pool, 'leased')}; sharing saves {text(pool, 'saved_by_sharing')}."
    )
    promised = (
        f"Quotas add up to {bytes_text(float(pool.quotas))}, {text(pool, 'oversubscription')} of the pool; "
        f"floors to {bytes_text(float(pool.floors))}, {text(pool, 'floor_share')}."
    )
    host = (
        ()
        if pool.dram is None
        else (f"Host DRAM has room for {bytes_text(float(pool.dram_room))} below its watermark.",)
    )
    return (first, token, promised, *host)


def _groups(result: QuotaShowResult) -> Grid:
    names = (
        "group",
        "block_tokens",
        "block_bytes",
        "bytes_per_token",
        "blocks",
        "free_blocks",
        "pool_blocks",
    )
    rows: list[tuple[Cell | str, ...]] = [tuple(text(row, name) for name in names) for row in result.groups]
    header = ("group", "block", "bytes", "per token", "in use", "free", "pool")
    return grid("KV groups: a session needs blocks in each of them", header, "lrrrrrr", rows)


def _holding(result: QuotaShowResult, rows: list[TenantRow], more: int) -> Grid:
    shown: list[tuple[Cell | str, ...]] = [
        (
            row.tenant,
            text(row, "sessions"),
            text(row, "blocks"),
            text(row, "used"),
            Cell(text(row, "charged"), "bold"),
            text(row, "quota"),
            Cell(text(row, "over"), "bad") if float(row.over) else "-",
            text(row, "floor") if float(row.floor) else "-",
            text(row, "shared"),
            text(row, "pinned"),
            text(row, "leased") if float(row.leased) else "-",
        )
        for row in rows
    ]
    header = ("tenant", "sessions", "blocks", "used", "charged", "quota", "over", "floor", "shared", "pinned",
              "in transfer")  # fmt: skip
    notes: tuple[str, ...] = (f"Charged: {MEANINGS[result.rule]}.",)
    if more > 0:
        notes += (f"{more:,} more tenants, charged less, are in --format json and csv.",)
    return grid("What tenants hold", header, "l" + "r" * 10, shown, notes)


def _waste(rows: list[TenantRow]) -> Grid:
    names = ("tenant", "blocks", "tokens", "used", "token_bytes", "unfilled", "fragmentation")
    shown: list[tuple[Cell | str, ...]] = [tuple(text(row, name) for name in names) for row in rows]
    header = ("tenant", "blocks", "tokens", "by blocks", "by tokens", "gap", "of used")
    return grid("Blocks against tokens", header, "lrrrrrr", shown)


def _means(rows: list[TenantRow]) -> Grid:
    names = ("tenant", "free", "offload", "compress", "evict_tail", "preempt", "unreclaimable")
    shown: list[tuple[Cell | str, ...]] = [tuple(text(row, name) for name in names) for row in rows]
    header = ("tenant", "free", "offload", "or compress", "or evict", "preempt", "never")
    notes = (
        "Compress and evict take what could be offloaded. Never: pinned, shared with others, in transfers.",
    )
    return grid("Reclaimable by", header, "lrrrrrr", shown, notes)


def _admission(result: QuotaShowResult) -> tuple[Grid, ...]:
    if not result.admission:
        return ()
    names = ("tenant", "length_p50", "fit_p50", "length_p95", "fit_p95", "overshoot")
    rows: list[tuple[Cell | str, ...]] = [
        tuple(text(row, name) for name in names) for row in result.admission[:_SHOWN]
    ]
    header = ("tenant", "P50 length", "fit", "P95 length", "fit", "overshoot")
    return (grid("Sessions that fit the quota", header, "lrrrrr", rows),)


def _neighbours(result: QuotaShowResult) -> tuple[Grid, ...]:
    if not result.neighbours:
        return ()
    names = (
        "tenant",
        "writes",
        "survives_shared",
        "survives_floor",
        "reuse_gap",
        "hits_shared",
        "hits_floor",
    )
    rows: list[tuple[Cell | str, ...]] = [
        tuple(text(row, name) for name in names) for row in result.neighbours[:_SHOWN]
    ]
    header = ("tenant", "writes", "stays, one LRU", "stays, own floor", "comes back", "hits", "hits in floor")
    return (grid("Untouched blocks under one shared LRU against floors", header, "lrrrrll", rows),)
