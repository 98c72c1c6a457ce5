"""What each uncertain input does to the time that restoring saves, the largest swing first."""

from collections.abc import Sequence

from kvcalc.offload_results import Swing
from kvcalc.output.format import human, range_text
from kvcalc.output.page import Cell, grid
from kvcalc.output.pages.ranges import SHOWN
from kvcalc.output.report.figures.figure import Figure
from kvcalc.output.svg.axes import Axis
from kvcalc.output.svg.mark import bar, drawing, line, percent, write

_ROW, _BAR, _HEAD = 50, 14, 26


def tornado_figure(swings: Sequence[Swing]) -> Figure:
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
        *_sides(zero),
    ]
    for row, swing in enumerate(shown):
        drawn += _row(swing, _HEAD + row * _ROW, across)
    rows: list[tuple[Cell | str, ...]] = [
        (
            swing.key,
            _tier(swing),
            range_text(swing.low, swing.high, swing.unit),
            human(swing.gain_low, "second"),
            human(swing.gain_high, "second"),
            "decides" if swing.decides else "",
        )
        for swing in shown
    ]
    header = ("input", "tier", "range", "saves at the low end", "at the high end", "verdict")
    return Figure(
        title="What the verdicts on offload rest on",
        says=says,
        drawing=drawing(_HEAD + len(shown) * _ROW + 4, says, *drawn),
        table=grid("", header, "lllrrl", rows),
        legend=(("s1", "time saved over the input's range"), ("wins-key", "restoring is faster")),
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
        write(-56, top + 14, words + more, "label"),
        bar(left, max(right, left + 0.004), y, _BAR, kind, f"{words}{more}"),
        write(percent(left), y + 11, human(first, "second"), "value", "end", dx=-5),
        write(percent(right), y + 11, human(last, "second"), "value", "start", dx=5),
    ]


def _sides(zero: float) -> list[str]:
    found = []
    if zero > 0.3:
        found.append(write(percent(zero), 14, "recomputing is faster", "tick", "end", dx=-6))
    if zero < 0.7:
        found.append(write(percent(zero), 14, "restoring is faster", "tick", "start", dx=6))
    return found


def _tier(swing: Swing) -> str:
    return swing.tier if swing.mode == "prefix_store" else f"{swing.tier}, streamed"


def _named(swing: Swing) -> str:
    """Return the tier in brackets, unless the key has it."""
    streamed = " (streamed)" if swing.mode != "prefix_store" else ""
    return streamed if f".{swing.tier}." in swing.key else f" ({_tier(swing)})"


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
