"""What decides each verdict: the inputs with a range by their influence; shared by `plan` and `restore`."""

import math
from collections.abc import Sequence

from kvcalc.offload_results import GainRange, Swing
from kvcalc.output.format import human, range_text
from kvcalc.output.page import Cell, Grid, grid

SHOWN = 8
"""Inputs that a page lists [1]; JSON has them all."""


def tornado(swings: Sequence[Swing]) -> tuple[Grid, ...]:
    """Return the inputs whose range matters most, one a row."""
    if not swings:
        return ()
    rows: list[tuple[Cell | str, ...]] = [
        (
            swing.key,
            swing.tier if swing.mode == "prefix_store" else f"{swing.tier}, streamed",
            range_text(swing.low, swing.high, swing.unit),
            human(swing.gain_low, "second"),
            human(swing.gain_high, "second"),
            Cell("decides the verdict", "warn") if swing.decides else "",
        )
        for swing in swings[:SHOWN]
    ]
    more = len(swings) - SHOWN
    notes = (f"{more} more in --format json.",) if more > 0 else ()
    header = ("input", "tier", "range", "saves at the low end", "at the high end", "")
    return (grid("What the verdicts on offload rest on", header, "lllrrl", rows, notes),)


def gain_text(gain: GainRange | None) -> str:
    """Return the range of the time that restoring saves, in words."""
    if gain is None or gain.low == gain.high:
        return ""
    low, middle, high = float(gain.low), float(gain.middle), float(gain.high)
    word = "saves"
    if (middle < 0 or high <= 0) and math.isfinite(low):
        word, low, middle, high = "loses", -high, -middle, -low
    found = f"{word} {human(middle, 'second')} ({range_text(low, high, 'second')}"
    if gain.faster is None:
        return found + " over the ranges)"
    return found + f" in nine of ten draws), is faster in {human(gain.faster, '1', share=True)} of them"
