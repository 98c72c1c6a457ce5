"""The fit on a simulated device whose t0 and B are known, and each of its gates."""

import importlib.util
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcalc.probe.backends.simulated import SimulatedDevice
from kvcalc.probe.fit import Rung, fit_of
from kvcalc.probe.statistics import common_drift, summary_of
from tests.probe.simulation import Behaviour, inside, measured, measured_on

TRIALS = 300


def rungs(t0=3e-6, bandwidth=50e9, sizes=None, noise=0.01, seed=0, samples=15):
    """Return a ladder of times with relative noise, without a device."""
    rng = np.random.default_rng(seed)
    sizes = [4096.0 * 4**step for step in range(10)] if sizes is None else sizes
    return [
        Rung(size, summary_of((t0 + size / bandwidth) * (1 + noise * rng.standard_normal(samples))))
        for size in sizes
    ]


@pytest.mark.parametrize("samples", [9, 15])
@pytest.mark.parametrize("noise", [0.002, 0.02])
def test_t0_and_b_lie_in_their_intervals_in_93_to_99_of_100_trials(samples, noise):
    rng = np.random.default_rng([samples, int(noise * 1e4)])
    both = t0_in = b_in = 0
    for seed in range(TRIALS):
        t0, bandwidth = 10 ** rng.uniform(-5.7, -4.7), 10 ** rng.uniform(9.5, 11)
        behaviour = Behaviour(t0=t0, bandwidth=bandwidth, noise=noise, seed=seed)
        _, fit = measured(behaviour, samples)
        assert fit.published, fit.reason
        assert fit.t0 is not None
        for value, ends in ((fit.bandwidth, fit.bandwidth_range), (fit.t0, fit.t0_range)):
            assert (
                ends[1] - ends[0]
            ) / 2 <= 0.101 * value  # the reciprocal of an even interval is not quite even
        t0_in += inside(t0, fit.t0_range)
        b_in += inside(bandwidth, fit.bandwidth_range)
        both += inside(t0, fit.t0_range) and inside(bandwidth, fit.bandwidth_range)
    assert 0.93 <= both / TRIALS <= 0.99, (both, t0_in, b_in)
    assert t0_in / TRIALS >= 0.93
    assert b_in / TRIALS >= 0.93


FAULTS = {
    "two_piece": {"knee": 2**19, "second_t0": 60e-6, "second_bandwidth": 25e9},
    "capped": {"t0": 2e-6, "bandwidth": 60e9, "cap": 12e9},
    "drifting": {"drift": 0.1, "drift_seconds": 1.0},
    "bimodal": {"slow_share": 0.4},
}


SLOW = 0.02
"""Drift from the first sample to the last that is below the gate [1]."""


def test_a_small_drift_widens_the_intervals_to_both_of_its_ends():
    both = 0
    for seed in range(40):
        clean = Behaviour(t0=5e-6, bandwidth=20e9, noise=0.002, seed=seed)
        seconds = clock_of(clean)
        _, fit = measured(replace(clean, drift=SLOW, drift_seconds=seconds), samples=15)
        assert fit.published
        assert (fit.bandwidth_range[1] / fit.bandwidth_range[0] - 1) < 4 * SLOW
        both += inside(20e9, fit.bandwidth_range) and inside(20e9 / (1 + SLOW), fit.bandwidth_range)
    assert both >= 36


def test_no_drift_is_seen_where_there_is_none_and_its_size_is_told_where_there_is_one():
    rng = np.random.default_rng(3)
    passes = np.linspace(0, 1, 15)  # of the way from the first sample to the last
    seen = []
    for slower in (0.0, SLOW):
        series = [
            (1 + slower * passes) * size * (1 + 0.002 * rng.standard_normal(15))
            for size in (1, 4, 16, 64, 256)
        ]
        seen.append(common_drift(series))
    assert abs(seen[0].change) < 0.003
    # Thirds of 15 lie 10 passes apart, of 14 from first to last; the first two and the last third 11.5.
    assert SLOW * 10 / 14 * 0.8 < seen[1].change < SLOW * 11.5 / 14 * 1.2
    assert common_drift([[1.0, 2.0, 3.0]] * 4).change == 0  # too few passes to say


def clock_of(behaviour):
    """Return how long the link of a device is measured, by its own clock."""
    return measured_on(SimulatedDevice(behaviour), 15)[2]


@pytest.mark.parametrize("flag", FAULTS)
@pytest.mark.parametrize("noise", [0.002, 0.01])
def test_a_device_with_a_fault_has_its_flag_and_no_line(flag, noise):
    wrong = []
    for seed in range(30):
        _, fit = measured(Behaviour(noise=noise, seed=seed, **FAULTS[flag]), samples=15)
        if flag not in fit.flags or fit.published:
            wrong.append((seed, fit.flags, fit.reason))
    assert wrong == []


def test_a_knee_is_given_as_its_two_pieces():
    _, fit = measured(Behaviour(noise=0.002, **FAULTS["two_piece"]), samples=15)
    lower, upper = fit.pieces
    assert lower.largest < 2**19 <= upper.smallest
    assert upper.bandwidth == pytest.approx(25e9, rel=0.02)
    assert lower.t0 == pytest.approx(3e-6, rel=0.05)


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.02])
def test_a_clean_device_has_no_flag(noise):
    flagged = [measured(Behaviour(noise=noise, seed=seed))[1].flags for seed in range(40)]
    assert [flags for flags in flagged if flags] == []


def test_launch_cost_does_not_show_where_the_queue_can_be_held():
    _, fit = measured(Behaviour(t0=1.5e-6, launch=8e-6, noise=0.005))
    assert fit.published
    assert inside(1.5e-6, fit.t0_range)


def test_launch_cost_is_flagged_where_the_queue_cannot_be_held():
    rows, fit = measured(Behaviour(t0=1.5e-6, launch=8e-6, noise=0.005, stalls=False))
    assert "launch_bound" in rows[0].flags
    assert fit.t0 is None or fit.t0 < 3e-6  # the small sizes, which wait for the CPU, are not fitted


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.97, 1.0, 1.02, 1.1, 1.5])
def test_no_line_is_ever_faster_than_the_link(factor):
    bound = 50e9
    for seed in range(20):
        rows, fit = measured(Behaviour(bandwidth=bound * factor, noise=0.02, seed=seed), bound=bound)
        if fit.published:
            assert fit.bandwidth <= bound
            assert fit.bandwidth_range[1] <= bound
        if factor >= 1.1:
            assert not fit.published
            assert "implausible" in fit.flags
            assert all("implausible" in row.flags for row in rows)  # the sizes below the limit too


def test_a_line_within_the_slack_above_the_limit_keeps_an_interval():
    _, fit = measured(Behaviour(bandwidth=64e9, noise=0.002), samples=15, bound=63e9)
    assert fit.published
    assert fit.bandwidth == 63e9
    assert fit.bandwidth_range[0] <= 63e9 / 1.03
    assert "cut_to_bound" in fit.flags


def test_fewer_samples_than_two_groups_need_give_no_line():
    _, fit = measured(Behaviour(slow_share=0.3, slow_factor=1.15), samples=8)
    assert not fit.published
    assert fit.reason == "8 samples of a size are too few to see two groups in; a line takes 9"


def test_content_that_does_not_arrive_is_no_measurement():
    rows, fit = measured(Behaviour(corrupt=True))
    assert all(row.verified is False and "verification" in row.flags for row in rows)
    assert not fit.published


def exact(t0, sizes, errors=None):
    """Return a ladder without scatter over 50 GB/s, whose times are off by known shares."""
    errors = errors or [0.0] * len(sizes)
    return [
        Rung(size, summary_of([(t0 + size / 50e9) * (1 + error)] * 9))
        for size, error in zip(sizes, errors, strict=True)
    ]


LADDER = [4096.0 * 4**step for step in range(9)]
TOP = LADDER[-1] / 50e9
"""Time of the bytes of the largest size [second]."""

GATES = {
    "too few sizes": (exact(3e-6, LADDER[:4]), "4 sizes are too few"),
    "too narrow a span": (exact(3e-6, [1e6, 2e6, 4e6, 8e6, 16e6, 32e6]), "span a factor of 32"),
    "too little of the bytes": (exact(5 * TOP, LADDER), "the bytes take less than a quarter"),
    "far from B at the top": (exact(0.3 * TOP, LADDER), "38.46 GB/s, more than a tenth off 50"),  # 50 / 1.3
    "few sizes that lie about the line": (
        exact(2e-5, [1e5, 1e6, 1e7, 1e8, 1e9], [0.06, -0.06, 0.06, -0.06, 0.06]),
        "the interval of B is wider than a tenth",
    ),
    "nothing trusted": ([Rung(4096.0, summary_of([1e-6] * 9), trusted=False)] * 6, "0 sizes"),
    "wild samples": (rungs(noise=0.2), "the samples (scatter|fall into two groups|drift)"),
    "a random table": (
        [
            Rung(size, summary_of([value] * 9))
            for size, value in zip(
                [4096.0 * 4**step for step in range(8)],
                [9e-6, 4e-6, 9e-5, 3e-5, 4e-6, 2e-4, 1e-5, 6e-6],
                strict=True,
            )
        ],
        "does not grow with the size|of the variance",
    ),
}


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_fails_refuses_the_line_and_says_why(gate):
    ladder, words = GATES[gate]
    fit = fit_of(ladder)
    assert not fit.published
    assert fit.bandwidth is None
    assert fit.t0 is None
    assert re.search(words, fit.reason), fit.reason


def test_the_same_ladders_pass_where_the_gate_does_not_fail():
    assert fit_of(exact(0.05 * TOP, LADDER)).published
    assert fit_of(exact(2e-5, [1e5, 1e6, 1e7, 1e8, 1e9], [0.01, -0.01, 0.01, -0.01, 0.01])).published


def test_a_t0_that_the_noise_hides_is_not_published_but_b_is():
    fit = fit_of(rungs(t0=1e-10, noise=0.02))
    assert fit.published
    assert fit.t0 is None
    assert "lost in the noise" in fit.reason
    assert inside(50e9, fit.bandwidth_range)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 1e3), st.floats(0.1, 1e3))
def test_the_line_does_not_depend_on_the_units(bytes_factor, time_factor):
    plain = fit_of(rungs())
    scaled = fit_of(
        [
            Rung(
                rung.size * bytes_factor,
                summary_of(np.array([rung.time.low, rung.time.median, rung.time.high] * 5) * time_factor),
            )
            for rung in rungs()
        ]
    )
    same = fit_of(
        [
            Rung(rung.size, summary_of([rung.time.low, rung.time.median, rung.time.high] * 5))
            for rung in rungs()
        ]
    )
    assert scaled.published == same.published
    assert scaled.bandwidth == pytest.approx(same.bandwidth * bytes_factor / time_factor, rel=1e-6)
    assert scaled.t0 == pytest.approx(same.t0 * time_factor, rel=1e-6)
    assert plain.published


def test_the_half_speed_size_is_t0_times_b():
    fit = fit_of(rungs(noise=0.001))
    assert fit.half_size == pytest.approx(3e-6 * 50e9, rel=0.02)
    assert math.isclose(fit.half_size, fit.t0 * fit.bandwidth)


ROOT = Path(__file__).resolve().parents[2]


def test_the_page_tells_what_this_fit_does():
    """A command writes the figures on the page; the first trials of each case are repeated."""
    spec = importlib.util.spec_from_file_location("coverage", ROOT / "benchmarks" / "probe_coverage.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    told = json.loads((ROOT / "docs" / "probe_coverage.json").read_text())
    assert [(row["samples"], row["noise"], row["drift"]) for row in told["coverage"]] == bench.CASES
    assert [(row["samples"], row["noise"], row["drift"]) for row in told["slow"]] == bench.SLOW
    for row in told["coverage"] + told["slow"]:
        again = bench.trials(row["samples"], row["noise"], row["drift"], bench.HELD)
        found = [round(float(fit.bandwidth or 0)) for fit, _, _ in again]
        assert found == pytest.approx(row["held"], rel=1e-6)
