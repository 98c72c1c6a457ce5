"""Bytes of one sequence against its length, component by component."""

from kvcalc.output.format import human, tokens_text
from kvcalc.output.growth import names, sums
from kvcalc.output.page import Cell, Grid, grid
from kvcalc.output.report.figures.figure import Figure, series
from kvcalc.output.svg.axes import Axis, binary_text, binary_ticks, tick_texts
from kvcalc.output.svg.mark import curves, drawing, line, percent, write
from kvcalc.results import KV, GrowthCurve

_TOP, _HEIGHT, _FOOT = 30, 230, 30
_ROWS = 8  # lengths in the table


def growth_figure(growth: GrowthCurve, kv: KV) -> Figure:
    """Return the curve with a mark at the length that is planned for."""
    tokens, here = float(kv.tokens), float(sum(row.bytes for row in kv.components))
    across = Axis(0.0, float(growth.tokens[-1]))
    totals = sums(growth)
    up = Axis(0.0, max(*totals, 1.0))
    says = (
        f"A sequence of {tokens_text(tokens)} keeps {human(here, 'byte')}; one of "
        f"{tokens_text(growth.tokens[-1])} {human(totals[-1], 'byte')}."
    )
    return Figure(
        title="KV of one sequence against its length",
        says=says,
        drawing=drawing(
            _TOP + _HEIGHT + _FOOT,
            says,
            *_grid(across, up),
            curves(_TOP, _HEIGHT, _areas(growth, across, up)),
            *_mark(across, up, tokens, here),
        ),
        table=_table(growth, totals),
        legend=tuple((series(index), name) for index, name in enumerate(names(growth))),
        gutter="left",
    )


def _grid(across: Axis, up: Axis) -> list[str]:
    ticks = up.ticks(5)
    found = []
    for value, text in zip(ticks, tick_texts(ticks, "byte"), strict=True):
        y = _TOP + _HEIGHT * (1 - up.at(value))
        found += [line(0, y, "100%", y, "grid"), write(-8, y + 4, text, "tick", "end")]
    lengths = binary_ticks(across.high)
    for index, length in enumerate(lengths):
        x = percent(across.at(length))
        anchor = "start" if index == 0 else "end" if across.at(length) > 0.97 else "middle"
        found.append(
            write(x, _TOP + _HEIGHT + 20, binary_text(length) if length else "0 tokens", "tick", anchor)
        )
    return found


def _areas(growth: GrowthCurve, across: Axis, up: Axis) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return each component as the area between those below it and itself, and its upper edge."""
    found = []
    below = [0.0] * len(growth.tokens)
    places = [across.at(length) for length in growth.tokens]
    for index, component in enumerate(growth.lines):
        above = [low + size for low, size in zip(below, component.bytes, strict=True)]
        upper = [(x, 1 - up.at(size)) for x, size in zip(places, above, strict=True)]
        lower = [(x, 1 - up.at(size)) for x, size in zip(places, below, strict=True)]
        found.append((f"area {series(index)}", [*upper, *reversed(lower)]))
        found.append((f"curve {series(index)}", upper))
        below = above
    return found


def _mark(across: Axis, up: Axis, tokens: float, here: float) -> list[str]:
    share = across.at(tokens)
    y = _TOP + _HEIGHT * (1 - up.at(here))
    anchor = "start" if share < 0.6 else "end"
    return [
        line(percent(share), _TOP - 6, percent(share), _TOP + _HEIGHT, "mark"),
        f'<circle cx="{percent(share)}" cy="{y:g}" r="5" class="dot"/>',
        write(
            percent(share),
            _TOP - 12,
            f"{tokens_text(tokens)}: {human(here, 'byte')}",
            "strong",
            anchor,
        ),
    ]


def _table(growth: GrowthCurve, totals: tuple[float, ...]) -> Grid:
    step = max(1, (len(growth.tokens) - 1) // (_ROWS - 1))
    chosen = sorted({*range(len(growth.tokens) - 1, -1, -step)})
    several = len(growth.lines) > 1
    header = ("length", *names(growth), *(("all",) if several else ()))
    rows: list[tuple[Cell | str, ...]] = [
        (
            tokens_text(growth.tokens[index]),
            *(human(component.bytes[index], "byte") for component in growth.lines),
            *((human(totals[index], "byte"),) if several else ()),
        )
        for index in chosen
    ]
    return grid("", header, "l" + "r" * (len(header) - 1), rows)
