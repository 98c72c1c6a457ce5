"""A progress bar on stderr for work that takes longer than a second; none where stderr is no terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds of work after which a progress bar is shown [second]."""


@contextmanager
def progress(words: str) -> Iterator[Callable[[int, int], None]]:
    """Give what is told how much is done, of how much; the bar is gone when the work is done."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    started = time.monotonic()
    console = Console(stderr=True)
    bar = Bar(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(words, total=None)

    def told(done: int, whole: int) -> None:
        if not bar.live.is_started and time.monotonic() - started > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=whole)

    try:
        yield told
    finally:
        if bar.live.is_started:
            bar.stop()
