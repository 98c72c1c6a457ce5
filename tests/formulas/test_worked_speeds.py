"""Prefill, decode, queues and money worked by hand, or printed by the source that the test names."""

import numpy as np
import pytest

from kvcalc import formulas as f
from kvcalc.api import plan_calls, question_of
from kvcalc.errors import DomainError

GB, GIB, MS = 1e9, 2.0**30, 1e-3


def exactly(value):
    return pytest.approx(value, rel=1e-12)


def test_attention_overtakes_the_weights_of_an_8b_model_at_53000_tokens():
    # Published: n_eq = P / (L h d), 53K tokens for an 8B model of 32 layers, 32 heads, width 128.
    n = 53_000
    attention = f.attention_flops(f.full_entries(n), 32, 32, 128, 128)
    dense = n * f.dense_flop_per_token(7e9)
    assert attention / dense == pytest.approx(1, abs=0.02)


def test_prefill_is_bound_by_weights_when_it_is_short():
    # One token: 16 GB over 3.2 TB/s is 5 ms, its operations 0.03 ms.
    assert f.prefill_time(16e9, 1e15, 0.5, 16 * GB, 3200 * GB, 10 * MS) == exactly(15 * MS)


def test_prefill_adds_attention_at_an_efficiency_of_its_own():
    # 1e15 / (0.5 x 1e15) = 2 s of products and 4e14 / (0.25 x 8e14) = 2 s of attention, then 10 ms
    parts = {"attention": 4e14, "attention_peak": 8e14, "attention_efficiency": 0.25}
    assert f.prefill_time(1e15, 1e15, 0.5, fixed=10 * MS, **parts) == exactly(4.01)
    # Bytes that take 5 s to read hide both.
    assert f.prefill_time(1e15, 1e15, 0.5, 5e12, 1e12, 10 * MS, **parts) == exactly(5.01)


def test_prefill_gives_a_range_for_a_range_of_efficiencies():
    times = f.prefill_time(1e15, 1e15, np.array([0.4, 0.5, 0.8]))
    assert times == exactly(np.array([2.5, 2.0, 1.25]))


def test_decode_step_of_an_8b_model():
    step = f.decode_step_time(16 * GB, 24 * GB, 1e12, 4000 * GB, 1e15, 0.8, 0.5)
    assert (step.memory, step.compute) == (exactly(12.5 * MS), exactly(2 * MS))
    assert (step.total, step.bound) == (exactly(12.5 * MS), "memory")
    assert f.tokens_per_second(32, step.total) == exactly(2560)


def test_decode_bandwidth_is_bytes_per_step_times_steps():
    # 25 steps a second over 40 GB.
    assert f.decode_bandwidth_need(16 * GB, 24 * GB, 800, 32) == exactly(1000 * GB)


def test_critical_batch_makes_both_times_equal():
    batch = f.critical_batch(16 * GB, 1e6, 16e9, 3e12, 6e14)
    step = f.decode_step_time(16 * GB, batch * 1e6, batch * 16e9, 3e12, 6e14)
    assert step.memory == exactly(step.compute)


def test_long_contexts_never_make_decode_compute_bound():
    with pytest.raises(DomainError, match=r"^no batch makes decode compute-bound"):
        f.critical_batch(16 * GB, 1 * GB, 16e9, 3e12, 6e14)


@pytest.mark.parametrize(("tokens", "share"), [(0, 0), (1, 0.25), (2, 0.4375)])
def test_expert_coverage_of_two_in_eight(tokens, share):
    assert f.expert_coverage(tokens, 8, 2) == exactly(share)


def test_single_link_wait_is_that_of_the_textbook():
    # M/M/1: W = rho / (mu - lambda) with mu = 20/s and lambda = 16/s; M/D/1 is half of it.
    assert f.mean_wait(0.05, f.link_utilization(16, 0.05)) == exactly(0.8 / 4)
    assert f.mean_wait(0.05, 0.8, variation=0) == exactly(0.1)


def test_varied_transfers_wait_longer():
    # Pollaczek-Khinchine at v = 2: 50 ms x (1 + 4) / 2 x 0.8 / 0.2.
    assert f.mean_wait(0.05, 0.8, variation=2) == exactly(0.5)


def test_two_links_wait_about_as_erlang_says():
    # M/M/2: W = S rho^2 / (1 - rho^2); the approximation is within 2 % of it.
    assert f.mean_wait(0.05, 0.8, servers=2) == pytest.approx(0.05 * 0.64 / 0.36, rel=0.02)


def test_an_overloaded_link_has_no_wait_but_a_growing_backlog():
    with pytest.raises(DomainError, match="grows without end"):
        f.mean_wait(0.05, 1.0)
    assert f.backlog_growth(1.25) == exactly(0.25)
    assert f.backlog_growth(0.5) == 0


def test_an_idle_link_makes_nobody_wait():
    assert f.mean_wait(0.05, 0.0) == 0
    assert f.wait_percentile(0.0, 0.0) == 0


def test_percentile_of_an_exponential_tail():
    # P(wait > t) = rho exp(-rho t / W) at the value returned must be 1 - p.
    t = f.wait_percentile(0.2, 0.8, 0.99)
    assert 0.8 * np.exp(-0.8 * t / 0.2) == pytest.approx(0.01)


def test_mixed_throughput_matches_the_mean_time_per_token():
    # Half the tokens at 25 us, half at 2.5 us: 13.75 us a token.
    assert f.mixed_throughput(0.5, 40_000, 400_000) == pytest.approx(1 / 13.75e-6)


def test_partial_split_at_the_break_even_bandwidth_is_half():
    assert f.partial_split(10_000, 1e5, 2 * GB, 50e-6) == exactly(5_000)


def test_partial_split_never_computes_more_than_there_is():
    assert f.partial_split(1_000, 1e5, 2 * GB, 50e-6, overhead=10.0) == 1_000


def test_four_gpus_for_two_hours():
    assert f.time_cost(7200, 2.5 / 3600, 4) == exactly(20)


def test_five_minute_rule():
    # 0.0001 USD saved against 1 GB at 1e-16 USD per byte and second.
    assert f.break_even_interval(1e-4, 1 * GB, 1e-16) == exactly(1000)
    with pytest.raises(DomainError, match="saves no money"):
        f.break_even_interval(0.0, 1 * GB, 1e-16)


@pytest.mark.parametrize(
    ("drafted", "acceptance", "gained"),
    [
        pytest.param(0, 0.7, 1.0, id="without a draft a step gains its own token"),
        pytest.param(2, 0.5, 1.75, id="1 + 1/2 + 1/4"),
        pytest.param(3, 0.8, 2.952, id="1 + 0.8 + 0.64 + 0.512"),
        pytest.param(4, 1.0, 5.0, id="a perfect draft gains all and one more"),
        pytest.param(4, 0.0, 1.0, id="a useless draft gains nothing"),
    ],
)
def test_tokens_gained_by_speculation(drafted, acceptance, gained):
    assert f.accepted_tokens(drafted, acceptance) == exactly(gained)


def test_accepted_tokens_are_the_mean_of_drawing_token_by_token():
    """The second implementation: draw whether each token is accepted, stop at the first that is not."""
    draws = np.random.default_rng(7).random((200_000, 4)) < 0.6
    run = np.cumprod(draws, axis=1).sum(axis=1) + 1
    assert f.accepted_tokens(4, 0.6) == pytest.approx(run.mean(), rel=0.01)


def test_all_reduces_by_hand():
    # 1 MB over 4 ranks: each sends 2 x 3/4 MB at 150 GB/s, 10 us; twice with 5 us of latency each
    assert f.all_reduce_time(1e6, 4, 150e9, 5e-6, count=2) == exactly(2 * (5e-6 + 10e-6))


def test_a_draft_pass_is_paid_for_each_drafted_token():
    assert f.speculative_step_time(0.020, 0.002, 4) == exactly(0.028)
    assert f.low_rank_parameters(8, 100, 50) == exactly(1200)


def test_steps_of_a_chunked_prefill_add_up_to_what_the_plan_says():
    assert f.chunked_prefill_time(2.5, 0.25) == exactly(2.75)
    # 20,000 tokens in steps of 8,192: two whole ones and a rest
    result, calls = plan_calls(question_of("llama-3.1-8b", "h100-sxm-80gb", engine="vllm", prompt=20_000))
    last, whole = (call.result for call in calls if call.formula == "prefill_time")
    (total,) = (call for call in calls if call.formula == "chunked_prefill_time")
    assert (total.arguments["whole"], total.arguments["last"]) == (whole, last)
    assert whole > last > 0
    assert result.prefill.time == exactly(whole + last)
