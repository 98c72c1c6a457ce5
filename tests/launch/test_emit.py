"""What `--emit` writes passes `--check-config`, and is the plan that it was written from."""

import pytest

from kvcalc.api import question_of
from kvcalc.errors import SettingsError
from kvcalc.launch import parse_launch
from kvcalc.launch.emitters import TARGETS
from kvcalc.launch.planning import emitted, plan_launch

DRAM = {"dram": {"capacity": "400 GB", "bandwidth": "50 GB/s"}}

# One row: model, machine, and what is asked beside; llama.cpp divides by layers and takes no tp.
PLANS = {
    "8B on one GPU": ("llama-3.1-8b", "h100-sxm-80gb", {"prompt": "16k", "concurrency": 8}),
    "70B on four": ("llama-3.1-70b", "h100-sxm-80gb", {"tp": 4, "prompt": "8k", "concurrency": 16}),
    "two replicas": ("llama-3.1-8b", "h100-sxm-80gb", {"gpus": 4, "dp": 2, "concurrency": 32}),
    "fp8 and a window": ("gpt-oss-120b", "h100-sxm-80gb", {"tp": 2, "kv_dtype": "fp8", "prompt": "32k"}),
    "a latent": ("deepseek-v3", "h200-sxm-141gb", {"tp": 8, "prompt": "32k", "concurrency": 4}),
    "a short prompt": ("qwen2.5-7b", "h100-sxm-80gb", {"prompt": 100, "generate": 10}),
    "a pool in bytes": ("llama-3.1-8b", "h100-sxm-80gb", {"pool": "20 GB", "prompt": "4k"}),
    "a step of 4,096": ("llama-3.1-8b", "h100-sxm-80gb", {"max_batched_tokens": 4096, "prompt": "4k"}),
}
GPU_ENGINES = ("vllm", "lmcache", "sglang")


@pytest.mark.parametrize("target", GPU_ENGINES)
@pytest.mark.parametrize("name", PLANS)
def test_what_is_written_passes_the_check(name, target):
    model, machine, said = PLANS[name]
    asked = question_of(model, machine, tiers=DRAM, **said)
    text = emitted(asked, target)
    launch = parse_launch(text, "launch.sh")
    load = {key: said[key] for key in ("prompt", "generate", "concurrency") if key in said}
    if "pool" in said and target == "sglang":
        load["pool"] = said["pool"]  # SGLang takes no pool in bytes, and the launch says so
    result, _ = plan_launch(question_of(model, machine, **load), launch)
    assert [item for item in result.config_checks if item.severity == "error"] == []
    assert [
        item for item in result.config_checks if item.id in ("not-checked", "misspelt", "said-twice")
    ] == []


@pytest.mark.parametrize("target", GPU_ENGINES)
@pytest.mark.parametrize("name", PLANS)
def test_the_plan_of_what_is_written_is_the_plan_that_was_asked(name, target):
    model, machine, said = PLANS[name]
    engine = TARGETS[target]
    # The most sequences at once decide the memory of a step, and LMCache's connector turns the manager off.
    more = {"max_seqs": 64} | ({"hybrid_manager": False} if target == "lmcache" else {})
    asked = question_of(model, machine, engine=engine, tiers=DRAM, **said, **more)
    load = {key: said[key] for key in ("prompt", "generate", "concurrency") if key in said}
    if "pool" in said and target == "sglang":
        load["pool"] = said["pool"]  # SGLang takes no pool in bytes, so it is said beside the launch
    written, _ = plan_launch(
        question_of(model, machine, **load), parse_launch(emitted(asked, target), "launch.sh")
    )
    original, _ = plan_launch(asked, parse_launch(f"{PROGRAMS[engine]}", "launch.sh"))
    assert written.memory == original.memory
    assert written.kv == original.kv
    for key in ("tp", "pp", "dp", "max_len", "max_seqs"):
        assert written.inputs[key] == original.inputs[key]


PROGRAMS = {"vllm": "vllm serve m", "sglang": "python -m sglang.launch_server"}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("llama-3.1-8b", {"prompt": "4k", "concurrency": 4}),
        ("llama-3.1-8b", {"prompt": "4k", "k_type": "q8_0", "v_type": "q8_0"}),
        ("gemma-3-27b", {"prompt": "4k", "pp": 2, "swa_full": True}),
    ],
)
def test_llama_cpp(model, said):
    text = emitted(question_of(model, "h100-sxm-80gb", tiers=DRAM, **said), "llama.cpp")
    load = {key: said[key] for key in ("prompt", "concurrency", "pp") if key in said}
    launch = parse_launch(text, "launch.sh")
    result, _ = plan_launch(question_of(model, "h100-sxm-80gb", **load), launch)
    assert [item for item in result.config_checks if item.severity != "info"] == []
    assert launch.value("context") == (4000 + 512) * said.get("concurrency", 1)


def test_sizes_are_in_the_units_of_each_engine():
    # 400 GB for one replica of 4 ranks: 372.5 GiB in all, 93.1 GiB or 100 GB a rank
    asked = question_of("llama-3.1-70b", "h100-sxm-80gb", tp=4, prompt="8k", tiers=DRAM)
    assert "--kv-offloading-size 372" in emitted(asked, "vllm")
    assert "max_local_cpu_size: 93.1\n" in emitted(asked, "lmcache")
    assert "--hicache-size 100" in emitted(asked, "sglang")


def test_replicas_share_the_host():
    asked = question_of("llama-3.1-8b", "h100-sxm-80gb", gpus=2, dp=2, tiers=DRAM)
    assert "--kv-offloading-size 186" in emitted(asked, "vllm")  # half of 372.5 GiB


def test_a_chunk_is_no_longer_than_the_prefix():
    asked = question_of("llama-3.1-8b", "h100-sxm-80gb", prompt=100, tiers=DRAM)
    assert "chunk_size: 96\n" in emitted(asked, "lmcache")  # six blocks of 16


def test_no_more_sequences_than_fit_are_admitted():
    # 10 GiB hold 81,920 tokens: 19 sequences of 4,112 and not 64
    asked = question_of(
        "llama-3.1-8b", "h100-sxm-80gb", pool="10 GiB", prompt=4096, generate=16, concurrency=64
    )
    text = emitted(asked, "vllm")
    assert "--max-num-seqs 19" in text
    assert "# The load does not fit: 19 of 64 sequences at once" in text


def test_what_differs_between_versions_is_said():
    text = emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", tiers=DRAM), "vllm")
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert any("0.90 before vLLM 0.20" in line for line in comments)
    assert any("0.11 to 0.13 also need --kv-offloading-backend native" in line for line in comments)


def test_a_tier_that_is_no_host_memory_is_not_written_as_one():
    disk = {"nvme": {"capacity": "4 TB", "bandwidth": "7 GB/s"}}
    text = emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", tiers=disk), "vllm")
    assert "--kv-offloading-size " not in text.replace("# ", "")
    assert "# Tier nvme is not written" in text


@pytest.mark.parametrize(
    ("said", "target", "message"),
    [
        ({}, "vlm", "did you mean 'vllm'"),
        ({}, "lmcache", "--emit lmcache: name the host memory"),
        ({"engine": "sglang"}, "vllm", "sglang is planned, and --emit vllm needs vllm"),
        ({"pool": "1 MB"}, "vllm", "not one sequence fits"),
        ({"prompt": 10, "tiers": DRAM}, "lmcache", "a prefix of 10 tokens fills no block of 16"),
    ],
)
def test_what_cannot_be_written_is_refused(said, target, message):
    with pytest.raises(SettingsError, match=message):
        emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", **said), target)


def test_a_model_with_states_is_not_given_to_lmcache():
    with pytest.raises(SettingsError, match="recurrent states beside attention"):
        emitted(question_of("bamba-9b", "h100-sxm-80gb", tiers=DRAM), "lmcache")


def test_no_tier_is_written_that_never_hits():
    text = emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", prompt=10, tiers=DRAM), "vllm")
    assert "--kv-offloading-size" not in text
    assert "# No tier: a prefix of 10 tokens fills no block of 16" in text


def stored(store, **said):
    tiers = {"dram": {**DRAM["dram"], "store": store}}
    return question_of("llama-3.1-8b", "h100-sxm-80gb", prompt="16k", tiers=tiers, **said)


@pytest.mark.parametrize(
    ("store", "policy"),
    [
        ("write_through", "write_through"),
        ("selective", "write_through_selective"),
        ("write_back", "write_back"),
    ],
)
def test_sglang_stores_as_the_tier_was_planned(store, policy):
    text = emitted(stored(store), "sglang")
    assert f"--hicache-write-policy {policy}\n" in text + "\n"
    result, _ = plan_launch(question_of("llama-3.1-8b", "h100-sxm-80gb"), parse_launch(text, "launch.sh"))
    assert result.inputs["tiers"]["dram"].get("store", "write_through") == store


def test_vllm_stores_at_the_second_lookup_where_the_tier_is_selective():
    launch = parse_launch(emitted(stored("selective"), "vllm"), "launch.sh")
    assert launch.value("connector") == "OffloadingConnector"
    assert launch.value("store_threshold") == 2  # seen again, as Strata's and HiCache's threshold
    assert launch.field("host_bytes").bytes == 400e9  # GB, and no GiB
    result, _ = plan_launch(question_of("llama-3.1-8b", "h100-sxm-80gb", prompt="16k"), launch)
    assert [item for item in result.config_checks if item.severity == "error"] == []
    assert result.inputs["tiers"]["dram"]["store"] == "selective"


@pytest.mark.parametrize(
    ("store", "target", "said"),
    [
        ("selective", "vllm", {"engine_version": "0.17.0"}),  # store_threshold came with 0.18
        ("write_back", "vllm", {}),
        ("selective", "lmcache", {}),
        ("write_back", "lmcache", {}),
        ("selective", "llama.cpp", {}),
    ],
)
def test_a_policy_that_cannot_be_written_is_told(store, target, said):
    text = emitted(stored(store, **said), target)
    assert f"# Tier dram: store={store} is not written" in text
    assert "store_threshold" not in text


@pytest.mark.parametrize("target", TARGETS)
def test_a_handover_to_decode_workers_is_told_to_be_left_out(target):
    said = {"prompt": "16k", "tiers": DRAM}
    text = emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", disaggregate="25 GB/s", **said), target)
    assert "# --disaggregate 25 GB/s is not written: this is one server that prefills and decodes" in text
    assert "disaggregate" not in emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", **said), target)


@pytest.mark.parametrize(("said", "taken"), [({}, "the one worker"), ({"tp": 2}, "each of 2 workers")])
def test_who_takes_the_memory_of_lmcache_is_said_in_the_right_number(said, taken):
    text = emitted(question_of("llama-3.1-8b", "h100-sxm-80gb", tiers=DRAM, **said), "lmcache")
    assert f"it is taken by {taken}\n" in text
