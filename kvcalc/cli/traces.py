"""Options and the reading of a trace of requests, with a bar on stderr while a large file is read."""

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.progress import progress
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.records import record

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


@record
class TraceOptions:
    """How a trace of requests is read; each field is an option."""

    dialect: Dialect = None
    trace_block: TraceBlock = None
    session_every: SessionEvery = None
    time_unit: TimeUnit = None
    skip_broken: SkipBroken = False

    def read(self, path: str) -> "Trace":
        """Read a trace as the options say."""
        from kvcalc.replay.readers import TIME_UNITS, Asked, read_trace

        unit = self.time_unit
        if unit is not None and unit not in TIME_UNITS:
            raise SettingsError(f"--time-unit: unknown unit {unit!r:.40}; valid are {', '.join(TIME_UNITS)}")
        asked = Asked(_block(self.trace_block), self.skip_broken, _every(self.session_every), unit)
        with progress("reading") as told:
            return read_trace(path, self.dialect, asked, told)

    def refuse(self) -> None:
        """Refuse them all where no trace is named."""
        for item in fields(self):
            if getattr(self, item.name):
                option = "--" + item.name.replace("_", "-")
                raise SettingsError(f"{option}: says how a trace is read; add --trace FILE or leave it out")


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
