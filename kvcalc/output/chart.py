"""Bytes against context as a picture file, through matplotlib, which is an extra: `kvcalc[chart]`."""

import io
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from kvcalc.errors import SettingsError
from kvcalc.offload_results import BreakEvenCurve
from kvcalc.output.growth import names, sums
from kvcalc.results import GrowthCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
LINE = 96  # characters of a title that fit over the axes
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""


def check(file: str, option: str = "--curve-file") -> None:
    """Refuse a file whose kind cannot be drawn, or any file where matplotlib is not installed.

    Raises
    ------
    SettingsError
        If the name does not end in .png or .svg, or matplotlib is missing.
    """
    from importlib.util import find_spec

    if _kind(file) not in FORMATS:
        raise SettingsError(f"{option} {file}: the name must end in .png or .svg")
    if find_spec("matplotlib") is None:
        raise SettingsError(f"{option} {file}: drawing needs matplotlib: pip install 'kvcalc[chart]'")


def picture(growth: GrowthCurve, title: str, file: str) -> bytes:
    """Return the picture as the bytes of a file of this name's kind.

    Above the bytes of one sequence as areas on top of each other; below each component's share, on
    which a window or a state is seen where the bytes are small.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    totals = sums(growth)
    scale, unit = _unit(max(totals))
    _areas(above, growth, [[size / scale for size in line.bytes] for line in growth.lines])
    shares = [
        [100 * size / total if total else 0.0 for size, total in zip(line.bytes, totals, strict=True)]
        for line in growth.lines
    ]
    _areas(below, growth, shares)
    above.set_title(title)
    above.set_ylabel(f"KV cache of one sequence [{unit}]")
    above.set_ylim(bottom=0)
    above.legend(loc="upper left")
    below.set_ylabel("share [%]")
    below.set_ylim(0, 100)
    below.set_xlabel("context [token], logarithmic")
    return _drawn(figure, file)


def break_even_picture(curve: BreakEvenCurve, file: str) -> bytes:
    """Return both sides of a break-even curve as the bytes of a file of this name's kind."""
    from matplotlib.figure import Figure

    from kvcalc.output.crossing import said, title

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for line, colour in zip(curve.lines, COLOURS, strict=False):
        values = [float("nan") if value is None else value for value in line.values]
        axes.plot(curve.points, values, label=line.name, color=colour)
    if curve.break_even is not None:
        axes.axvline(curve.break_even, color="#999999", linestyle="--")
    axes.set_title("\n".join([title(curve), *wrap(said(curve), LINE)]), fontsize="medium")
    axes.set_xlabel(f"{curve.variable} [{curve.unit}]")
    axes.set_ylabel(f"[{curve.lines[0].unit}]")
    if curve.unit != "1":
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend()
    return _drawn(figure, file)


def _drawn(figure: "Figure", file: str) -> bytes:
    out = io.BytesIO()
    # Without a date and with one salt, the same question gives the same file.
    figure.savefig(
        out, format=_kind(file), dpi=150, metadata={"Date": None} if _kind(file) == "svg" else None
    )
    return out.getvalue()


def _areas(axes: "Axes", growth: GrowthCurve, values: list[list[float]]) -> None:
    axes.stackplot(growth.tokens, values, labels=names(growth), colors=COLOURS, alpha=0.85)
    axes.set_xscale("log", base=2)
    axes.set_xlim(growth.tokens[0], growth.tokens[-1])
    axes.xaxis.set_major_formatter(_power)
    axes.grid(alpha=0.3)


def _power(length: float, _: Any = None) -> str:  # noqa: ANN401 - matplotlib's position, which is not used
    """Return a length as engineers write powers of two.

    >>> _power(512), _power(32768), _power(2**20)
    ('512', '32Ki', '1Mi')
    """
    for factor, sign in ((2**20, "Mi"), (2**10, "Ki")):
        if length >= factor:
            return f"{length / factor:g}{sign}"
    return f"{length:g}"


def _unit(largest: float) -> tuple[float, str]:
    """Return the decimal prefix that suits the largest size."""
    for factor, sign in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= factor:
            return factor, sign
    return 1.0, "B"


def _kind(file: str) -> str:
    return Path(file).suffix.lower().removeprefix(".")
