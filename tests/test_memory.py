"""What is left for KV, by hand arithmetic on each engine's rule."""

from dataclasses import replace

import pytest

from kvcalc.api import load_hardware, load_model
from kvcalc.engines import EngineSettings
from kvcalc.engines.overheads import (
    DRIVER_RESERVE,
    GRAPHS,
    NON_TORCH,
    OVERHEADS,
    TP_NVLINK,
    TP_PCIE,
    V0_LOGIT,
    V1_LOGIT,
    overhead,
)
from kvcalc.errors import SettingsError
from kvcalc.formulas.memory import activation_bytes, logits_bytes, static_share
from kvcalc.planning.plan import answer
from kvcalc.scenario import Overrides, Scenario

MIB, GIB = 2**20, 2**30
LLAMA = 2 * 8_030_261_248  # weights of Llama 3.1 8B in bf16 [byte]


def plan(on, overrides=None, model="llama-3.1-8b", **settings):
    settings = EngineSettings(**settings)
    ranks = settings.tp * settings.pp * settings.dp
    hardware = load_hardware(on)
    return answer(Scenario(load_model(model), hardware, ranks, settings, overrides=overrides or Overrides()))


def memory(on, overrides=None, model="llama-3.1-8b", **settings):
    return plan(on, overrides, model, **settings).memory


def test_the_experts_of_one_layer_by_hand():
    # per token 4 x 6 residual values, then 2 experts of width 5 cut in half: max(2 x 10 / 2, 2 x 6) + 10 / 2
    assert activation_bytes(3, 6, 10, 2, tp=2, experts=2) == 3 * 2 * (24 + 12 + 5)


def test_a_sampler_that_sorts_holds_more_than_two_copies():
    assert logits_bytes(256, 128256) == 6 * 256 * 128256
    assert logits_bytes(256, 128256, 30) == 30 * 256 * 128256


def test_sglang_leaves_ten_gib_on_a_large_card_and_its_sum_on_a_small_one():
    # 512 + 1.5 x 2048 + 2 x 24 + 128 = 3,760 MiB of 24,576
    assert static_share(24576 * MIB, 2048, 24) == pytest.approx(1 - 3760 / 24576, rel=1e-12)
    # 512 + 1.5 x 2048 + 2 x 8 + 128 is less than 10 GiB, which a card above 60 GiB keeps at least
    assert static_share(81559 * MIB, 2048, 8) == pytest.approx(1 - 10240 / 81559, rel=1e-12)


def test_a_v1_card_of_24_gb_samples_256_sequences():
    # the logits, 30 x 256 x 128,256, are larger than the activations of 2,048 tokens
    found = memory("a10g", engine="vllm", version="0.9.2")
    logits = V1_LOGIT * 256 * 128256
    assert found.activations == logits
    assert found.kv_pool == pytest.approx(
        0.9 * (23028 * MIB - DRIVER_RESERVE) - LLAMA - logits - NON_TORCH, rel=1e-12
    )


def test_v0_runs_a_context_of_20000_tokens_in_one_step():
    # 20,000 tokens x 2 bytes x (4 x 4,096 + 3 x 14,336)
    found = memory("rtx-3090", engine="vllm", version="0.6.6", max_len=20000)
    assert found.activations == 20000 * 2 * (4 * 4096 + 3 * 14336)


def test_v0_chunks_what_is_longer_than_32k():
    found = memory("rtx-3090", engine="vllm", version="0.6.6", max_len=45000)
    assert found.activations == V0_LOGIT * 256 * 128256


@pytest.mark.parametrize(
    ("version", "on", "batch"),
    [
        ("0.6.6", "h100-sxm-80gb", (2048, 256)),
        ("0.8.5", "a100-sxm-80gb", (8192, 1024)),
        ("0.9.2", "a100-sxm-80gb", (2048, 256)),
        ("0.9.2", "h100-sxm-80gb", (8192, 1024)),
        ("0.27.0", "b200-sxm-180gb", (8192, 1024)),
        ("0.28.0", "b200-sxm-180gb", (16384, 1024)),
        ("0.28.0", "a10g", (2048, 256)),
    ],
)
def test_the_default_batch_follows_version_and_card(version, on, batch):
    hardware = load_hardware(on)
    found = overhead(EngineSettings(engine="vllm", version=version)).batch(
        hardware.device.capacity, hardware.name
    )
    assert (found.tokens, found.sequences) == batch


def test_graphs_are_set_aside_since_0_21_and_utilization_rose_with_0_20():
    kept = {v: overhead(EngineSettings(engine="vllm", version=v)) for v in ("0.19.1", "0.20.0", "0.21.0")}
    assert [found.graphs for found in kept.values()] == [0, 0, GRAPHS]
    assert [found.utilization for found in kept.values()] == [0.90, 0.92, 0.92]


def test_ranks_keep_buffers_larger_ones_over_nvlink():
    def beside(on):
        found = memory(on, engine="vllm", version="0.15.0", tp=2)
        budget = 0.9 * (load_hardware(on).device.capacity - DRIVER_RESERVE)
        return budget - found.weights - found.activations - found.kv_pool

    assert beside("h100-sxm-80gb") == pytest.approx(NON_TORCH + TP_NVLINK)
    assert beside("rtx-4090") == pytest.approx(NON_TORCH + TP_PCIE)


def test_sglang_counts_from_what_was_free_before_loading():
    # free before: 81,559 - 512 (driver) - 512 (context) MiB; 13,440 MiB of 81,559 are left out
    found = memory("h100-sxm-80gb", engine="sglang")
    free = (81559 - 512 - 512) * MIB
    assert found.kv_pool == pytest.approx((1 - 13440 / 81559) * free - LLAMA, rel=1e-12)


def test_llama_cpp_holds_the_logits_of_one_ubatch():
    # 512 x 128,256 fp32 logits = 250.5 MiB; llama.cpp prints a compute buffer of 258.5 MiB for this model
    found = memory("rtx-3090", engine="llama.cpp", ubatch=512)
    assert found.activations == 4 * 512 * 128256


def test_memory_shared_with_the_host_hides_nothing():
    capacity = load_hardware("gb10").device.capacity
    found = memory("gb10", engine="vllm", version="0.15.0")
    assert found.kv_pool == pytest.approx(
        0.9 * capacity - found.weights - found.activations - NON_TORCH, rel=1e-12
    )


@pytest.mark.parametrize("engine", OVERHEADS)
@pytest.mark.parametrize("on", ["t4", "rtx-3090", "h100-sxm-80gb", "gb10"])
def test_the_parts_add_up_to_what_the_driver_reports(engine, on):
    found = memory(on, engine=engine)
    assert found.total == load_hardware(on).device.capacity
    assert found.weights + found.activations + found.other + found.kv_pool == pytest.approx(found.total)


def test_a_given_batch_replaces_the_default():
    found = memory("h100-sxm-80gb", engine="vllm", max_batched_tokens=32768, max_seqs=1)
    assert found.activations == 32768 * 2 * (4 * 4096 + 3 * 14336)


def test_the_plan_says_how_far_the_model_has_been_off():
    assumed = " ".join(plan("h100-sxm-80gb", engine="vllm").assumptions)
    assert "median error" in assumed
    assert "worst" in assumed


def test_a_pool_that_leaves_no_room_for_activations_is_warned_of():
    warned = plan("rtx-3090", replace(Overrides(), utilization=0.999), engine="sglang").warnings
    assert any("will not fit beside the pool" in text for text in warned)


def test_other_is_what_the_driver_and_the_engine_take_and_the_share_left_unused():
    found = memory("h100-sxm-80gb", engine="vllm", version="0.21.0")  # utilization 0.92
    visible = load_hardware("h100-sxm-80gb").device.capacity - DRIVER_RESERVE
    assert found.unused == pytest.approx((1 - 0.92) * visible)
    assert found.other == pytest.approx(found.unused + DRIVER_RESERVE + NON_TORCH + GRAPHS)


def test_what_does_not_fit_keeps_its_size_and_the_rest_tells_what_is_missing():
    roomy, tight = memory("h200-sxm-141gb", model="llama-3.1-70b"), plan("l4", model="llama-3.1-70b")
    found = tight.memory
    assert (found.kv_pool, found.unused) == (0, 0)
    assert (found.weights, found.activations) == (roomy.weights, roomy.activations)
    assert found.other == pytest.approx(found.total - found.weights - found.activations)
    assert found.other < 0
    short = found.weights + found.activations + NON_TORCH + GRAPHS - 0.9 * (found.total - DRIVER_RESERVE)
    assert any(f"by {short / 1e9:.1f} GB" in text for text in tight.warnings)


def test_a_given_pool_changes_neither_weights_nor_activations():
    derived = memory("h100-sxm-80gb")
    given = plan("h100-sxm-80gb", Overrides(pool=75e9))
    assert (given.memory.weights, given.memory.activations) == (derived.weights, derived.activations)
    assert given.memory.other == pytest.approx(given.memory.total - 75e9 - LLAMA - derived.activations)
    assert given.memory.other < 0
    assert any("together exceed" in text for text in given.warnings)


def test_a_dense_model_has_no_experts_to_spread():
    with pytest.raises(SettingsError, match=r"--ep: llama-3.1-8b has no experts to spread; valid is 1"):
        memory("h100-sxm-80gb", engine="sglang", tp=2, ep=2)
    assert memory("h200-sxm-141gb", model="gpt-oss-120b", engine="sglang", tp=2, ep=2).weights > 0
