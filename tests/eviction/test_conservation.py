"""What holds in every step of every policy and mode: nothing is lost, nothing is counted twice."""

import numpy as np
import pytest

from kvcalc.eviction.engine import Engine
from kvcalc.eviction.load import Generator, Spread
from kvcalc.eviction.policies import POLICIES
from kvcalc.eviction.rules import UNGUARDED, Rules
from kvcalc.eviction.tactics import Host, Limits, Tactic
from tests.eviction.conftest import linear_steps

STEPS = linear_steps(64, 0.008, 5e-5, 1e-8, 4e-5)
LIMITS = Limits(150, 16, bytes_per_token=1000.0, host=Host(out=1e7, back=1e7, capacity=1e6))
CASES = [(policy, mode) for policy in POLICIES for mode in ("recompute", "tail", "swap")]


@pytest.fixture(scope="module")
def load():
    lengths = Spread("lognormal", (400, 0.67)), Spread("lognormal", (160, 0.67))
    return Generator(30.0, *lengths, requests=100, seed=7, hit=0.3, high_priority=0.1).requests_of()


def check(engine):
    """Count everything again, from the sequences themselves."""
    batch, limits = engine.batch, engine.limits
    held = [batch.context_of(number) for number in batch.joined]
    used = sum(map(limits.count, held))
    used += sum(limits.count(engine.target(number)) for number in engine.prefilling)
    used += sum(limits.count(engine.at[number]) for number in engine.stalled)
    used += sum(limits.count(engine.swapped[number]) for _, number in engine.returning)
    used += sum(engine.kept.values())
    assert engine.free >= 0
    assert used + engine.free == limits.blocks
    assert batch.context == sum(held)
    assert batch.needed() == len(batch.growing())
    computed = sum(engine.known) - sum(engine.cached)
    computed += sum(batch.context_of(number) - engine.known[number] for number in batch.joined)
    assert engine.record.processed == computed + engine.record.recomputed.sum()
    assert engine.on_host == pytest.approx(sum(engine.swapped.values()) * limits.bytes_per_token)
    assert engine.on_host <= limits.host.capacity


@pytest.mark.parametrize("rules", [UNGUARDED, Rules(), Rules(cooldown=2.0)], ids=["bare", "rules", "short"])
@pytest.mark.parametrize(("policy", "mode"), CASES)
def test_tokens_blocks_and_requests_are_conserved(load, policy, mode, rules):
    record = Engine(load, LIMITS, STEPS, Tactic("x", policy, mode, rules), observe=check).run()
    served = ~record.rejected
    assert not np.isnan(record.end[served]).any()
    assert not np.isnan(record.first[served]).any()
    assert (record.first[served] >= load.arrival[served]).all()
    assert (record.end[served] >= record.first[served]).all()
    assert record.processed == (
        (load.prompt - load.cached)[served].sum()
        + np.maximum(record.generated[served] - 1, 0).sum()
        + record.recomputed.sum()
    )
    whole = served & ~record.truncated
    assert (record.generated[whole] == load.generate[whole]).all()
    assert record.gaps.count == np.maximum(record.generated[served] - 1, 0).sum()
    assert record.active == pytest.approx(record.served.sum())  # Little's law inside the engine
    assert record.busy <= record.duration * (1 + 1e-9)


@pytest.mark.parametrize(("policy", "mode"), CASES)
def test_many_steps_in_one_go_are_the_same_as_one_by_one(load, policy, mode):
    tactic = Tactic("x", policy, mode, Rules(cooldown=2.0))
    at_once = Engine(load, LIMITS, STEPS, tactic).run()
    one_by_one = Engine(load, LIMITS, STEPS, tactic, single=True).run()
    assert at_once.end == pytest.approx(one_by_one.end, nan_ok=True)
    assert at_once.first == pytest.approx(one_by_one.first, nan_ok=True)
    assert (at_once.evictions == one_by_one.evictions).all()
    shares = (0.5, 0.95, 0.99)
    assert at_once.gaps.percentiles(shares) == pytest.approx(one_by_one.gaps.percentiles(shares))


def test_the_load_really_evicts(load):
    record = Engine(load, LIMITS, STEPS, Tactic("x")).run()
    assert record.evictions.sum() > 20


def test_the_same_seed_gives_the_same_requests_at_any_rate():
    lengths = Spread("lognormal", (400, 0.67)), Spread("exponential", (160,))
    slow, fast = (Generator(rate, *lengths, requests=50, seed=3).requests_of() for rate in (1.0, 4.0))
    assert (slow.prompt == fast.prompt).all()
    assert (slow.generate == fast.generate).all()
    assert slow.arrival == pytest.approx(4 * fast.arrival)
    other = Generator(1.0, *lengths, requests=50, seed=4).requests_of()
    assert (slow.prompt != other.prompt).any()
