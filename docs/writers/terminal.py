"""Runs a command as a terminal of fixed width would show it."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from kvcalc.cli import run

WIDTH = 80
"""Columns of the terminal, whatever the real one has."""


def printed(words: Sequence[str]) -> str:
    """Return what a command that must succeed prints, without blanks at the ends of lines."""
    status, out, err = outcome(words)
    if status:
        raise RuntimeError(f"kvcalc {' '.join(words)} ended with {status}: {err}")
    return "\n".join(line.rstrip() for line in out.splitlines())


def outcome(words: Sequence[str]) -> tuple[int, str, str]:
    """Return how a command ends, and what it prints on stdout and on stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with _columns(WIDTH), redirect_stdout(out), redirect_stderr(err):
        status = run(words)
    return status, *(one.buffer.getvalue().decode() for one in (out, err))


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
