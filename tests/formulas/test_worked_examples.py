"""Values worked by hand, or printed by the source that the test names."""

import numpy as np
import pytest

from kvcalc import formulas as f
from kvcalc.errors import DomainError

GB, GIB, MS = 1e9, 2.0**30, 1e-3


def exactly(value):
    return pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("need", "rate", "u_c", "u_b", "r_w", "limit", "short"),
    [
        pytest.param(30, 1000, 0.375, 0.5, 0.03, "bandwidth", 0, id="A fits, bandwidth comes first"),
        pytest.param(200, 1000, 2.5, 0.5, 0.2, "capacity", 120, id="B is 120 GB short"),
        pytest.param(
            90, 3000, 1.125, 1.5, 0.03, "bandwidth", 10, id="A x 3 is over on both, with the same R_w"
        ),
    ],
)
def test_two_budgets_of_80_gb_and_2000_gb_per_second(need, rate, u_c, u_b, r_w, limit, short):
    capacity, bandwidth = 80 * GB, 2000 * GB
    assert f.capacity_utilization(need * GB, capacity) == exactly(u_c)
    assert f.bandwidth_utilization(rate * GB, bandwidth) == exactly(u_b)
    assert f.sweep_time(need * GB, rate * GB) == exactly(r_w)
    assert f.sweep_time(capacity, bandwidth) == exactly(0.04)
    assert f.first_limit(u_c, u_b) == limit
    assert f.capacity_shortfall(need * GB, capacity) == exactly(short * GB)


def test_bandwidth_shortfall_of_a_times_three():
    assert f.bandwidth_shortfall(3000 * GB, 2000 * GB) == exactly(1000 * GB)


def test_equal_utilizations_are_a_tie_whatever_the_rounding():
    assert f.first_limit(0.1 + 0.2, 0.3) == "tie"
    assert f.first_limit(0.0, 0.0) == "tie"


def test_words_of_a_table():
    words = f.first_limit(np.array([0.4, 2.5, 0.5, np.nan]), np.array([0.5, 0.5, 0.5, 0.5]))
    assert list(words) == ["bandwidth", "capacity", "tie", ""]


@pytest.mark.parametrize(
    ("capacity", "session", "fit"),
    [
        # Qwen2.5-72B: 80 layers x 2 x 8 heads x 128 x 2 B = 327,680 B a token, 10 GiB for 32,768.
        pytest.param(160 * GB, 32768 * 327680.0, 14, id="160 GB holds fourteen 32Ki contexts of a 72B"),
        pytest.param(160 * GIB, 32768 * 327680.0, 16, id="160 GiB holds sixteen"),
        pytest.param(3.0, 1.0, 3, id="an exact multiple counts in full"),
        pytest.param(1.0, 0.1, 10, id="ten tenths are one, though 1.0 // 0.1 is nine"),
        pytest.param(2.999, 1.0, 2, id="half a session serves nobody"),
    ],
)
def test_whole_sessions(capacity, session, fit):
    assert f.sessions_that_fit(capacity, session) == fit


def test_sessions_short_rounds_up():
    assert f.sessions_short(200 * GB, 80 * GB, 50 * GB) == 3  # 120 / 50
    assert f.sessions_short(80 * GB, 80 * GB, 50 * GB) == 0


def test_average_is_not_burst():
    assert f.average_bandwidth(10, 100e6) == exactly(1 * GB)
    assert f.burst_time(100e6, 20 * GB) == exactly(5 * MS)


def test_small_random_input_and_output_is_bound_by_operations():
    assert f.iops_bandwidth(1e6, 4096) == exactly(4.096 * GB)
    assert f.iops_bandwidth(1e6, 4096, 3 * GB) == exactly(3 * GB)


@pytest.mark.parametrize(
    ("piece", "printed"),
    # B_eff(s) with t0 = 3.5 us and B = 52.5 GB/s, the published fit for an H100's copy engine:
    # "32 KB blocks give 8 GB/s and 2 MB blocks 48 GB/s on the same link".
    [(32 * 1024, 8.0), (2 * 2**20, 48.0)],
)
def test_piece_size_decides_the_rate_of_a_link(piece, printed):
    assert f.effective_bandwidth(piece, 52.5 * GB, 3.5e-6) / GB == pytest.approx(printed, abs=0.5)


def test_half_the_bandwidth_is_left_at_the_half_bandwidth_piece():
    piece = f.half_bandwidth_piece(52.5 * GB, 3.5e-6)
    assert piece == exactly(183750)
    assert f.effective_bandwidth(piece, 52.5 * GB, 3.5e-6) == exactly(26.25 * GB)


def test_the_last_short_piece_pays_its_full_cost():
    assert f.transfer_time(10, 4, 100, 0.5) == exactly(3 * 0.5 + 0.1)
    assert f.transfer_time(8, 4, 100, 0.5) == exactly(2 * 0.5 + 0.08)


def test_restore_is_the_sum_of_its_parts():
    parts = f.restore_time(1 * GB, 20 * GB, queue=2 * MS, setup=12 * MS, convert=3 * MS, sync=1 * MS)
    assert parts.transfer == exactly(50 * MS)
    assert parts.total == exactly(68 * MS)


@pytest.mark.parametrize(
    ("chunk", "bandwidth", "expected"),
    [
        pytest.param(10 * GB, (10 * GB,), 1.0, id="one hop is size over bandwidth"),
        pytest.param(10 * GB, (10 * GB, 5 * GB), 3.0, id="store-and-forward adds hops"),
        pytest.param(1 * GB, (10 * GB, 5 * GB), 2.1, id="fill is one chunk over the fast hop"),
        pytest.param(1 * GB, (5 * GB, 10 * GB), 2.1, id="the order of hops does not matter"),
    ],
)
def test_chain_of_hops(chunk, bandwidth, expected):
    assert f.path_time(10 * GB, chunk, bandwidth).total == exactly(expected)


def test_a_path_without_hops_is_refused():
    with pytest.raises(DomainError, match="at least one hop"):
        f.path_time(1.0, 1.0, ())


@pytest.mark.parametrize(("bandwidth", "expected"), [(10, 135), (20, 85)])
def test_serial_hit_of_one_gb(bandwidth, expected):
    assert f.cached_total(1 * GB, bandwidth * GB, 30 * MS, 5 * MS) == exactly(expected * MS)


def test_break_even_bandwidth_of_one_gb_in_65_ms():
    assert f.break_even_bandwidth(1 * GB, 100 * MS, 30 * MS, 5 * MS) == exactly(1 * GB / 0.065)
    assert round(f.break_even_bandwidth(1 * GB, 100 * MS, 30 * MS, 5 * MS) / GB, 4) == 15.3846


def test_a_window_lets_a_slower_path_break_even():
    # 125 ms of transfer, of which 60 hide behind other work: 65 ms are left, as above
    assert f.break_even_bandwidth(1 * GB, 100 * MS, 30 * MS, 5 * MS, 60 * MS) == exactly(8 * GB)


def test_no_bandwidth_is_said_exactly():
    with pytest.raises(DomainError, match=r"^no bandwidth makes the serial path win: what remains"):
        f.break_even_bandwidth(1 * GB, 35 * MS, 30 * MS, 5 * MS)
    remaining = np.array([30, 95, 99]) * MS
    rows = f.break_even_bandwidth(1 * GB, 100 * MS, remaining, 5 * MS)
    assert np.isnan(rows).tolist() == [False, True, True]
    assert list(f.no_break_even(100 * MS, remaining, 5 * MS)) == ["", f.NO_BANDWIDTH, f.NO_BANDWIDTH]


def test_speedup_is_before_over_after():
    assert f.speedup(100 * MS, 50 * MS) == exactly(2)


@pytest.mark.parametrize(
    ("low", "high", "word", "confidence"),
    [
        # 2 Phi(1.645 x margin / half width) - 1: a table of the normal distribution gives the values
        pytest.param(5, 25, "restore", 0.98639, id="all of the interval gains"),  # z = 2.467
        pytest.param(-25, -5, "recompute", 0.98639, id="all of it loses"),
        pytest.param(-5, 15, "too_close", 0.58917, id="it straddles the break-even"),  # z = 0.8224
        pytest.param(0, 20, "too_close", 0.9, id="it touches the break-even"),
        pytest.param(-10, 10, "too_close", 0, id="it is centred on the break-even"),
        pytest.param(15, 15, "restore", 1, id="without uncertainty the sign decides"),
        pytest.param(0, 0, "too_close", 0, id="an exact tie"),
    ],
)
def test_verdict_of_a_gain_with_a_range(low, high, word, confidence):
    assert f.verdict(low * MS, high * MS) == word
    assert f.confidence(low * MS, high * MS) == pytest.approx(confidence, abs=2e-5)


def test_an_interval_the_wrong_way_round_is_refused():
    with pytest.raises(DomainError, match="gain_low must not be above gain_high"):
        f.verdict(2.0, 1.0)


def test_break_even_tokens_without_attention_is_overhead_over_gain_per_token():
    # 50 us to compute against 1e5 B / 4 GB/s = 25 us to restore: 10 ms / 25 us.
    assert f.break_even_tokens(1e5, 4 * GB, 50e-6, 0.0, 10 * MS) == exactly(400)


def test_break_even_tokens_below_the_break_even_bandwidth_comes_from_attention_alone():
    # 50 us to compute against 100 us to restore: 1e-9 n^2 must make up for 50 us n.
    assert f.break_even_tokens(1e5, 1 * GB, 50e-6, 1e-9) == exactly(50_000)


def test_break_even_tokens_of_a_slow_tier_and_no_attention_does_not_exist():
    with pytest.raises(DomainError, match=r"^no prefix length is worth restoring at this bandwidth"):
        f.break_even_tokens(1e5, 1 * GB, 50e-6)
    rows = f.break_even_tokens(1e5, np.array([1 * GB, 4 * GB]), 50e-6, 0.0, 10 * MS)
    assert np.isnan(rows[0])
    assert rows[1] == exactly(400)


def test_shortest_worthwhile_on_a_grid_of_blocks():
    grid = np.arange(1, 101) * 16.0
    assert f.shortest_worthwhile(grid, grid * 25e-6 - 10 * MS) == 416  # the first multiple of 16 above 400
    with pytest.raises(DomainError, match="no prefix length on the grid"):
        f.shortest_worthwhile(grid, -grid)


def test_extra_wait_is_what_the_window_does_not_cover():
    assert f.extra_wait(50 * MS, 30 * MS) == exactly(20 * MS)
    assert f.extra_wait(20 * MS, 30 * MS) == 0
    assert f.extra_wait(50 * MS, np.inf) == 0


@pytest.mark.parametrize(
    ("load", "compute", "expected"),
    [
        pytest.param(40, 20, 45, id="loading is slower: all loads, then one layer of compute"),
        pytest.param(20, 40, 45, id="compute is slower: one load, then all of compute"),
        pytest.param(0, 40, 40, id="nothing to load"),
    ],
)
def test_layer_by_layer_pipeline_of_four_layers(load, compute, expected):
    assert f.pipeline_time(load * MS, compute * MS, 4) == exactly(expected * MS)


def test_window_of_a_pipeline_gives_the_same_wait_when_loading_is_slower():
    window = f.pipeline_window(20 * MS, 4)
    assert window == exactly(15 * MS)
    wait = f.extra_wait(40 * MS, window)
    assert f.overlapped_total(20 * MS, wait) == exactly(f.pipeline_time(40 * MS, 20 * MS, 4))


def test_streaming_step_is_never_below_bytes_over_bandwidth():
    assert f.streaming_step_time(10 * MS, 4 * GB, 50 * GB) == exactly(80 * MS)
    assert f.streaming_step_time(100 * MS, 4 * GB, 50 * GB) == exactly(100 * MS)
    assert f.streaming_bandwidth(4 * GB, 10 * MS) == exactly(400 * GB)


def test_recompute_of_32000_tokens():
    assert f.recompute_time(32_000, 0.08 * MS) == exactly(2.56)


@pytest.mark.parametrize(
    ("done", "left", "ratio"), [(30_000, 8_000, 3.75), (2_000, 1_000, 2), (26_000, 200, 130)]
)
def test_price_of_a_victim(done, left, ratio):
    assert f.price_ratio(done, left) == exactly(ratio)


def test_the_cheapest_victim_is_b():
    ratios = f.price_ratio(np.array([30_000, 2_000, 26_000]), np.array([8_000, 1_000, 200]))
    assert "ABC"[int(np.argmin(ratios))] == "B"


def test_a_finished_sequence_has_no_price():
    with pytest.raises(DomainError, match="finished"):
        f.price_ratio(1000, 0)


@pytest.mark.parametrize(
    ("evictions", "recomputed", "expected"),
    [(5.0, 0.2, False), (5.1, 0.0, True), (0.0, 0.21, True), (np.nan, 0.21, True), (np.nan, np.nan, False)],
)
def test_thrashing_is_above_five_a_second_or_a_fifth(evictions, recomputed, expected):
    assert bool(f.is_thrashing(evictions, recomputed)) is expected


def test_thrash_rule_as_a_rate_of_evictions():
    # 1,000 new tokens/s: 20 % recomputed is 250 tokens/s, an eighth of a victim of 2,000 tokens.
    assert f.thrash_evictions(1000, 2000) == exactly(0.125)
    assert f.recomputed_share(0.125 * 2000, 1000) == exactly(0.2)
    assert f.thrash_evictions(1e6, 2000) == 5


def test_swap_is_one_way_each():
    swap = f.swap_time(4 * GB, 50 * GB, 40 * GB)
    assert (swap.out, swap.back, swap.total) == (exactly(0.08), exactly(0.1), exactly(0.18))
