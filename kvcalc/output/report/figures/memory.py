"""Where the memory of one GPU goes, and whether the KV that is needed at once fits what is left."""

import math

from kvcalc.output.format import binary_text, human
from kvcalc.output.page import Cell, grid
from kvcalc.output.report.figures.figure import Figure
from kvcalc.output.svg.mark import bar, drawing, percent, write
from kvcalc.results import PlanResult

_HEIGHT = 44
_WRITTEN = 0.12  # share of a bar from which its part has room for a number


def memory_figure(result: PlanResult) -> Figure:
    """Return the parts of one GPU's memory as one bar; the KV pool as what is needed and what is free."""
    parts = [part for part in _parts(result) if part[2] > 0]
    total = float(result.memory.total)
    drawn, left = [], 0.0
    scale = max(total, sum(size for *_, size in parts))
    for name, kind, size in parts:
        right = left + size / scale
        share = human(size / total, "1", share=True)
        drawn.append(bar(left, right, 0, _HEIGHT, kind, f"{name}: {human(size, 'byte')}, {share}"))
        if size / scale >= _WRITTEN:
            middle = percent((left + right) / 2)
            drawn.append(
                write(middle, _HEIGHT / 2 + 5, f"{100 * size / total:.0f} %", f"on {kind}", "middle")
            )
        left = right
    rows: list[tuple[Cell | str, ...]] = [
        (name, human(size, "byte"), binary_text(size), human(size / total, "1", share=True))
        for name, _, size in parts
    ]
    rows.append(("total", human(total, "byte"), binary_text(total), "100 %"))
    says = _says(result)
    return Figure(
        title="Memory of one GPU",
        says=says,
        drawing=drawing(_HEIGHT, says, *drawn),
        table=grid("", ("part", "size", "binary", "share"), "lrrr", rows),
        legend=tuple((kind, f"{name} {human(size, 'byte')}") for name, kind, size in parts),
    )


def need_figure(result: PlanResult) -> Figure:
    """Return the KV that is needed at once against the pool, and the bandwidth that decoding takes."""
    budgets = (
        ("KV memory", "byte", result.capacity),
        ("memory bandwidth", "byte/second", result.bandwidth),
    )
    uses = [float(budget.utilization) for *_, budget in budgets]
    most = max(1.0, *(use for use in uses if math.isfinite(use)), *(2.0 for use in uses if math.isinf(use)))
    drawn, rows = [], []
    for index, ((name, unit, budget), use) in enumerate(zip(budgets, uses, strict=True)):
        top = index * 58
        ends = min(use, most) / most
        inside = min(use, 1.0) / most
        need, room = human(float(budget.need), unit), human(float(budget.budget), unit)
        used = human(use, "1", share=True) if math.isfinite(use) else "no room"
        drawn += [
            write(0, top + 14, name, "label"),
            write("100%", top + 14, f"{need} of {room}: {used}", "value", "end"),
            bar(0, 1 / most, top + 22, 16, "track"),
            bar(0, inside, top + 22, 16, "good-fill" if use <= 1 else "bad-fill"),
        ]
        if use > 1:
            drawn.append(bar(1 / most, ends, top + 22, 16, "over-fill", "more than there is"))
            drawn.append(bar(1 / most, 1 / most + 0.004, top + 18, 24, "ink-fill", "all there is"))
        rows.append((name, need, room, used))
    says = (
        "; ".join(f"{name}: {need} needed of {room}, {used}" for name, need, room, used in rows)
        + ". The budget that is used more runs out first as load grows."
    )
    return Figure(
        title="What is needed against what there is, on one GPU",
        says=says,
        drawing=drawing(108, says, *drawn),
        table=grid("", ("budget", "need", "there is", "used"), "lrrr", list(rows)),
    )


def _parts(result: PlanResult) -> list[tuple[str, str, float]]:
    """Return name, class and bytes of each part, in the order in which an engine takes them."""
    memory = result.memory
    unused = max(0.0, float(memory.unused))
    pool = max(0.0, float(memory.kv_pool))
    needed = min(pool, float(result.capacity.need))
    return [
        ("weights", "s1", float(memory.weights)),
        ("activations", "s2", float(memory.activations)),
        ("engine, graphs and driver", "s3", float(memory.other) - unused),
        ("left unused by the engine", "s6", unused),
        ("KV that is needed", "s4" if result.fits else "bad-fill", needed),
        ("KV that is free", "s5", pool - needed),
    ]


def _says(result: PlanResult) -> str:
    memory = result.memory
    pool = float(memory.kv_pool)
    if pool <= 0:
        return "Weights and what the engine keeps besides leave no memory for KV."
    share = human(pool / float(memory.total), "1", share=True)
    need = human(float(result.capacity.need), "byte")
    return (
        f"{human(pool, 'byte')} of {human(float(memory.total), 'byte')} ({share}) is left for KV; {need} is "
        "needed at once."
    )
