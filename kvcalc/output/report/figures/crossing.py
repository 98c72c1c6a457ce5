"""Restoring against recomputing over the bandwidth of one tier, and over the prefix for all of them."""

from collections.abc import Iterator, Sequence

from kvcalc.offload_results import BreakEvenCurve, CurveLine
from kvcalc.output.crossing import said
from kvcalc.output.format import human
from kvcalc.output.page import Cell, Grid, grid
from kvcalc.output.report.figures.figure import Figure, series
from kvcalc.output.svg.axes import Axis, tick_texts
from kvcalc.output.svg.mark import bar, curves, drawing, line, percent, write
from kvcalc.results import Offload

_TOP, _HEIGHT, _FOOT = 44, 210, 42
_ROWS = 9  # points in the table
_LEFT, _MIDDLE = 0.28, 0.6  # shares of the width that leave room for words to the right
_NAME = 12  # letters of a tier beside a mark
_NARROW = 4  # ticks that a phone has room for

Points = list[tuple[float, float]]


def bandwidth_figure(curve: BreakEvenCurve, item: Offload) -> Figure:
    """Return both times over the bandwidth, with the tier's own and the break-even marked."""
    across = Axis(curve.points[0], curve.points[-1], logarithmic=True)
    up = _times([value for item in curve.lines for value in item.values if value])
    now = float(item.bandwidth)
    name = item.tier if len(item.tier) <= _NAME else f"{item.tier[: _NAME - 1]}…"
    marks = [(now, f"{name}: {human(now, 'byte/second')}", "strong")]
    inside = []
    if curve.break_even is not None:
        point = human(curve.break_even, curve.unit)
        marks.append((curve.break_even, f"break-even: {point}", "label"))
        inside.append(
            bar(across.at(curve.break_even), 1.0, _TOP, _HEIGHT, "wins", "restoring is faster here")
        )
    says = _bandwidth_says(curve, item)
    return Figure(
        title=f"{item.tier}: how fast must it be?",
        says=says,
        drawing=_drawn(
            says,
            across,
            up,
            [
                (f"curve {kind}", _points(curve.points, line.values, across, up))
                for kind, line in zip(("s1", "other"), curve.lines, strict=True)
            ],
            marks,
            curve.unit,
            inside,
        ),
        table=_table(curve.points, curve.unit, "bandwidth", curve.lines),
        legend=(
            ("line-s1", "with the hit restored"),
            ("line-other", "recomputed"),
            *((("wins-key", "restoring is faster"),) if curve.break_even is not None else ()),
        ),
        gutter="left",
    )


def _bandwidth_says(curve: BreakEvenCurve, item: Offload) -> str:
    if curve.break_even is None:
        return f"There is {said(curve)}."
    point, now = human(curve.break_even, curve.unit), human(float(item.bandwidth), curve.unit)
    times = float(item.bandwidth) / curve.break_even
    if times >= 1:
        return (
            f"Above {point} restoring from {item.tier} is faster; it gives {now}, {human(times, '1')} times "
            "as much."
        )
    return (
        f"Restoring from {item.tier} would be faster above {point}; it gives {now}, "
        f"{human(times, '1', share=True)} of that."
    )


def prefix_figure(curves_: Sequence[BreakEvenCurve], cached: float | None) -> Figure:
    """Return the time of a prompt over the length of its prefix: recomputed, and restored from each tier."""
    lines = [("recomputed", "other", curves_[0].points, curves_[0].lines[1].values)]
    lines += [
        (f"restored from {curve.tier}", series(index), curve.points, curve.lines[0].values)
        for index, curve in enumerate(curves_)
    ]
    across = Axis(
        min(curve.points[0] for curve in curves_),
        max(curve.points[-1] for curve in curves_),
        logarithmic=True,
    )
    up = _times([value for *_, values in lines for value in values if value])
    says = " ".join(_prefix_says(curve) for curve in curves_)
    marks = [] if not cached else [(cached, f"this hit: {human(cached, 'token')}", "strong")]
    return Figure(
        title="How long must a prefix be?",
        says=says,
        drawing=_drawn(
            says,
            across,
            up,
            [
                (f"curve {kind}", _points(points, values, across, up))
                for _, kind, points, values in reversed(lines)
            ],
            marks,
            "token",
            [],
        ),
        table=_table(
            curves_[0].points,
            "token",
            "prefix",
            [
                CurveLine("recomputed", "second", curves_[0].lines[1].values),
                *(
                    CurveLine(f"restored from {curve.tier}", "second", _on(curves_[0].points, curve))
                    for curve in curves_
                ),
            ],
        ),
        legend=tuple((f"line-{kind}", name) for name, kind, *_ in lines),
        gutter="left",
    )


def _prefix_says(curve: BreakEvenCurve) -> str:
    if curve.break_even is None:
        return f"{curve.tier}: {said(curve)}."
    pays = f"Restoring from {curve.tier} pays from a prefix of {human(curve.break_even, 'token')} on"
    until = _until(curve)
    if until is None:
        return f"{pays}."
    why = "restores of longer ones wait ever longer for its link at this rate"
    if curve.lines[0].values[-1] is not None:
        why = "longer ones take longer to restore than to compute"
    return f"{pays}, up to one of about {human(until, 'token')}: {why}."


def _until(curve: BreakEvenCurve) -> float | None:
    """Return the longest prefix of the curve that still pays, where longer ones do not."""
    restored, computed = curve.lines
    beyond = [
        (point, total is not None and full is not None and total < full)
        for point, total, full in zip(curve.points, restored.values, computed.values, strict=True)
        if curve.break_even is not None and point >= curve.break_even
    ]
    losing = next((index for index, (_, pays) in enumerate(beyond) if not pays and index), None)
    return None if losing is None else beyond[losing - 1][0]


def _on(points: Sequence[float], curve: BreakEvenCurve) -> tuple[float | None, ...]:
    """Return a curve's values at other points: that of the nearest of its own, None where none is near."""
    found: list[float | None] = []
    for point in points:
        index = min(range(len(curve.points)), key=lambda i: abs(curve.points[i] - point))
        found.append(curve.lines[0].values[index] if curve.points[index] == point else None)
    return tuple(found)


def _times(values: Sequence[float]) -> Axis:
    low, high = min(values, default=1e-3), max(values, default=1.0)
    return Axis(low / 1.25, max(high, low * 10) * 1.25, logarithmic=True)


def _points(points: Sequence[float], values: Sequence[float | None], across: Axis, up: Axis) -> Points:
    return [
        (across.at(point), 1 - up.at(value))
        for point, value in zip(points, values, strict=True)
        if value is not None and value > 0
    ]


def _drawn(
    says: str,
    across: Axis,
    up: Axis,
    lines: Sequence[tuple[str, Points]],
    marks: Sequence[tuple[float, str, str]],
    unit: str,
    inside: Sequence[str],
) -> str:
    return drawing(
        _TOP + _HEIGHT + _FOOT,
        says,
        *inside,
        *_grid(across, up, unit),
        curves(_TOP, _HEIGHT, lines),
        *_marks(across, marks),
    )


def _grid(across: Axis, up: Axis, unit: str) -> Iterator[str]:
    ticks = up.ticks(5)
    for value, text in zip(ticks, tick_texts(ticks, "second"), strict=True):
        y = round(_TOP + _HEIGHT * (1 - up.at(value)), 1)
        yield line(0, y, "100%", y, "grid")
        yield write(-8, y + 4, text, "tick", "end")
    columns = across.ticks(5)
    words = [f"{value:,.0f}" for value in columns] if unit == "token" else tick_texts(columns, unit)
    for index, (value, text) in enumerate(zip(columns, words, strict=True)):
        x = across.at(value)
        yield line(percent(x), _TOP + _HEIGHT, percent(x), _TOP + _HEIGHT + 5, "grid")
        anchor = "start" if x < 0.04 else "end" if x > 0.94 else "middle"
        kind = "tick odd" if len(columns) > _NARROW and index % 2 else "tick"
        yield write(percent(x), _TOP + _HEIGHT + 19, text, kind, anchor)
    name = "tokens of the prefix, in powers of ten" if unit == "token" else "bandwidth, in powers of ten"
    yield write("100%", _TOP + _HEIGHT + 37, name, "tick", "end")


def _marks(across: Axis, marks: Sequence[tuple[float, str, str]]) -> Iterator[str]:
    """Yield upright lines, each with its words in a row of its own, where no other line crosses them."""
    inside = sorted(mark for mark in marks if 0 <= across.at(mark[0]) <= 1)
    last = across.at(inside[-1][0]) if inside else 0.0
    outward = last <= _MIDDLE  # both sides of the lines have room for words
    for index, (value, text, kind) in enumerate(inside):
        x = across.at(value)
        row = index if outward else len(inside) - 1 - index
        y = 14 + 18 * row
        anchor = "start" if (outward and x <= _MIDDLE) or x < _LEFT else "end"
        yield line(percent(x), y + 4, percent(x), _TOP + _HEIGHT, f"mark {kind}")
        yield write(percent(x), y, text, kind, anchor, dx=-4 if anchor == "start" else 4)


def _table(points: Sequence[float], unit: str, name: str, lines: Sequence[CurveLine]) -> Grid:
    step = max(1, (len(points) - 1) // (_ROWS - 1))
    chosen = sorted({*range(0, len(points), step)})
    rows: list[tuple[Cell | str, ...]] = [
        (
            human(points[index], unit),
            *(human(line.values[index], line.unit) for line in lines),
        )
        for index in chosen
    ]
    return grid("", (name, *(line.name for line in lines)), "l" + "r" * len(lines), rows)
