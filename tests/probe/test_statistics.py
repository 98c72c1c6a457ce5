"""Figures of sample lists against tables and against lists whose fault is known."""

import math

import numpy as np
import pytest

from kvcalc.probe import statistics


@pytest.mark.parametrize(
    ("two_tailed", "freedom", "expected"),
    [
        # Table of Student's t in any textbook, to three decimals.
        (0.05, 1, 12.706),
        (0.05, 2, 4.303),
        (0.05, 3, 3.182),
        (0.01, 4, 4.604),
        (0.05, 5, 2.571),
        (0.10, 8, 1.860),
        (0.01, 10, 3.169),
        (0.05, 30, 2.042),
        (0.02, 20, 2.528),
    ],
)
def test_quantiles_of_student_are_those_of_the_table(two_tailed, freedom, expected):
    assert statistics.t_quantile(two_tailed, freedom) == pytest.approx(expected, abs=0.0011)


@pytest.mark.parametrize(("count", "rank"), [(9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8)])
def test_the_interval_of_a_median_is_that_of_the_sign_test(count, rank):
    # Ranks for a 95 % interval of the median (Conover, Practical Nonparametric Statistics, table A3).
    low, high = statistics.median_interval(np.arange(1.0, count + 1))
    assert (low, high) == (rank, count + 1 - rank)


def test_the_interval_of_a_median_holds_it_in_95_of_100_samples():
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(2000):
        low, high = statistics.median_interval(rng.exponential(size=15))
        held += low <= math.log(2) <= high  # the median of an exponential distribution
    assert 0.95 <= held / 2000 <= 0.985  # 96.5 % exactly, by the binomial distribution


def test_few_samples_have_an_interval_too_and_always_the_same():
    times = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02])
    first = statistics.median_interval(times)
    assert first == statistics.median_interval(times)
    assert first[0] < 1.0 < first[1]


def test_two_groups_are_two_modes_and_one_group_is_none():
    rng = np.random.default_rng(1)
    clean = rng.normal(1.0, 0.01, 15)
    assert statistics.is_bimodal(np.concatenate([clean[:9], clean[9:] * 1.3]))
    assert not statistics.is_bimodal(clean)


@pytest.mark.parametrize("count", [9, 12, 15, 25])
def test_normal_samples_are_hardly_ever_taken_for_two_modes(count):
    rng = np.random.default_rng(2)
    found = sum(statistics.is_bimodal(rng.normal(1.0, 0.05, count)) for _ in range(3000))
    assert found <= 12  # three are expected; more than 12 have a chance of one in 20,000


def test_a_slow_end_is_a_drift():
    summary = statistics.summary_of(np.linspace(1.0, 1.1, 15))
    assert summary.drift == pytest.approx(0.0704, abs=1e-4)  # medians 1.0143 and 1.0857 of the thirds


def test_far_samples_are_counted_and_kept():
    summary = statistics.summary_of([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 9.0])
    assert (summary.outliers, summary.n, summary.p90) == (1, 9, pytest.approx(2.616))


@pytest.mark.parametrize(
    ("half", "flags"),
    [(0.0, ()), (0.045, ("noisy",)), (0.15, ("unstable",))],
    ids=["calm", "noisy", "wild"],
)
def test_scatter_is_named(half, flags):
    # Evenly spread over 1 - half to 1 + half: the deviation that half of them keep within is half of it.
    times = np.random.default_rng(0).permutation(np.linspace(1 - half, 1 + half, 15))
    assert statistics.summary_of(times).flags == flags


def test_a_warm_up_ends_when_three_medians_agree():
    assert not statistics.agree([1.0, 1.0])
    assert not statistics.agree([1.3, 1.1, 1.0])
    assert statistics.agree([2.0, 1.0, 1.01, 1.0])
