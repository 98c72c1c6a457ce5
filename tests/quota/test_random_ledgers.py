"""What holds for every ledger: on 10,000 random ones, and against a solver that tries all plans."""

import importlib.util
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvcalc.planning.notebook import Notebook
from kvcalc.quota.fixed import Allowed
from kvcalc.quota.ledger import RUNNING, SUSPENDED
from kvcalc.quota.reclaim import Request, reclaim
from kvcalc.quota.show import room


def _helper(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worlds, bruteforce = _helper("_worlds"), _helper("_bruteforce")

LEDGERS_EACH = 20
"""Ledgers of one example: 500 examples make 10,000."""


def question(seed, need=None):
    dice = random.Random(seed)
    allowed = Allowed(
        compress=dice.random() < 0.5,
        evict_tail=dice.random() < 0.5,
        keep_tokens=dice.choice([0, 0, 8]),
        preempt=dice.random() < 0.5,
    )
    size = float(dice.randint(0, 14) * worlds.BLOCK)
    return Request("t0", size=size if need is None else need, allowed=allowed)


def ids(steps):
    return [block for step in steps for low, high in step.block_ids for block in range(low, high + 1)]


def check(ledger, request, result, after):
    taken = ids(result.steps)
    assert len(taken) == len(set(taken)) == result.freed_blocks
    assert result.used_before - result.used_after == result.freed_bytes == sum(s.bytes for s in result.steps)
    assert all(s.bytes == s.blocks * worlds.BLOCK for s in result.steps)
    free, was = after.flagged(np.zeros(0, dtype=np.int64)), ledger.used
    free[:] = ~after.used
    gone = {b for b in range(ledger.span) if was[b] and (b >= after.span or free[b])}
    assert gone == set(taken)

    sessions, mine = ledger.sessions, set(ledger.block[ledger.tenant_of == 0].tolist())
    holders = {b: [int(s) for s in ledger.holder[ledger.block == b]] for b in mine}
    never = set()
    for block, who in holders.items():
        foreign = any(sessions.tenant[s] != 0 for s in who)
        busy = any(sessions.state[s] == RUNNING for s in who) and not request.allowed.preempt
        if foreign or busy or block in ledger.pinned or block in ledger.leased:
            never.add(block)
    assert not never & set(taken)
    assert sum(item.blocks for item in result.unreclaimable) == len(never)
    left = sum(item.blocks for item in result.left)
    assert len(mine) == len(never) + len(taken) + left
    return holders


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**40), st.booleans())
def test_ten_thousand_ledgers_conserve_bytes_and_never_free_what_is_held(seed, wild):
    for number in range(seed, seed + LEDGERS_EACH):
        ledger, request = worlds.world(number, wild=wild), question(number)
        result, after, _ = reclaim(ledger, request, worlds.rates(setup=1e-4), Notebook())
        check(ledger, request, result, after)
        least = result.least_cost
        assert least.lower_bound <= least.cost_seconds + 1e-12
        if least.method == "exact" and least.saves is not None:
            assert least.saves >= -1e-12


@pytest.mark.parametrize("seed", range(60))
def test_leaves_go_first(seed):
    ledger, request = worlds.world(seed), question(seed)
    result, _, _ = reclaim(ledger, request, worlds.rates(), Notebook())
    packed = {b for step in result.steps if step.means == "compress" for b in ids([step])}
    place = {block: at for at, block in enumerate(ids(result.steps))}
    never = set(ledger.pinned.tolist()) | set(ledger.leased.tolist())
    for session in np.flatnonzero(ledger.sessions.tenant == 0):
        chain = ledger.block[ledger.holder == session].tolist()
        chain = [b for b in chain if b not in never]
        for ancestor, leaf in pairwise(chain):
            if ancestor in place and leaf not in packed and ledger.references[ancestor] == 1:
                assert leaf in place
                assert place[leaf] < place[ancestor]


@pytest.mark.parametrize(("blocks", "seeds"), [(12, 400), (20, 200)])
def test_no_plan_is_cheaper_than_the_least_cost_plan(blocks, seeds):
    sizes = []
    for seed in range(seeds):
        ledger, request = worlds.world(seed, blocks=blocks, tenants=1 + seed % 2), question(seed)
        rates = worlds.rates()
        result, _, _ = reclaim(ledger, request, rates, Notebook())
        space = room(ledger.host, Notebook())
        most, cost = bruteforce.cheapest(ledger, 0, request.size, space, request.allowed, rates)
        least = result.least_cost
        assert least.method == "exact"
        assert min(least.freed_bytes, request.size) == most
        assert least.cost_seconds == pytest.approx(cost, abs=1e-12)
        sizes.append(int(ledger.used.sum()))
    assert max(sizes) >= 0.8 * blocks


def test_the_greedy_plan_lies_between_the_least_cost_and_its_own_bound(monkeypatch):
    exact, greedy = [], []
    for seed in range(300):
        for most, plans in ((20, exact), (-1, greedy)):
            monkeypatch.setattr("kvcalc.quota.cheapest.EXACT_BLOCKS", most)
            ledger, request = worlds.world(seed, blocks=20, tenants=1), question(seed)
            plans.append(reclaim(ledger, request, worlds.rates(setup=1e-4), Notebook())[0].least_cost)
    assert {least.method for least in exact} == {"exact"}
    met = 0
    for best, found in zip(exact, greedy, strict=True):
        assert found.method == "greedy"
        assert found.freed_bytes <= best.freed_bytes or found.cost_seconds >= best.cost_seconds - 1e-12
        if found.freed_bytes >= best.freed_bytes:
            assert found.lower_bound <= best.cost_seconds + 1e-12 <= found.cost_seconds + 2e-12
            met += found.cost_seconds <= best.cost_seconds + 1e-12
    assert met > 150  # more often than not it is the best plan itself


def test_above_twenty_blocks_the_plan_is_greedy():
    checked = 0
    for seed in range(100):
        ledger = worlds.world(seed, blocks=120, tenants=1, sessions_most=16, fresh_most=12)
        result = reclaim(ledger, question(seed, 15_000.0), worlds.rates(), Notebook())[0]
        if result.freed_blocks + sum(item.blocks for item in result.left) > 20:
            checked += 1
            assert result.least_cost.method == "greedy"
            assert 0 <= result.least_cost.lower_bound <= result.least_cost.cost_seconds + 1e-12
    assert checked > 20


def test_nothing_is_dropped_before_what_the_lower_tier_holds_of_its_context():
    for seed in range(300):
        ledger, request = worlds.world(seed), question(seed)
        result, _, _ = reclaim(ledger, request, worlds.rates(), Notebook())
        for plan in (result.steps, result.least_cost.steps):
            stored = {b for step in plan if step.means == "offload" for b in ids([step])}
            evicted = {b for step in plan if step.means == "evict_tail" for b in ids([step])}
            for session in np.flatnonzero(ledger.sessions.state == SUSPENDED):
                chain = ledger.block[ledger.holder == session].tolist()
                for at, block in enumerate(chain):
                    if block in evicted:
                        assert not stored & set(chain[at + 1 :])
