"""``kvcalc explain NAME``: a formula with its symbols, units and source."""

from typing import Annotated

import typer

from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, Save
from kvcalc.cli.parsing import Command


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain", cls=Command)(explain)


def explain(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A formula; without it, all names.")
    ] = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Explain a formula: its equation, symbols with units, valid range, errors and source.

    Example: kvcalc explain break_even_bandwidth
    """
    from kvcalc.explain import explain as explanation
    from kvcalc.listings import formulas_table
    from kvcalc.output.explanation import Formulas

    check_format(format)
    answer(formulas_table() if name is None else Formulas((explanation(name),)), format, save)
