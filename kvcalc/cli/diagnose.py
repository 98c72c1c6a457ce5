"""``kvcalc diagnose``: is it the policy, the layout or too little compute."""

from collections.abc import Mapping
from typing import Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, On, Save, Set, keyed, question
from kvcalc.cli.parsing import Command


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("diagnose", cls=Command)(diagnose)


@keyed("diagnose")
def diagnose(
    said: Mapping[str, Said],
    metrics: Annotated[
        list[str] | None,
        typer.Argument(metavar="[METRICS]...", help="One scrape or two: files or URLs of Prometheus text."),
    ] = None,
    log: Annotated[str | None, typer.Option("--log", metavar="FILE", help="The engine's log.")] = None,
    gpu_csv: Annotated[
        str | None, typer.Option("--gpu-csv", metavar="FILE", help="CSV of nvidia-smi, with its header.")
    ] = None,
    interval: Annotated[
        str | None, typer.Option("--interval", metavar="TIME", help="Time between the two scrapes.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="To predict the KV size that the log has.")
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            "--claim",
            metavar="KEY=VALUE,...",
            help="What is told of a restore, to check: ttft=50 ms,device_hit=0.1 s. Repeatable.",
        ),
    ] = None,
    on: On = None,
    set: Set = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Tell whether it is the policy, the layout or too little compute, with the numbers that show it.

    Example: kvcalc diagnose before.prom after.prom --interval "60 s" --log engine.log --gpu-csv gpus.csv
    """
    from kvcalc.diagnose.answer import diagnose as answer_of
    from kvcalc.diagnose.answer import seconds_of

    check_format(format)
    seconds = None if interval is None else seconds_of(Said(interval, "--interval"))
    asked = question(model, on, said, None, set)
    answer(answer_of(metrics or (), log, gpu_csv, seconds, asked, claim or ()), format, save)
