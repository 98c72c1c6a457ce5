"""Running decodes over quota: preempt and replay, or let them grow and admit nothing new."""

import numpy as np

from kvcalc.formulas.quota import closed_admission_wait
from kvcalc.planning.notebook import Notebook
from kvcalc.quota.holdings import Holdings
from kvcalc.quota.ledger import RUNNING, Ledger
from kvcalc.quota.rates import Rates
from kvcalc.quota.results import Decodes
from kvcalc.quota.segments import Segment, segments_of


def decodes_of(
    ledger: Ledger, tenant: int, holdings: Holdings, over: float, charged: float, rates: Rates,
    arrivals: float | None, book: Notebook,
) -> Decodes | None:  # fmt: skip
    """Return the two choices priced side by side; None where nothing of the tenant runs over its quota."""
    sessions = ledger.sessions
    running = np.flatnonzero((sessions.tenant == tenant) & (sessions.state == RUNNING))
    if over <= 0 or not running.size:
        return None
    victims, freed, seconds = _victims(ledger, holdings, over, rates)
    left = sessions.remaining[running]
    known = not np.isnan(left).any()
    growth = _growth(ledger, running.tolist()) if known else None
    wait = float(left.max()) * rates.step_time if known and rates.step_time is not None else None
    waited = None
    if wait is not None and arrivals is not None:
        waited = float(book.run(closed_admission_wait, duration=wait, rate=arrivals))
    if not known:
        book.warn("how much the running sessions still grow is not known: give them `remaining` tokens")
    return Decodes(
        sessions=int(running.size),
        over=over,
        growth=growth,
        peak=None if growth is None else charged + growth,
        preempt_sessions=victims,
        preempt_bytes=freed,
        preempt_seconds=seconds,
        grow_seconds=wait,
        held_back=None if wait is None or arrivals is None else arrivals * wait,
        waited_seconds=waited,
        verdict=_verdict(freed, over, seconds, wait, waited),
    )


def _growth(ledger: Ledger, running: list[int]) -> float:
    """Return the bytes of whole blocks that running sessions still take until they are done."""
    total = 0.0
    for index in running:
        tokens, left = int(ledger.sessions.tokens[index]), int(ledger.sessions.remaining[index])
        mine = ledger.holder == index
        for number, (group, need) in enumerate(zip(ledger.groups, ledger.needed(tokens + left), strict=True)):
            held = int((mine & (ledger.group == number)).sum())
            total += max(0, need - held) * group.bytes
    return total


def _victims(
    ledger: Ledger, holdings: Holdings, over: float, rates: Rates
) -> tuple[tuple[str, ...], float, float]:
    """Return whom to preempt until the excess is covered, what that frees, and the prefill it costs."""
    private = [one for one in segments_of(ledger, holdings, rates, preempt=True)
               if one.state == RUNNING and len(one.holders) == 1]  # fmt: skip
    names, freed, seconds = [], 0.0, 0.0
    for one in sorted(private, key=_price):
        if freed >= over:
            break
        names.append(ledger.sessions.ids[one.holders[0]])
        freed += float(one.sizes.sum())
        seconds += float(one.drop.sum())
    return tuple(names), freed, seconds


def _price(one: Segment) -> float:
    return float(one.drop.sum() / one.sizes.sum())


def _verdict(freed: float, over: float, seconds: float, wait: float | None, waited: float | None) -> str:
    if freed < over:
        return (
            "preempting all of them does not bring the tenant under its quota: the rest is shared, pinned or "
            "leased"
        )
    if wait is None:
        return (
            "letting them grow has no price here: give `remaining` tokens, and --step-time or --model with "
            "--on"
        )
    if waited is None:
        return f"preempting costs {seconds:.3g} s of prefill, growing closes admission for {wait:.3g} s"
    word = "preempting" if seconds < waited else "letting them grow"
    return (
        f"{word} costs less: {seconds:.3g} s of prefill against {waited:.3g} s that held-back requests wait "
        "together"
    )
