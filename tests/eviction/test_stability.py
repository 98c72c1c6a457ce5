"""Closed forms of stability: worked by hand, and beside the simulation."""

import math

import numpy as np
import pytest

from kvcalc import formulas as f
from kvcalc.eviction.simulation import Setup, run, simulate
from kvcalc.eviction.stability import Demand, stability_of, turning_rate
from kvcalc.eviction.steps import constant
from kvcalc.eviction.tactics import Limits, Tactic
from tests.eviction.conftest import SESSIONS, long_sessions, requests

POOL = Limits(8000, 16)


def test_demand_of_one_kind_of_request_by_hand():
    # Prompt 100, generate 60: over its life a sequence holds 100 to 160 tokens, evenly.
    demand = Demand.of(requests((0, 100, 60), (1, 100, 60)), constant(0.01, 4, 1e-3, 512))
    assert demand.held == 130
    assert demand.deviation == pytest.approx(60 / math.sqrt(12))
    assert demand.prefill == pytest.approx(0.1)
    assert demand.recompute == pytest.approx(0.13)


def test_a_longer_sequence_counts_for_as_many_steps_as_it_lives():
    # 10 steps at 100 + 5 tokens, 90 steps at 200 + 45.
    demand = Demand.of(requests((0, 100, 10), (1, 200, 90)), constant(0.01, 4, 1e-3, 512))
    assert demand.held == pytest.approx(0.1 * 105 + 0.9 * 245)


def test_overrun_agrees_with_drawing_lengths():
    random = np.random.default_rng(1)
    totals = random.uniform(100, 160, (200_000, 40)).sum(axis=1)
    drawn = (totals > 5300).mean()
    assert f.overrun_probability(40, 130.0, 60 / math.sqrt(12), 5300) == pytest.approx(drawn, abs=0.003)


@pytest.mark.parametrize("running", [5.0, 14.0, 23.0, 40.0])
def test_overrun_slope_is_the_difference_of_overruns(running):
    lengths = {"held": 2150.0, "deviation": 2000.0, "pool": 50_000.0}
    # The series behind the normal distribution is smooth within 1e-6 only, so that the step is wide.
    step = 0.2
    rise = f.overrun_probability(running + step, **lengths) - f.overrun_probability(running - step, **lengths)
    assert f.overrun_slope(running, **lengths) == pytest.approx(rise / (2 * step), rel=0.01, abs=1e-5)


def test_safe_concurrency_overruns_once_in_a_hundred_times_and_one_more_oftener():
    lengths = {"held": 2150.0, "deviation": 2000.0, "pool": 50_000.0}
    safe = f.safe_concurrency(**lengths)
    assert f.overrun_probability(safe, **lengths) <= 0.01
    assert f.overrun_probability(safe + 1, **lengths) > 0.01


@pytest.mark.parametrize("rate", [0.08, 0.12, 0.16])
def test_occupancy_and_sequences_come_near_to_the_simulation(rate):
    load = long_sessions(rate, seed=2)
    told = stability_of(rate, Demand.of(load, SESSIONS), POOL, SESSIONS)
    lru = Tactic("lru")
    seen = run(Setup(load, rate, POOL, SESSIONS, (lru,), 90.0), lru).row(90.0)
    assert told.stable
    assert seen.stable
    assert told.occupancy == pytest.approx(seen.occupancy, rel=0.1)
    assert told.running == pytest.approx(seen.running, rel=0.1)


def test_where_the_pool_is_too_small_both_say_unstable():
    load = long_sessions(0.24, seed=2)
    told = stability_of(0.24, Demand.of(load, SESSIONS), POOL, SESSIONS)
    lru = Tactic("lru")
    assert not told.stable
    assert "the pool would have to hold" in told.reason
    assert not run(Setup(load, 0.24, POOL, SESSIONS, (lru,), 90.0), lru).row(90.0).stable


def test_where_the_gpu_is_too_slow_there_is_no_steady_state():
    load = long_sessions(2.0, seed=2)
    told = stability_of(2.0, Demand.of(load, SESSIONS), POOL, SESSIONS)
    assert (told.running, told.stable) == (None, False)
    assert "not enough time" in told.reason


def test_a_loop_gain_above_one_is_called_so():
    # Recompute as dear as decode: 2,000 tokens at 20 ms are 40 s for each victim of 0.1 s a step.
    load = requests(*((i, 2000, 400) for i in range(10)))
    times = constant(0.1, most=64, time_per_token=1e-3, budget=2048)
    slow = Demand.of(load, times)
    slow = Demand(**{**{n: getattr(slow, n) for n in slow.__slots__}, "recompute": 400.0})
    told = stability_of(0.4, slow, Limits(2700, 16), times)
    assert not told.stable
    assert told.loop_gain >= 1
    assert "loop gain" in told.reason


@pytest.mark.parametrize(
    ("evictions", "recomputed", "thrashing"),
    [(5.1, 0.0, True), (4.9, 0.0, False), (0.0, 0.201, True), (0.0, 0.199, False)],
)
def test_the_thrash_rule_at_its_limits(evictions, recomputed, thrashing):
    assert bool(f.is_thrashing(evictions, recomputed)) is thrashing


def test_the_turn_lies_between_a_stable_and_an_unstable_simulation():
    demand = Demand.of(long_sessions(0.16, seed=2), SESSIONS)
    turn = turning_rate(demand, POOL, SESSIONS)
    assert stability_of(turn * 0.999, demand, POOL, SESSIONS).stable
    assert not stability_of(turn * 1.001, demand, POOL, SESSIONS).stable
    lru = Tactic("lru")
    for factor, stable in ((0.8, True), (1.25, False)):
        load = long_sessions(turn * factor, seed=2)
        seen = run(Setup(load, turn * factor, POOL, SESSIONS, (lru,), 90.0), lru).row(90.0)
        assert seen.stable is stable


def test_a_load_far_from_the_turn_is_simulated_on_both_sides_of_it():
    load = long_sessions(2.0, seed=2, count=300)
    found = simulate(Setup(load, 2.0, POOL, SESSIONS, (Tactic("lru"),), 90.0))
    rates = [row.rate for row in found.rows]
    assert min(rates) < found.turning_rate < sorted(rates)[1]
    assert found.advice.startswith("No policy serves this load: the GPU has not enough time")
