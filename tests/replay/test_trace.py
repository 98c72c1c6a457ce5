"""The arrays that readers make and replays read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc.errors import ProfileError
from kvcalc.replay.trace import NOWHERE, build_trace


def expanded(trace):
    """Return the requests of a trace as lists of ids."""
    runs = [
        list(range(first, first + blocks))
        for first, blocks in zip(trace.run_first.tolist(), trace.run_blocks.tolist(), strict=True)
    ]
    spans = zip(trace.run_start[:-1], trace.run_start[1:], strict=True)
    return [[block for run in runs[a:b] for block in run] for a, b in spans]


# Each prefix of digits is a block: ids that are chain hashes by construction.
texts = st.lists(st.text("ab", max_size=6), max_size=8)


@given(texts)
def test_runs_give_back_the_ids_of_each_request(words):
    names = [[word[: end + 1] for end in range(len(word))] for word in words]
    number = {}
    requests = [[number.setdefault(name, len(number)) for name in one] for one in names]
    trace = build_trace(requests, 4)
    assert expanded(trace) == requests
    assert trace.requests == len(words)
    assert trace.accesses == sum(map(len, words))
    assert trace.unique_blocks == len(number)
    assert trace.request_blocks.tolist() == [len(word) for word in words]


def test_ids_become_dense_in_the_order_in_which_they_come():
    assert expanded(build_trace([[70, 80], [], [70, 5]])) == [[0, 1], [], [0, 2]]


def test_ids_with_two_predecessors_are_refused():
    with pytest.raises(ProfileError, match="two predecessors"):
        build_trace([[1, 2], [3, 2]])


def test_names_become_indices():
    trace = build_trace([[0], [0], [0]], sessions=["a", "b", "a"])
    assert trace.session.tolist() == [0, 1, 0]
    assert trace.sessions == ("a", "b")
    assert trace.tenant.tolist() == [NOWHERE] * 3


def test_lengths_can_say_that_the_last_block_is_not_full():
    trace = build_trace([[0, 1]], 16, input_tokens=[20], output_tokens=[3], time=[1.5])
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist()) == ([20], [3])
    assert trace.time.dtype == np.float64
