"""The page of `kvcalc quota reclaim`: the steps, their price, what stays, and whether it helps."""

from kvcalc.output.fields import text
from kvcalc.output.format import bytes_text, human
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import footer
from kvcalc.quota.results import QuotaReclaimResult, Step

_SHOWN = 40
"""Steps that a page shows; all are in JSON and CSV."""

_MEANS = {"evict_tail": "evict tail"}


def page(result: QuotaReclaimResult) -> Page:
    """Return the answer in two sentences, the steps, the rest, and the choices beside it."""
    blocks: tuple[Grid | Lines, ...] = (
        Lines("", (_headline(result), _usable(result))),
        *_steps(result),
        *_rest(result),
        Lines("Least cost", (_least(result),)),
        *_watermark(result),
        *_charges(result),
        *_decodes(result),
        *footer(result),
    )
    return Page(f"Reclaim {bytes_text(float(result.asked_bytes))} from {result.tenant}", blocks)


def _headline(result: QuotaReclaimResult) -> Cell:
    word = "frees" if result.reached else "frees only"
    return Cell(
        f"The plan {word} {bytes_text(float(result.freed_bytes))} in {text(result, 'freed_blocks')} blocks "
        f"and costs {text(result, 'cost_seconds')}; used {text(result, 'used_before')} before, "
        f"{text(result, 'used_after')} after.",
        "good" if result.reached else "bad",
    )


def _usable(result: QuotaReclaimResult) -> Cell:
    placed, wanted = result.placement.placed, result.placement
    asked = wanted.request if wanted.tokens is None else f"{wanted.request} ({text(wanted, 'tokens')})"
    if placed:
        return Cell(f"Usable afterwards: the next request, {asked}, can be placed.", "good")
    return Cell(f"Not usable for the next request, {asked}: {wanted.rebalance}.", "bad")


def _steps(result: QuotaReclaimResult) -> tuple[Grid, ...]:
    if not result.steps:
        return ()
    rows = [_row(step) for step in result.steps[:_SHOWN]]
    more = len(result.steps) - len(rows)
    notes = (f"{more:,} more steps are in --format json and csv.",) if more else ()
    header = ("means", "session", "blocks", "bytes", "now", "later", "cost", "over the link")
    return (grid("Steps, leaves first", header, "llrrrrrr", rows, notes),)


def _row(step: Step) -> tuple[Cell | str, ...]:
    return (
        _MEANS.get(step.means, step.means),
        step.session,
        text(step, "blocks"),
        text(step, "bytes"),
        text(step, "seconds"),
        text(step, "later_seconds"),
        Cell(text(step, "cost_seconds"), "bold"),
        text(step, "link_bytes") if float(step.link_bytes) else "-",
    )


def _rest(result: QuotaReclaimResult) -> tuple[Grid | Lines, ...]:
    totals: dict[str, list[float]] = {}
    for item in result.unreclaimable:
        total = totals.setdefault(item.reason, [0.0, 0.0])
        total[0] += float(item.blocks)
        total[1] += float(item.bytes)
    lines = [
        f"never: {reason}: {count:,.0f} blocks, {bytes_text(size)}"
        for reason, (count, size) in totals.items()
    ]
    lines += [
        f"{_MEANS.get(item.means, item.means)}: {text(item, 'blocks')} blocks, "
        f"{bytes_text(float(item.bytes))}: {item.why}"
        for item in result.left
    ]
    return (Lines("What stays", tuple(lines), bullet=True),) if lines else ()


def _least(result: QuotaReclaimResult) -> str:
    least = result.least_cost
    how = "the cheapest of all plans" if least.method == "exact" else "greedy by cost per byte"
    bound = "" if least.method == "exact" else f"; no plan costs less than {text(least, 'lower_bound')}"
    head = f"{text(least, 'freed_bytes')} for {text(least, 'cost_seconds')} ({how}{bound})"
    if least.saves is None:
        return f"{head}. Not compared with the fixed order: {least.reason}."
    saved = float(least.saves)
    if abs(saved) <= 1e-9 * max(1.0, float(result.cost_seconds)):
        return f"{head}. The fixed order costs the same."
    word = "more" if saved > 0 else "less"
    return f"{head}. The fixed order costs {human(abs(saved), 'second')} {word}."


def _watermark(result: QuotaReclaimResult) -> tuple[Lines, ...]:
    mark = result.watermark
    if mark is None:
        return ()
    kept = float(mark.kept_out)
    effect = (
        f"; it kept out {bytes_text(kept)}, of which compressing freed {text(mark, 'compressed')}; without "
        f"it there would be room for {text(mark, 'room_without')}"
        if kept
        else ", and kept nothing out"
    )
    return (
        Lines(
            "DRAM watermark",
            (f"Room for {text(mark, 'room')} below it, {text(mark, 'offloaded')} taken{effect}.",),
        ),
    )


def _charges(result: QuotaReclaimResult) -> tuple[Grid, ...]:
    rows: list[tuple[Cell | str, ...]] = [
        (
            item.tenant,
            text(item, "before"),
            text(item, "after"),
            text(item, "quota"),
            Cell(text(item, "over"), "bad") if float(item.over) else "-",
        )
        for item in result.charges[:_SHOWN]
    ]
    return (grid(f"Charged ({result.rule})", ("tenant", "before", "after", "quota", "over"), "lrrrr", rows),)


def _decodes(result: QuotaReclaimResult) -> tuple[Lines, ...]:
    found = result.decodes
    if found is None:
        return ()
    preempt = (
        f"preempt {len(found.preempt_sessions):,} of {text(found, 'sessions')}: frees "
        f"{text(found, 'preempt_bytes')} and costs {text(found, 'preempt_seconds')} of prefill"
    )
    grow = (
        f"let them grow: {text(found, 'growth')} still to come, {text(found, 'peak')} at the peak; admission "
        f"stays closed for {text(found, 'grow_seconds')}, holding back {text(found, 'held_back')} requests "
        f"that wait {text(found, 'waited_seconds')} together"
    )
    title = f"Running decodes, {bytes_text(float(found.over))} over quota"
    return (Lines(title, (preempt, grow, found.verdict), bullet=True),)
