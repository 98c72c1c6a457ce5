"""Runs a command as a terminal of fixed width would show it."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

from kvcalc.cli import run

WIDTH = 80
"""Columns of the terminal, whatever the real one has."""


def printed(words: Sequence[str]) -> str:
    """Return what a command that must succeed prints, without blanks at the ends of lines."""
    out = io.StringIO()
    with _columns(WIDTH), redirect_stdout(out):
        status = run(words)
    if status:
        raise RuntimeError(f"kvcalc {' '.join(words)} ended with {status}")
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


@contextmanager
def _columns(width: int) -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
