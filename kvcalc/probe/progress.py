"""A line on a terminal that says what is being measured; nothing where there is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

WIDTH = 20
LINE = 78


@contextmanager
def line() -> Iterator[Callable[[str, float], None]]:
    """Give a function that shows what is being done, and clear the line at the end."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda what, share: None
        return
    begun = monotonic()

    def tell(what: str, share: float) -> None:
        done = round(WIDTH * share)
        bar = "#" * done + "." * (WIDTH - done)
        sys.stderr.write(f"\r{f'[{bar}] {monotonic() - begun:4.0f} s  {what}':{LINE}.{LINE}}")
        sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write("\r" + " " * LINE + "\r")
        sys.stderr.flush()
