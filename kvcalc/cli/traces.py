"""Options and the reading of a trace of requests, with a bar on stderr while a large file is read."""

from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.progress import progress
from kvcalc.errors import KvcalcError, SettingsError

if TYPE_CHECKING:
    from kvcalc.replay.trace import Trace

Dialect = Annotated[
    str | None, typer.Option("--dialect", metavar="NAME", help="Dialect of the trace [told from its lines].")
]
TraceBlock = Annotated[
    str | None,
    typer.Option("--trace-block", metavar="TOKENS", help="Tokens of a block, where the trace does not say."),
]
SkipBroken = Annotated[
    bool, typer.Option("--skip-broken", help="Count broken lines and go on, instead of refusing the file.")
]
SessionEvery = Annotated[
    str | None,
    typer.Option(
        "--session-every", metavar="TIME", help="Start of one session to that of the next, if unknown [0 s]."
    ),
]
TimeUnit = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="s|ms|us|ns", help="Of times of tokens and texts [by their size]."),
]
Describe = Annotated[
    bool, typer.Option("--describe", help="Tell what the trace is, before any cache: reuse, sessions, sizes.")
]


def read(
    path: str,
    dialect: str | None = None,
    block: str | None = None,
    skip_broken: bool = False,
    session_every: str | None = None,
    time_unit: str | None = None,
) -> "Trace":
    """Read a trace as the options say."""
    from kvcalc.replay.readers import TIME_UNITS, Asked, read_trace

    if time_unit is not None and time_unit not in TIME_UNITS:
        raise SettingsError(f"--time-unit: unknown unit {time_unit!r:.40}; valid are {', '.join(TIME_UNITS)}")
    asked = Asked(_block(block), skip_broken, _every(session_every), time_unit)
    with progress("reading") as told:
        return read_trace(path, dialect, asked, told)


def _block(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise SettingsError(f"--trace-block: {text!r:.40} is not a whole number of tokens from 1 on")
    return int(text)


def _every(text: str | None) -> float:
    if text is None:
        return 0.0
    from kvcalc.catalog.scenarios import quantity

    try:
        return quantity(Said(text, "--session-every"), "second", zero=True)
    except KvcalcError as error:
        raise type(error)(f"--session-every: {error}") from None
