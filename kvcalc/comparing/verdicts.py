"""The verdicts of a plan by key, and the numbers behind each of them in words."""

from kvcalc.planning.offload import ACTIVE_WORKING_SET
from kvcalc.records import record
from kvcalc.results import Offload, PlanResult
from kvcalc.wording import size_text, time_text


@record
class Verdict:
    """One verdict of one plan."""

    word: str
    why: str  # the numbers it rests on


def verdicts_of(result: PlanResult) -> dict[str, Verdict]:
    """Return every verdict of a plan: fit, first limit, decode, each tier in each mode, eviction."""
    found = {
        "fits": Verdict("yes" if result.fits else "no", _fit(result)),
        "first_limit": Verdict(result.first_limit, _limit(result)),
        "decode.bound": Verdict(result.decode.bound, _bound(result)),
    }
    for row in result.offload:
        mode = "streaming" if row.mode == ACTIVE_WORKING_SET else "restore"
        word = "adds_nothing" if row.adds_nothing else row.verdict
        found[f"offload.{row.tier}.{mode}"] = Verdict(word, _tier(row))
    found["eviction.cheapest_mode"] = Verdict(result.eviction.cheapest_mode, _eviction(result))
    return found


def _fit(result: PlanResult) -> str:
    capacity, wanted = result.capacity, result.inputs["concurrency"]
    return (
        f"room for {int(capacity.sessions):,} of {wanted:,} sequences, {_size(capacity.need)} of "
        f"{_size(capacity.budget)} for KV"
    )


def _limit(result: PlanResult) -> str:
    used, read = float(result.capacity.utilization), float(result.bandwidth.utilization)
    return f"{used:.3g} of the KV memory and {read:.3g} of the memory bandwidth are asked for"


def _bound(result: PlanResult) -> str:
    batch = result.decode.compute_bound_batch
    if batch is None:
        return result.decode.reason or "no batch waits for compute"
    return f"steps wait for compute from {int(batch):,} sequences at once on"


def _tier(row: Offload) -> str:
    if row.mode == ACTIVE_WORKING_SET:
        return f"{row.speedup:.3g} times the speed of taking turns"
    if row.adds_nothing:
        return row.adds_nothing_reason
    total = row.cached_total if row.overlapped_total is None else row.overlapped_total
    return f"{_time(total)} with a hit, {_time(row.recompute)} without"


def _eviction(result: PlanResult) -> str:
    swap, again = result.eviction.swap_time, _time(result.eviction.recompute_time)
    return f"{again} to compute it again" + ("" if swap is None else f", {_time(swap)} to swap it")


def _size(value: object) -> str:
    return size_text(float(value))  # type: ignore[arg-type]


def _time(value: object) -> str:
    return time_text(float(value))  # type: ignore[arg-type]
