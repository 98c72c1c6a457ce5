"""Which row of the table of misdiagnoses applies, with the numbers that led to it."""

from dataclasses import dataclass

from kvcalc.diagnose.logs import LogFacts
from kvcalc.diagnose.results import Comparison, Verdict
from kvcalc.formulas.eviction import THRASH_EVICTIONS, THRASH_SHARE, is_thrashing

FULL = 0.90
"""Share of the KV pool [1] above which usage warns: the operating rule that goes with the thrash rule."""

EMPTY = 0.50
"""Share of the KV pool [1] below which running out of memory is not for want of KV; assumed."""

BUSY = 0.80
"""Share of the time [1] in which a GPU must run kernels to count as busy; assumed."""

SPIKE = 5.0
"""P99 over median of the total time [1] above which it is a spike; assumed."""

REPEATED = 0.20
"""Share of preempted requests [1] that were so more than once, above which a cooldown is missing: a
well-set engine shows about 5 %, https://github.com/inference-sim/inference-sim/issues/963"""

OFF = 0.05
"""Difference of logged and predicted KV size [1] above which the layout is in question."""


@dataclass(frozen=True, slots=True)
class Signs:
    """The numbers that verdicts rest on; None where they are missing."""

    usage: float | None
    preemptions: float | None  # per second
    recomputed: float | None
    utilization: float | None  # of the GPUs
    waiting: float | None
    repeat_share: float | None
    most_preempted: int
    p50: float | None
    p99: float | None
    out_of_memory: int


def warnings_of(signs: Signs) -> tuple[str, ...]:
    """Return which of the watched limits are passed."""
    found = []
    if signs.usage is not None and signs.usage > FULL:
        found.append(f"live requests hold {signs.usage:.1%} of the KV cache, above {FULL:.0%}")
    if signs.preemptions is not None and is_thrashing(signs.preemptions, 0.0):
        found.append(f"{signs.preemptions:.3g} preemptions/s, above {THRASH_EVICTIONS:g}/s: stop admitting")
    if signs.recomputed is not None and is_thrashing(0.0, signs.recomputed):
        found.append(f"{signs.recomputed:.1%} of all tokens are recomputed, above {THRASH_SHARE:.0%}")
    return tuple(found)


def verdicts_of(signs: Signs, compared: Comparison | None) -> tuple[Verdict, ...]:
    """Return the problems that the signs show, the gravest first."""
    rows = (_memory(signs), _policy(signs), _recompute(signs), _near(signs), _cooldown(signs))
    found = [row for row in rows if row is not None]
    if compared is not None and compared.difference is not None and abs(float(compared.difference)) > OFF:
        found.append(
            Verdict("layout", compared.explanation, "check the settings named here against the engine's")
        )
    if not found and (compute := _compute(signs)) is not None:
        found.append(compute)
    return tuple(found) or (_nothing(signs),)


def _held(usage: float) -> str:
    """Return what the engines' usage counts: live requests; cached blocks that nobody uses are free."""
    return f"live requests hold {usage:.0%} of the KV cache"


def _thrashing(signs: Signs) -> str | None:
    """Return by which limits evictions are too many, None where they are not or nobody knows."""
    told = []
    if signs.preemptions is not None and signs.preemptions > THRASH_EVICTIONS:
        told.append(f"{signs.preemptions:.3g} preemptions/s")
    if signs.recomputed is not None and signs.recomputed > THRASH_SHARE:
        told.append(f"{signs.recomputed:.0%} of tokens recomputed")
    return " and ".join(told) or None


def _memory(signs: Signs) -> Verdict | None:
    if not signs.out_of_memory or signs.usage is None or signs.usage >= EMPTY:
        return None
    return Verdict(
        "memory_not_kv",
        f"{signs.out_of_memory} times out of memory while live requests held {signs.usage:.0%} of the KV "
        "cache at most",
        "look at weights, activations, graphs and fragmentation, not at eviction: a lower memory share, "
        "fewer tokens a step, expandable allocator segments",
    )


def _policy(signs: Signs) -> Verdict | None:
    often = _thrashing(signs)
    if often is None or signs.usage is None or signs.usage <= FULL:
        return None
    busy = "" if signs.utilization is None else f", GPUs {signs.utilization:.0%} busy"
    if signs.utilization is not None and signs.utilization < BUSY:
        return None
    return Verdict(
        "policy",
        f"{_held(signs.usage)}, {often}{busy}",
        "close admission until it is below 5/s and 20 %, protect what is near completion, give a cooldown, "
        "cap running sequences; it is not too little compute, and more GPUs buy the same problem",
    )


def _recompute(signs: Signs) -> Verdict | None:
    if signs.recomputed is None or signs.recomputed <= THRASH_SHARE:
        return None
    return Verdict(
        "recompute_share",
        f"{signs.recomputed:.0%} of all computed tokens had been computed before",
        "keep prefixes and drop tails only, swap to DRAM, or queue new requests: throughput falls with "
        "concurrency as long as victims start over",
    )


def _near(signs: Signs) -> Verdict | None:
    if not signs.preemptions or signs.p50 is None or signs.p99 is None or signs.p50 <= 0:
        return None
    if signs.p99 / signs.p50 <= SPIKE:
        return None
    return Verdict(
        "near_complete_victims",
        f"P99 of the total time is {signs.p99 / signs.p50:.1f} times the median, with "
        f"{signs.preemptions:.3g} preemptions/s",
        "protect sequences with fewer than 512 tokens to go: evicting them late is what the P99 shows",
    )


def _cooldown(signs: Signs) -> Verdict | None:
    share = signs.repeat_share
    if (share is None or share <= REPEATED) and signs.most_preempted < 3:
        return None
    told = f"{share:.0%} of preempted requests were so more than once" if share is not None else ""
    most = f"one request was preempted {signs.most_preempted} times" if signs.most_preempted > 1 else ""
    return Verdict(
        "no_cooldown",
        "; ".join(part for part in (told, most) if part),
        "give victims a cooldown of 30 s, or a least number of tokens, before they may be evicted again",
    )


def _compute(signs: Signs) -> Verdict | None:
    if signs.utilization is None or signs.utilization < BUSY or not signs.waiting:
        return None
    if signs.usage is None or signs.usage > FULL:
        return None
    return Verdict(
        "compute",
        f"GPUs {signs.utilization:.0%} busy, {signs.waiting:.0f} requests wait, and "
        f"{_held(signs.usage)} only",
        "more or faster GPUs, a smaller model or fewer tokens; another eviction policy changes nothing",
    )


def _nothing(signs: Signs) -> Verdict:
    known = [signs.usage, signs.preemptions, signs.recomputed]
    if all(value is None for value in known):
        return Verdict(
            "unknown", "neither usage nor preemptions nor recompute is known", "give metrics or a log"
        )
    shown = [] if signs.usage is None else [_held(signs.usage)]
    shown += [] if signs.preemptions is None else [f"{signs.preemptions:.3g} preemptions/s"]
    shown += [] if signs.recomputed is None else [f"{signs.recomputed:.1%} recomputed"]
    unknown = "" if None not in known else "; what is missing might say otherwise"
    return Verdict(
        "none", ", ".join(shown) + unknown, "nothing: eviction is not the problem, and LRU is enough"
    )


def signs_of(values: dict[str, float | None], log: LogFacts | None, utilization: float | None) -> Signs:
    """Return the signs: metrics first, the log where they say nothing."""
    usage = values["usage"]
    if log is not None and log.usage is not None:
        usage = log.usage if usage is None else max(usage, log.usage)
    waiting = values["waiting"]
    if waiting is None and log is not None and log.waiting is not None:
        waiting = float(log.waiting)
    return Signs(
        usage=usage,
        preemptions=values["preemptions_per_second"],
        recomputed=values["recomputed_share"],
        utilization=utilization,
        waiting=waiting,
        repeat_share=values["repeat_share"],
        most_preempted=0 if log is None else log.most_preempted,
        p50=values["total_p50"],
        p99=values["total_p99"],
        out_of_memory=0 if log is None else log.out_of_memory,
    )
