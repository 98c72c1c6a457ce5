"""What each uncertain input does to the time that restoring saves, the largest swing first."""

from collections.abc import Sequence

from kvcalc.offload_results import Swing
from kvcalc.output.format import human, range_text
from kvcalc.output.page import Cell, grid
from kvcalc.output.pages.ranges import SHOWN
from kvcalc.output.report.figures.figure import Figure
from kvcalc.output.svg.axes import Axis
from kvcalc.output.svg.mark import bar, drawing, element, line, percent, write

_ROW, _BAR, _HEAD = 50, 14, 26
_WAYS = {"prefix_store": "restoring", "active_working_set": "streaming"}


_TITLES = {
    "prefix_store": "What the verdicts on restoring rest on",
    "active_working_set": "What the verdicts on streaming rest on",
}


def tornado_figures(swings: Sequence[Swing]) -> tuple[Figure, ...]:
    """Return one chart a mode, whose times differ too much for one scale."""
    by_mode = {mode: [swing for swing in swings if swing.mode == mode] for mode in _TITLES}
    return tuple(_figure(title, by_mode[mode]) for mode, title in _TITLES.items() if by_mode[mode])


def _figure(title: str, swings: Sequence[Swing]) -> Figure:
    """Return bars from the gain at one end of an input's range to that at its other end."""
    shown = list(swings[:SHOWN])
    ends = [float(gain) for swing in shown for gain in (swing.gain_low, swing.gain_high)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    across = Axis(low - 0.02 * (high - low), high + 0.02 * (high - low))
    zero = across.at(0.0)
    says = _says(shown)
    drawn = [
        bar(zero, 1.0, _HEAD, len(shown) * _ROW, "wins"),
        line(percent(zero), _HEAD - 4, percent(zero), _HEAD + len(shown) * _ROW, "zero"),
        *_sides(zero, _WAYS[shown[0].mode]),
    ]
    for row, swing in enumerate(shown):
        drawn += _row(swing, _HEAD + row * _ROW, across)
    rows: list[tuple[Cell | str, ...]] = [
        (
            swing.key,
            swing.tier,
            range_text(swing.low, swing.high, swing.unit),
            human(swing.gain_low, "second"),
            human(swing.gain_high, "second"),
            "decides" if swing.decides else "",
        )
        for swing in shown
    ]
    header = ("input", "tier", "range", "saves at the low end", "at the high end", "verdict")
    return Figure(
        title=title,
        says=says,
        drawing=drawing(_HEAD + len(shown) * _ROW + 4, says, *drawn),
        table=grid("", header, "lllrrl", rows),
        legend=(
            ("s1", "time saved over the input's range"),
            ("wins-key", f"{_WAYS[shown[0].mode]} is faster"),
        ),
        gutter="ends",
    )


def _row(swing: Swing, top: int, across: Axis) -> list[str]:
    first, last = sorted((float(swing.gain_low), float(swing.gain_high)))
    y = top + 22
    kind = "s2" if swing.decides else "s1"
    words = f"{swing.key}{_named(swing)}: {range_text(swing.low, swing.high, swing.unit)}"
    more = ", decides the verdict" if swing.decides else ""
    left, right = across.at(first), across.at(last)
    return [
        element(
            "text",
            element("tspan", text=f"{swing.key}{_named(swing)}{more}"),
            element("tspan", text=f"  {range_text(swing.low, swing.high, swing.unit)}", class_="roomy tick"),
            x=-56,
            y=top + 14,
            class_="label",
        ),
        bar(left, max(right, left + 0.004), y, _BAR, kind, f"{words}{more}"),
        write(percent(left), y + 11, human(first, "second"), "value", "end", dx=-5),
        write(percent(right), y + 11, human(last, "second"), "value", "start", dx=5),
    ]


def _sides(zero: float, way: str) -> list[str]:
    found = []
    if zero > 0.3:
        found.append(write(percent(zero), 14, f"{way} is slower", "tick", "end", dx=-6))
    if zero < 0.7:
        found.append(write(percent(zero), 14, f"{way} is faster", "tick", "start", dx=6))
    return found


def _named(swing: Swing) -> str:
    """Return the tier in brackets, unless the key has it."""
    return "" if f".{swing.tier}." in swing.key else f" ({swing.tier})"


def _says(swings: Sequence[Swing]) -> str:
    deciding = [swing for swing in swings if swing.decides]
    if deciding:
        names = ", ".join(dict.fromkeys(f"{swing.key}{_named(swing)}" for swing in deciding))
        return f"Within its range, {names} alone turns a verdict: measure it first."
    widest = swings[0]
    return (
        "No single input turns a verdict within its range; "
        f"{widest.key}{_named(widest)} moves the time saved most."
    )
