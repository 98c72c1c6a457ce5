"""``kvcalc compare``: two plans side by side."""

from collections.abc import Mapping
from typing import Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, On, Save, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command
from kvcalc.cli.progress import progress


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compare", cls=Command)(compare)


@keyed("compare")
def compare(
    said: Mapping[str, Said],
    a: Annotated[str, typer.Argument(metavar="A", help="A scenario file (.yaml), a model or a machine.")],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The other one; A itself with --with.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="KEY=VALUE", help="Change this input in B alone. Repeatable."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The model, where A and B are machines.")
    ] = None,
    on: On = None,
    tier: Tiers = None,
    set: Set = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Compare two plans: inputs that differ, verdicts that change, and which input decides each of them.

    Example: kvcalc compare examples/four-gpus-70b.yaml h200-sxm-141gb
    Example: kvcalc compare examples/four-gpus-70b.yaml --with kv_dtype=fp8 --with workload.concurrency=64
    """
    from kvcalc.comparing.answer import compare_answer

    check_format(format)
    with progress("comparing") as told:
        result = compare_answer(a, b, question(model, on, said, tier, set), change or (), told)
    answer(result, format, save)
