"""The same formulas under other inputs: a column a variant, for the sensitivity table and the charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvcalc.exports.inputs import Input
from kvcalc.exports.workbook.figures import Figure
from kvcalc.exports.workbook.formulas import Steps, spelled, texts_in
from kvcalc.exports.workbook.names import title
from kvcalc.exports.workbook.sheets import ENDLESS_NOTE, FIRST, heads, sheet_of, show_endless
from kvcalc.exports.workbook.writing import NOT_TAKEN, Cells
from kvcalc.tracing.expression import Node, NoValueError, evaluate

SHEET = "Variants"
CHANGE = 0.2
"""Relative change of an input in the sensitivity table [1], which a cell of that table replaces."""

FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
"""Bandwidths of the break-even chart, as factors of the planned one [1]."""

MOST = 14
"""Inputs in the sensitivity table [1]."""

_FIRST_CHOICE = (
    *("prompt", "generate", "concurrency", "hit", "cached", "rate", "device.bandwidth", "device.capacity"),
    *("prefill_efficiency.mid", "decode_efficiency.mid", "host_to_device.bandwidth", "utilization", "price"),
)

OUTCOMES = (
    ("Need over budget", "capacity.utilization"),
    ("Sequences that fit", "capacity.sessions"),
    ("Prefill", "prefill.time"),
    ("Tokens per second", "decode.tokens_per_second"),
    ("First limit", "first_limit"),
)


@dataclass(frozen=True)
class Variant:
    """One input changed."""

    key: str
    formula: str  # of the changed value
    value: Any  # now


@dataclass
class Columns:
    """The sheet of variants: which rows and columns hold what."""

    cells: Cells
    steps: Steps
    variants: tuple[Variant, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The inputs, in rows."""
        return tuple(item.key for item in self.cells.plan.inputs)

    def letter(self, place: int) -> str:
        """Return the letters of a variant's column."""
        from xlsxwriter.utility import xl_col_to_name

        return str(xl_col_to_name(place + 1))

    def row(self, node: Node) -> int:
        """Return the row of an input or a step, counted from 1."""
        if node.op == "input":
            return FIRST + 1 + self.keys.index(node.value)
        return FIRST + 1 + len(self.keys) + self.steps.places[node]

    def at(self, node: Node, place: int) -> str:
        """Return the cell of an outcome under a variant, as other sheets write it."""
        if node not in self.steps.places and node.op != "input":
            return spelled(node, lambda arg: self.at(arg, place))
        return f"{SHEET}!${self.letter(place)}${self.row(node)}"

    def _here(self, node: Node, place: int) -> str:
        if node in self.steps.places or node.op == "input":
            return f"{self.letter(place)}{self.row(node)}"
        return spelled(node, lambda arg: self._here(arg, place))

    def write(self) -> None:
        """Write the sheet."""
        cells = self.cells
        about = "The steps of the sheet Steps once more, with one input changed in each column."
        sheet = sheet_of(cells, SHEET, about, ("label", *("unit" for _ in self.variants)))
        heads(cells, sheet, (f"Step ({ENDLESS_NOTE})", *(title(item.key) for item in self.variants)))
        rows = len(self.keys) + len(self.steps.order)
        show_endless(cells, sheet, (FIRST, 1, FIRST + rows, len(self.variants)))
        faint = cells.styles.faint()
        for key in self.keys:
            sheet.write_string(FIRST + self.keys.index(key), 0, cells.names[key], faint)
        for node in self.steps.order:
            sheet.write_string(self.row(node) - 1, 0, cells.labels.get(node, ("", ""))[0], faint)
        for place, variant in enumerate(self.variants):
            self._column(sheet, place, variant)

    def _column(self, sheet: Any, place: int, variant: Variant) -> None:
        cells = self.cells
        values = {**cells.values, variant.key: variant.value}
        known: dict[Node, Any] = {}
        for item in cells.plan.inputs:
            name = cells.names[item.key]
            formula = variant.formula if item.key == variant.key else name
            if item.optional and item.key != variant.key:
                formula = f'IF({name}="","",{name})'
            shown = values[item.key]
            row = FIRST + self.keys.index(item.key)
            sheet.write_formula(row, place + 1, f"={formula}", None, "" if shown is None else shown)
        for node in self.steps.order:
            formula = spelled(node, lambda arg: self._here(arg, place))
            formula = f'IFERROR({formula},"{NOT_TAKEN}")' if self.steps.risky[node] else formula
            sheet.write_formula(
                self.row(node) - 1, place + 1, f"={formula}", None, self.value(node, values, known)
            )

    def value(self, node: Node, values: Mapping[str, Any], known: dict[Node, Any]) -> Any:
        """Return what a cell shows now."""
        try:
            return self.cells.shown(evaluate(node, values, known))
        except NoValueError:
            return NOT_TAKEN

    def value_at(self, node: Node, place: int) -> Any:
        """Return what an outcome is under a variant now."""
        variant = self.variants[place]
        return self.value(node, {**self.cells.values, variant.key: variant.value}, {})


def varied(inputs: Sequence[Input], used: set[str]) -> list[Input]:
    """Return the inputs of the sensitivity table, those that most planners ask for first."""
    known = {item.key: item for item in inputs if item.value and item.key in used}
    tiers = [key for key in known if key.startswith("tiers.") and key.endswith(".bandwidth")]
    chosen = [key for key in (*_FIRST_CHOICE, *tiers, *known) if key in known]
    return [known[key] for key in dict.fromkeys(chosen)][:MOST]


def changed(item: Input, name: str, sign: int, change: str) -> Variant:
    """Return the variant of an input moved up or down by the change of the table."""
    factor = f"(1{'+' if sign > 0 else '-'}{change})"
    formula, value = f"{name}*{factor}", item.value * (1 + sign * CHANGE)
    bounds = item.node.bounds
    if bounds.whole:
        formula = f"MAX({int(max(bounds.low, 0))},ROUND({formula},0))"
        value = max(int(max(bounds.low, 0)), int(value + 0.5))
    if bounds.high < 1e300:
        formula, value = f"MIN({bounds.high:g},{formula})", min(bounds.high, value)
    return Variant(item.key, formula, value)


def outcomes(figures: Mapping[str, Figure]) -> list[tuple[str, Node]]:
    """Return what the table shows under each variant: the main figures, and each tier's verdict."""
    found = [(label, figures[key].node) for label, key in OUTCOMES if key in figures]
    for item in figures.values():
        if item.name in ("speedup", "verdict") and "prefix" in item.column:
            found.append((f"{item.column.partition(' (')[0]}: {item.name}", item.node))
    return found[:9]


def inputs_of(nodes: Sequence[Node]) -> set[str]:
    """Return the keys of the inputs that some nodes depend on."""
    seen: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend((*node.args, *texts_in(node)))
    return {node.value for node in seen if node.op == "input"}
