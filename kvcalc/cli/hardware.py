"""``kvcalc hardware list|show``."""

from typing import Annotated

import typer

from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, Save, Set, assignments
from kvcalc.cli.parsing import Command, Group


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(cls=Group, no_args_is_help=True, help="Hardware profiles: list, show.")
    group.command("list", cls=Command)(list_hardware)
    group.command("show", cls=Command)(show)
    app.add_typer(group, name="hardware")


def list_hardware(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="Only names that contain it.")] = None,
    kind: Annotated[
        str,
        typer.Option("--kind", metavar="KIND", help="accelerators, hosts, drives, nics or instances."),
    ] = "accelerators",
    format: Format = "table",
    save: Save = None,
) -> None:
    """List the machines with their memory, bandwidth, peak and host link, or the parts around them.

    Example: kvcalc hardware list p5 --kind instances
    """
    from kvcalc.listings import hardware_table

    check_format(format)
    answer(hardware_table(text or "", kind), format, save)


def show(
    hardware: Annotated[
        str,
        typer.Argument(
            metavar="HARDWARE", help="An accelerator, instance, host, drive or NIC: a name, or a path."
        ),
    ],
    set: Set = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Show one machine: each value as its source prints it, and how far to trust it.

    Example: kvcalc hardware show h100-sxm-80gb
    """
    from kvcalc.listings import hardware_answer

    check_format(format)
    values = {name: str(said.value) for name, said in assignments(set).items()}
    answer(hardware_answer(hardware, values), format, save)
