"""How to get bytes back from a tenant: steps in the fixed order, their price, and what can never be had."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.formulas.quota import drop_cost, offload_cost
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.quota.applying import without_blocks
from kvcalc.quota.charging import MEANINGS, RULES, against_quota, charges
from kvcalc.quota.cheapest import Cheap, cheapest
from kvcalc.quota.decodes import decodes_of
from kvcalc.quota.fixed import Allowed, FixedOrder, Move, move_costs
from kvcalc.quota.holdings import CLEAR, REASONS, Holdings
from kvcalc.quota.intervals import Blocks, falling_ranges
from kvcalc.quota.ledger import RUNNING, Ledger, Numbers, Waiting
from kvcalc.quota.leftovers import left_of
from kvcalc.quota.placement import largest, placement_of
from kvcalc.quota.rates import LONG, Rates
from kvcalc.quota.results import Charge, Cheapest, QuotaReclaimResult, Step, Unreclaimable, Watermark
from kvcalc.quota.segments import Segment, names_of, segments_of
from kvcalc.quota.show import room


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a plan."""

    tenant: str
    size: float | None = None  # byte; None with `to_quota` or `everything`
    to_quota: bool = False
    everything: bool = False  # the tenant is deleted
    rule: str = RULES[0]
    allowed: Allowed = field(default_factory=Allowed)
    waiting_tokens: int | None = None  # of a request that waits, instead of the ledger's
    arrivals: float | None = None  # requests per second, for what waits behind closed admission


def reclaim(
    ledger: Ledger, request: Request, rates: Rates, book: Notebook
) -> tuple[QuotaReclaimResult, Ledger, tuple[Call, ...]]:
    """Return the plan, the ledger after it, and the formulas as called.

    Raises
    ------
    SettingsError
        If the tenant is unknown, or nothing says how much to free.
    """
    tenant = _tenant(ledger, request)
    holdings = Holdings.of(ledger, tenant)
    before = charges(Holdings.of(ledger), request.rule)
    over = _over(ledger, before, tenant)
    need = _need(ledger, request, holdings, over)
    segments = segments_of(ledger, holdings, rates, request.allowed.preempt)
    space = room(ledger.host, book)
    plan = FixedOrder(ledger, segments, rates, request.allowed, need, space).make()
    steps = _steps(ledger, segments, plan.moves, rates, request.tenant, book)
    least = cheapest(segments, need, space, request.allowed, ledger.host.capacity is not None)
    after = _after(ledger, segments, plan, tenant, request.everything)
    _tell(ledger, request, plan, book)
    placement = placement_of(after, _waiting(ledger, request), need)
    charged = _charges(ledger, after, before, request, book)
    arrivals = ledger.tenants[tenant].arrivals if request.arrivals is None else request.arrivals
    decodes = decodes_of(ledger, tenant, holdings, over, float(before[tenant]), rates, arrivals, book)
    result = QuotaReclaimResult(
        inputs=_inputs(ledger, request, rates),
        sources=book.sources,
        warnings=tuple(book.warnings),
        assumptions=tuple(book.assumptions),
        tenant=request.tenant,
        rule=request.rule,
        asked_bytes=need,
        steps=steps,
        freed_bytes=plan.freed,
        freed_blocks=sum(int(taken.sum()) for taken in plan.taken),
        reached=plan.freed >= need,
        used_before=ledger.used_bytes,
        used_after=after.used_bytes,
        cost_seconds=sum(step.cost_seconds for step in steps),
        unreclaimable=_unreclaimable(ledger, holdings, request),
        left=left_of(plan, request.allowed),
        usable_after=placement.placed,
        placement=placement,
        least_cost=_least(ledger, segments, least, plan, steps, rates, request.tenant, need),
        watermark=_watermark(ledger, plan, space),
        charges=charged,
        decodes=decodes,
        recompute_rate=LONG / float(rates.recompute(LONG, 0.0)),
        out_bandwidth=rates.out,
        back_bandwidth=rates.back,
        arrivals=request.arrivals,
    )
    return result, after, tuple(book.calls)


def _waiting(ledger: Ledger, request: Request) -> Waiting | None:
    """Return the request that waits: the one that was asked about, else the ledger's largest."""
    if request.waiting_tokens is not None:
        return Waiting("--request", request.waiting_tokens, request.tenant)
    return largest(ledger)


def _tenant(ledger: Ledger, request: Request) -> int:
    tenant = ledger.tenant_index(request.tenant)
    if tenant < 0:
        known = [one.name for one in ledger.tenants]
        raise SettingsError(
            f"--tenant: no tenant of {ledger.file} is named {request.tenant!r}"
            f"{did_you_mean(request.tenant, known)}"
        )
    return tenant


def _need(ledger: Ledger, request: Request, holdings: Holdings, over: float) -> float:
    """Return the bytes to free; to the quota: what is over it."""
    asked = [request.size is not None, request.to_quota, request.everything]
    if sum(asked) != 1:
        raise SettingsError("--bytes: give one of --bytes, --to-quota and --all, to say how much to free")
    if request.everything:
        return float(holdings.size.sum())
    if request.size is not None:
        return request.size
    if ledger.tenants[int(ledger.tenant_index(request.tenant))].quota is None:
        raise SettingsError(f"--to-quota: tenant {request.tenant!r} has no quota; give --bytes")
    return over


def _steps(
    ledger: Ledger,
    segments: Sequence[Segment],
    moves: Sequence[Move],
    rates: Rates,
    tenant: str,
    book: Notebook | None = None,
) -> tuple[Step, ...]:
    found = []
    for move, (now, later, link) in zip(moves, move_costs(moves, segments, rates), strict=True):
        one = segments[move.segment]
        blocks = one.blocks[move.places]
        found.append(
            Step(
                means=move.means,
                tenant=tenant,
                session=names_of(ledger, one.holders),
                blocks=int(blocks.size),
                bytes=float(one.sizes[move.places].sum()),
                cost_seconds=now + later,
                seconds=now,
                later_seconds=later,
                link_bytes=link,
                block_ids=tuple((low, high) for low, high in falling_ranges(_in_pool(ledger, blocks))),
            )
        )
        if book is not None and len(found) <= 1 + len({step.means for step in found}):
            _explain(found[-1], one, rates, book)
    return tuple(found)


def _explain(step: Step, one: Segment, rates: Rates, book: Notebook) -> None:
    """Note the formula behind a step."""
    if step.means == "offload":
        book.run(
            offload_cost, size=step.bytes, out=rates.out, back=rates.back, reuse=one.reuse, setup=rates.setup
        )
    elif step.means in ("evict_tail", "preempt") and one.reuse > 0:
        book.run(drop_cost, recompute=step.cost_seconds / one.reuse, reuse=one.reuse)


def _in_pool(ledger: Ledger, blocks: Blocks) -> Blocks:
    """Return blocks by the numbers that the file uses."""
    firsts = np.array([pool.first for pool in ledger.pools], dtype=np.int64)
    return blocks - firsts[np.searchsorted(firsts, blocks, side="right") - 1]


def _after(
    ledger: Ledger, segments: Sequence[Segment], plan: FixedOrder, tenant: int, everything: bool
) -> Ledger:
    """Return the ledger once the plan is done; who lost all that could go lets go of the rest."""
    freed = [one.blocks[taken] for one, taken in zip(segments, plan.taken, strict=True)]
    offloaded = sum(
        float(segments[move.segment].sizes[move.places].sum())
        for move in plan.moves
        if move.means == "offload"
    )
    touched: set[int] = set()
    kept: set[int] = set()
    for index, one in enumerate(segments):
        (touched if plan.done(index) else kept).update(one.holders)
    released = touched - kept
    if everything:
        free_to_go = plan.allowed.preempt | (ledger.state_of != RUNNING)
        released |= set(np.flatnonzero((ledger.sessions.tenant == tenant) & free_to_go).tolist()) - kept
    blocks = np.concatenate(freed) if freed else np.zeros(0, dtype=np.int64)
    return without_blocks(ledger, blocks, sorted(released), offloaded)


def _over(ledger: Ledger, charged: Numbers, tenant: int) -> float:
    """Return by how much a tenant exceeds its quota."""
    quota = ledger.tenants[tenant].quota
    return 0.0 if quota is None else max(0.0, float(against_quota(ledger, charged)[tenant]) - quota)


def _charges(
    ledger: Ledger, after: Ledger, before: Numbers, request: Request, book: Notebook
) -> tuple[Charge, ...]:
    """Return the charges that change, and say whose jump although nothing was allocated."""
    book.assume(MEANINGS[request.rule])
    later = charges(Holdings.of(after), request.rule)
    found = []
    for index, tenant in enumerate(ledger.tenants):
        old, new = float(before[index]), float(later[index])
        if old == new and tenant.name != request.tenant:
            continue
        over = _over(after, later, index)
        found.append(Charge(tenant.name, old, new, tenant.quota, over))
        if new > old:
            exceeds = f" and exceeds its quota by {over:,.0f} bytes" if over else ""
            book.warn(
                f"the charge of {tenant.name} jumps by {new - old:,.0f} bytes{exceeds}, although nothing was "
                f"allocated: {request.tenant} let go of blocks that they shared"
            )
    return tuple(found)


def _unreclaimable(ledger: Ledger, holdings: Holdings, request: Request) -> tuple[Unreclaimable, ...]:
    """Return the blocks that cannot be had, by reason and by the first session that holds them."""
    reason = holdings.reason(request.allowed.preempt)
    held = reason != CLEAR
    if not held.any():
        return ()
    first = np.full(ledger.span, -1, dtype=np.int64)
    own = ledger.sessions.tenant[ledger.holder] == holdings.tenant[0]
    first[ledger.block[own][::-1]] = ledger.holder[own][::-1]
    key = reason[held] * np.int64(len(ledger.sessions.ids)) + first[holdings.block[held]]
    keys, place = np.unique(key, return_inverse=True)
    counts = np.bincount(place)
    sizes = np.bincount(place, weights=holdings.size[held])
    return tuple(
        Unreclaimable(
            reason=REASONS[number // len(ledger.sessions.ids)],
            tenant=request.tenant,
            session=ledger.sessions.ids[number % len(ledger.sessions.ids)],
            blocks=count,
            bytes=size,
        )
        for number, count, size in zip(keys.tolist(), counts.tolist(), sizes.tolist(), strict=True)
    )


def _least(
    ledger: Ledger,
    segments: Sequence[Segment],
    least: Cheap,
    plan: FixedOrder,
    steps: tuple[Step, ...],
    rates: Rates,
    tenant: str,
    need: float,
) -> Cheapest:
    """Return the cheapest plan with what the fixed order costs more."""
    reason = None
    if any(step.means == "compress" for step in steps):
        reason = "the fixed order compresses, and what that loses has no price in seconds"
    elif min(plan.freed, need) != min(least.freed, need):
        reason = "one of the two frees more"
    cost = sum(step.cost_seconds for step in steps)
    return Cheapest(
        freed_bytes=least.freed,
        cost_seconds=least.cost,
        lower_bound=least.bound,
        method="exact" if least.exact else "greedy",
        saves=None if reason else cost - least.cost,
        reason=reason,
        steps=_steps(ledger, segments, least.moves, rates, tenant),
    )


def _watermark(ledger: Ledger, plan: FixedOrder, space: float) -> Watermark | None:
    host = ledger.host
    if host.capacity is None:
        return None
    freed = {"offload": 0.0, "compress": 0.0}
    for move in plan.moves:
        if move.means in freed:
            freed[move.means] += float(plan.segments[move.segment].sizes[move.places].sum())
    barred = [
        float(one.sizes[~plan.taken[index] & ~one.copied].sum())
        for index, one in enumerate(plan.segments)
        if plan.barred[index]
    ]
    return Watermark(
        room=space,
        offloaded=freed["offload"],
        kept_out=sum(barred) + freed["compress"],
        compressed=freed["compress"],
        room_without=max(0.0, host.capacity - host.used),
    )


def _tell(ledger: Ledger, request: Request, plan: FixedOrder, book: Notebook) -> None:
    """Say what the reader of a plan must not miss."""
    for note in ledger.notes:
        book.warn(note)
    if not plan.enough:
        book.warn(
            f"only {plan.freed:,.0f} of {plan.need:,.0f} bytes can be freed from {request.tenant} by what is "
            "allowed"
        )
    if ledger.host.capacity is None:
        book.assume("the ledger names no DRAM (pool.dram), so nothing is offloaded or compressed")
    if any(move.means == "compress" for move in plan.moves):
        book.warn("compressing is lossy and cannot be undone; what it does to answers is to be judged apart")
    if any(move.means == "evict_tail" for move in plan.moves):
        book.warn(
            "evicting a tail breaks the context: its tokens are computed again if the session comes back"
        )
    book.assume(
        "bytes of the ledger are those of one GPU, and prices are seconds of its link or of its compute"
    )
    if any(one.reuse for one in plan.segments):
        book.assume(
            "what happens later counts by its chance: p_reuse of the ledger, else 0 for finished sessions "
            "and 1 for suspended ones"
        )


def _inputs(ledger: Ledger, request: Request, rates: Rates) -> dict[str, object]:
    allowed = {f"allow_{name}": value for name, value in asdict(request.allowed).items()}
    return {
        "ledger": ledger.file,
        "tenant": request.tenant,
        "bytes": request.size,
        "to_quota": request.to_quota,
        "all": request.everything,
        "rule": request.rule,
        **allowed,
        "setup": rates.setup,
        "compress_ratio": rates.ratio,
        "step_time": rates.step_time,
        "request_tokens": request.waiting_tokens,
    }
