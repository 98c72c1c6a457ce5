"""Many loads at once give what each of them gives alone."""

import numpy as np
import pandas as pd
import pytest

import kvcalc
from kvcalc.api import plan_batch
from kvcalc.errors import SettingsError
from kvcalc.planning.batch import CHUNK

LAUNCHES = [
    {"model": "llama-3.1-8b", "on": "h100-sxm-80gb"},
    {"model": "llama-3.1-70b", "on": "h100-sxm-80gb", "engine": "vllm", "tp": 4, "pp": 2, "dp": 2},
    {"model": "deepseek-v3", "on": "h200-sxm-141gb", "engine": "vllm", "tp": 8, "spec_tokens": 1},
    {"model": "gpt-oss-120b", "on": "h100-sxm-80gb", "engine": "sglang", "tp": 2, "rate": 0.5},
    {"model": "qwen3-next-80b-a3b", "on": "h200-sxm-141gb", "engine": "vllm", "tp": 2},
    {"model": "gemma-3-27b", "on": "rtx-4090", "engine": "llama.cpp", "weights_dtype": "int4"},
    {"model": "qwen3-32b", "on": "h100-sxm-80gb", "tp": 2, "draft": "qwen3-0.6b", "spec_tokens": 3},
    {"model": "llama-3.1-8b", "on": "l4", "lora": 4, "prefill_rate": 3000.0},
    {"model": "mamba-2.8b", "on": "a100-sxm-80gb", "prefill": 0.2},
    {"model": "llava-1.5-7b", "on": "l40s", "images": 2, "image_tokens": 576},
    {"model": "llama-3.1-70b", "on": "l4", "concurrency": 3},  # no room for KV
]


def rows(count, seed=11):
    draw = np.random.default_rng(seed)
    return (
        draw.integers(1, 40_000, count),
        draw.integers(1, 3_000, count),
        draw.integers(1, 200, count),
    )


@pytest.mark.parametrize(
    "launch", LAUNCHES, ids=lambda launch: f"{launch['model']} {launch.get('engine', '')}"
)
def test_each_row_is_the_plan_of_its_load(launch):
    said = {name: value for name, value in launch.items() if name != "concurrency"}
    prompt, generate, concurrency = rows(7)
    batch = plan_batch(**said, prompt=prompt, generate=generate, concurrency=concurrency)
    pictures = said.get("images", 0) * said.get("image_tokens", 0)
    longest = int((prompt + pictures + generate).max())
    for index in range(len(prompt)):
        load = {"prompt": prompt[index], "generate": generate[index], "concurrency": concurrency[index]}
        alone = kvcalc.plan(**said, **{k: int(v) for k, v in load.items()}, max_len=longest)
        numbers = {
            "kv_need": alone.capacity.need,
            "kv_utilization": alone.capacity.utilization,
            "kv_shortfall": alone.capacity.shortfall,
            "sessions": alone.capacity.sessions,
            "bandwidth_utilization": alone.bandwidth.utilization,
            "prefill_time": alone.prefill.time,
            "prefill_low": alone.prefill.range[0],
            "prefill_high": alone.prefill.range[1],
            "step_time": alone.decode.step_time,
            "step_low": alone.decode.range[0],
            "step_high": alone.decode.range[1],
            "tokens_per_second": alone.decode.tokens_per_second,
        }
        for name, value in numbers.items():
            assert getattr(batch, name)[index] == pytest.approx(value, rel=1e-9), name
        assert batch.memory == alone.memory
        assert batch.first_limit[index] == alone.first_limit
        assert batch.bound[index] == alone.decode.bound
        assert batch.fits[index] == alone.fits
        assert batch.reason[index] == ""


def test_chunks_leave_no_seam():
    loads = dict(zip(("prompt", "generate", "concurrency"), rows(CHUNK + 3), strict=True))
    whole = plan_batch("llama-3.1-8b", on="h100-sxm-80gb", max_len=50_000, **loads)
    tail = {name: values[-5:] for name, values in loads.items()}
    end = plan_batch("llama-3.1-8b", on="h100-sxm-80gb", max_len=50_000, **tail)
    assert len(whole) == CHUNK + 3
    for name in ("kv_need", "step_time", "prefill_time", "sessions"):
        assert (getattr(whole, name)[-5:] == getattr(end, name)).all()


def test_a_bad_row_says_why_and_hides_no_other():
    prompt = np.array([4000.0, 0.0, 4000.5, np.nan, 4000.0])
    batch = plan_batch("llama-3.1-8b", on="h100-sxm-80gb", prompt=prompt)
    assert [bool(text) for text in batch.reason] == [False, True, True, True, False]
    assert np.isnan(batch.step_time).tolist() == [False, True, True, True, False]
    assert batch.fits.tolist() == [True, False, False, False, True]
    assert batch.first_limit.tolist()[1] == ""
    assert batch.step_time[0] == batch.step_time[4]
    assert batch.columns()["reason"][1].startswith("prompt must be")


def test_one_load_may_be_text_and_meet_arrays_of_others():
    batch = plan_batch("llama-3.1-8b", on="h100-sxm-80gb", prompt="4Ki", concurrency=[1, 2, 3])
    assert batch.kv_need.tolist() == [n * (4096 + 512) * 131072 for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"hit": 0.5}, "no restore"),
        ({"tiers": {"dram": {"bandwidth": "50 GB/s"}}}, "tiers.dram"),
        ({"gpu_layers": 10, "engine": "llama.cpp"}, "--gpu-layers"),
        ({"prompt": [1, 2], "concurrency": [1, 2, 3]}, "prompt"),
        ({"prompt": ["many", "few"]}, "prompt"),
    ],
)
def test_what_a_batch_cannot_answer_is_refused(said, says):
    with pytest.raises(SettingsError) as caught:
        plan_batch("llama-3.1-8b", on="h100-sxm-80gb", **said)
    assert says in str(caught.value)


def several_launches():
    prompt, generate, concurrency = rows(24, seed=5)
    return pd.DataFrame(
        {
            "model": ["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b"] * 8,
            "on": ["h100-sxm-80gb", "h200-sxm-141gb", "h100-sxm-80gb"] * 8,
            "tp": [1, 8, 2] * 8,
            "pp": [1, 1, 2] * 8,
            "engine": ["vllm", "vllm", "sglang"] * 8,
            "pool": [8e9, np.nan, np.nan] * 8,
            "prompt": prompt,
            "generate": generate,
            "concurrency": concurrency * 4,
        },
        index=[f"row {i}" for i in range(24)],
    )


@pytest.mark.parametrize("offload", [False, True])
def test_a_frame_of_several_launches_answers_each_row_as_a_plan(offload):
    frame = several_launches().iloc[: 6 if offload else None]
    together = kvcalc.plan_frame(frame, offload=offload)
    assert list(together.index) == list(frame.index)
    for name, row in frame.iterrows():
        said = {key: value for key, value in row.items() if value == value}
        alone = kvcalc.plan(**{k: v.item() if hasattr(v, "item") else v for k, v in said.items()})
        found = together.loc[name]
        assert found["fits"] == alone.fits
        assert found["first_limit"] == alone.first_limit
        numbers = {
            "sessions": alone.capacity.sessions,
            "kv_bytes_per_token": alone.kv.bytes_per_token,
            "kv_need": alone.capacity.need,
            "kv_pool": alone.memory.kv_pool,
            "weights": alone.memory.weights,
            "tokens_per_second": alone.decode.tokens_per_second,
            "prefill_time": alone.prefill.time,
        }
        for column, value in numbers.items():
            assert found[column] == pytest.approx(value, rel=1e-9), column
        if offload:
            best = max(alone.offload, key=lambda tier: tier.speedup)
            assert found["offload_verdict"] == best.verdict
    assert together["reason"].isna().all()


@pytest.mark.parametrize("offload", [False, True])
def test_a_bad_row_of_a_frame_says_what_plan_says(offload):
    frame = pd.DataFrame(
        {
            "model": ["llama-3.1-8b", "llama-3.1-8b", "lama", "lama"],
            "on": "h100-sxm-80gb",
            "prompt": [4000, 0, 4000, 4000],
        }
    )
    answer = kvcalc.plan_frame(frame, offload=offload)
    assert answer["fits"].tolist()[0] is True
    assert "1 or more" in answer["reason"].tolist()[1]
    assert "lama" in answer["reason"].tolist()[2]
    assert answer["reason"].isna().tolist() == [True, False, False, False]


@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize("columns", [[], ["model", "on", "prompt"]])
def test_a_frame_without_rows_has_an_answer_without_rows(offload, columns):
    answer = kvcalc.plan_frame(pd.DataFrame({name: [] for name in columns}), offload=offload)
    assert len(answer) == 0
    assert {"fits", "sessions", "reason"} <= set(answer.columns)
    assert ("offload_verdict" in answer.columns) == offload


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"on": ["l40s", "l4"], "prompt": [1000, 2000]}),
        pd.DataFrame({"model": [None, np.nan], "on": "l40s"}),
        pd.DataFrame({"model": [None, None], "on": "l40s", "prompt": ["1k", "2k"]}),
    ],
)
def test_a_row_without_a_model_says_so(frame):
    assert [reason.partition(";")[0] for reason in kvcalc.plan_frame(frame)["reason"]] == [
        "model: missing"
    ] * 2


def test_columns_of_a_frame_are_those_of_a_sweep_under_shorter_names():
    """The names that the documentation of `plan_frame` gives for the columns of a sweep."""
    names = {
        "sessions": "capacity.sessions",
        "kv_bytes_per_token": "kv.bytes_per_token",
        "kv_need": "capacity.need",
        "kv_pool": "memory.kv_pool",
        "weights": "memory.weights",
        "tokens_per_second": "decode.tokens_per_second",
        "prefill_time": "prefill.time",
        "offload_verdict": "offload.verdict",
        "break_even_bandwidth": "offload.break_even_bandwidth",
        "offload_adds_nothing": "offload.adds_nothing",
        "fits": "fits",
        "first_limit": "first_limit",
    }
    asked = {"model": "llama-3.1-8b", "on": "l40s", "hit": 0.5}
    frame = kvcalc.plan_frame(pd.DataFrame({name: [value] for name, value in asked.items()}))
    (row,) = kvcalc.sweep(**asked, vary={"concurrency": [1]}).rows
    assert set(frame.columns) == {*names, "reason"}
    for short, name in names.items():
        assert name in (kvcalc.plan_frame.__doc__ or "")
        assert frame[short].iloc[0] == row[name], short


def test_texts_with_units_and_a_launch_that_depends_on_its_length_are_answered_too():
    # vLLM 0.6 prefills a prompt whole, so that the longest length changes what it keeps for a step
    frame = pd.DataFrame(
        {
            "model": "llama-3.1-8b",
            "on": "h100-sxm-80gb",
            "engine": "vllm",
            "engine_version": "0.6.0",
            "prompt": [1000, 20_000, 30_000, 20_000],
            "generate": 100,
        }
    )
    numbers = kvcalc.plan_frame(frame, offload=False)
    assert len(set(numbers["kv_pool"])) == 3  # one for each length
    assert numbers["kv_pool"].iloc[1] == numbers["kv_pool"].iloc[3]
    texts = kvcalc.plan_frame(frame.assign(prompt=["1k", "20k", "30k", "20k"]), offload=False)
    pd.testing.assert_frame_equal(numbers, texts)


def test_a_frame_judges_tiers_together_as_each_plan_does():
    prompt, generate, concurrency = rows(12, seed=8)
    frame = pd.DataFrame(
        {
            "model": ["llama-3.1-70b", "llama-3.1-8b"] * 6,
            "on": "h100-sxm-80gb",
            "tp": [4, 1] * 6,
            "engine": "vllm",
            "hit": [0.6, np.nan, 0.6, 0.0] * 3,
            "rate": [2.0, np.nan] * 6,
            "prompt": prompt,
            "generate": generate,
            "concurrency": concurrency,
            "tiers": [{"dram": {"bandwidth": 54e9}, "nvme": {"bandwidth": 6e9}}] * 12,
        }
    )
    together = kvcalc.plan_frame(frame)
    modes = set()
    for index, row in frame.iterrows():
        said = {key: value for key, value in row.items() if value == value}
        plan = kvcalc.plan(**{k: v.item() if hasattr(v, "item") else v for k, v in said.items()})
        best = max(plan.offload, key=lambda tier: tier.speedup, default=None)
        modes.add(best and best.mode)
        found = together.loc[index]
        assert found["offload_verdict"] == (best.verdict if best else None)
        point = best.break_even_bandwidth if best else None
        assert np.isnan(found["break_even_bandwidth"]) if point is None else True
        if point is not None:
            assert found["break_even_bandwidth"] == pytest.approx(point, rel=1e-9)
    assert modes >= {"prefix_store", "active_working_set"}
