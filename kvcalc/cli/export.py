"""``kvcalc export``: a plan as a file to keep working with."""

from collections.abc import Mapping
from typing import Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.options import On, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command
from kvcalc.cli.progress import progress


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export", cls=Command)(export)


@keyed("plan")
def export(
    said: Mapping[str, Said],
    model: Annotated[str, typer.Argument(metavar="MODEL|FILE", help="A model, or a scenario file (.yaml).")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="File to write: report.html or plan.xlsx.")
    ],
    on: On = None,
    tier: Tiers = None,
    set: Set = None,
) -> None:
    """Write a plan to a file: a page with charts (.html), or a workbook with live formulas (.xlsx).

    Example: kvcalc export examples/four-gpus-70b.yaml -o report.html
    Example: kvcalc export llama-3.1-8b --on h100-sxm-80gb --concurrency 32 -o plan.xlsx
    """
    from kvcalc.api import with_file
    from kvcalc.exports import writer_of

    with progress("answering") as told:
        write = writer_of(output, told)
        write(with_file(question(model, on, said, tier, set)), output)
