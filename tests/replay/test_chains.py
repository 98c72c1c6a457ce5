"""Chain hashes or not: checked on runs, and made where they are missing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcalc.replay.readers import chains, collect
from kvcalc.replay.readers.chains import Runs, chained, compacted, conflicting, kept, merged
from kvcalc.replay.trace import runs_of
from tests.replay.conftest import expanded, found, row

ids = st.lists(st.lists(st.integers(0, 12), max_size=7), min_size=1, max_size=8)


def runs(requests):
    starts = np.cumsum([0, *map(len, requests)])
    return Runs(*runs_of(np.array([one for request in requests for one in request], np.int64), starts))


def flat(requests):
    return [one for request in requests for one in request]


def lists(found):
    spans = zip(found.start[:-1], found.start[1:], strict=True)
    pairs = list(zip(found.first.tolist(), found.blocks.tolist(), strict=True))
    return [[one for first, count in pairs[a:b] for one in range(first, first + count)] for a, b in spans]


def predecessors(requests):
    before = {}
    for request in requests:
        for place, block in enumerate(request):
            before.setdefault(block, set()).add(request[place - 1] if place else None)
    return before


@given(ids)
def test_conflicts_are_counted_as_block_by_block(requests):
    assert conflicting(runs(requests)) == sum(len(found) > 1 for found in predecessors(requests).values())


@given(ids)
def test_chained_ids_stand_for_prefixes(requests):
    result = chained(runs(requests))
    new = lists(result.runs)
    assert [len(one) for one in new] == [len(one) for one in requests]
    meaning = {}
    for old, chain in zip(requests, new, strict=True):
        for place, block in enumerate(chain):
            assert meaning.setdefault(block, tuple(old[: place + 1])) == tuple(old[: place + 1])
    assert len(set(meaning.values())) == len(meaning)
    assert sorted(meaning) == (list(range(len(meaning))) if result.component is not None else sorted(meaning))
    if result.component is not None:
        assert {block: old[-1] for block, old in meaning.items()} == dict(
            enumerate(result.component.tolist())
        )
    assert result.repeating == (
        sum(len(set(one)) < len(one) for one in requests) if result.component is not None else 0
    )


@given(ids)
def test_chaining_in_small_steps_changes_nothing(requests):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "MOST_AT_ONCE", 3)
        small = chained(runs(requests))
    assert lists(small.runs) == lists(chained(runs(requests)).runs)


@given(ids)
def test_compacted_ids_are_dense_and_keep_their_order(requests):
    spread = [[block * 7 if block % 3 else block * 7 + 1 for block in request] for request in requests]
    new = lists(compacted(runs(spread)))
    names = dict(zip(flat(spread), flat(new), strict=True))
    assert sorted(names.values()) == list(range(len(names)))
    assert [names[one] for one in sorted(names)] == sorted(names.values())


@given(ids)
def test_merging_runs_changes_no_request(requests):
    single = runs(requests)
    blocks = np.array(flat(requests), np.int64)
    split = Runs(blocks, np.ones(len(blocks), np.int64), np.cumsum([0, *map(len, requests)]))
    assert lists(merged(split)) == requests
    assert len(merged(split).first) == len(single.first)


@given(ids, st.data())
def test_kept_requests_are_those_that_are_marked(requests, data):
    marks = data.draw(st.lists(st.booleans(), min_size=len(requests), max_size=len(requests)))
    expected = [one for one, mark in zip(requests, marks, strict=True) if mark]
    assert lists(kept(runs(requests), np.array(marks, bool))) == expected


@settings(deadline=None)
@given(ids, st.integers(1, 9))
def test_small_chunks_change_nothing(requests, chunk):
    def gathered(size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(collect, "CHUNK", size)
            into = collect.Collector()
            for request in requests:
                into.add(1, [collect.Request(request, 16 * len(request))])
            return into.gathered()

    whole, parts = gathered(1 << 20), gathered(chunk)
    names = dict(zip(flat(lists(whole.runs)), flat(lists(parts.runs)), strict=True))
    assert len(set(names.values())) == len(names)


def test_ids_without_an_order_are_numbered_as_they_come(read):
    trace = read([row([900, 5, 411], 1536), row([900, 5, 17], 1536)])
    assert expanded(trace) == [[0, 1, 2], [0, 1, 3]]
    assert len(trace.run_first) == 3


def test_an_id_twice_in_a_request_is_told(read):
    trace = read([row([0, 1, 0], 1536), row([0, 1], 1024)])
    assert expanded(trace) == [[0, 1, 2], [0, 1]]
    assert found(trace, "repeated_ids").count == 1
