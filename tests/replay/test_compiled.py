"""Compiled loops (the extra `fast`) give what Python gives."""

import numpy as np
import pytest

from kvcalc.replay import _jit, _loops
from kvcalc.replay.depths import depths_of
from kvcalc.replay.outcome import Case
from kvcalc.replay.policies import policy
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.stream import stream_of
from kvcalc.replay.trace import build_trace


@pytest.fixture
def stream():
    draw = np.random.default_rng(3)
    found = []
    for _ in range(300):
        session = int(draw.integers(0, 12))
        found.append([100 * session + block for block in range(int(draw.integers(1, 40)))])
    return stream_of(build_trace(found, 16), Semantics())


def test_compiled_loops_equal_python(stream, monkeypatch):
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    said = Semantics()
    plain = depths_of(stream, said)
    queue = policy("fifo")(Case(stream, 60, said))
    monkeypatch.setattr(_jit, "WORTH_COMPILING", 0)
    assert _jit.compiled(_loops.stack_depths) is not None
    assert depths_of(stream, said).above.tolist() == plain.above.tolist()
    assert depths_of(stream, said).left.tolist() == plain.left.tolist()
    assert policy("fifo")(Case(stream, 60, said)).hit_blocks.tolist() == queue.hit_blocks.tolist()


def test_without_numba_python_does_the_work(stream, monkeypatch):
    plain = depths_of(stream, Semantics()).above.tolist()
    monkeypatch.setattr(_jit, "WORTH_COMPILING", 0)
    monkeypatch.setattr(_jit, "compiled", lambda _: None)
    assert depths_of(stream, Semantics()).above.tolist() == plain
