"""Formulas in words, with this run's numbers put in where there is a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.bodies import plain
from kvcalc.output.format import ABSENT, human
from kvcalc.output.page import Cell, Grid, Lines, Page, grid

if TYPE_CHECKING:
    from kvcalc.explain import Explanation


@dataclass(frozen=True)
class Formulas:
    """Formulas as an answer of their own, which is what `kvcalc explain` gives."""

    formulas: "tuple[Explanation, ...]"

    SCHEMA = "kvcalc.explain/1"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body: one row a formula."""
        from kvcalc import __version__

        rows = list(bodies(self.formulas))
        return {"schema": self.SCHEMA, "version": __version__, "units": {}, "rows": rows}


def page(answer: Formulas) -> Page:
    """Return every formula with its example."""
    found: list[Grid | Lines] = []
    for told in answer.formulas:
        found += blocks((told,))
        if told.example:
            found.append(Lines("Example", tuple(told.example.splitlines())))
    return Page("", tuple(found))


def blocks(explanations: "Sequence[Explanation]") -> tuple[Grid | Lines, ...]:
    """Return for each formula its sentence, equation, symbols with numbers, limits and source."""
    return tuple(block for told in explanations for block in _blocks(told))


def bodies(explanations: "Sequence[Explanation]") -> tuple[dict[str, Any], ...]:
    """Return each formula as JSON data."""
    return tuple(plain(told) for told in explanations)


def _blocks(told: "Explanation") -> tuple[Grid | Lines, ...]:
    ran = any(part.value is not None for part in told.results)
    rows: list[tuple[Cell | str, ...]] = [
        (
            symbol.symbol,
            _value(symbol.value, symbol.unit) if ran else symbol.unit,
            symbol.name,
            symbol.meaning,
        )
        for symbol in told.symbols
    ]
    rows += [
        ("gives", Cell(_value(part.value, part.unit) if ran else part.unit, "bold"), part.name, "")
        for part in told.results
    ]
    remarks = [("Holds", told.notes), ("Source", told.source)]
    if not ran:
        remarks.insert(1, ("Refuses", told.errors))
    notes = tuple(f"{word}: {text}" for word, text in remarks if text)
    return (
        Lines(told.name, (told.summary, Cell(told.equation, "bold"))),
        grid("", ("symbol", "value" if ran else "unit", "name", "meaning"), "lrll", rows, notes),
    )


def _value(value: object, unit: str) -> str:
    """Return a number or a list of numbers for people.

    >>> _value((7e9, 50e9), "byte/second"), _value(None, "second")
    ('7.00 GB/s, 50.0 GB/s', '-')
    """
    if value is None:
        return ABSENT
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(_value(item, unit) for item in value) or ABSENT
    return human(value, unit)
