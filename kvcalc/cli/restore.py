"""``kvcalc restore``: one restore against one recompute."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.options import Explain, Format, On, Save, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command

if TYPE_CHECKING:
    from kvcalc.offload_results import BreakEvenCurve


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("restore", cls=Command)(restore)


@keyed("restore")
def restore(
    said: Mapping[str, Said],
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL|FILE]", help="A model, for what is not given in numbers.")
    ] = None,
    on: On = None,
    bandwidth: Annotated[
        list[str] | None, typer.Option("--bandwidth", metavar="RATE", help="Rate of the path. Repeatable.")
    ] = None,
    tier: Tiers = None,
    set: Set = None,
    curve: Annotated[
        str | None,
        typer.Option(
            "--curve", metavar="INPUT", help="Draw both sides over bandwidth, prefix, hit, interval or piece."
        ),
    ] = None,
    curve_file: Annotated[
        str | None, typer.Option("--curve-file", metavar="FILE", help="Draw them into a .png or .svg file.")
    ] = None,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Compare one restore with one recompute, as parts, with the break-even.

    Example: kvcalc restore --bytes "1 GB" --bandwidth "10 GB/s" --prefill "100 ms" --remaining "30 ms"
    """
    from kvcalc.api import restore_calls

    check_format(format)
    if curve_file is not None:
        from kvcalc.output.chart import check

        check(curve_file)
        curve = curve or "bandwidth"
    result, calls = restore_calls(question(model, on, said, tier, set), bandwidth or (), curve)
    if curve_file is not None and result.break_even_curve is not None:
        _draw(result.break_even_curve, curve_file)
    answer(result, format, save, explanations(calls) if explain else ())


def _draw(curve: "BreakEvenCurve", file: str) -> None:
    from kvcalc.documents import write_bytes
    from kvcalc.output.chart import break_even_picture

    write_bytes(file, break_even_picture(curve, file))
