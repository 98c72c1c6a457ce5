"""Where queueing theory has an exact answer the simulator gives it."""

from math import factorial

import numpy as np
import pytest

from kvcalc.eviction.engine import Engine
from kvcalc.eviction.load import Generator, Spread
from kvcalc.eviction.steps import constant
from kvcalc.eviction.tactics import Limits, Tactic
from tests.eviction.conftest import linear_steps


def simulated(rate, prompt, generate, times, count=20_000, seed=11):
    load = Generator(rate, prompt, generate, count, seed=seed).requests_of()
    return load, Engine(load, Limits(10**7, 16), times, Tactic("lru")).run()


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_prefill_alone_is_a_queue_with_one_server_and_fixed_service(load):
    # M/D/1: W = ρ S / (2 (1 - ρ)); 100 tokens of 1 ms make S = 0.1 s.
    service = 0.1
    times = constant(0.01, most=1, time_per_token=1e-3, budget=100)
    requests, record = simulated(load / service, Spread("constant", (100,)), Spread("constant", (1,)), times)
    waited = (record.first - requests.arrival).mean() - service
    assert waited == pytest.approx(load * service / (2 * (1 - load)), rel=0.06)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (4, 0.8)])
def test_decode_with_a_fixed_step_is_a_queue_with_as_many_servers_as_sequences(servers, load):
    # M/M/c: exponential lengths at 1 ms a step; Erlang's C is the chance to wait.
    mean, step = 400, 1e-3
    times = constant(step, most=servers, time_per_token=0.0, budget=64)
    rate = load * servers / (mean * step)
    requests, record = simulated(
        rate, Spread("constant", (1,)), Spread("exponential", (mean,)), times, 60_000
    )
    waited = (record.end - requests.arrival - requests.generate * step).mean()
    a = load * servers
    last = a**servers / factorial(servers) / (1 - load)
    chance = last / (sum(a**k / factorial(k) for k in range(servers)) + last)
    expected = chance * mean * step / (servers * (1 - load))
    assert waited == pytest.approx(expected, rel=0.06)


def test_arrivals_see_as_many_in_the_system_as_littles_law_says():
    # Random arrivals see time averages: their mean count is rate times mean time in the system.
    times = linear_steps(64, 0.008, 5e-5, 1e-8, 4e-5)
    load = Generator(
        8.0, Spread("lognormal", (400, 0.7)), Spread("lognormal", (160, 0.7)), 10_000, seed=5
    ).requests_of()
    record = Engine(load, Limits(4000, 16), times, Tactic("lru")).run()
    before = np.arange(len(load)) - np.searchsorted(np.sort(record.end), load.arrival)
    assert before.mean() == pytest.approx(load.rate * (record.end - load.arrival).mean(), rel=0.03)


def test_a_steady_load_leaves_the_engine_as_fast_as_it_comes():
    times = linear_steps(64, 0.008, 5e-5, 1e-8, 4e-5)
    load, record = simulated(8.0, Spread("constant", (400,)), Spread("constant", (160,)), times, 5_000)
    assert len(load) / record.duration == pytest.approx(load.rate, rel=0.01)
