"""Room for deep graphs: a model of many kinds of layers adds them up one after the other."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

DEEPEST = 8000
"""Calls inside each other while a graph is made or written [1]; Python stops at 1,000 by itself."""


@contextmanager
def deep() -> Iterator[None]:
    """Allow calls as deep as graphs are."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
