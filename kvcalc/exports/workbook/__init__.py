"""A plan as a workbook of live formulas: change an input, and every verdict follows.

The formulas are the graph of the plan's own code (`kvcalc.exports.traced`), cut into steps.
"""

from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

from kvcalc.errors import SettingsError

if TYPE_CHECKING:
    from kvcalc.catalog.scenarios import Question
    from kvcalc.reporting import Progress

_PARTS = 3  # of the work: tracing the plan, laying out its sheets, writing them


def write(question: "Question", path: str, progress: "Progress | None" = None) -> None:
    """Answer a plan and write it as a workbook, whole or not at all.

    Raises
    ------
    SettingsError
        If XlsxWriter is missing, the plan cannot be answered or the file cannot be written.
    """
    xlsxwriter = _xlsxwriter()
    from kvcalc.documents import write_bytes
    from kvcalc.exports.traced import trace_plan
    from kvcalc.tracing.depth import deep

    told = progress or (lambda done, whole: None)
    told(0, _PARTS)
    plan = trace_plan(question)
    told(1, _PARTS)
    made = BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(made, options)
    with deep(), plan.trace.entered():
        _fill(book, plan)
    told(2, _PARTS)
    book.close()
    write_bytes(path, made.getvalue())


def _xlsxwriter() -> Any:
    try:
        import xlsxwriter
    except ImportError:
        raise SettingsError("a workbook needs XlsxWriter: pip install 'kvcalc[xlsx]'") from None
    return xlsxwriter


def _fill(book: Any, plan: Any) -> None:
    """Write all sheets."""
    from kvcalc import __version__
    from kvcalc.exports.workbook import sheets
    from kvcalc.exports.workbook.answers import answers_sheet, note_nodes, validity, verdict_nodes
    from kvcalc.exports.workbook.figures import figures_of
    from kvcalc.exports.workbook.sensitivity import sensitivity_sheets
    from kvcalc.exports.workbook.variants import inputs_of
    from kvcalc.exports.workbook.writing import Cells

    figures = figures_of(plan)
    by_key = {item.key: item for item in figures}
    valid = validity(plan.checks)
    extra = verdict_nodes(by_key, valid)
    notes = [node for _, node in note_nodes(plan.notes)]
    checks = [check.holds for check in plan.checks]
    live = [item.node for item in figures if item.live]
    shown = [*live, *checks, *extra.values(), *notes]
    used = inputs_of(shown)
    plan = replace(plan, inputs=tuple(item for item in plan.inputs if item.key in used))
    cells = Cells.of(plan, book, shown, figures)
    book.set_properties({"title": f"{plan.model} on {plan.machine}", "comments": f"kvcalc {__version__}"})
    book.set_calc_mode("auto")
    answers_sheet(cells, by_key, extra)
    sheets.inputs_sheet(cells)
    for name, parts in sheets.SHEETS.items():
        sheets.part_sheet(cells, name, [item for item in figures if item.part in parts])
    variants = sensitivity_sheets(cells, by_key)
    sheets.sources_sheet(cells)
    sheets.checks_sheet(cells)
    sheets.steps_sheet(cells)
    variants.write()
