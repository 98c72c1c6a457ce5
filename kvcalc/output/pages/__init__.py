"""One module for each kind of result: what its page says, in which order."""

from importlib import import_module
from typing import Any

from kvcalc.output.fields import Answer, Table
from kvcalc.output.page import Cell, Lines, Page, grid

_MODULES = {
    "kvcalc.plan/1": "kvcalc.output.pages.plan",
    "kvcalc.kv/1": "kvcalc.output.pages.kv",
    "kvcalc.restore/1": "kvcalc.output.pages.restore",
    "kvcalc.model-show/1": "kvcalc.output.pages.model_show",
    "kvcalc.explain/1": "kvcalc.output.explanation",
}


def page_of(answer: Answer) -> Page:
    """Return the page of a result or a list; only the module of this kind is imported."""
    if isinstance(answer, Table):
        return _list(answer)
    schema: Any = getattr(type(answer), "SCHEMA", "")
    module = import_module(_MODULES[schema])
    page: Page = module.page(answer)
    return page


def _list(table: Table) -> Page:
    rows: list[tuple[Cell | str, ...]] = [
        tuple(column.text(item) for column, item in zip(table.columns, row, strict=True))
        for row in table.rows
    ]
    align = "".join("r" if column.unit else "l" for column in table.columns)
    names = tuple(column.name.replace("_", " ") for column in table.columns)
    notes = (Lines("", tuple(Cell(note, "dim") for note in table.notes)),) if table.notes else ()
    return Page(table.title, (grid("", names, align, rows), *notes))
