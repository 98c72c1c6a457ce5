"""``kvcalc export``: a plan as a file to keep working with."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer

from kvcalc.catalog.scenarios import Said
from kvcalc.cli.options import On, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export", cls=Command)(export)


@keyed("plan")
def export(
    said: Mapping[str, Said],
    model: Annotated[str, typer.Argument(metavar="MODEL|FILE", help="A model, or a scenario file (.yaml).")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="File to write; .xlsx has live formulas.")
    ],
    on: On = None,
    tier: Tiers = None,
    set: Set = None,
) -> None:
    """Write a plan to a file: a workbook with live formulas (.xlsx).

    Example: kvcalc export examples/four-gpus-70b.yaml -o plan.xlsx
    """
    from kvcalc.api import with_file
    from kvcalc.exports import writer_of

    write = writer_of(output)
    asked = with_file(question(model, on, said, tier, set))
    with _waiting():
        write(asked, output)


@contextmanager
def _waiting() -> Iterator[None]:
    """Show on a terminal that something is being done, which takes a few seconds."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("writing the plan"):
        yield
