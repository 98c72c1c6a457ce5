"""Modules loaded a second time, by several threads at once."""

import gc
import sys
import threading
from pathlib import Path

import pytest

import kvcalc
from kvcalc.tracing.mirror import _code_of

FILES = sorted((Path(kvcalc.__file__).parent / "planning").glob("*.py"))[:12]


class Circle:
    """What only the garbage collector frees, which then runs code and may give way to another thread."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        sum(range(50))


@pytest.fixture
def often():
    """Let the garbage collector and other threads come in at every turn."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("often")
def test_threads_at_different_depths_make_syntax_trees_at_once():
    failed = []

    def load(depth):
        if depth:
            load(depth - 1)
            return
        try:
            for file in FILES:
                Circle()
                _code_of(str(file))
        except SystemError as error:
            failed.append(error)

    threads = [threading.Thread(target=load, args=(depth,)) for depth in (0, 7, 19)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
