"""The cells of one workbook: steps, figures that point to them, and inputs with their names."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvcalc.exports.traced import TracedPlan
from kvcalc.exports.workbook.figures import Figure
from kvcalc.exports.workbook.formulas import ENDLESS, FINITE_BELOW, Steps, spelled
from kvcalc.exports.workbook.names import defined_names
from kvcalc.exports.workbook.styles import Styles
from kvcalc.results import UNLIMITED
from kvcalc.tracing.expression import Node, NoValueError, evaluate
from kvcalc.tracing.number import parts_of_text
from kvcalc.tracing.operations import may_be_endless

STEPS = "Steps"
FIRST_STEP = 4
"""Row of the first step, counted from 0."""

NOT_TAKEN = "n/a"
"""What a step shows that has no value since nothing leads to it."""

UNKNOWN = "..."
"""Stands in a text for a number that has no value now."""


@dataclass
class Cells:
    """Writes formulas and knows where everything stands."""

    plan: TracedPlan
    book: Any  # xlsxwriter.Workbook
    styles: Styles
    steps: Steps
    names: Mapping[str, str]
    values: dict[str, Any]
    figures: tuple[Figure, ...]
    known: dict[Node, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: TracedPlan,
        book: Any,
        shown: list[Node],
        figures: tuple[Figure, ...],
    ) -> "Cells":
        """Return the cells of a plan that shows these nodes."""
        keys = [item.key for item in plan.inputs]
        values = {item.key: item.value for item in plan.inputs}
        return cls(plan, book, Styles(book), Steps.of(shown), defined_names(keys), values, figures)

    def place(self, node: Node) -> str:
        """Return the cell of a step, as other sheets write it."""
        return f"{STEPS}!$C${self.row_of(node) + 1}"

    def row_of(self, node: Node) -> int:
        """Return the row of a step, counted from 0."""
        return FIRST_STEP + self.steps.places[node]

    def at(self, node: Node) -> str:
        """Return how another sheet refers to a value."""
        if node in self.steps.places:
            return self.place(node)
        return self.spell(node, self.at)

    def here(self, node: Node) -> str:
        """Return how a step refers to a value."""
        if node in self.steps.places:
            return f"C{self.row_of(node) + 1}"
        return self.spell(node, self.here)

    def spell(self, node: Node, at: Any) -> str:
        """Return the formula of a value."""
        if node.op == "input":
            return self.names[node.value]
        return spelled(node, at)

    def step(self, node: Node) -> str:
        """Return the formula of a step in its own cell."""
        return self.guarded(node, self.spell(node, self.here))

    def guarded(self, node: Node, formula: str) -> str:
        """Return a formula that says so where it has no value."""
        return f'=IFERROR({formula},"{NOT_TAKEN}")' if self.steps.risky[node] else f"={formula}"

    def value(self, node: Node) -> Any:
        """Return what a cell shows with the inputs as they are now, for programs that do not calculate."""
        try:
            return self.shown(evaluate(node, self.values, self.known))
        except NoValueError:
            return NOT_TAKEN

    def shown(self, found: Any) -> Any:
        """Return a value as a cell holds it."""
        if found is None:
            return ""
        if isinstance(found, str):
            return told(found, self)
        if isinstance(found, float) and not math.isfinite(found):
            return math.copysign(ENDLESS, found) if not math.isnan(found) else NOT_TAKEN
        return found

    @property
    def labels(self) -> Mapping[Node, tuple[str, str]]:
        """What computed a step, and what that says it is."""
        return self.plan.trace.labels

    def value_of_text(self, text: str) -> str:
        """Return a text with the numbers of now, and dots for what has none."""
        pieces = []
        for piece in parts_of_text(text):
            found = piece if isinstance(piece, str) else self.value(piece[0])
            pieces.append(str(found) if found not in ("", NOT_TAKEN) else UNKNOWN)
        return "".join(pieces)

    def figure(self, sheet: Any, row: int, column: int, node: Node, style: Any) -> None:
        """Write a figure: a formula that points to its step."""
        formula, value = ended(node, self.at(node), self.value(node))
        sheet.write_formula(row, column, f"={formula}", style, value)


def ended(node: Node, formula: str, value: Any) -> tuple[str, Any]:
    """Return a figure's formula and its value now, with a word for a number that has no end."""
    if not may_be_endless(node):
        return formula, value
    shown = f'IF(ABS({formula})<{FINITE_BELOW:.0E},{formula},"{UNLIMITED}")'
    endless = isinstance(value, float) and abs(value) >= FINITE_BELOW
    return f"IF(ISNUMBER({formula}),{shown},{formula})", UNLIMITED if endless else value


def told(text: str, cells: Cells) -> str:
    """Return a text with its numbers put in, as Python formats them."""
    pieces = []
    for piece in parts_of_text(text):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        value = evaluate(piece[0], cells.values, cells.known)
        if isinstance(value, str):
            pieces.append(told(value, cells))  # as a cell's TEXT() leaves words alone
        else:
            pieces.append(format(value, piece[1]) if value is not None else "")
    return "".join(pieces)
