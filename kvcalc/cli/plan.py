"""``kvcalc plan``: the main job."""

from collections.abc import Mapping
from typing import Annotated

import typer

from kvcalc.catalog.scenarios import Said
from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.options import Explain, Format, On, Save, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("plan", cls=Command, no_args_is_help=True)(plan)


@keyed("plan")
def plan(
    said: Mapping[str, Said],
    model: Annotated[str, typer.Argument(metavar="MODEL|FILE", help="A model, or a scenario file (.yaml).")],
    on: On = None,
    tier: Tiers = None,
    set: Set = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 when the plan does not fit.")] = False,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Tell whether it fits, what limits it first, whether offload is worth it, and what would flip that.

    Example: kvcalc plan llama-3.1-70b --on h100-sxm-80gb --gpus 4 --concurrency 32 --prompt 16k
    """
    from kvcalc.api import plan_calls, with_file

    check_format(format)
    asked = with_file(question(model, on, said, tier, set))
    result, calls = plan_calls(asked)
    answer(result, format, save, explanations(calls) if explain else ())
    if check and not result.fits:
        raise typer.Exit(1)
