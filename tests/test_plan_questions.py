"""Questions to a plan: which are refused, and what is the same however it is asked."""

import json
import math

import pytest

import kvcalc
from kvcalc.errors import KvcalcError, SettingsError

GB = 1e9


def test_every_figure_of_a_plan_is_finite_or_absent_in_json():
    body = kvcalc.plan("llama-3.1-70b", on="l4").to_dict()
    text = json.dumps(body, allow_nan=False)
    assert "NaN" not in text


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"tp": 3}, "1, 2, 4, 8"),
        ({"gpus": 4, "tp": 3}, "tp*pp*dp"),
        ({"cached": 5000, "prompt": 4000}, "more than the prompt"),
        ({"cached": 10, "hit": 0.5}, "give one of them"),
        ({"pool": "200 GB"}, "more than the"),
        ({"prefill": "1 s", "prefill_rate": "5000 token/s"}, "both say how fast"),
        ({"tiers": {"dram": "512 GB@54 GB/s"}}, "tiers.dram: expected values by name"),
        ({"num_blocks": 10}, "generic has no blocks"),
        ({"tiers": ["dram"]}, "tiers: expected values by name"),
        ({"set": "device.power=1 W"}, "set: expected values by name"),
        ({"utilization": 1.5}, "at most 1"),
        ({"engine": "vlm"}, "vllm"),
        ({"kv_dtype": "fp9"}, "fp8"),
        ({"concurrency": 0}, "1 or more"),
        ({"prompt": "32K"}, "ambiguous"),
        ({"promt": 4}, "prompt"),
        ({"set": {"host_to_device.bandwith": "20 GB/s"}}, "host_to_device.bandwidth"),
    ],
)
def test_bad_questions_are_refused_in_one_line(said, says):
    with pytest.raises(KvcalcError) as caught:
        kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", **said)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_machine_is_asked_for():
    with pytest.raises(SettingsError, match="--on"):
        kvcalc.plan("llama-3.1-8b")


def test_numbers_in_base_units_and_texts_mean_the_same():
    texts = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", pool="20 GB", prefill="100 ms", prompt="4k")
    numbers = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", pool=20e9, prefill=0.1, prompt=4000)
    assert texts.to_dict() == numbers.to_dict()


def test_a_set_value_is_used_and_quoted_as_assumed():
    result = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", set={"host_to_device.bandwidth": "20 GB/s"})
    assert result.offload[0].bandwidth == 20 * GB
    assert result.sources["host_to_device.bandwidth"].as_printed == "20 GB/s"


def test_unified_memory_has_no_host_tier():
    unified = [name for name in ("gb10", "dgx-spark", "strix-halo") if name in _names()]
    result = kvcalc.plan("llama-3.1-8b", on=unified[0])
    assert result.offload == ()
    assert any("shares its memory" in warning for warning in result.warnings)


def _names():
    from kvcalc.catalog.hardware import names

    return names()


def test_a_mixture_reads_only_the_experts_that_the_batch_visits():
    one = kvcalc.plan("mixtral-8x7b-v0.1", on="h200-sxm-141gb", concurrency=1, prompt=100, generate=10)
    many = kvcalc.plan("mixtral-8x7b-v0.1", on="h200-sxm-141gb", concurrency=64, prompt=100, generate=10)
    # two of eight experts: a quarter of the routed weights for one sequence, all of them for 64
    assert one.decode.step_time < 0.5 * many.decode.step_time


def test_plan_frame_answers_row_by_row():
    pd = pytest.importorskip("pandas", reason="pandas is a test extra")
    frame = pd.DataFrame(
        {
            "model": ["llama-3.1-8b", "llama-3.1-8b", "nonsense"],
            "on": ["h100-sxm-80gb"] * 3,
            "concurrency": [8, math.nan, 8],
        },
        index=["a", "b", "c"],
    )
    sheet = kvcalc.plan_frame(frame)
    assert list(sheet.index) == ["a", "b", "c"]
    assert sheet.loc["a", "fits"]
    assert sheet.loc["a", "kv_bytes_per_token"] == 131072
    assert "nonsense" in sheet.loc["c", "reason"]


def test_the_break_even_curve_falls_as_attention_makes_prefixes_dear():
    result = kvcalc.restore(
        model="llama-3.1-8b", on="h100-sxm-80gb", prompt=10000, cached=9984, setup="12 ms", prefill_rate=30000
    )
    # at a constant rate the time saved is the prefix over the rate: c / 30,000 s
    for point in result.curve:
        saved = point.cached / 30000 - 0.012
        if saved > 0:
            assert point.break_even_bandwidth == pytest.approx(point.cached * 131072 / saved)
        else:
            assert point.break_even_bandwidth is None
    rates = [point.break_even_bandwidth for point in result.curve if point.break_even_bandwidth]
    assert rates == sorted(rates, reverse=True)
