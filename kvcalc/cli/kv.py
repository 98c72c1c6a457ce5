"""``kvcalc kv``: what one token and one sequence cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.options import Explain, Format, On, Save, keyed, question
from kvcalc.cli.parsing import Command

if TYPE_CHECKING:
    from kvcalc.results import GrowthCurve


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("kv", cls=Command)(kv)


@keyed("kv")
def kv(
    said: Mapping[str, Said],
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A profile, a config.json, a GGUF or a hub id.")
    ],
    tokens: Annotated[
        str | None, typer.Option("--tokens", metavar="TOKENS", help="Length of the sequence [at most 32768].")
    ] = None,
    sequences: Annotated[
        str | None, typer.Option("--sequences", metavar="N", help="Sequences for the inverse questions [1].")
    ] = None,
    on: On = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Draw the bytes against the context, by component.")
    ] = False,
    curve_file: Annotated[
        str | None, typer.Option("--curve-file", metavar="FILE", help="Draw them into a .png or .svg file.")
    ] = None,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Show what one token and one sequence cost, component by component.

    Example: kvcalc kv deepseek-v3 --engine vllm --tp 8 --pool "60 GiB" --max-len 32k
    """
    from kvcalc.api import kv_answer

    check_format(format)
    if curve_file is not None:
        from kvcalc.output.chart import check

        check(curve_file)
    result, calls = kv_answer(question(model, on, said), tokens, sequences, curve or curve_file is not None)
    if curve_file is not None and result.growth is not None:
        _draw(result.growth, f"KV cache of {result.kv.model}, KV dtype {result.kv.kv_dtype}", curve_file)
    answer(result, format, save, explanations(calls) if explain else ())


def _draw(growth: "GrowthCurve", title: str, file: str) -> None:
    from kvcalc.documents import write_bytes
    from kvcalc.output.chart import picture

    write_bytes(file, picture(growth, title, file))
