"""The miss-ratio curve of a replay as a picture file, through matplotlib, which is an extra."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvcalc.errors import SettingsError
from kvcalc.output.chart import COLOURS
from kvcalc.output.format import human
from kvcalc.output.hit_chart import Misses, misses_of
from kvcalc.replay.results import ReplayResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR_OF = {"lru": COLOURS[0], "fifo": COLOURS[1], "belady": COLOURS[2]}
"""Colours of the policies that every replay shows, the same in every picture."""
MARKS = {"lru": "o", "fifo": "v", "belady": "s"}
FLOOR = "#555555"
MARGIN = 0.06
"""Space above and below the curves, of what they span [1]."""
UNITS = {"byte": "byte", "token": "token", "1": "block"}
SCALES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def picture(result: ReplayResult, file: str) -> bytes:
    """Return the picture as the bytes of a file of this name's kind.

    Raises
    ------
    SettingsError
        If there are not two capacities to draw.
    """
    found = misses_of(result)
    if found is None:
        why = "" if result.no_curve is None else f" ({result.no_curve[0].lower()}{result.no_curve[1:]})"
        raise SettingsError(f"--chart-file {file}: nothing to draw; give two capacities or more{why}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    _lines(axes, found)
    axes.set_xscale("log")
    space = 100 * (found.top - found.floor) * MARGIN
    axes.set_ylim(max(0.0, 100 * found.floor - space), 100 * found.top + space)
    axes.set_ylabel("misses [% of input tokens]")
    axes.set_title(f"{result.load.trace}: what a cache of each size misses")
    axes.set_xlabel(f"capacity [{UNITS[found.unit]}], logarithmic")
    axes.xaxis.set_major_formatter(lambda size, _: _size(size, found.unit))
    axes.secondary_yaxis("right", functions=(_other, _other)).set_ylabel("hits [% of input tokens]")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    kind, out = Path(file).suffix.lower().removeprefix("."), io.BytesIO()
    # Without a date and with one salt, the same question gives the same file.
    with mpl.rc_context({"svg.hashsalt": "kvcalc"}):
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _other(percent: Any) -> Any:  # noqa: ANN401 - numbers or arrays
    """Return hits of misses, and misses of hits."""
    return 100 - percent


def _lines(axes: "Axes", found: Misses) -> None:
    if found.line:
        sizes, misses = zip(*found.line, strict=True)
        shown = [100 * miss for miss in misses]
        axes.plot(sizes, shown, color=COLOUR_OF["lru"], label="lru, every capacity")
    others = iter(COLOURS[3:] * 3)
    for name, points in found.policies.items():
        # Points alone: between replayed capacities nothing is known of a policy but LRU.
        axes.plot(
            [size for size, _ in points],
            [100 * miss for _, miss in points],
            MARKS.get(name, "D"),
            color=COLOUR_OF.get(name) or next(others),
            label="_nolegend_" if name == "lru" and found.line else name,
            markersize=6,
            linestyle="none",
        )
    floor = human(found.floor, "1", share=True)
    axes.axhline(100 * found.floor, color=FLOOR, linestyle="--", label=f"infinite cache: {floor}")
    if found.knee is not None:
        size = human(found.knee, found.unit)
        axes.axvline(found.knee, color="black", linewidth=0.8, linestyle=":", label=f"knee: {size}")


def _size(size: float, unit: str) -> str:
    if unit == "byte":
        for factor, sign in SCALES:
            if size >= factor:
                return f"{size / factor:g} {sign}"
        return f"{size:g} B"
    for factor, sign in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= factor:
            return f"{size / factor:g}{sign}"
    return f"{size:g}"
