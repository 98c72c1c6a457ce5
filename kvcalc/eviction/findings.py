"""Which misdiagnoses the figures of a simulation rule out, and what they advise."""

from collections.abc import Sequence

from kvcalc.eviction.results import Finding, SimulatedRow, StabilityRow
from kvcalc.formulas.eviction import THRASH_SHARE

SAME = 0.02
"""Difference of goodput and P99 [1] below which two policies are the same for a user."""

WORTH = 0.01
"""Share of the GPU's time [1] lost to evictions below which no policy can matter; assumed."""

HANDFUL = 4
"""Evictions of one request [1] that a well-set engine shows at most: 19,801 requests under vLLM,
https://github.com/inference-sim/inference-sim/issues/963"""

SHORT = 2000
"""Tokens below which a request counts as short [token]: recompute is then cheaper than most queues."""

FULL = 0.9
"""Occupancy of the pool [1] from which it counts as full; assumed: a few requests more would evict."""


def findings_of(
    rows: Sequence[SimulatedRow], cooled: Sequence[str], larger: SimulatedRow | None
) -> tuple[Finding, ...]:
    """Return the misdiagnoses that apply at the load that was asked.

    Parameters
    ----------
    rows : all policies under all loads
    cooled : policies with a cooldown
    larger : the first thrashing policy again, with a larger pool
    """
    asked = [row for row in rows if row.load == 1]
    found: list[Finding] = []
    best = min((p99(row) for row in asked), default=0.0)
    for row in asked:
        if row.near_complete_evictions and p99(row) > best * (1 + SAME):
            found.append(_near_complete(row, best))
        if row.most_evictions > HANDFUL and row.policy not in cooled:
            found.append(_no_cooldown(row))
        found += _falling(row, rows)
        if larger is not None and larger.policy == row.policy and larger.thrashing:
            found.append(_more_memory(row, larger))
    return tuple(found)


def p99(row: SimulatedRow) -> float:
    """Return the P99 of the total time, endless where nothing finished."""
    return float("inf") if row.total.p99 is None else float(row.total.p99)


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 1000 else f"{value:.3g} s"


def _near_complete(row: SimulatedRow, best: float) -> Finding:
    return Finding(
        "near_complete_victims",
        row.policy,
        f"P99 is {_seconds(p99(row))} against {_seconds(best)}, and "
        f"{row.near_complete_evictions:.0f} victims were about to finish: "
        "not too little compute; protect sequences near completion",
    )


def _no_cooldown(row: SimulatedRow) -> Finding:
    return Finding(
        "no_cooldown",
        row.policy,
        f"one request was evicted {row.most_evictions:.0f} times, {row.repeat_evictions:.0f} more than once: "
        "nothing keeps the policy from the same sequence; give it a cooldown",
    )


def _falling(row: SimulatedRow, rows: Sequence[SimulatedRow]) -> list[Finding]:
    """Say so where more load gives less, and recompute is why."""
    lower = [other for other in rows if other.policy == row.policy and other.load < row.load]
    peak = max((float(other.goodput) for other in lower), default=0.0)
    if row.goodput >= peak or row.recomputed_share <= THRASH_SHARE:
        return []
    text = (
        f"goodput falls from {peak:.3g}/s to {row.goodput:.3g}/s as load grows, and "
        f"{row.recomputed_share:.0%} of all tokens are computed again: keep prefixes and drop tails, or queue"
    )
    return [Finding("recompute_share", row.policy, text)]


def _more_memory(row: SimulatedRow, larger: SimulatedRow) -> Finding:
    return Finding(
        "policy_unchanged",
        row.policy,
        f"with 20 % more pool it still thrashes: {larger.evictions_per_second:.3g} evictions/s and "
        f"{larger.recomputed_share:.0%} recomputed, after {row.evictions_per_second:.3g}/s and "
        f"{row.recomputed_share:.0%}; more GPUs buy the same problem at a higher price",
    )


def lru_is_enough(rows: Sequence[SimulatedRow]) -> bool:
    """Tell whether no policy would do noticeably better than another at the load that was asked."""
    asked = [row for row in rows if row.load == 1]
    if max((float(row.eviction_value) for row in asked), default=0.0) < WORTH:
        spreads = [[float(row.goodput) for row in asked], [p99(row) for row in asked]]
        return all(max(values) - min(values) <= SAME * max(values) for values in spreads)
    return False


def advice(rows: Sequence[SimulatedRow], mean_tokens: float, enough: bool, told: StabilityRow) -> str:
    """Return what to do, in a sentence; `told` is what closed forms say of the load that was asked."""
    asked = [row for row in rows if row.load == 1]
    if not any(row.stable for row in asked):
        limit = "" if told.stable else f": {told.reason}"
        return f"No policy serves this load{limit}. Lower the rate, or add memory or GPUs first."
    value = max(float(row.eviction_value) for row in asked)
    if enough:
        why = [f"requests are short ({mean_tokens:,.0f} tokens)"] if mean_tokens < SHORT else []
        if max(float(row.occupancy) for row in asked) < FULL:
            why.append(f"the pool is {max(float(row.occupancy) for row in asked):.0%} full")
        because = f", since {' and '.join(why)}" if why else ""
        return (
            f"LRU is enough{because}: recompute cost times eviction frequency is {value:.1%} of the GPU's "
            "time, the most that another policy could win."
        )
    best = min(asked, key=lambda row: (-float(row.goodput), p99(row)))
    return (
        f"{best.policy} serves best: {best.goodput:.3g} requests/s within the deadline and a P99 of "
        f"{_seconds(p99(best))}; evictions cost up to {value:.1%} of the GPU's time."
    )
