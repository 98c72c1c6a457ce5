"""Room for deep graphs: a model of many kinds of layers adds them up one after the other."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

DEEPEST = 8000
"""Calls inside each other while a graph is made or written [1]; Python stops at 1,000 by itself."""


@dataclass
class _Limit:
    """Python's own limit, which all threads share, and how many of them need more of it."""

    lock: Lock = field(default_factory=Lock)
    users: int = 0
    before: int = 0

    def change(self, users: int) -> None:
        """Count one user more or less: the first raises the limit, the last sets it back."""
        with self.lock:
            if not self.users:
                self.before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self.before, DEEPEST))
            self.users += users
            if not self.users:
                sys.setrecursionlimit(self.before)


_LIMIT = _Limit()


@contextmanager
def deep() -> Iterator[None]:
    """Allow calls as deep as graphs are."""
    _LIMIT.change(1)
    try:
        yield
    finally:
        _LIMIT.change(-1)
