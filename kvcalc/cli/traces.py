"""Options and the reading of a trace of requests, with a bar on stderr while a large file is read."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.scenarios import Said, quantity
from kvcalc.errors import KvcalcError, SettingsError

if TYPE_CHECKING:
    from kvcalc.replay.readers.stream import Told
    from kvcalc.replay.trace import Trace

PATIENCE = 1.0
"""Seconds of work after which a bar is shown [second]."""

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
    try:
        return quantity(Said(text, "--session-every"), "second", zero=True)
    except KvcalcError as error:
        raise type(error)(f"--session-every: {error}") from None


@contextmanager
def progress(what: str) -> "Iterator[Told]":
    """Give what shows a bar on stderr once the work takes long; it is gone when the work is done."""
    from rich.console import Console
    from rich.progress import Progress

    started = time.monotonic()
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=None)

    def told(done: int, whole: int) -> None:
        if not bar.live.is_started and time.monotonic() - started > PATIENCE and bar.console.is_terminal:
            bar.start()
        bar.update(task, completed=done, total=whole)

    try:
        yield told
    finally:
        if bar.live.is_started:
            bar.stop()
