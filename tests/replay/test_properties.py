"""What must hold of every replay, on random traces (reference: section 3.3)."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcalc.replay import _loops
from kvcalc.replay.curve import curve_of
from kvcalc.replay.depths import depths_of, is_stack
from kvcalc.replay.outcome import Case, kept_blocks
from kvcalc.replay.policies import POLICIES, policy
from kvcalc.replay.policies.fifo import _compiled
from kvcalc.replay.policies.lru import by_blocks
from kvcalc.replay.refine import refined
from kvcalc.replay.semantics import WORDS, Semantics
from kvcalc.replay.stream import stream_of
from kvcalc.replay.tenants import Quotas, alone, floors
from kvcalc.replay.tiers import Stack, Tiers
from kvcalc.replay.tiers import by_blocks as tiers_by_blocks
from kvcalc.replay.tiers import replay as replay_tiers
from tests.replay import slow
from tests.replay.random_traces import lists, traces

capacities = st.integers(1, 40)
UNBOUNDED = tuple(name for name in POLICIES if name not in ("belady", "infinite", "rules"))
SEMANTICS = [
    Semantics(touch=touch, oversize=oversize, lookup=lookup, hits=hits)
    for touch, oversize, lookup, hits in product(*(WORDS[n] for n in ("touch", "oversize", "lookup", "hits")))
]


def case(trace, capacity, semantics=None):
    """Return one cache of a trace."""
    said = semantics or Semantics()
    return Case(stream_of(trace, said), capacity, said)


def hits(trace, capacity, name="lru", semantics=None):
    """Return the blocks that a policy hits in all requests."""
    return int(policy(name)(case(trace, capacity, semantics)).hit_blocks.sum())


def slow_hits(trace, capacity, name, said):
    """Return hit blocks and tokens by the second implementation."""
    requests = lists(trace)
    found = slow.replay(requests, capacity, name, said.touch, said.oversize, said.lookup, said.hits)
    total = slow.tokens(requests, found, trace.block_tokens, trace.input_tokens.tolist())
    return sum(map(sum, found)), total


@pytest.mark.parametrize("name", ["lru", "fifo"])
@pytest.mark.parametrize(
    "said", SEMANTICS, ids=lambda said: f"{said.touch}-{said.oversize}-{said.lookup}-{said.hits}"
)
@settings(max_examples=25, deadline=None)
@given(trace=traces(), capacity=capacities)
def test_a_replay_is_what_the_definition_gives(name, said, trace, capacity):
    found = policy(name)(case(trace, capacity, said))
    assert (found.hit_blocks.sum(), found.hit_tokens.sum()) == slow_hits(trace, capacity, name, said)


@settings(max_examples=200, deadline=None)
@given(
    trace=traces(),
    capacity=capacities,
    oversize=st.sampled_from(WORDS["oversize"]),
    weights=st.lists(st.integers(0, 30), min_size=80, max_size=80),
    differ=st.booleans(),
)
def test_what_goes_into_the_cache_of_a_long_request_is_one_rule(trace, capacity, oversize, weights, differ):
    """The definition, block by block: what fits from the head on, nothing, or all that comes."""
    if differ:
        trace = replace(trace, block_tokens=0, block_weight=np.array(weights[: trace.unique_blocks]))
    found = case(trace, capacity, Semantics(oversize=oversize))
    expected = []
    for request in lists(trace):
        sizes = [weights[block] if differ else 1 for block in request]
        fits = [sum(sizes[: count + 1]) <= capacity for count in range(len(sizes))]
        some = {"truncate": sum(fits), "bypass": 0}.get(oversize, len(sizes))
        expected.append(len(sizes) if sum(sizes) <= capacity else some)
    assert kept_blocks(found.stream, found).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(trace=traces(), capacity=capacities, said=st.sampled_from([s for s in SEMANTICS if is_stack(s)]))
def test_the_curve_is_the_replay_at_every_capacity(trace, capacity, said):
    curve = curve_of(depths_of(stream_of(trace, said), said))
    found = slow_hits(trace, capacity, "lru", said)
    at = np.array([capacity])
    assert (int(curve.blocks.at(at)[0]), int(curve.tokens.at(at)[0])) == found


@settings(max_examples=60, deadline=None)
@given(trace=traces(), capacity=capacities)
def test_lru_that_touches_tails_first_evicts_leaves_of_the_prefix_tree(trace, capacity):
    """The leaf untouched for longest goes, the running chain is pinned, what is too long is cut."""
    before, last, cached, total = {}, {}, set(), 0
    for now, request in enumerate(lists(trace)):
        before.update(zip(request, [None, *request], strict=False))
        found = 0
        while found < len(request) and request[found] in cached:
            found += 1
        total += found
        chain = request[:capacity]
        for block in chain:
            cached.add(block)
            last[block] = now
        while len(cached) > capacity:
            parents = {before[block] for block in cached}
            free = [block for block in cached if block not in parents and block not in chain]
            cached.remove(min(free, key=lambda block: last[block]))
    assert hits(trace, capacity) == total


@settings(max_examples=60, deadline=None)
@given(trace=traces(), capacity=capacities, name=st.sampled_from(UNBOUNDED))
def test_no_policy_beats_belady_nor_belady_an_infinite_cache(trace, capacity, name):
    best = hits(trace, capacity, "belady")
    assert hits(trace, capacity, name) <= best <= hits(trace, capacity, "infinite")


@settings(max_examples=40, deadline=None)
@given(trace=traces(most=5, longest=2), capacity=st.integers(1, 4))
def test_belady_is_the_best_that_can_be_done(trace, capacity):
    assert hits(trace, capacity, "belady") == slow.best_possible(lists(trace), capacity)


@settings(max_examples=40, deadline=None)
@given(trace=traces(), capacity=capacities)
def test_belady_that_takes_every_block_loses_to_the_one_that_may_refuse_one(trace, capacity):
    assert hits(trace, capacity, "belady-insert") <= hits(trace, capacity, "belady")
    assert hits(trace, capacity, "belady") <= hits(trace, capacity + 1, "belady-insert")


@settings(max_examples=40, deadline=None)
@given(trace=traces(), fast=capacities, slower=capacities)
def test_exclusive_tiers_are_one_cache_of_their_sum(trace, fast, slower):
    stack = Stack(("a", "b"), (fast, slower), "exclusive", "write_back")
    assert tiers_by_blocks(case(trace, stack.capacity), stack).hit_blocks.sum() == hits(trace, fast + slower)


@settings(max_examples=40, deadline=None)
@given(trace=traces(), fast=capacities, more=st.integers(0, 20))
def test_inclusive_tiers_are_one_cache_of_the_lower_one(trace, fast, more):
    stack = Stack(("a", "b"), (fast, fast + more), "inclusive", "write_through")
    assert tiers_by_blocks(case(trace, stack.capacity), stack).hit_blocks.sum() == hits(trace, fast + more)


@pytest.mark.parametrize(
    ("inclusion", "write"), [("exclusive", "write_back"), ("inclusive", "write_through")]
)
@settings(max_examples=40, deadline=None)
@given(trace=traces(), fast=capacities, more=st.integers(0, 20))
def test_tiers_from_depths_are_tiers_block_by_block(inclusion, write, trace, fast, more):
    stack = Stack(("a", "b"), (fast, fast + more), inclusion, write)
    one = case(trace, stack.capacity)
    for quick, long in zip(replay_tiers(one, stack).tiers, tiers_by_blocks(one, stack).tiers, strict=True):
        assert quick.hit_blocks.tolist() == long.hit_blocks.tolist()
        assert quick.hit_tokens.tolist() == long.hit_tokens.tolist()


@settings(max_examples=40, deadline=None)
@given(trace=traces(), part=st.integers(1, 12))
def test_hard_quotas_are_each_tenant_alone(trace, part):
    requests, found = lists(trace), 0
    for tenant in range(len(trace.tenants)):
        own = [request for request, name in zip(requests, trace.tenant, strict=True) if name == tenant]
        found += sum(map(sum, slow.replay(own, part)))
    quotas = Quotas("hard", (part,) * len(trace.tenants))
    assert alone(case(trace, part * len(trace.tenants)), quotas).hit_blocks.sum() == found


@settings(max_examples=40, deadline=None)
@given(trace=traces(), capacity=capacities)
def test_floors_of_nothing_are_a_shared_cache(trace, capacity):
    quotas = Quotas("floor", (0,) * len(trace.tenants))
    assert floors(case(trace, capacity), quotas).hit_blocks.sum() == hits(trace, capacity)


@settings(max_examples=40, deadline=None)
@given(trace=traces(), capacity=capacities, name=st.sampled_from(UNBOUNDED), seed=st.integers(0, 5))
def test_names_of_blocks_change_nothing(trace, capacity, name, seed):
    order = np.random.default_rng(seed).permutation(trace.unique_blocks)
    ids = order[np.concatenate([np.array(request) for request in lists(trace)])]
    renamed = replace(
        trace,
        run_first=ids,
        run_blocks=np.ones_like(ids),
        run_start=np.concatenate(([0], np.cumsum(trace.request_blocks))),
    )
    assert hits(renamed, capacity, name) == hits(trace, capacity, name)


@settings(max_examples=40, deadline=None)
@given(trace=traces(), capacity=capacities, factor=st.floats(1e-3, 1e6))
def test_the_unit_of_time_changes_nothing(trace, capacity, factor):
    times = np.arange(trace.requests, dtype=float)[::-1] // 2
    early, late = replace(trace, time=times), replace(trace, time=times * factor)
    assert hits(early, capacity) == hits(late, capacity)


@settings(max_examples=40, deadline=None)
@given(trace=traces(), finer=st.sampled_from((1, 2, 4)), seed=st.integers(0, 3))
def test_finer_blocks_never_lower_what_an_infinite_cache_hits(trace, finer, seed):
    if trace.block_tokens % finer:
        finer = 1
    split = refined(trace, finer, seed=seed)
    infinite = policy("infinite")
    assert infinite(case(split, 1)).hit_tokens.sum() >= infinite(case(trace, 1)).hit_tokens.sum()


@settings(max_examples=40, deadline=None)
@given(trace=traces(), name=st.sampled_from([name for name in POLICIES if name not in ("infinite", "rules")]))
def test_a_cache_that_holds_every_block_is_infinite(trace, name):
    # S3-FIFO keeps a tenth for new blocks and fills all of the cache before it evicts any.
    assert hits(trace, trace.unique_blocks, name) == hits(trace, 1, "infinite")


@settings(max_examples=40, deadline=None)
@given(trace=traces(), capacity=capacities, name=st.sampled_from(UNBOUNDED))
def test_a_cache_never_holds_more_than_its_capacity(trace, capacity, name):
    found = policy(name)(case(trace, capacity))
    assert found.inserted - found.evictions <= capacity
    assert found.evictions >= 0


@pytest.mark.parametrize("touch", WORDS["touch"])
@settings(max_examples=40, deadline=None)
@given(trace=traces(), capacity=capacities)
def test_the_loop_that_is_compiled_is_first_in_first_out(touch, trace, capacity):
    one = case(trace, capacity, Semantics(touch=touch))
    hit = _compiled(one, _loops.fifo).hit_blocks
    assert hit.tolist() == policy("fifo")(one).hit_blocks.tolist()


@settings(max_examples=30, deadline=None)
@given(trace=traces(), capacity=capacities)
def test_blocks_of_lru_are_those_of_the_cache_of_single_blocks(trace, capacity):
    one = case(trace, capacity)
    assert policy("lru")(one).hit_blocks.tolist() == by_blocks(one).hit_blocks.tolist()


@settings(max_examples=30, deadline=None)
@given(trace=traces(), fast=capacities, slower=capacities)
def test_no_block_lies_in_two_exclusive_tiers(trace, fast, slower):
    tiers = Tiers(Stack(("a", "b"), (fast, slower), "exclusive", "write_back"))
    for request in lists(trace):
        for depth in reversed(range(len(request))):
            tiers.touch(request[depth], depth, ())
        assert not set(tiers.held[0]) & set(tiers.held[1])
        assert len(tiers.held[0]) <= fast
        assert len(tiers.held[1]) <= slower
