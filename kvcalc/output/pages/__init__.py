"""One module for each kind of result: what its page says, in which order."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from kvcalc.output.fields import Answer, shown
from kvcalc.output.format import label
from kvcalc.output.page import Cell, Lines, Page, Wide, grid
from kvcalc.tables import Column, Table

_MODULES = {
    "kvcalc.plan/1": "kvcalc.output.pages.plan",
    "kvcalc.kv/1": "kvcalc.output.pages.kv",
    "kvcalc.restore/1": "kvcalc.output.pages.restore",
    "kvcalc.hardware-show/1": "kvcalc.output.pages.hardware_show",
    "kvcalc.model-show/1": "kvcalc.output.pages.model_show",
    "kvcalc.fit/1": "kvcalc.output.pages.fit",
    "kvcalc.quota-show/1": "kvcalc.output.pages.quota_show",
    "kvcalc.quota-reclaim/1": "kvcalc.output.pages.quota_reclaim",
    "kvcalc.evict-rank/1": "kvcalc.output.pages.evict_rank",
    "kvcalc.evict-simulate/1": "kvcalc.output.pages.evict_simulate",
    "kvcalc.diagnose/1": "kvcalc.output.pages.diagnose",
    "kvcalc.probe/1": "kvcalc.output.pages.probe",
    "kvcalc.replay-describe/1": "kvcalc.output.pages.replay_describe",
    "kvcalc.replay/1": "kvcalc.output.pages.replay",
    "kvcalc.sweep/1": "kvcalc.output.pages.sweep",
    "kvcalc.compare/1": "kvcalc.output.pages.compare",
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
        tuple(_item(column, item) for column, item in zip(table.columns, row, strict=True))
        for row in table.rows
    ]
    align = "".join("r" if column.unit else "l" for column in table.columns)
    names = tuple(label(column.name) for column in table.columns)
    notes = (Lines("", tuple(Cell(note, "dim") for note in table.notes)),) if table.notes else ()
    wide: Wide = "narrow" if table.is_list else "turn"
    return Page(table.title, (replace(grid("", names, align, rows), wide=wide), *notes))


def _item(column: Column, item: object) -> str:
    """Return one item of a list, without the tokens that its heading speaks of already."""
    words = shown(column, item)
    return words.removesuffix("/token").removesuffix(" tokens") if "token" in column.name else words
