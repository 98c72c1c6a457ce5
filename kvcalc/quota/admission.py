"""How many sessions fit a quota, what a soft quota lets through, and what a busy neighbour takes."""

import numpy as np

from kvcalc.formulas.capacity import sessions_that_fit
from kvcalc.formulas.quota import lru_survival, quota_overshoot
from kvcalc.planning.notebook import Notebook
from kvcalc.quota.ledger import Ledger, Tenant
from kvcalc.quota.results import AdmissionRow, NeighbourRow

CHECK = 1.0
"""Time between two checks of a soft quota where none is given [second]: the loop of LMCache's quota
(https://github.com/LMCache/LMCache/pull/3137)."""


def admission_of(ledger: Ledger, book: Notebook) -> tuple[AdmissionRow, ...]:
    """Return a row for each tenant whose lengths are given or can be taken from its sessions."""
    found = []
    for index, tenant in enumerate(ledger.tenants):
        lengths = lengths_of(ledger, index)
        if lengths is None:
            continue
        p50, p95 = lengths
        sizes = ledger.session_bytes(p50), ledger.session_bytes(p95)
        fit = [
            None if tenant.quota is None else float(_fit(ledger, tenant, length, size, book))
            for length, size in zip(lengths, sizes, strict=True)
        ]
        found.append(
            AdmissionRow(
                tenant=tenant.name,
                length_p50=p50,
                length_p95=p95,
                session_bytes_p50=sizes[0],
                session_bytes_p95=sizes[1],
                fit_p50=fit[0],
                fit_p95=fit[1],
                overshoot=_overshoot(ledger, index, book),
            )
        )
    if any(tenant.length_p50 is None for tenant in ledger.tenants) and found:
        book.assume("tenants without lengths are admitted by the lengths of the sessions they have now")
    return tuple(found)


def _fit(ledger: Ledger, tenant: Tenant, length: int, size: float, book: Notebook) -> float:
    """Sessions that fit: whole blocks count against a quota in bytes, tokens against one in tokens."""
    session = length * ledger.bytes_per_token if tenant.by_tokens else size
    return float(book.run(sessions_that_fit, capacity=tenant.quota, session=session))


def lengths_of(ledger: Ledger, index: int) -> tuple[int, int] | None:
    """Return the P50 and P95 length of a tenant's sessions, given or of those in the ledger."""
    tenant = ledger.tenants[index]
    if tenant.length_p50 is not None and tenant.length_p95 is not None:
        return tenant.length_p50, tenant.length_p95
    tokens = ledger.sessions.tokens[ledger.sessions.tenant == index]
    tokens = tokens[tokens > 0]
    if tokens.size == 0:
        return None
    p50, p95 = np.percentile(tokens, [50, 95], method="higher")
    return int(p50), int(p95)


def writes_of(ledger: Ledger, index: int) -> float | None:
    """Return the KV that a tenant writes per second: given, or its arrivals at their median length."""
    tenant, lengths = ledger.tenants[index], lengths_of(ledger, index)
    if tenant.writes is not None:
        return tenant.writes
    if tenant.arrivals is None or lengths is None:
        return None
    return tenant.arrivals * ledger.session_bytes(lengths[0])


def _overshoot(ledger: Ledger, index: int, book: Notebook) -> float | None:
    tenant, rate = ledger.tenants[index], writes_of(ledger, index)
    if not tenant.soft or rate is None:
        return None
    if tenant.check is None:
        book.assume(f"soft quotas are checked every {CHECK:g} s")
    interval = CHECK if tenant.check is None else tenant.check
    return float(book.run(quota_overshoot, rate=rate, interval=interval))


def neighbours_of(ledger: Ledger, book: Notebook) -> tuple[NeighbourRow, ...]:
    """Return how long each tenant's untouched blocks stay, where the ledger says what tenants write."""
    rates = {index: writes_of(ledger, index) for index in range(len(ledger.tenants))}
    writing = {index: rate for index, rate in rates.items() if rate}
    if not writing:
        return ()
    pinned = float(ledger.size_of[ledger.pinned].sum())
    together = float(
        book.run(lru_survival, capacity=ledger.capacity - pinned, writes=float(sum(writing.values())))
    )
    if len(writing) < len(rates):
        book.assume("tenants without writes or arrivals write nothing")
    found = []
    for index, rate in writing.items():
        tenant = ledger.tenants[index]
        own = float(lru_survival(tenant.floor, rate)) if tenant.floor else None
        gap = tenant.reuse_gap
        found.append(
            NeighbourRow(
                tenant=tenant.name,
                writes=rate,
                survives_shared=together,
                survives_floor=own,
                reuse_gap=gap,
                hits_shared=None if gap is None else gap < together,
                hits_floor=None if gap is None or own is None else gap < own,
            )
        )
    for row in found:
        if row.hits_shared is False:
            saved = ", while its own floor would keep it" if row.hits_floor else ""
            book.warn(
                f"{row.tenant} comes back after {row.reuse_gap:g} s, but under one shared LRU its blocks "
                f"stay {row.survives_shared:.3g} s: its neighbours take all of its hits{saved}"
            )
    return tuple(found)
