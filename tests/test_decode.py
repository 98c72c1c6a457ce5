"""Decode by hand arithmetic: what a step reads and computes, and what drafts, adapters and hosts add."""

import math
from dataclasses import replace

import numpy as np
import pytest

import kvcalc
from kvcalc.api import load_hardware, load_model, question_of, scenario
from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.planning.decode import DecodeModel, mean_context
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.plan import Plan
from kvcalc.planning.reads import absorbed, weight_reads
from kvcalc.planning.speed import speed_of
from kvcalc.planning.work import attention_work
from kvcalc.profiles import Band

GB = 1e9
EMBEDDING = 128256 * 4096 * 2  # of Llama 3.1 8B [byte]
LAYER = 218_112_000  # parameters of one of its 32 layers, with two norms of 4,096
MATRICES = 32 * (LAYER - 2 * 4096)


def asked(model="llama-3.1-8b", on="h100-sxm-80gb", **said):
    """A scenario whose efficiencies are exact, so that expected values follow by hand."""
    found = scenario(question_of(model, on, **said))
    exact = replace(
        found.hardware, prefill_efficiency=Band(0.5, 0.5, 0.5), decode_efficiency=Band(0.8, 0.8, 0.8)
    )
    return replace(found, hardware=exact)


def planned(*names, **said):
    return Plan(asked(*names, **said)).answer()[0]


def decode_model(*names, **said) -> DecodeModel:
    found = asked(*names, **said)
    layout = lay_out(found.model.shape, found.settings)
    return speed_of(found, layout, Notebook()).decode


def test_compute_takes_over_where_both_times_are_equal():
    # W / B = b (f / C - k / B), with the KV of 1,100 tokens and attention over the next one
    read = 0.8 * 3.35e12
    rate = 0.5 * 989e12
    weights = 2 * (32 * LAYER + 4096 + 128256 * 4096)
    flops = 2 * (MATRICES + 128256 * 4096) + 2 * 32 * 32 * 256 * 1101
    by_hand = weights / read / (flops / rate - 1100 * 131072 / read)
    assert by_hand < 0  # the KV of this context alone takes longer to read than its operations
    long = planned(prompt=1000, generate=200)
    assert long.decode.compute_bound_batch is None
    assert "no batch" in long.decode.reason

    flops = 2 * (MATRICES + 128256 * 4096) + 2 * 32 * 32 * 256 * 101
    by_hand = weights / read / (flops / rate - 100 * 131072 / read)
    short = planned(prompt=90, generate=20)
    assert short.decode.compute_bound_batch == math.ceil(by_hand)
    assert short.decode.reason is None


@pytest.mark.parametrize("said", [{}, {"dp": 2}, {"tp": 2, "pp": 2}])
def test_a_step_turns_to_compute_exactly_at_the_batch_that_is_named(said):
    named = planned(prompt=90, generate=20, **said).decode.compute_bound_batch
    step = said.get("dp", 1)
    for concurrency, bound in ((named, "compute"), (named - step, "memory")):
        assert planned(prompt=90, generate=20, concurrency=concurrency, **said).decode.bound == bound


def test_experts_that_a_larger_batch_visits_are_part_of_the_turning_point():
    said = {"model": "qwen3-30b-a3b", "prompt": 90, "generate": 20}
    named = planned(**said).decode.compute_bound_batch
    assert planned(concurrency=named, **said).decode.bound == "compute"
    assert planned(concurrency=named - 1, **said).decode.bound == "memory"


def test_tokens_per_second_have_the_range_of_the_step():
    found = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", concurrency=8).decode
    fast, slow = found.range
    assert found.tokens_per_second_range == pytest.approx((8 / slow, 8 / fast))
    low, high = found.tokens_per_second_range
    assert low < found.tokens_per_second < high


def test_latents_are_attended_to_as_they_are_cached():
    # DeepSeek-V3 decodes with 128 heads over rows of 512 + 64 elements, and values of 512
    (latent,) = load_model("deepseek-v3").shape.components
    assert (latent.attention.key_dim, latent.attention.value_dim) == (192, 128)
    work = attention_work([absorbed(latent)], 1.0, 999.0)
    assert work == 2 * 61 * 128 * (576 + 512) * 1000
    ordinary = load_model("llama-3.1-8b").shape.components[0]
    assert absorbed(ordinary) is ordinary


def test_sparse_attention_reads_its_top_k_and_all_index_keys():
    # GLM-5: 78 layers pick 2,048 rows of 576 two-byte elements; each scores all keys of 128 elements
    model = decode_model("glm-5")
    for context, rows in ((1000, 1000), (50_000, 2048)):
        assert model.read_kv(float(context)) == 78 * 2 * (576 * rows + 128 * context)
    # two tokens checked at once pick rows of their own
    checked = decode_model("glm-5", spec_tokens=1)
    assert checked.read_kv(50_000.0) == 78 * 2 * (576 * 4096 + 128 * 50_000)


def test_a_window_is_read_alone_even_where_an_engine_keeps_more():
    kept = {full: decode_model("gemma-3-27b", engine="llama.cpp", swa_full=full) for full in (False, True)}
    assert kept[True].layout.bytes_per_token > kept[False].layout.bytes_per_token
    # 62 layers of 16 KV heads of 128 elements, keys and values of 2 bytes: 10 see all, 52 the last 1,024
    by_hand = 16 * 128 * 2 * 2 * (10 * 30_000 + 52 * 1024)
    assert kept[True].read_kv(30_000.0) == kept[False].read_kv(30_000.0) == by_hand


def test_a_recurrent_state_is_read_and_written_back():
    model = decode_model("mamba-2.8b")
    state = float(model.layout.serialized(1, per_gpu=True))
    assert model.read_kv(5000.0) == pytest.approx(2 * state)


def test_a_batch_reads_the_experts_that_its_tokens_visit():
    # Qwen3-30B-A3B: 48 layers of 128 experts of 3 x 2,048 x 768 parameters, 8 for each token
    model = decode_model("qwen3-30b-a3b")
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    parameters = load_model("qwen3-30b-a3b").parameters
    always = parameters.bytes - experts - 151936 * 2048 * 2
    for batch in (1, 16):
        visited = 1 - (1 - 8 / 128) ** batch
        assert model.read_weights(batch) == pytest.approx(always + visited * experts, rel=1e-12)
    # four sequences of one token and three drafted ones visit what sixteen tokens visit
    assert decode_model("qwen3-30b-a3b", spec_tokens=3).read_weights(4) == model.read_weights(16)


def test_tokens_of_all_replicas_meet_at_experts_that_are_spread_over_them():
    found = asked("qwen3-30b-a3b", tp=1, dp=4, ep=4)
    reads = weight_reads(found.model.parameters, found.settings)
    assert reads.routed[0].size == 48 * 32 * 3 * 2048 * 768 * 2  # 32 of 128 experts on each GPU
    visited = 1 - (1 - 8 / 128) ** (4 * 5)
    assert reads.read(5) - reads.always == pytest.approx(visited * reads.routed[0].size)


def test_ranks_add_up_twice_in_each_layer():
    # 16 sequences of 8,192 two-byte elements over four GPUs, 2 x 3/4 of that over each one's links
    link = load_hardware("h100-sxm-80gb").interconnect.bandwidth
    one = 10e-6 + 1.5 * 16 * 8192 * 2 / link
    assert planned("llama-3.1-70b", tp=4, concurrency=16).decode.communication == pytest.approx(160 * one)
    assert planned(concurrency=16).decode.communication == 0


def test_own_draft_layers_cost_their_passes_and_gain_their_tokens():
    said = {"model": "deepseek-v3", "on": "h200-sxm-141gb", "tp": 8, "concurrency": 4}
    plain = planned(**said)
    drafted = planned(**said, spec_tokens=1, acceptance=0.8)
    assert drafted.decode.tokens_per_step == pytest.approx(1.8)
    step = drafted.decode.step_time
    assert drafted.decode.tokens_per_second == pytest.approx(4 * 1.8 / step)
    assert step > plain.decode.step_time + drafted.decode.draft_time
    # an MTP layer and the shared output head, of which one token of each sequence visits 8 of 256 experts
    head = 129280 * 7168 * 2 / 8
    assert drafted.decode.draft_time > head / (0.8 * 4.8e12)


def test_a_draft_model_takes_memory_and_time():
    plain = planned("qwen3-32b", concurrency=4, kv_dtype="bf16")
    drafted = planned(
        "qwen3-32b", concurrency=4, kv_dtype="bf16", spec_tokens=3, draft="qwen3-0.6b", acceptance=0.5
    )
    small = load_model("qwen3-0.6b").parameters
    assert drafted.memory.weights - plain.memory.weights == pytest.approx(small.bytes)
    # 28 layers of 8 KV heads of 128 elements, keys and values of 2 bytes
    assert drafted.kv.bytes_per_token - plain.kv.bytes_per_token == 28 * 8 * 128 * 2 * 2
    # the embedding is tied, so each pass reads all weights, and the draft's KV of 4 x 4,352 tokens
    one = (small.bytes + 4 * 4352 * 114_688) / (0.8 * 3.35e12)
    assert drafted.decode.draft_time == pytest.approx(3 * one)
    assert drafted.decode.tokens_per_step == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    target = plain.memory.weights - 151936 * 5120 * 2 + 4 * 4352 * 64 * 8 * 128 * 2 * 2
    assert drafted.decode.step_time == pytest.approx(target / (0.8 * 3.35e12) + 3 * one)


def test_a_draft_keeps_its_own_precision():
    said = {"model": "qwen3-32b", "spec_tokens": 3, "draft": "qwen3-0.6b"}
    wide = planned(**said).memory.weights - planned("qwen3-32b").memory.weights
    narrow = (
        planned(**said, weights_dtype="fp8").memory.weights
        - planned("qwen3-32b", weights_dtype="fp8").memory.weights
    )
    assert narrow == pytest.approx(wide)


@pytest.mark.parametrize(
    ("tp", "layer"),
    [
        # rank 16: q and o 8,192 wide, k and v 5,120, gate, up and down 18,432
        pytest.param(1, 16 * (2 * 8192 + 2 * 5120 + 3 * 18432), id="whole"),
        # each rank keeps one side whole and half of the other
        pytest.param(
            2,
            16 * ((4096 + 2048) + 2 * (4096 + 512) + (2048 + 4096) + 2 * (4096 + 7168) + (7168 + 4096)),
            id="half",
        ),
    ],
)
def test_adapters_by_hand(tp, layer):
    plain = planned(tp=tp)
    with_adapters = planned(tp=tp, lora=4, lora_rank=16, concurrency=2)
    assert with_adapters.memory.weights - plain.memory.weights == pytest.approx(4 * 32 * layer * 2)
    # two sequences use two of the four
    read = (planned(tp=tp, concurrency=2).decode, with_adapters.decode)
    assert read[1].step_time - read[0].step_time == pytest.approx(
        2 * 32 * layer * 2 / (0.8 * 3.35e12), rel=1e-6
    )


def test_images_lengthen_the_prompt_and_wait_in_the_encoder_cache():
    said = {"model": "llava-1.5-7b", "prompt": 500, "generate": 100}
    plain, pictures = planned(**said), planned(**said, images=3, image_tokens=576)
    assert pictures.inputs["prompt"] == 500
    assert pictures.kv.tokens == 500 + 3 * 576 + 100
    assert pictures.prefill.flops > plain.prefill.flops
    # one item longer than a step: room for all of it, 4,096 elements of 2 bytes each
    step = planned(**said, max_batched_tokens=512)
    long = planned(**said, max_batched_tokens=512, images=1, image_tokens=2000)
    assert long.memory.activations - step.memory.activations == pytest.approx((2000 - 512) * 4096 * 2)


def test_layers_left_on_the_host_by_hand():
    # -ngl 17 is the output layer and layers 16 to 31; 16 layers and the embedding stay on the host
    found = planned(engine="llama.cpp", gpu_layers=17, host_bandwidth="50 GB/s", generate=200, prompt=1000)
    assert found.memory.weights == 2 * (16 * LAYER + 4096 + 128256 * 4096)
    assert found.host.layers == 16
    assert found.host.weights == 2 * 16 * LAYER + EMBEDDING
    assert found.kv.bytes_per_token == 131072
    assert found.capacity.need == 1280 * 65536  # cells are padded to 256
    assert found.host.kv == 1280 * 65536
    on_gpu = (found.memory.weights + 1100 * 65536) / (0.8 * 3.35e12)
    on_host = (2 * 16 * LAYER + 1100 * 65536) / (0.8 * 50e9)
    assert found.decode.host_time == pytest.approx(on_host)
    assert found.decode.step_time == pytest.approx(on_gpu + on_host)
    # the 1,000 prompt tokens go in two steps of 512, each of which copies the host's layers over PCIe
    whole = planned(engine="llama.cpp", generate=200, prompt=1000)
    link = load_hardware("h100-sxm-80gb").host_to_device.bandwidth
    assert found.prefill.time - whole.prefill.time == pytest.approx(2 * 2 * 16 * LAYER / link)


def test_all_layers_on_the_gpu_leave_the_host_the_embedding():
    found = planned(engine="llama.cpp", gpu_layers=99)
    whole = planned(engine="llama.cpp")
    assert found.host.weights == EMBEDDING
    assert found.decode.step_time == whole.decode.step_time
    assert found.capacity.need == whole.capacity.need


def test_a_memory_shared_with_the_host_leaves_it_its_part():
    found = {
        reserve: planned(on="gb10", host_reserve=reserve, engine="llama.cpp") for reserve in (10e9, 20e9)
    }
    assert found[10e9].memory.kv_pool - found[20e9].memory.kv_pool == pytest.approx(10e9)
    assert any("shares its memory with the host" in text for text in found[10e9].warnings)
    assumed = kvcalc.plan("llama-3.1-8b", on="gb10", engine="llama.cpp")
    assert any("the host keeps 8.0 GB" in text for text in assumed.assumptions)
    # the profile of an Apple machine states what the GPU may use of it, so nothing more is kept
    apple = kvcalc.plan("llama-3.1-8b", on="m4-max", engine="llama.cpp")
    assert any("the host keeps 0.0 GB" in text for text in apple.assumptions)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"draft": "qwen3-0.6b"}, "--spec-tokens"),
        ({"acceptance": 0.5}, "--spec-tokens"),
        ({"lora_rank": 8}, "--lora"),
        ({"images": 2}, "--image-tokens"),
        ({"image_tokens": 2}, "--images"),
        ({"gpu_layers": 10}, "--engine llama.cpp"),
        ({"gpu_layers": 1, "engine": "llama.cpp"}, "output layer"),
        ({"gpu_layers": 9, "engine": "llama.cpp", "on": "gb10"}, "shares one memory"),
        ({"gpu_layers": 9, "engine": "llama.cpp", "pp": 2}, "one GPU"),
        ({"host_reserve": "4 GB"}, "memory of its own"),
        ({"host_bandwidth": "4 GB/s"}, "--gpu-layers"),
        ({"host_reserve": "400 GB", "on": "gb10"}, "leaves nothing"),
    ],
)
def test_what_cannot_be_is_refused_with_the_option_it_needs(said, says):
    with pytest.raises(SettingsError) as caught:
        planned(**said)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_steps_of_many_batches_at_once_are_those_of_each():
    model = decode_model("qwen3-30b-a3b", tp=2, spec_tokens=2, lora=4)
    batches, contexts = np.array([1.0, 7.0, 300.0]), np.array([100.0, 5000.0, 20000.0])
    together = model.step(batches, contexts, 0.5, 0.8).total
    alone = [model.step(b, c, 0.5, 0.8).total for b, c in zip(batches, contexts, strict=True)]
    assert together == pytest.approx(alone, rel=1e-12)
    assert mean_context(model.scenario.workload) == 4096 + 256
