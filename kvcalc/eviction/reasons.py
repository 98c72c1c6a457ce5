"""Why a sequence goes or stays, in the words of the line that says so."""

from kvcalc.eviction.policies import COST, RULES
from kvcalc.eviction.results import FREE
from kvcalc.eviction.rules import HIGH_PRIORITY, NEAR_COMPLETION, SHORT, STALLED, Rules
from kvcalc.eviction.sequences import LiveSequence

SHARED = "all its blocks are shared: freeing one holder frees nothing"
EMPTY = "it holds nothing that could be freed"
QUEUE_MODE = "preempt_mode queue evicts nobody"
NOT_NEEDED = "not needed: enough is free without it"
NOT_NAMED = "no class of victim_order names it"


def queueing(seconds: float) -> str:
    """Return why nobody goes when waiting is cheaper."""
    return f"queueing the new request costs {seconds:.3g} s, less than its victims would"


def protection(rules: Rules, sequence: LiveSequence) -> str:
    """Return what protects a sequence: the first rule that does."""
    left, ago = sequence.tokens_remaining, sequence.evicted_seconds_ago
    if NEAR_COMPLETION in rules.protect and left < rules.near_completion:
        return f"near completion: {left:,} tokens to go < {rules.near_completion:,.0f}"
    if HIGH_PRIORITY in rules.protect and sequence.priority > rules.high_priority:
        tenant = f" of tenant {sequence.tenant}" if sequence.tenant else ""
        return f"high priority{tenant}: {sequence.priority:g} > {rules.high_priority:g}"
    return f"cooldown: evicted {ago:g} s ago < {rules.cooldown:g} s"


def eviction(
    policy: str, rules: Rules, sequence: LiveSequence, mode: str, cost: float, freed: float, tier: str
) -> str:
    """Return why a sequence goes now."""
    if mode == FREE:
        return "finished but not released: costs nothing"
    return _because(policy, rules, sequence, cost, freed) + _how(mode, tier, sequence)


def _because(policy: str, rules: Rules, sequence: LiveSequence, cost: float, freed: float) -> str:
    done, left = sequence.tokens_done, sequence.tokens_remaining
    if policy == COST:
        return f"cheapest byte: {cost * 1e9 / freed:.3g} s per GB"
    if policy == "lru":
        return f"least recently used: idle for {sequence.idle_seconds:g} s"
    if policy == "priority":
        return f"lowest priority: {sequence.priority:g}"
    if policy == RULES and done < rules.short and left < rules.low_remaining:
        return f"{SHORT}: {done:,} done < {rules.short:,.0f}, {left:,} to go < {rules.low_remaining:,.0f}"
    if policy == RULES:
        return f"{STALLED}: {done:,} done, idle for {sequence.idle_seconds:g} s >= {rules.stalled:g} s"
    share = f"{done / left:,.3g}" if left else "no end"
    return f"lowest ratio of done to remaining: {done:,} / {left:,} = {share}"


def _how(mode: str, tier: str, sequence: LiveSequence) -> str:
    shared = f", {sequence.shared_blocks:,} shared blocks stay" if sequence.shared_blocks else ""
    if mode == "swap":
        return f"; to {tier} and back{shared}"
    return ("; only its tail is dropped" if mode == "tail" else "; all of it is computed again") + shared
