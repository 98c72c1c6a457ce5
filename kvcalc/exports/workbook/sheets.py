"""The sheets that a planner reads: inputs, answers, one a part of the plan, sources and checks."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from kvcalc.exports.inputs import GROUPS, STRUCTURE, Input
from kvcalc.exports.traced import NOT_LIVE
from kvcalc.exports.workbook.figures import Figure, absent
from kvcalc.exports.workbook.formulas import ENDLESS, FINITE_BELOW
from kvcalc.exports.workbook.names import title
from kvcalc.exports.workbook.styles import BAD, GOOD, WIDTHS
from kvcalc.exports.workbook.writing import FIRST_STEP, STEPS, UNKNOWN, Cells
from kvcalc.results import UNLIMITED
from kvcalc.tracing.expression import TEXT

FIRST = 3
"""First row of a table, counted from 0: a title, a line that explains, the heads."""

ENDLESS_NOTE = f"{ENDLESS:.0E}, shown as {UNLIMITED}, stands for a number without an end"
"""Said in the row of heads of the sheets whose cells hold that number."""

SHEETS = {
    "KV": ("kv",),
    "Memory": ("memory", "capacity", "bandwidth"),
    "Speed": ("prefill", "decode", "cost_per_million_tokens", "host", "transfer"),
    "Restore": ("offload",),
    "Fleet": ("fleet",),
    "Eviction": ("eviction",),
}
"""Sheet -> the parts of the plan that it shows."""

_ABOUT = {
    "KV": "What one token and one sequence cost, and where the bytes are.",
    "Memory": "Where the memory of one GPU goes, and whether the load fits what is left for KV.",
    "Speed": "Prefill of a whole prompt, one decode step at the planned load, and what tokens cost.",
    "Restore": "Each tier against computing again: the parts of a restore, the break-even and the verdict.",
    "Fleet": "All replicas under the rate of requests, with the tiers and without; blank without a rate.",
    "Eviction": "What losing one sequence costs, and from which rate on the machine thrashes.",
}


def sheet_of(cells: Cells, name: str, about: str, widths: Sequence[str]) -> Any:
    """Add a sheet with its title, ready to print."""
    sheet = cells.book.add_worksheet(name)
    sheet.hide_gridlines(2)
    sheet.set_landscape()
    sheet.set_paper(9)
    sheet.fit_to_pages(1, 0)
    sheet.repeat_rows(FIRST - 1)
    sheet.set_footer("&L&F&C&A&RPage &P of &N")
    for column, width in enumerate(widths):
        sheet.set_column(column, column, WIDTHS[width])
    sheet.write_string(0, 0, name, cells.styles.title())
    sheet.write_string(1, 0, about, cells.styles.of(font_color="#6B6B6B"))
    sheet.freeze_panes(FIRST, 1)
    return sheet


def heads(cells: Cells, sheet: Any, words: Sequence[str]) -> None:
    """Write the heads of a table."""
    for column, word in enumerate(words):
        sheet.write_string(FIRST - 1, column, word, cells.styles.head())
    sheet.set_row(FIRST - 1, height_of(*words, across=20) if len(words) > 3 else None)


def inputs_sheet(cells: Cells) -> None:
    """Write the inputs, each with a name, its unit, what it means and where its value is from."""
    about = f"{cells.plan.model} on {cells.plan.machine}. Change a blue number, and all sheets follow."
    sheet = sheet_of(cells, "Inputs", about, ("label", "value", "unit", "note", "note", "key"))
    heads(cells, sheet, ("Input", "Value", "Unit", "What it is", "Source", "Name in formulas"))
    row = FIRST
    for group in GROUPS:
        members = [item for item in cells.plan.inputs if item.group == group]
        if not members:
            continue
        sheet.merge_range(row, 0, row, 5, group, cells.styles.section())
        row += 1
        for item in members:
            _input_row(cells, sheet, row, item)
            row += 1
    _fixed_rows(cells, sheet, row + 1)


def _input_row(cells: Cells, sheet: Any, row: int, item: Input) -> None:
    styles = cells.styles
    sheet.write_string(row, 0, title(item.key), styles.label())
    style = styles.input(item.unit, item.value, item.node.bounds.whole)
    if item.value is None:
        sheet.write_blank(row, 1, None, style)
    else:
        sheet.write_number(row, 1, item.value, style)
    sheet.write_string(row, 2, item.unit, styles.unit())
    sheet.write_string(row, 3, item.meaning, styles.label())
    sheet.write_string(row, 4, item.source, styles.faint())
    sheet.write_string(row, 5, cells.names[item.key], styles.faint())
    cells.book.define_name(cells.names[item.key], f"=Inputs!$B${row + 1}")
    sheet.data_validation(row, 1, row, 1, _validation(item))


def _validation(item: Input) -> dict[str, Any]:
    """Return what the cell of an input takes, by the bounds that the formulas rest on."""
    bounds = item.node.bounds
    kind = "integer" if bounds.whole else "decimal"
    low = bounds.low if not (bounds.positive and bounds.low == 0) else 1e-300
    rule: dict[str, Any] = {"validate": kind, "ignore_blank": item.optional, "criteria": ">=", "value": low}
    least = "more than 0" if bounds.positive and bounds.low == 0 else f"{bounds.low:g} or more"
    if bounds.high < 1e300:
        rule |= {"criteria": "between", "minimum": low, "maximum": bounds.high}
        least += f", at most {bounds.high:g}"
    words = f"{'a whole number, ' if bounds.whole else ''}{least} [{item.unit}]"
    return rule | {"error_title": "Not valid", "error_message": words, "input_message": words}


def _fixed_rows(cells: Cells, sheet: Any, row: int) -> None:
    """Name what no cell changes."""
    styles = cells.styles
    sheet.merge_range(row, 0, row, 5, "Fixed in this workbook: export again to change", styles.section())
    live = {item.key for item in cells.plan.inputs}
    for name, value in cells.plan.real.inputs.items():
        words = isinstance(value, (str, bool))
        if name in live or not (words or name in STRUCTURE):
            continue
        row += 1
        sheet.write_string(row, 0, title(name), styles.label())
        sheet.write_string(row, 1, _in_words(value), styles.fixed())
        sheet.write_string(row, 3, STRUCTURE.get(name, "it chooses rules and profiles"), styles.faint())
    for name, reason in NOT_LIVE.items():
        row += 1
        sheet.write_string(row, 0, title(name.rpartition(".")[2]), styles.label())
        sheet.write_string(row, 1, "not here", styles.fixed())
        sheet.write_string(row, 3, f"{reason}; `kvcalc plan` answers it", styles.faint())


def _in_words(value: object) -> str:
    """Return a value that no cell changes, as a planner says it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else str(value)


def part_sheet(cells: Cells, name: str, figures: Sequence[Figure]) -> None:
    """Write one part of the plan: a figure a row, or a column a tier."""
    if name == "Restore":
        _tier_table(cells, figures)
        return
    shown = [item for item in figures if not absent(item)]
    sheet = sheet_of(cells, name, _ABOUT[name], ("label", "value", "unit", "key"))
    heads(cells, sheet, ("Figure", "Value", "Unit", "Key in `kvcalc plan --format json`"))
    for row, item in enumerate(shown, FIRST):
        label = title(item.key.removeprefix(f"{item.part}."))
        sheet.write_string(row, 0, label, cells.styles.label())
        write_figure(cells, sheet, row, 1, item)
        sheet.write_string(row, 2, item.unit, cells.styles.unit())
        sheet.write_string(row, 3, item.key, cells.styles.faint())
    if not shown:
        sheet.write_string(FIRST, 0, "Nothing was asked for here.", cells.styles.faint())


def write_figure(cells: Cells, sheet: Any, row: int, column: int, item: Figure) -> None:
    """Write a figure: a formula, or in grey what no input changes."""
    styles = cells.styles
    style = styles.formula(item.unit, cells.value(item.node)) if item.unit else styles.words()
    if item.node in cells.steps.places or item.live:
        cells.figure(sheet, row, column, item.node, style)
        return
    value = item.node.value
    sheet.write(
        row, column, "" if value is None else value if not isinstance(value, str) else None, styles.fixed()
    )
    if isinstance(value, str):
        sheet.write_string(row, column, value, styles.fixed())


def _tier_table(cells: Cells, figures: Sequence[Figure]) -> None:
    """Write the tiers side by side."""
    columns = list(dict.fromkeys(item.column for item in figures))
    widths = ("label", "unit", *("value" for _ in columns), "key")
    sheet = sheet_of(cells, "Restore", _ABOUT["Restore"], widths)
    heads(cells, sheet, ("Figure", "Unit", *columns, "Key"))
    shown = (item.name for item in figures if not absent(item) and item.name not in ("tier", "mode"))
    names = list(dict.fromkeys(shown))
    for row, name in enumerate(names, FIRST):
        sheet.write_string(row, 0, title(name), cells.styles.label())
        for item in figures:
            if item.name == name:
                sheet.write_string(row, 1, item.unit, cells.styles.unit())
                write_figure(cells, sheet, row, 2 + columns.index(item.column), item)
                if name == "reason":
                    sheet.set_row(row, height_of(cells.value(item.node), across=16))
        sheet.write_string(row, 2 + len(columns), f"offload[].{name}", cells.styles.faint())
    if not columns:
        sheet.write_string(FIRST, 0, "No tier, or nothing to restore.", cells.styles.faint())


def sources_sheet(cells: Cells) -> None:
    """Write where values came from."""
    sheet = sheet_of(
        cells, "Sources", "Where each value came from.", ("label", "unit", "note", "key", "note")
    )
    heads(cells, sheet, ("Value", "Kind", "Source", "As printed", "Note"))
    for row, (key, source) in enumerate(cells.plan.real.sources.items(), FIRST):
        words = (key, source.kind, source.source, source.as_printed, source.note)
        for column, word in enumerate(words):
            sheet.write_string(row, column, str(word), cells.styles.label())
        sheet.set_row(row, height_of(*words))


def height_of(*words: object, across: int = 52) -> int:
    """Return the height of a row whose cells are this many signs wide, since programs do not all fit it."""
    return 15 * max(1 + len(str(word)) // across for word in words)


def checks_sheet(cells: Cells) -> None:
    """Write what the formulas rest on: each line must be TRUE."""
    about = "The formulas are those of kvcalc while each line is TRUE; otherwise export again."
    sheet = sheet_of(cells, "Checks", about, ("note", "value"))
    heads(cells, sheet, ("Condition, or what is wrong where it does not hold", "Holds"))
    row = FIRST
    for check in cells.plan.checks:
        label = _complete(cells.value_of_text(check.reason))
        sheet.write_string(row, 0, label, cells.styles.label())
        sheet.set_row(row, height_of(label))
        cells.figure(sheet, row, 1, check.holds, cells.styles.words())
        row += 1
    sheet.conditional_format(
        FIRST,
        1,
        max(row, FIRST + 1),
        1,
        {
            "type": "cell",
            "criteria": "==",
            "value": "FALSE",
            "format": cells.styles.of(font_color=BAD, bold=True),
        },
    )


def _complete(text: str) -> str:
    """Return a condition without what follows the first number in it that has no value."""
    clauses = re.split(r"(?<=[,;]) ", text)
    known = list(takewhile(lambda clause: UNKNOWN not in clause, clauses))
    return " ".join(known).rstrip(",;") or text


def steps_sheet(cells: Cells) -> None:
    """Write every step of the calculation, each after what it needs."""
    about = (
        "Each formula of kvcalc as it ran for this plan, step by step; names are those of the sheet Inputs."
    )
    sheet = sheet_of(cells, STEPS, about, ("label", "note", "value"))
    sheet.freeze_panes(FIRST_STEP, 3)
    for column, head in enumerate(("Computed by", "What it is", "Value")):
        sheet.write_string(FIRST_STEP - 1, column, head, cells.styles.head())
    sheet.write_string(FIRST_STEP - 2, 0, f"{ENDLESS_NOTE}.", cells.styles.faint())
    show_endless(cells, sheet, (FIRST_STEP, 2, FIRST_STEP + len(cells.steps.order), 2))
    for node in cells.steps.order:
        row = cells.row_of(node)
        name, meaning = cells.labels.get(node, ("", ""))
        sheet.write_string(row, 0, name, cells.styles.faint())
        sheet.write_string(row, 1, meaning, cells.styles.of(font_color="#6B6B6B", font_size=9))
        style = cells.styles.words() if node.kind == TEXT else cells.styles.of(align="right")
        sheet.write_formula(row, 2, cells.step(node), style, cells.value(node))


def show_endless(cells: Cells, sheet: Any, area: tuple[int, int, int, int]) -> None:
    """Show a word in the cells of an area that hold what stands for no end, without changing them."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    first = xl_rowcol_to_cell(*area[:2])
    rule = {
        "type": "formula",
        "criteria": f"=IF(ISNUMBER({first}),ABS({first})>={FINITE_BELOW:.0E},FALSE)",
        "format": cells.book.add_format({"num_format": f'"{UNLIMITED}";"-{UNLIMITED}"'}),
    }
    sheet.conditional_format(*area, rule)


def color_words(cells: Cells, sheet: Any, row: int, column: int, good: str, bad: str) -> None:
    """Colour a verdict by its word."""
    for word, color in ((good, GOOD), (bad, BAD)):
        sheet.conditional_format(
            row,
            column,
            row,
            column,
            {
                "type": "text",
                "criteria": "begins with",
                "value": word,
                "format": cells.styles.of(font_color=color, bold=True),
            },
        )
