"""``kvcalc models list|show|import``."""

from typing import Annotated

import typer

from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, Save
from kvcalc.cli.parsing import Command, Group


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(cls=Group, no_args_is_help=True, help="Model profiles: list, show, import.")
    group.command("list", cls=Command)(list_models)
    group.command("show", cls=Command)(show)
    group.command("import", cls=Command)(import_model)
    app.add_typer(group, name="models")


Model = Annotated[str, typer.Argument(metavar="MODEL", help="A profile, a config.json, a GGUF or a hub id.")]


def list_models(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="Only names that contain it.")] = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """List the model profiles with their size and what a token of KV costs.

    Example: kvcalc models list qwen3
    """
    from kvcalc.listings import models_table

    check_format(format)
    answer(models_table(text or ""), format, save)


def show(
    model: Model,
    weights_dtype: Annotated[
        str | None, typer.Option("--weights-dtype", metavar="TEXT", help="Their precision: fp8, q4_k_m, ...")
    ] = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Show one model: parameters by part, weights by dtype, cache by component, sources.

    Example: kvcalc models show deepseek-v3
    """
    from kvcalc.model_answer import model_answer

    check_format(format)
    result = model_answer(model, weights_dtype)
    answer(result, format, save)


def import_model(
    model: Model,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the profile [the model's own].")
    ] = None,
    save: Save = None,
) -> None:
    """Turn a config.json, a GGUF or a hub id into a profile with its source.

    Example: kvcalc models import ./config.json --name my-model --save my-model.yaml
    """
    from kvcalc.cli.answer import write
    from kvcalc.listings import model_profile

    write(model_profile(model, name), save)
