"""The first sheet: does it fit, what limits it, is moving it worth it, and what to be warned of."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvcalc.exports.workbook.figures import Figure, absent
from kvcalc.exports.workbook.sheets import FIRST, color_words, heads, sheet_of
from kvcalc.exports.workbook.writing import Cells
from kvcalc.tracing.expression import FALSE, TRUE, Node, constant
from kvcalc.tracing.operations import both, choose, less

FITS, NOT = "fits", "does not fit"
VALID, INVALID = "yes", "no"

_MAIN = (
    ("Memory", None),
    ("KV that the load needs, per GPU", "capacity.need"),
    ("KV memory of one GPU", "capacity.budget"),
    ("Need over budget", "capacity.utilization"),
    ("Missing", "capacity.shortfall"),
    ("Sequences that fit", "capacity.sessions"),
    ("First limit as load grows", "first_limit"),
    ("KV of one token", "kv.bytes_per_token"),
    ("KV of one sequence, per GPU", "kv.views_per_gpu.reserved"),
    ("Weights, per GPU", "memory.weights"),
    ("Speed", None),
    ("Prefill of one prompt", "prefill.time"),
    ("One decode step", "decode.step_time"),
    ("Tokens per second, all sequences", "decode.tokens_per_second"),
    ("A decode step waits for", "decode.bound"),
    ("Cost of a million tokens", "cost_per_million_tokens"),
    ("Eviction", None),
    ("Cheapest way to take a victim back", "eviction.cheapest_mode"),
    ("Compute it again", "eviction.recompute_time"),
    ("Swap it out and back", "eviction.swap_time"),
    ("Evictions per second that thrash", "eviction.thrash_evictions_per_second"),
)

_TIER = ("verdict", "speedup", "restore", "remaining", "recompute", "break_even_bandwidth", "confidence")


def validity(plan_checks: Sequence[Any]) -> Node:
    """Return whether all checks hold, in a tree, since a function takes few arguments."""
    nodes: list[Node] = [check.holds for check in plan_checks] or [TRUE]
    while len(nodes) > 1:
        nodes = [both(*pair) if len(pair) == 2 else pair[0] for pair in _pairs(nodes)]
    return nodes[0]


def _pairs(nodes: list[Node]) -> list[list[Node]]:
    return [nodes[i : i + 2] for i in range(0, len(nodes), 2)]


def verdict_nodes(figures: Mapping[str, Figure], valid: Node) -> dict[str, Node]:
    """Return the nodes that this sheet adds to the figures."""
    short = less(constant(0), figures["capacity.shortfall"].node)
    return {
        "valid": choose(valid, constant(VALID), constant(INVALID)),
        "fits": choose(short, constant(NOT), constant(FITS)),
    }


def note_nodes(notes: Sequence[Any]) -> list[tuple[str, Node]]:
    """Return each warning and assumption as a text that is empty where it does not hold."""
    return [
        (note.kind, choose(note.where, constant(note.text), constant("")))
        for note in sorted(notes, key=lambda note: note.kind != "warning")
        if note.where is not FALSE
    ]


def answers_sheet(cells: Cells, figures: Mapping[str, Figure], extra: Mapping[str, Node]) -> None:
    """Write the answers in the order in which a planner asks."""
    about = f"{cells.plan.model} on {cells.plan.machine}. Every line follows the sheet Inputs."
    sheet = sheet_of(cells, "Answers", about, ("label", "value", "unit", "key", "note"))
    heads(cells, sheet, ("Question", "Answer", "Unit", "Key in `kvcalc plan --format json`", "Why"))
    bold = cells.styles.words(bold=True)
    for row, (label, name) in enumerate(
        (("Does the load fit?", "fits"), ("Do the formulas hold? (sheet Checks)", "valid")), FIRST
    ):
        sheet.write_string(row, 0, label, bold)
        cells.figure(sheet, row, 1, extra[name], bold)
        color_words(cells, sheet, row, 1, *((FITS, NOT) if name == "fits" else (VALID, INVALID)))
    row = _main(cells, sheet, figures, FIRST + 2)
    row = _tiers(cells, sheet, figures, row)
    _notes(cells, sheet, row)


def _main(cells: Cells, sheet: Any, figures: Mapping[str, Figure], row: int) -> int:
    for label, key in _MAIN:
        if key is None:
            sheet.merge_range(row, 0, row, 4, label, cells.styles.section())
            row += 1
            continue
        item = figures.get(key)
        if item is None or absent(item):
            continue
        _line(cells, sheet, row, label, item)
        row += 1
    return row


def _line(cells: Cells, sheet: Any, row: int, label: str, item: Figure) -> None:
    style = (
        cells.styles.formula(item.unit, cells.value(item.node))
        if item.unit
        else cells.styles.words(bold=True)
    )
    sheet.write_string(row, 0, label, cells.styles.label())
    cells.figure(sheet, row, 1, item.node, style)
    sheet.write_string(row, 2, item.unit, cells.styles.unit())
    sheet.write_string(row, 3, item.key, cells.styles.faint())


def _tiers(cells: Cells, sheet: Any, figures: Mapping[str, Figure], row: int) -> int:
    columns = dict.fromkeys(item.column for item in figures.values() if item.column)
    for column in columns:
        sheet.merge_range(row, 0, row, 4, "", cells.styles.section())
        sheet.write_string(row, 0, f"Tier {column}", cells.styles.section())
        row += 1
        for name in _TIER:
            for item in figures.values():
                if item.column == column and item.name == name and not absent(item):
                    _line(cells, sheet, row, name.replace("_", " ").capitalize(), item)
                    if name == "verdict":
                        color_words(cells, sheet, row, 1, "restore", "recompute")
                        _why(cells, sheet, row, item, figures)
                    row += 1
    return row


def _why(cells: Cells, sheet: Any, row: int, verdict: Figure, figures: Mapping[str, Figure]) -> None:
    """Write the verdict in words beside it."""
    reason = figures.get(verdict.key.removesuffix("verdict") + "reason")
    if reason is not None and (reason.live or reason.node in cells.steps.places):
        cells.figure(sheet, row, 4, reason.node, cells.styles.words())
        sheet.set_row(row, 15 * (1 + len(str(cells.value(reason.node))) // 60))


def _notes(cells: Cells, sheet: Any, row: int) -> None:
    before = None
    for kind, node in note_nodes(cells.plan.notes):
        if kind != before:
            sheet.merge_range(
                row, 0, row, 4, f"{kind.capitalize()}s that hold for these inputs", cells.styles.section()
            )
            row, before = row + 1, kind
        sheet.merge_range(row, 0, row, 4, "", cells.styles.words())
        sheet.set_row(row, 15 * (1 + len(str(cells.value(node))) // 150))
        if node.op == "const" and node not in cells.steps.places:
            sheet.write_string(row, 0, str(node.value), cells.styles.words())
        else:
            cells.figure(sheet, row, 0, node, cells.styles.words())
        row += 1
