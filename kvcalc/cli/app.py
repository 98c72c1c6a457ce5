"""``kvcalc app``: an interactive planner page."""

import sys
from typing import Annotated

import typer

from kvcalc.cli.parsing import Command


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("app", cls=Command)(planner)


def planner(
    file: Annotated[
        str | None, typer.Argument(metavar="[MODEL|FILE]", help="A model, or a scenario file (.yaml).")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        str, typer.Option("--port", metavar="N", help="Port to listen on; 0 takes any that is free.")
    ] = "2718",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Open a planner: model, machine and load as controls, verdicts and charts live.

    Needs the extra `app`; other machines cannot reach it unless --host says so. Ctrl-C stops it.

    Example: kvcalc app examples/four-gpus-70b.yaml
    """
    from kvcalc.app.server import serve
    from kvcalc.catalog.scenarios import Said, read_value
    from kvcalc.errors import SettingsError
    from kvcalc.keys import Key

    number = 0 if port == "0" else read_value(Key("port", "integer", ""), Said(port, "--port"))
    if number > 65_535:
        raise SettingsError(f"--port: {number} is more than 65,535")
    serve(file, host, number, not no_browser, _told)


def _told(address: str) -> None:
    sys.stdout.write(f"The planner is at {address} (Ctrl-C stops it).\n")
    sys.stdout.flush()
