"""One result, many faces: the same names, units and values as table, JSON, CSV and Markdown.

Nothing here prints; the command line does.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvcalc.explain import Explanation
    from kvcalc.output.fields import Answer
    from kvcalc.output.table import Terminal

Format = Literal["table", "json", "csv", "markdown"]


def render(
    answer: "Answer",
    format: Format = "table",
    *,
    explanations: "Sequence[Explanation]" = (),
    terminal: "Terminal | None" = None,
) -> str:
    """Return a result or a list as text in one format.

    Parameters
    ----------
    answer : a result of `kvcalc.results`, or a `kvcalc.tables.Table`
    format : table, json, csv or markdown
    explanations : formulas to append, as `--explain` asks; CSV stays one rectangle and leaves them out
    terminal : width and abilities for `table`; 100 columns without colour when None
    """
    if format == "csv":
        from kvcalc.output import csv

        return csv.render(answer)
    if format == "json":
        from kvcalc.output import json
        from kvcalc.output.explanation import bodies

        return json.render(answer, bodies(explanations))
    from kvcalc.output.page import Page
    from kvcalc.output.pages import page_of

    page = page_of(answer)
    if explanations:
        from kvcalc.output.explanation import blocks

        page = Page(page.title, (*page.blocks, *blocks(explanations)))
    if format == "markdown":
        from kvcalc.output import markdown

        return markdown.render(page)
    from kvcalc.output import table

    return table.render(page, terminal)
