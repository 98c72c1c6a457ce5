"""``kvcalc plan``: the main job."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Question, Said
from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.launch import CheckConfig, Emit, Trace, planned, starts, write_launch
from kvcalc.cli.options import (
    Explain,
    Format,
    On,
    PlannedOrLaunched,
    Save,
    Set,
    Tiers,
    grouped,
    keyed,
    question,
)
from kvcalc.cli.parsing import Command
from kvcalc.cli.traces import TraceOptions
from kvcalc.errors import SettingsError

if TYPE_CHECKING:
    from kvcalc.fit_results import FitResult

Check = Annotated[bool, typer.Option("--check", help="Exit with 1 if it does not fit or start.")]
Fit = Annotated[
    bool, typer.Option("--fit", help="Find the TP/PP/DP/EP splits and the fewest GPUs that hold the load.")
]
MaxGpus = Annotated[
    str | None, typer.Option("--max-gpus", metavar="N", help="Most GPUs that --fit tries [64].")
]
TargetRate = Annotated[
    str | None,
    typer.Option("--target-rate", metavar="TOKENS/S", help="With --fit: what each sequence must reach."),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("plan", cls=Command)(plan)


@keyed("plan")
@grouped("reading", TraceOptions)
def plan(
    said: Mapping[str, Said],
    model: PlannedOrLaunched = None,
    on: On = None,
    tier: Tiers = None,
    set: Set = None,
    check: Check = False,
    fit: Fit = False,
    max_gpus: MaxGpus = None,
    target_rate: TargetRate = None,
    check_config: CheckConfig = None,
    emit: Emit = None,
    trace: Trace = None,
    *,
    reading: TraceOptions,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Tell whether it fits, what limits it first, whether offload is worth it, and what would flip that.

    Example: kvcalc plan llama-3.1-70b --on h100-sxm-80gb --gpus 4 --concurrency 32 --prompt 16k
    """
    from kvcalc.api import with_file

    check_format(format)
    if trace is None:
        reading.refuse()
    asked = with_file(question(model, on, said, tier, set))
    if fit:
        if trace is not None:
            raise SettingsError("--trace: is replayed for one plan; leave --fit out")
        found = _fit(asked, max_gpus, target_rate, explain)
        answer(found, format, save)
        if check and not found.fits:
            raise typer.Exit(1)
        return
    for option, value in (("--max-gpus", max_gpus), ("--target-rate", target_rate)):
        if value is not None:
            raise SettingsError(f"{option}: only --fit looks for a division; add --fit or leave it out")
    if emit is not None:
        write_launch(asked, emit, check_config, save)
        return
    result, calls = planned(asked, check_config, trace, reading)
    answer(result, format, save, explanations(calls) if explain else ())
    if check and not (result.fits and starts(result)):
        raise typer.Exit(1)


def _fit(asked: Question, max_gpus: str | None, target_rate: str | None, explain: bool) -> "FitResult":
    from kvcalc.fitting import MAX_GPUS, fit_answer

    if explain:
        raise SettingsError("--explain: --fit calls each formula hundreds of times; explain one plan instead")
    return fit_answer(asked, MAX_GPUS if max_gpus is None else max_gpus, target_rate)
