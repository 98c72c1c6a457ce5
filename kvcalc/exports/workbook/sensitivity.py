"""The sensitivity table and the charts, over the sheet of variants."""

from collections.abc import Mapping
from typing import Any

from kvcalc.exports.inputs import Input
from kvcalc.exports.workbook.figures import Figure
from kvcalc.exports.workbook.formulas import Steps
from kvcalc.exports.workbook.names import title
from kvcalc.exports.workbook.sheets import FIRST, heads, sheet_of
from kvcalc.exports.workbook.variants import (
    CHANGE,
    FACTORS,
    Columns,
    Variant,
    changed,
    inputs_of,
    outcomes,
    varied,
)
from kvcalc.exports.workbook.writing import Cells, ended
from kvcalc.results import UNLIMITED
from kvcalc.tracing.expression import Node, constant
from kvcalc.tracing.operations import choose, missing, operate

_CHANGE_CELL = "Sensitivity!$B$2"
_MEMORY = ("weights", "activations", "kv_pool", "other")
TOP = 2
"""Height at which a time without an end is drawn, over the longest that ends [1]."""

_COLOURS = ("#3B5B92", "#C58B2A", "#4C8C6B", "#9A9A9A", "#B3261E", "#7A4FA3")


def sensitivity_sheets(cells: Cells, figures: Mapping[str, Figure]) -> Columns:
    """Write the table and the charts; return the variants that both rest on, to be written last."""
    shown = outcomes(figures)
    chosen = varied(cells.plan.inputs, inputs_of([node for _, node in shown]))
    curve = _curve(cells, figures)
    variants = [
        changed(item, cells.names[item.key], sign, _CHANGE_CELL) for item in chosen for sign in (-1, 1)
    ]
    variants += [variant for variant, _ in curve]
    nodes = [node for _, node in shown] + ([*_sides(figures)] if curve else [])
    columns = Columns(cells, Steps.of(nodes), tuple(variants))
    _table(columns, chosen, shown)
    _charts(columns, figures, len(variants) - len(curve), curve)
    return columns


def _table(columns: Columns, chosen: list[Input], shown: list[tuple[str, Node]]) -> None:
    cells = columns.cells
    widths = ("label", "value", "value", *("value" for _ in shown))
    sheet = sheet_of(cells, "Sensitivity", "Each input by itself, down and up by this share:", widths)
    sheet.write_number(
        1, 1, CHANGE, cells.styles.of(num_format="0%", font_color="#0B3FB3", bg_color="#FFF8DC", border=1)
    )
    heads(cells, sheet, ("Input", "From", "To", *(label for label, _ in shown)))
    units = {figure.node: figure.unit for figure in cells.figures}
    row = FIRST
    sheet.write_string(row, 0, "As planned", cells.styles.words(bold=True))
    for column, (_, node) in enumerate(shown, 3):
        cells.figure(sheet, row, column, node, _style(cells, units[node], cells.value(node)))
    for place, item in enumerate(chosen):
        for sign in (0, 1):
            row += 1
            at = 2 * place + sign
            _variant_row(columns, sheet, row, at, item, shown, units)
    _scales(cells, sheet, row, len(shown))


def _style(cells: Cells, unit: str, value: Any) -> Any:
    return cells.styles.formula(unit, value) if unit else cells.styles.words()


def _variant_row(
    columns: Columns,
    sheet: Any,
    row: int,
    at: int,
    item: Input,
    shown: list[tuple[str, Node]],
    units: Mapping[Node, str],
) -> None:
    cells, variant = columns.cells, columns.variants[at]
    sheet.write_string(row, 0, f"{title(item.key)} {'up' if at % 2 else 'down'}", cells.styles.label())
    style = cells.styles.formula(item.unit, item.value)
    sheet.write_formula(row, 1, f"={cells.names[item.key]}", style, item.value)
    sheet.write_formula(row, 2, f"={columns.at(item.node, at)}", style, variant.value)
    for column, (_, node) in enumerate(shown, 3):
        formula, value = ended(node, columns.at(node, at), columns.value_at(node, at))
        sheet.write_formula(row, column, f"={formula}", _style(cells, units[node], value), value)


def _scales(cells: Cells, sheet: Any, last: int, count: int) -> None:
    """Shade what differs from the plan."""
    from xlsxwriter.utility import xl_col_to_name

    for column in range(3, 3 + count):
        letter = xl_col_to_name(column)
        rule = {
            "type": "formula",
            "criteria": f"={letter}{FIRST + 2}<>{letter}${FIRST + 1}",
            "format": cells.styles.of(bg_color="#EAF1FB"),
        }
        sheet.conditional_format(FIRST + 1, column, last, column, rule)


def _sides(figures: Mapping[str, Figure]) -> tuple[Node, ...]:
    """Return both sides of the first tier's question: the time with the hit, and without it."""
    first = _first_tier(figures)
    overlapped = first["overlapped_total"].node
    return choose(missing(overlapped), first["cached_total"].node, overlapped), first["recompute"].node


def _first_tier(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return the figures of the first row of offload, by name."""
    column = next((item.column for item in figures.values() if item.column), None)
    return {item.name: item for item in figures.values() if item.column == column} if column else {}


def _curve(cells: Cells, figures: Mapping[str, Figure]) -> list[tuple[Variant, float]]:
    """Return the variants of the bandwidth that the first tier is read with."""
    bandwidth = _first_tier(figures).get("bandwidth")
    if bandwidth is None:
        return []
    used = inputs_of([bandwidth.node])
    keys = sorted(key for key in used if key.startswith("tiers.") and key.endswith(".bandwidth"))
    key = (keys or [key for key in used if key == "host_to_device.bandwidth"] or [""])[0]
    item = next((item for item in cells.plan.inputs if item.key == key), None)
    if item is None or item.value is None:
        return []
    name = cells.names[key]
    return [(Variant(key, f"{name}*{factor!r}", item.value * factor), factor) for factor in FACTORS]


def _charts(
    columns: Columns, figures: Mapping[str, Figure], first: int, curve: list[tuple[Variant, float]]
) -> None:
    cells = columns.cells
    about = "Both charts follow the inputs."
    sheet = sheet_of(cells, "Charts", about, ("label", "value", "value", "value", "value"))
    heads(cells, sheet, ("Memory of one GPU", "Bytes", "", "", ""))
    for row, name in enumerate(_MEMORY, FIRST):
        sheet.write_string(row, 0, title(name), cells.styles.label())
        node = figures[f"memory.{name}"].node
        cells.figure(sheet, row, 1, _at_least_zero(node), cells.styles.formula("byte", 1e9))
    end = FIRST + len(_MEMORY)
    sheet.write_string(end, 0, "Missing", cells.styles.label())
    # A plan whose parts are more than there is has a negative rest, which no bar can be.
    lacking = _at_least_zero(operate("neg", figures["memory.other"].node))
    cells.figure(sheet, end, 1, lacking, cells.styles.formula("byte", 1e9))
    end += 1
    sheet.write_string(end, 0, "Needed by the load", cells.styles.label())
    cells.figure(sheet, end, 1, figures["capacity.need"].node, cells.styles.formula("byte", 1e9))
    _memory_chart(cells, sheet, end)
    if curve:
        _curve_chart(columns, sheet, figures, first, curve, end + 2)


def _at_least_zero(node: Node) -> Node:
    return operate("max", constant(0), node)


def _memory_chart(cells: Cells, sheet: Any, end: int) -> None:
    chart = cells.book.add_chart({"type": "bar"})
    chart.add_series(
        {
            "name": "Memory of one GPU",
            "categories": ["Charts", FIRST, 0, end, 0],
            "values": ["Charts", FIRST, 1, end, 1],
            "points": [{"fill": {"color": colour}} for colour in _COLOURS],
            "data_labels": {"value": True, "num_format": '#,##0.0,,," GB"'},
            "gap": 40,
        }
    )
    chart.set_title({"name": "Memory of one GPU"})
    chart.set_legend({"none": True})
    chart.set_x_axis(
        {"num_format": '#,##0,,," GB"', "major_gridlines": {"visible": True, "line": {"color": "#DDDDDD"}}}
    )
    chart.set_y_axis({"reverse": True})
    chart.set_size({"width": 640, "height": 300})
    sheet.insert_chart(FIRST - 1, 6, chart)


def _curve_chart(
    columns: Columns,
    sheet: Any,
    figures: Mapping[str, Figure],
    first: int,
    curve: list[tuple[Variant, float]],
    row: int,
) -> None:
    cells = columns.cells
    last = _curve_rows(columns, sheet, figures, first, curve, row)
    chart = cells.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    for column in (1, 2):
        chart.add_series(
            {
                "name": ["Charts", row, column],
                "categories": ["Charts", row + 1, 0, last, 0],
                "values": ["Charts", row + 1, column + 2, last, column + 2],
                "line": {"color": _COLOURS[column - 1], "width": 2.25},
                "marker": {"type": "circle", "size": 5, "fill": {"color": _COLOURS[column - 1]}},
            }
        )
    tier = _first_tier(figures)["bandwidth"].column
    chart.set_title({"name": f"Break-even over the bandwidth: {tier}"})
    chart.set_x_axis({"log_base": 2, "num_format": '#,##0.0,,," GB/s"', "name": "Bandwidth"})
    chart.set_y_axis(
        {
            "name": "Seconds to the first token",
            "major_gridlines": {"visible": True, "line": {"color": "#DDDDDD"}},
        }
    )
    chart.set_legend({"position": "bottom"})
    chart.set_size({"width": 640, "height": 360})
    sheet.insert_chart(FIRST + 15, 6, chart)


def _curve_rows(
    columns: Columns,
    sheet: Any,
    figures: Mapping[str, Figure],
    first: int,
    curve: list[tuple[Variant, float]],
    row: int,
) -> int:
    """Write the points of the curve; return the last row.

    A time that never ends has a word, which a chart would draw as zero: beside it stands what is drawn.
    """
    cells, sides = columns.cells, _sides(figures)
    words = ("Stated bandwidth", "Time with the hit", "Time without it", "Drawn with it", "Drawn without it")
    for column, word in enumerate(words):
        sheet.write_string(row, column, word, cells.styles.head())
    points: dict[tuple[int, int], Any] = {}
    for step, (variant, _) in enumerate(curve, 1):
        place = first + step - 1
        item = next(item for item in cells.plan.inputs if item.key == variant.key)
        style = cells.styles.formula("byte/second", 1e9)
        sheet.write_formula(row + step, 0, f"={columns.at(item.node, place)}", style, variant.value)
        for column, node in enumerate(sides, 1):
            formula, value = ended(node, columns.at(node, place), columns.value_at(node, place))
            points[row + step, column] = value
            sheet.write_formula(
                row + step, column, f"={formula}", cells.styles.formula("second", value), value
            )
    last = row + len(curve)
    top = TOP * max((value for value in points.values() if not isinstance(value, str)), default=0)
    times = f"$B${row + 2}:$C${last + 1}"
    for (at, column), value in points.items():
        cell = f"{'BC'[column - 1]}{at + 1}"
        drawn = top if isinstance(value, str) else value
        formula = f"=IF(ISNUMBER({cell}),{cell},{TOP}*MAX({times}))"
        sheet.write_formula(at, column + 2, formula, cells.styles.formula("second", drawn), drawn)
    note = f"A time that is {UNLIMITED} is drawn at {TOP} times the longest that ends."
    sheet.write_string(last + 1, 0, note, cells.styles.faint())
    return last
