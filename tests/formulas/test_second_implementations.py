"""Closed forms against slow programs that follow the definition step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc import formulas as f

counts = st.integers(0, 60)
sizes = st.integers(1, 20)
times = st.floats(1e-4, 10)
rates = st.floats(1e6, 1e11)
per_token = st.floats(1e-7, 1e-3)


def positions(new, cached):
    """Positions of the new tokens, the first token of all being 1."""
    return range(cached + 1, cached + new + 1)


@given(counts, counts)
def test_full_attention_counts_every_earlier_token(new, cached):
    assert f.full_entries(new, cached) == sum(positions(new, cached))


@given(counts, sizes, counts)
def test_a_window_counts_at_most_its_size(new, cap, cached):
    assert f.capped_entries(new, cap, cached) == sum(min(p, cap) for p in positions(new, cached))


@given(counts, sizes, counts)
def test_a_chunk_forgets_what_came_before_it(new, chunk, cached):
    seen = sum(
        len([k for k in range(1, p + 1) if (k - 1) // chunk == (p - 1) // chunk])
        for p in positions(new, cached)
    )
    assert f.chunked_entries(new, chunk, cached) == seen


@given(counts, sizes, counts, sizes)
def test_compressed_entries_appear_once_their_stride_is_full(new, stride, cached, cap):
    seen = [len(range(stride, p + 1, stride)) for p in positions(new, cached)]
    assert f.strided_entries(new, stride, cached, cap) == sum(min(entries, cap) for entries in seen)
    assert f.strided_entries(new, stride, cached) == sum(seen)


@given(counts, counts)
def test_an_endless_window_is_full_attention(new, cached):
    assert f.capped_entries(new, np.inf, cached) == f.full_entries(new, cached)


@given(counts, counts, sizes)
def test_prefix_and_suffix_add_up_to_the_prompt(new, cached, size):
    """So the time saved by a hit is the prefill of the prefix itself."""
    for entries in (
        f.full_entries,
        lambda m, c=0.0: f.capped_entries(m, size, c),
        lambda m, c=0.0: f.chunked_entries(m, size, c),
        lambda m, c=0.0: f.strided_entries(m, size, c, 3),
    ):
        assert entries(cached + new) == entries(cached) + entries(new, cached)


@given(st.lists(rates, min_size=1, max_size=4), st.integers(1, 30))
def test_path_agrees_with_moving_every_chunk(bandwidth, chunks):
    chunk, done = 1e6, [0.0] * (len(bandwidth) + 1)
    for _ in range(chunks):
        done[0] = 0.0
        for hop, b in enumerate(bandwidth, start=1):
            done[hop] = max(done[hop], done[hop - 1]) + chunk / b
    assert f.path_time(chunk * chunks, chunk, bandwidth).total == pytest.approx(done[-1], rel=1e-9)


@given(times, times, st.integers(1, 80))
def test_pipeline_agrees_with_loading_and_computing_every_layer(load, compute, layers):
    loaded = computed = 0.0
    for _ in range(layers):
        loaded += load / layers
        computed = max(computed, loaded) + compute / layers
    assert f.pipeline_time(load, compute, layers) == pytest.approx(computed, rel=1e-9)


@given(st.integers(1, 10**6), st.integers(1, 10**5), rates, st.floats(0, 1e-3))
def test_transfer_agrees_with_adding_up_its_pieces(size, piece, bandwidth, overhead):
    piece = max(piece, size // 200)
    left, total = size, 0.0
    while left > 0:
        total += overhead + min(piece, left) / bandwidth
        left -= piece
    assert f.transfer_time(size, piece, bandwidth, overhead) == pytest.approx(total, rel=1e-9)


@given(st.floats(1e3, 1e6), rates, per_token, st.floats(1e-12, 1e-8), times)
def test_break_even_tokens_is_where_the_two_times_cross(kappa, bandwidth, linear, quadratic, overhead):
    def gain(n):
        return linear * n + quadratic * n * n - overhead - kappa * n / bandwidth

    low, high = 0.0, 1.0
    while gain(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) < 0 else (low, middle)
    found = f.break_even_tokens(kappa, bandwidth, linear, quadratic, overhead)
    assert found == pytest.approx(high, rel=1e-6)


@given(st.integers(1, 10**6), st.floats(1e3, 1e6), rates, per_token, st.floats(0, 1e-8), st.floats(0, 1))
def test_partial_split_is_where_both_sides_finish_together(n, kappa, bandwidth, linear, quadratic, overhead):
    def late(r):
        return f.polynomial_prefill(r, linear, quadratic) - overhead - kappa * (n - r) / bandwidth

    low, high = 0.0, float(n)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if late(middle) < 0 else (low, middle)
    assert f.partial_split(n, kappa, bandwidth, linear, quadratic, overhead) == pytest.approx(high, rel=1e-6)


@given(times, times, times, st.floats(1e6, 1e12))
def test_at_the_break_even_bandwidth_both_ways_take_equally_long(remaining, overhead, gap, size):
    prefill = remaining + overhead + gap
    bandwidth = f.break_even_bandwidth(size, prefill, remaining, overhead)
    assert f.cached_total(size, bandwidth, remaining, overhead) == pytest.approx(prefill, rel=1e-9)


@given(st.integers(1, 8), st.data())
def test_expert_coverage_is_the_mean_over_every_routing(experts, data):
    """With one expert a token, over all E^b equally likely routings of b tokens."""
    tokens = data.draw(st.integers(0, 3))
    seen = [len(set(route)) / experts for route in np.ndindex(*(experts,) * tokens)]
    assert f.expert_coverage(tokens, experts, 1) == pytest.approx(np.mean(seen), rel=1e-9, abs=1e-12)


def test_mean_wait_agrees_with_a_queue_played_out():
    """Lindley's recursion over 200,000 exponential arrivals with a fixed transfer time."""
    rng = np.random.default_rng(3)
    gaps, wait, total = rng.exponential(1.0, 200_000).tolist(), 0.0, 0.0
    for gap in gaps:
        wait = max(0.0, wait + 0.6 - gap)
        total += wait
    # Four standard errors of the mean of such correlated waits are about 3 %.
    assert total / len(gaps) == pytest.approx(f.mean_wait(0.6, 0.6, variation=0), rel=0.03)
