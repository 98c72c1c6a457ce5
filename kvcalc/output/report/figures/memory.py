"""Where the memory of one GPU goes, and whether the KV that is needed at once fits what is left."""

from kvcalc.output.format import binary_text, human
from kvcalc.output.page import Cell, grid
from kvcalc.output.report.figures.figure import Figure
from kvcalc.output.svg.mark import bar, drawing, percent, write
from kvcalc.records import record
from kvcalc.results import PlanResult

_HEIGHT = 44
_USE_ROW = 58
_MOST = 3.0  # times its budget that a bar shows at most
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
    capacity, bandwidth = result.capacity, result.bandwidth
    uses = [
        _Use("KV memory", "byte", float(capacity.need), float(capacity.budget)),
        _Use("bandwidth", "byte/second", float(bandwidth.need), float(bandwidth.budget)),
    ]
    most = min(_MOST, max(1.0, *(use.share if use.has_room else _MOST for use in uses)))
    rows: list[tuple[Cell | str, ...]] = [use.texts for use in uses]
    says = (
        "; ".join("{}: {} needed of {}, {}".format(*use.texts) for use in uses)
        + ". The budget that is used more runs out first as load grows."
    )
    drawn = [mark for index, use in enumerate(uses) for mark in use.drawn(index * _USE_ROW, most)]
    return Figure(
        title="What is needed against what there is, on one GPU",
        says=says,
        drawing=drawing(len(uses) * _USE_ROW - 8, says, *drawn),
        table=grid("", ("budget", "need", "there is", "used"), "lrrr", rows),
    )


@record
class _Use:
    """One budget and what is needed of it."""

    name: str
    unit: str
    need: float
    budget: float

    @property
    def has_room(self) -> bool:
        return self.budget > 0

    @property
    def share(self) -> float:
        return self.need / self.budget

    @property
    def texts(self) -> tuple[str, str, str, str]:
        used = human(self.share, "1", share=True) if self.has_room else "no room"
        return self.name, human(self.need, self.unit), human(max(0.0, self.budget), self.unit), used

    def drawn(self, top: int, most: float) -> list[str]:
        """Return words and a bar; what exceeds the budget stands beyond a mark."""
        name, _, _, used = self.texts
        whole = 1 / most
        ends = self.share / most if self.has_room else 1.0
        fits = ends <= whole
        cut = ", bar cut off" if ends > 1 else ""
        found = [
            write(0, top + 14, name, "label"),
            write("100%", top + 14, f"{used}{cut}", "value", "end"),
            bar(0, whole, top + 22, 16, "track"),
            bar(0, min(ends, whole), top + 22, 16, "good-fill" if fits else "bad-fill"),
        ]
        if fits:
            return found
        return [
            *found,
            bar(whole, ends, top + 22, 16, "over-fill", "more than there is"),
            bar(whole, whole + 0.004, top + 18, 24, "ink-fill", "all there is"),
        ]


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
        ("KV that is needed", "s4", needed) if result.fits else ("KV pool, too small", "bad-fill", needed),
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
