"""What can never happen, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc import formulas as f

rates = st.floats(1e6, 1e12)
bytes_ = st.floats(1, 1e12)
times = st.floats(0, 100)
shares = st.floats(0, 0.999)


@given(bytes_, rates, st.floats(0, 1e-2), st.integers(1, 64))
def test_pieces_never_beat_the_link(piece, bandwidth, overhead, streams):
    alone = f.effective_bandwidth(piece, bandwidth, overhead)
    assert 0 < alone <= f.effective_bandwidth(piece, bandwidth, overhead, streams) <= bandwidth


@given(bytes_, rates, st.floats(1e-9, 1e-2))
def test_larger_pieces_are_never_slower(piece, bandwidth, overhead):
    small, large = f.effective_bandwidth(np.array([piece, 2 * piece]), bandwidth, overhead)
    assert small <= large


@given(bytes_, st.floats(1e-3, 1), st.lists(rates, min_size=1, max_size=4))
def test_a_path_lies_between_its_slowest_hop_and_store_and_forward(size, part, bandwidth):
    total = f.path_time(size, size * part, bandwidth).total
    assert size / min(bandwidth) <= total * (1 + 1e-9)
    assert total <= sum(size / b for b in bandwidth) * (1 + 1e-9)


@given(times, times, st.integers(1, 100))
def test_a_pipeline_lies_between_the_longer_side_and_the_sum(load, compute, layers):
    total = f.pipeline_time(load, compute, layers)
    assert max(load, compute) <= total * (1 + 1e-12) + 1e-12
    assert total <= (load + compute) * (1 + 1e-12) + 1e-12


@given(times, times)
def test_extra_wait_is_between_nothing_and_everything(io, window):
    assert 0 <= f.extra_wait(io, window) <= io


@given(bytes_, bytes_, rates, rates)
def test_the_two_budgets_agree_on_which_limit_comes_first(need, capacity, rate, bandwidth):
    """R_w / R_d = u_C / u_B."""
    u_c, u_b = f.capacity_utilization(need, capacity), f.bandwidth_utilization(rate, bandwidth)
    assert f.sweep_time(need, rate) / f.sweep_time(capacity, bandwidth) == pytest.approx(u_c / u_b, rel=1e-9)


@given(bytes_, st.floats(1, 1e9))
def test_whole_sessions_fit_and_one_more_does_not(capacity, session):
    sessions = f.sessions_that_fit(capacity, session)
    assert sessions * session <= capacity * (1 + 1e-12)
    assert (sessions + 1) * session > capacity * (1 - 1e-12)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_confidence_is_above_nine_tenths_exactly_when_the_verdict_is_decided(low, width):
    confidence, word = f.confidence(low, low + width), f.verdict(low, low + width)
    assert 0 <= confidence <= 1
    assert (confidence > 0.9) == (word != "too_close") or confidence == pytest.approx(0.9, abs=1e-6)


@given(shares, st.floats(0, 5), st.integers(1, 16))
def test_more_links_never_wait_longer_at_the_same_utilization(utilization, variation, servers):
    one, many = f.mean_wait(0.1, utilization, variation, np.array([1, servers]))
    assert 0 <= many <= one * (1 + 1e-12)


@given(st.integers(0, 500), st.integers(1, 256), st.data())
def test_coverage_lies_between_one_token_and_all_experts(tokens, experts, data):
    active = data.draw(st.integers(1, experts))
    coverage = f.expert_coverage(tokens, experts, active)
    assert 0 <= coverage <= 1
    if tokens:
        assert coverage >= active / experts * (1 - 1e-12)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_no_attention_kind_sees_more_than_full_attention(new, size, cached):
    full = f.full_entries(new, cached)
    assert new <= f.capped_entries(new, size, cached) <= full
    assert new <= f.chunked_entries(new, size, cached) <= full
    assert 0 <= f.strided_entries(new, size, cached) <= full


@given(times, times, times, bytes_, rates)
def test_restoring_wins_exactly_above_the_break_even(remaining, overhead, gap, size, bandwidth):
    prefill = remaining + overhead + gap + 1e-3
    break_even = f.break_even_bandwidth(size, prefill, remaining, overhead)
    cached = f.cached_total(size, bandwidth, remaining, overhead)
    if not np.isclose(bandwidth, break_even, rtol=1e-6):
        assert (cached < prefill) == (bandwidth > break_even) or np.isclose(cached, prefill, rtol=1e-12)
