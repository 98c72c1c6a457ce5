"""Prefill times, part by part, against hand arithmetic; and what measured points make of them."""

from dataclasses import replace

import numpy as np
import pytest

import kvcalc
from kvcalc import api
from kvcalc.engines import lay_out
from kvcalc.errors import KvcalcError, ProfileError, SettingsError
from kvcalc.planning.memory import counted
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.pace import EXPERTS, Pace, Paces
from kvcalc.planning.prefill import PrefillModel
from kvcalc.planning.work import attention_work
from kvcalc.profiles import Band
from kvcalc.shapes.families.mla import indexer_component, mla_component

PEAK, FP8_PEAK, MEMORY, NVLINK = (
    989e12,
    1979e12,
    3.35e12,
    395.1e9,
)  # data sheet and nvbandwidth of an H100 SXM
FIXED, HANDLING = 0.015, 0.6e-6
MATRICES = 32 * (218_112_000 - 2 * 4096)  # Llama 3.1 8B: layers without their norms
HEAD = 128_256 * 4096


def model(name="llama-3.1-8b", on="h100-sxm-80gb", products=0.5, attention=0.25, **said):
    """A prefill model on a machine whose efficiencies are exact and memory is read at its full rate."""
    scenario = api.scenario(api.question_of(name, on=on, **said))
    exact = {
        "prefill_efficiency": Band(products, products, products),
        "attention_efficiency": None if attention is None else Band(attention, attention, attention),
        "decode_efficiency": Band(1.0, 1.0, 1.0),
    }
    scenario = replace(scenario, hardware=replace(scenario.hardware, **exact))
    layout = lay_out(scenario.model.shape, scenario.settings)
    return PrefillModel(scenario, counted(scenario, Notebook()), layout)


def attention_of_llama(new, cached=0):
    """2 x 32 layers x 32 heads x (128 + 128) FLOP over the entries that new tokens attend to."""
    return 2 * 32 * 32 * 256 * (new * cached + new * (new + 1) / 2)


def outside(tokens):
    return FIXED + HANDLING * tokens


def test_products_and_attention_have_an_efficiency_each():
    n = 8000
    expected = (2 * MATRICES * n + 2 * HEAD) / (0.5 * PEAK) + attention_of_llama(n) / (0.25 * PEAK)
    assert model().time(float(n)) == pytest.approx(expected + outside(n), rel=1e-9)


def test_without_an_efficiency_of_its_own_attention_has_that_of_products():
    assert model(attention=None).time(8000.0) == model(attention=0.5).time(8000.0)


def test_chunks_add_up_to_the_whole_while_computing_takes_longest():
    # 20,000 tokens in chunks of 8,192: attention grows over the prefix, so the sum is that of one pass.
    whole = model(max_batched_tokens=1_000_000).time(20_000.0)
    assert model(max_batched_tokens=8192).time(20_000.0) == pytest.approx(whole, rel=1e-9)


def test_small_chunks_read_the_weights_over_and_over():
    # Chunks of 16 tokens are bound by memory: 16 GB of weights without the embedding, and the KV before.
    n, chunk = 160, 16
    weights = 2 * (MATRICES + 32 * 2 * 4096 + 4096 + HEAD)
    kv = sum(131_072 * chunk * before for before in range(n // chunk))
    expected = (weights * n / chunk + kv) / MEMORY + outside(n)
    assert model(max_batched_tokens=chunk).time(float(n)) == pytest.approx(expected, rel=1e-6)


def test_a_hit_of_all_but_one_token_costs_the_weights_and_the_cached_kv():
    cached = 99_999
    weights = 2 * (MATRICES + 32 * 2 * 4096 + 4096 + HEAD)
    expected = (weights + 131_072 * cached) / MEMORY + outside(100_000)
    assert model().time(1.0, float(cached)) == pytest.approx(expected, rel=1e-6)


def test_a_suffix_attends_to_the_cached_prefix():
    new, cached = 2048, 24_576
    expected = (2 * MATRICES * new + 2 * HEAD) / (0.5 * PEAK) + attention_of_llama(new, cached) / (
        0.25 * PEAK
    )
    assert model().time(float(new), float(cached)) == pytest.approx(
        expected + outside(new + cached), rel=1e-9
    )


def test_prefix_and_suffix_take_as_long_as_the_whole_but_for_what_each_prefill_costs():
    found = model(max_batched_tokens=8192)
    parts = found.time(16_384.0) + found.time(4096.0, 16_384.0)
    twice = outside(16_384) + 2 * HEAD / (0.5 * PEAK)  # the prefix's own fixed cost, handling and output head
    assert parts - twice == pytest.approx(found.time(20_480.0), rel=1e-9)


def test_ranks_share_the_work_and_add_up_their_results():
    # Four ranks: a quarter of the time, and 2 x 32 all-reduces of 8,000 x 4,096 x 2 B, 2 x 3/4 of which
    # each rank sends over NVLink.
    n = 8000
    work = (2 * MATRICES * n + 2 * HEAD) / (0.5 * PEAK) + attention_of_llama(n) / (0.25 * PEAK)
    sent = 2 * 32 * n * 4096 * 2 * 1.5 / NVLINK
    assert model(gpus=4).time(float(n)) == pytest.approx(work / 4 + sent + outside(n), rel=1e-9)


def test_ranks_without_a_link_add_up_through_the_host():
    found = model(on="rtx-4090", gpus=2, products=0.5, attention=0.5)
    link = found.scenario.hardware.host_to_device.bandwidth
    assert found.scenario.hardware.interconnect is None
    assert found.unit_times(1000.0, 0.0, found.paces.middle)[2] == pytest.approx(
        HANDLING * 1000 + 2 * 32 * 1000 * 4096 * 2 / link
    )


def test_eight_bit_products_run_at_their_own_peak_and_attention_in_sixteen_bits():
    n = 8000
    found = model(weights_dtype="fp8")
    expected = (2 * MATRICES * n + 2 * HEAD) / (0.5 * FP8_PEAK) + attention_of_llama(n) / (0.25 * PEAK)
    # the head stays in 16 bits, and is counted with the products: 0.002 % of them
    assert found.time(float(n)) == pytest.approx(expected + outside(n), rel=1e-4)


def test_four_bit_weights_alone_are_multiplied_in_sixteen_bits():
    assert model(weights_dtype="int4").products_peak(Pace(1.0, 1.0, 1.0, 0.0, 0.0)) == pytest.approx(PEAK)


def test_routed_experts_count_with_their_own_share():
    # Qwen3-30B-A3B: 8 of 128 experts of 3 x 2,048 x 768 in each of 48 layers; the rest is 48 layers of
    # attention, 2 x 2,048 x 4,096 + 2 x 2,048 x 512, and routers of 2,048 x 128.
    found = model("qwen3-30b-a3b")
    experts = 48 * 8 * 3 * 2048 * 768
    dense = 48 * (2 * 2048 * 4096 + 2 * 2048 * 512 + 2048 * 128)
    assert found.flop_per_token == 2 * (experts + dense)
    pace = Pace(products=0.5, attention=1.0, experts=0.6, fixed=0.0, handling=0.0)
    seconds = 2 * (dense / 0.5 + experts / (0.5 * 0.6)) / PEAK
    assert found.flop_per_token / (found.products_peak(pace) * pace.products) == pytest.approx(seconds)


def test_a_short_prompt_reads_only_the_experts_that_it_visits():
    found = model("qwen3-30b-a3b")
    routed = 2 * 48 * 128 * 3 * 2048 * 768  # bytes of all experts
    # 4 tokens visit 1 - (1 - 8/128)^4 = 22.75 % of them
    missed = routed * (1 - 8 / 128) ** 4
    assert found.reads.all - found.reads.read(4.0) == pytest.approx(missed, rel=1e-9)


def test_sparse_attention_stops_growing_and_its_indexer_does_not():
    # DeepSeek-V3.2: 61 layers x 128 heads x (192 + 128) over at most 2,048 entries a token, and an indexer
    # of 64 heads x 128 that scores all of them.
    layers, n = range(61), 100_000
    components = [
        mla_component(layers, 512, 64, query_heads=128, qk_nope_head_dim=128, v_head_dim=128, top_k=2048),
        indexer_component(layers, heads=64, width=128),
    ]
    picked = 2048 * 2049 / 2 + (n - 2048) * 2048
    expected = 2 * 61 * (128 * 320 * picked + 64 * 128 * n * (n + 1) / 2)
    assert attention_work(components, float(n)) == pytest.approx(expected, rel=1e-12)


def test_arrays_answer_as_scalars_do():
    found = model(max_batched_tokens=4096)
    new, cached = np.array([1.0, 4096.0, 4097.0, 50_000.0]), np.array([0.0, 10.0, 0.0, 1000.0])
    each = [float(found.time(n, c)) for n, c in zip(new, cached, strict=True)]
    assert found.time(new, cached) == pytest.approx(each, rel=1e-12)
    assert found.time(np.array([0.0]), np.array([100.0])) == [0.0]


def test_a_range_in_gives_a_range_out():
    result = kvcalc.plan(
        "llama-3.1-8b", on="h100-sxm-80gb", prompt="32k", set={"prefill_efficiency": "0.45..0.65"}
    )
    fast, slow = result.prefill.range
    work = (result.prefill.time - outside(32_000)) * 0.55  # the middle of the range
    assert fast == pytest.approx(work / 0.65 + outside(32_000), rel=1e-9)
    assert slow == pytest.approx(work / 0.45 + outside(32_000), rel=1e-9)
    assert result.to_dict()["prefill"]["range"] == [fast, slow]


@pytest.mark.parametrize(
    ("share", "word"), [("0.45..0.65", "too_close"), ("0.45..0.46", "restore"), ("0.64..0.65", "recompute")]
)
def test_the_verdict_says_when_the_range_straddles_the_break_even(share, word):
    asked = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "prompt": "32k", "cached": 30_000}
    middle = kvcalc.plan(**asked, set={"prefill_efficiency": "0.55"}, tiers={"t": {"bandwidth": "9 GB/s"}})
    even = float(middle.offload[0].break_even_bandwidth)
    tiers = {"t": {"bandwidth": even}}
    (row,) = kvcalc.plan(**asked, set={"prefill_efficiency": share}, tiers=tiers).offload
    assert row.verdict == word
    if word == "too_close":
        assert "straddle the break-even" in row.reason


@pytest.mark.parametrize(
    "text", ["0.65..0.45", "0.4..", "..0.5", "0.1..0.2..0.3", "0.5..1.2", "a..b", "0..0.5"]
)
def test_a_range_that_is_none_is_refused_in_one_line(text):
    with pytest.raises(SettingsError, match=r"--set prefill_efficiency: ") as error:
        api.load_hardware("h100-sxm-80gb", {"prefill_efficiency": text})
    assert "\n" not in str(error.value)


def test_setting_the_share_of_a_prefill_sets_attention_too_unless_it_is_said_as_well():
    one = api.load_hardware("h100-sxm-80gb", {"prefill_efficiency": "0.5"})
    assert one.attention_efficiency is None
    both = api.load_hardware(
        "h100-sxm-80gb", {"prefill_efficiency": "0.5", "attention_efficiency": "0.2..0.4"}
    )
    assert both.attention_efficiency == Band(0.2, pytest.approx(0.3), 0.4)


# -- calibration -------------------------------------------------------------------------------------


def write(tmp_path, *rows, header="tokens,cached,seconds"):
    file = tmp_path / "points.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return str(file)


def by_hand(new, cached, products, attention, fixed):
    work = (2 * MATRICES * new + 2 * HEAD) / (products * PEAK)
    return work + attention_of_llama(new, cached) / (attention * PEAK) + fixed + HANDLING * (new + cached)


def test_three_lengths_give_both_efficiencies_and_the_fixed_cost(tmp_path):
    points = [(4096, 0), (16_384, 0), (65_536, 0), (2048, 60_000)]
    rows = [f"{n},{c},{by_hand(n, c, 0.4, 0.6, 0.05)}" for n, c in points]
    found = model(calibrate=write(tmp_path, *rows))
    middle = found.paces.middle
    assert (middle.products, middle.attention, middle.fixed) == pytest.approx((0.4, 0.6, 0.05), rel=1e-6)
    assert found.time(30_000.0, 1000.0) == pytest.approx(by_hand(30_000, 1000, 0.4, 0.6, 0.05), rel=1e-6)


def test_one_point_gives_the_level_alone(tmp_path):
    # twice as slow as the prior in all but taking in the tokens: both efficiencies halve
    prior = by_hand(8192, 0, 0.5, 0.25, FIXED) - HANDLING * 8192
    found = model(calibrate=write(tmp_path, f"8192,0,{2 * prior + HANDLING * 8192}"))
    assert found.paces.middle.products == pytest.approx(0.25)
    assert found.paces.middle.attention == pytest.approx(0.125)
    assert found.time(8192.0) == pytest.approx(2 * prior + HANDLING * 8192)


def test_many_points_of_one_length_say_no_more_than_the_level(tmp_path):
    found = model(calibrate=write(tmp_path, "8192,0,0.40", "8192,0,0.42", "8192,0,0.44"))
    assert "the level fitted" in found.calibration.told
    # least squares of the relative error: 1/t weights, so the harmonic and not the plain mean counts
    level = sum(1 / t for t in (0.40, 0.42, 0.44)) / sum(1 / t**2 for t in (0.40, 0.42, 0.44))
    assert found.time(8192.0) == pytest.approx(level, rel=1e-2)


def test_a_calibrated_plan_says_so_and_has_a_narrow_range(tmp_path):
    rows = [f"{n},0,{by_hand(n, 0, 0.45, 0.5, 0.02)}" for n in (4096, 16_384, 65_536)]
    file = write(tmp_path, *rows)
    result = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", prompt=16_384, calibrate=file)
    assert result.prefill.source == "calibrated"
    assert result.prefill.time == pytest.approx(by_hand(16_384, 0, 0.45, 0.5, 0.02), rel=1e-6)
    fast, slow = result.prefill.range
    # 5 % both ways on all but the time to take in the tokens
    counted_time = result.prefill.time - HANDLING * 16_384
    assert slow == pytest.approx(counted_time * 1.05 + HANDLING * 16_384, rel=1e-6)
    assert fast == pytest.approx(counted_time / 1.05 + HANDLING * 16_384, rel=1e-6)
    (told,) = [text for text in result.assumptions if "calibrated" in text]
    assert "3 points" in told
    assert "4,096 to 65,536 tokens" in told
    assert result.sources["prefill.time"].kind == "measured"
    assert result.inputs["calibrate"] == file
    assert result.to_dict()["inputs"]["calibrate"] == file


def test_points_that_scatter_widen_the_range(tmp_path):
    rows = [
        f"{n},0,{by_hand(n, 0, 0.45, 0.5, 0.02) * off}"
        for n, off in zip((4096, 8192, 16_384, 32_768, 65_536), (1.2, 0.85, 1.15, 0.9, 1.05), strict=True)
    ]
    found = model(calibrate=write(tmp_path, *rows))
    errors = np.array(found.calibration.errors)
    expected = 1.645 * np.sqrt(np.sum(errors**2) / 2)  # five points, three fitted numbers
    assert found.calibration.spread == pytest.approx(expected)
    assert found.calibration.spread > 0.1


def test_columns_may_stand_in_any_order_and_cached_may_be_left_out(tmp_path):
    first = model(calibrate=write(tmp_path, "0.5, 8192", "", header="seconds, tokens"))
    assert first.calibration.measured.points[0].tokens == 8192
    assert first.calibration.measured.points[0].cached == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: column tokens is not there"),
        ("tokens,cached,seconds\n", "no points"),
        ("tokens,chached,seconds\n1,0,1", "unknown column 'chached', did you mean 'cached'"),
        ("tokens,tokens,seconds\n1,0,1", "column tokens is twice there"),
        ("tokens,cached\n1,0", "column seconds is not there"),
        ("tokens,cached,seconds\n8192,0", "line 2: 2 values for 3 columns"),
        ("tokens,cached,seconds\n8k,0,1", "line 2: tokens: '8k' is not a whole number of 1 or more"),
        ("tokens,cached,seconds\n0,0,1", "line 2: tokens: '0'"),
        ("tokens,cached,seconds\n8192,-1,1", "line 2: cached: '-1'"),
        ("tokens,cached,seconds\n8192,0,0.2 s", "line 2: seconds: '0.2 s' is not a positive number"),
        ("tokens,cached,seconds\n\n8192,0,nan", "line 3: seconds: 'nan'"),
        ("tokens,cached,seconds\n8192,0,inf", "line 2: seconds: 'inf'"),
        ('tokens,cached,seconds\n"8192,0,1', "unexpected end of data"),
        ("tokens,cached,seconds\n32768,0,0.001", "was the prompt cached, or is it another machine"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_with_its_place(tmp_path, text, message):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises((ProfileError, SettingsError)) as error:
        kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", calibrate=str(file))
    assert message in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_and_two_ways_to_say_it_are_refused(tmp_path):
    with pytest.raises(KvcalcError, match=r"nowhere\.csv"):
        kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", calibrate=str(tmp_path / "nowhere.csv"))
    with pytest.raises(SettingsError, match="--calibrate and --prefill both"):
        kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", calibrate=write(tmp_path, "8192,0,1"), prefill="1 s")


def test_a_restore_uses_the_calibration_too(tmp_path):
    file = write(tmp_path, "16384,0,1.5")
    result = kvcalc.restore(
        model="llama-3.1-8b",
        on="h100-sxm-80gb",
        bandwidth="10 GB/s",
        prompt=16_384,
        cached=8192,
        calibrate=file,
    )
    assert result.rows[0].recompute == pytest.approx(1.5, rel=1e-6)
    assert result.sources["prefill"].kind == "measured"


def test_a_pace_never_passes_the_peak_and_a_range_is_ordered():
    paces = Paces.around(
        Pace(products=0.97, attention=0.5, experts=EXPERTS.mid, fixed=0.01, handling=1e-6), 0.1
    )
    assert (paces.fast.products, paces.fast.attention) == (1.0, pytest.approx(0.55))
    assert paces.slow.products < paces.middle.products < paces.fast.products
