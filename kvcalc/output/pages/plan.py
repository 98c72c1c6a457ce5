"""The page of `kvcalc plan`: the verdict in words, then budgets, times, and what would flip it."""

import math
from typing import Any

from kvcalc.output.fields import text
from kvcalc.output.format import (
    bar,
    binary_text,
    bytes_text,
    events_text,
    human,
    label,
    parts_text,
    range_text,
)
from kvcalc.output.page import Cell, Grid, Lines, Page, Style, grid
from kvcalc.output.pages.calibration import calibration_blocks
from kvcalc.output.pages.decode import decode_notes
from kvcalc.output.pages.fleet import fleet_block, transfer_block
from kvcalc.output.pages.footer import footer
from kvcalc.output.pages.kv import components, headline
from kvcalc.output.pages.launch import launch_grid
from kvcalc.output.pages.offload import offload_grid, reasons, streaming_grid
from kvcalc.output.pages.ranges import tornado
from kvcalc.output.pages.trace_hits import trace_blocks, trace_sentence
from kvcalc.output.sentences import sentences, swap_place
from kvcalc.quantity import Seconds
from kvcalc.results import Capacity, Flip, PlanResult

_BAR = 20
_MODES = {
    "prefix_store": ("Prefix store: a cached prefix is restored once for each hit", offload_grid),
    "active_working_set": ("Active working set: KV is streamed again in every decode step", streaming_grid),
}
_THEN = {"restore": "restoring is faster", "recompute": "recomputing is faster"}
_RANGES = (
    "Restoring and recomputing tie there in the middle of all ranges; near it the verdict stays too close "
    "to call."
)
_FITS_UP_TO = 0.9  # use of a budget from which it is shown as tight


def page(result: PlanResult) -> Page:
    """Return the whole plan in the order in which its questions are asked."""
    blocks: list[Grid | Lines] = [
        _in_short(result),
        *([launch_grid(result.config_checks)] if result.config_checks else []),
        *trace_blocks(result.trace),
        _memory(result),
        _budgets(result),
        components("KV cache, one logical copy: " + headline(result.kv), result.kv),
        _speed(result),
        *_offload(result),
        *tornado(result.tornado),
        *((fleet_block(result.fleet),) if result.fleet else ()),
        *(transfer_block(result.transfer) if result.transfer else ()),
        _eviction(result),
        *(calibration_blocks(result.calibration) if result.calibration else ()),
    ]
    if result.flips:
        blocks.append(_flips(result))
    return Page(_title(result), (*blocks, *footer(result)))


def _title(result: PlanResult) -> str:
    inputs = result.inputs
    gpus = inputs.get("gpus")
    machine = f" on {gpus} x {inputs['on']}" if gpus and inputs.get("on") else ""
    return f"{result.kv.model}{machine} (engine {result.kv.engine}, KV dtype {result.kv.kv_dtype})"


def _in_short(result: PlanResult) -> Lines:
    verdict, *rest = sentences(result)
    lines: tuple[Cell | str, ...] = (
        Cell(verdict, "good" if result.fits else "bad"),
        *trace_sentence(result.trace),
        *rest,
    )
    return Lines("In short", lines, bullet=True)


def _memory(result: PlanResult) -> Grid:
    """Return the parts of one GPU's memory, printed so that they add up."""
    memory = result.memory
    names = ("weights", "activations", "other", "kv_pool")
    sizes = [float(getattr(memory, name)) for name in names]
    total = float(memory.total)
    texts, total_text = parts_text(sizes, total)
    rows: list[tuple[Cell | str, ...]] = [
        (
            label(name) if size >= 0 else "missing",
            shown,
            binary_text(size),
            _share(size, total),
            bar(size / total, _BAR),
        )
        for name, shown, size in zip(names, texts, sizes, strict=True)
    ]
    rows.append(
        (Cell("total", "bold"), Cell(total_text, "bold"), binary_text(total), _share(total, total), "")
    )
    return grid(
        "Memory of one GPU, as its driver reports it",
        ("", "size", "binary", "share", ""),
        "lrrrl",
        rows,
        (*_what_other_is(result), *_pool(result)),
    )


def _what_other_is(result: PlanResult) -> tuple[str, ...]:
    """Say how much of `other` lies idle, and how much engine and driver take."""
    other, unused = float(result.memory.other), float(result.memory.unused)
    if not 0 < unused <= other:
        return ()
    taken = other - unused
    return (
        f"Other is {human(unused, 'byte')} that nothing uses (--utilization) and {human(taken, 'byte')} for "
        "context, graphs, buffers and the driver.",
    )


def _share(part: float, total: float) -> str:
    return human(part / total, "1", share=True)


def _pool(result: PlanResult) -> tuple[str, ...]:
    memory = result.memory
    if memory.kv_tokens is None:
        return ()
    tokens = f"The KV pool holds {text(memory, 'kv_tokens')}"
    if memory.num_blocks is None or memory.block_tokens is None or memory.block_bytes is None:
        return (f"{tokens}.",)
    size = bytes_text(float(memory.block_bytes))
    if memory.block_tokens == 1:  # no blocks to speak of
        return (f"{tokens} of {size} each.",)
    blocks = f"{text(memory, 'num_blocks')} blocks of {text(memory, 'block_tokens')} or {size} each"
    return (f"{tokens} in {blocks}.",)


def _budgets(result: PlanResult) -> Grid:
    rows: list[tuple[Cell | str, ...]] = []
    for name in ("capacity", "bandwidth"):
        budget: Any = getattr(result, name)
        use = float(budget.utilization)
        style: Style = "bad" if use > 1 else "warn" if use > _FITS_UP_TO else "good"
        left = float(budget.budget) - float(budget.need)
        unit = "byte" if isinstance(budget, Capacity) else "byte/second"
        spare = f"{human(left, unit)} left" if left >= 0 else f"{human(-left, unit)} short"
        used = Cell(text(budget, "utilization") if math.isfinite(use) else "no room", style)
        rows.append(
            (name, text(budget, "need"), text(budget, "budget"), used, spare, Cell(bar(use, _BAR), style))
        )
    header = ("", "need", "budget", "used", "", "")
    target = text(result.bandwidth, "target_tokens_per_second")
    note = f"Bandwidth is what decoding {target} reads from device memory."
    return grid("Budgets of one GPU", header, "lrrrrl", rows, (note,))


def _speed(result: PlanResult) -> Grid:
    decode, prefill = result.decode, result.prefill
    per_second = text(decode, "tokens_per_second")
    rows: list[tuple[Cell | str, ...]] = [
        (
            "prefill of one prompt",
            Cell(text(prefill, "time"), "bold"),
            _range(prefill.range),
            f"{text(prefill, 'flops')}; source: {prefill.source}",
        ),
        (
            "one decode step",
            Cell(text(decode, "step_time"), "bold"),
            _range(decode.range),
            f"{per_second} over all sessions; bound by {decode.bound}",
        ),
    ]
    cost = text(result, "cost_per_million_tokens")
    notes = decode_notes(result)
    if result.cost_per_million_tokens is not None:
        notes += (f"One million generated tokens cost {cost}.",)
    return grid("Speed", ("", "time", "range", ""), "lrrl", rows, notes)


def _range(ends: tuple[Seconds, Seconds]) -> str:
    return range_text(float(ends[0]), float(ends[1]), "second")


_NO_TIER = "No slower tier was named; add one with --tier."
_NO_HIT = "No hit from a tier is planned, so none is judged."


def _offload(result: PlanResult) -> list[Grid | Lines]:
    blocks: list[Grid | Lines] = []
    for mode, (title, draw) in _MODES.items():
        items = [item for item in result.offload if item.mode == mode]
        if items:
            sizes = {text(item, "bytes") for item in items}
            size = f" ({sizes.pop()} into each GPU)" if len(sizes) == 1 else ""
            blocks += [draw(title + size, items), *reasons(items)]
    why = _NO_HIT if result.inputs.get("cached") == 0 or result.inputs.get("tiers") else _NO_TIER
    return blocks or [Lines("Offload", (why,))]


def _eviction(result: PlanResult) -> Grid:
    eviction = result.eviction
    swap = (
        text(eviction, "swap_time") if eviction.swap_time is not None else "no restore from a tier to go by"
    )
    limit = events_text(float(eviction.thrash_evictions_per_second), "eviction")
    recompute = f"{text(eviction, 'recompute_time')} for {text(eviction, 'recompute_tokens')}"
    rows = (
        ("recompute it", recompute),
        (f"swap it out{swap_place(result)} and back", swap),
        ("cheapest", Cell(eviction.cheapest_mode.replace("_", " "), "bold")),
        ("stop admitting above", limit),
    )
    return Grid("Losing one running sequence", ("", ""), "ll", rows)


def _flips(result: PlanResult) -> Grid:
    rows: list[tuple[Cell | str, ...]] = [
        (flip_input(flip), human(flip.value, flip.unit), flip_crossing(flip), flip_then(flip))
        for flip in result.flips
    ]
    notes = (_RANGES,) if any(flip.verdict in _THEN for flip in result.flips) else ()
    return grid("What would change the answer", ("if", "is now", "becomes", "then"), "lrll", rows, notes)


def flip_then(flip: Flip) -> str:
    """Return what holds beyond the value of a flip, in words."""
    return _THEN.get(flip.verdict, flip.verdict)


def flip_input(flip: Flip) -> str:
    """Return the value that would have to change, with the tier whose verdict it is about."""
    named = not flip.tier or flip.key.startswith(f"tiers.{flip.tier}.")
    return flip.key if named else f"{flip.key} ({flip.tier})"


def flip_crossing(flip: Flip) -> str:
    """Return from which value on the answer is another one."""
    at = human(flip.at, flip.unit)
    if isinstance(flip.value, str) or isinstance(flip.at, str):
        return at
    if flip.unit in ("1", "token") and flip.at == int(flip.at):  # a count is reached, a rate is crossed
        return f"{at} or {'less' if flip.at < flip.value else 'more'}"
    return f"{'less' if flip.at < flip.value else 'more'} than {at}"
