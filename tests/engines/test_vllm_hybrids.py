"""Models whose layers grow differently: equal pages, groups, windows, states, DeepSeek V4."""

import numpy as np
import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.engines.vllm.groups import least_padding
from kvcalc.shapes.components import Component, Growth, Tensor
from tests.engines.conftest import full, latent, model, window

GIB = 2**30


def delta(layers, key_heads, value_heads):
    """Gated DeltaNet with heads of 128 and a convolution of kernel 4."""
    entry = (
        Tensor("conv_key", key_heads, 2 * 128, rows=3, storage="conv"),
        Tensor("conv_value", value_heads, 128, rows=3, storage="conv"),
        Tensor("state", value_heads, 128 * 128, storage="state"),
    )
    return Component("gated_deltanet", tuple(layers), entry, Growth("constant", 1))


def qwen3_next():
    linear = [layer for layer in range(48) if (layer + 1) % 4]
    return model(full(range(3, 48, 4), 2, 256, 16), delta(linear, 16, 32), query_heads=16)


def qwen3_5_27b():
    linear = [layer for layer in range(64) if (layer + 1) % 4]
    draft = (full([64], 4, 256, 24),)
    parts = (full(range(3, 64, 4), 4, 256, 24), delta(linear, 16, 48))
    return model(*parts, query_heads=24, state_dtype="fp32", draft=draft)


def deepseek_v4():
    """43 layers: 2 with a window alone, 21 compressed 4 to 1, 20 compressed 128 to 1."""
    row = (Tensor("latent", 1, 448, split="replicated"), Tensor("rope_key", 1, 64, split="replicated"))
    key = (Tensor("index_key", 1, 128, split="replicated", storage="index"),)

    def state(layers, width, reach):
        rows = tuple(
            Tensor(name, 1, width, split="replicated", storage="float32")
            for name in ("state_row", "state_gate")
        )
        return Component("compressor_state", layers, rows, Growth("window", reach))

    quarter, sparse = tuple(range(2, 43, 2)), tuple(range(3, 43, 2))
    return model(
        Component("sliding_latent", tuple(range(43)), row, Growth("window", 128)),
        Component("compressed_latent", quarter, row, Growth("strided", 4)),
        Component("compressed_index", quarter, key, Growth("strided", 4)),
        state(quarter, 2 * 128, 8),
        state(quarter, 2 * 512, 8),
        Component("compressed_latent", sparse, row, Growth("strided", 128)),
        state(sparse, 512, 128),
        query_heads=64,
    )


ALTERNATING = model(
    full(range(1, 42, 2), 8, 256, 16), window(range(0, 42, 2), 8, 256, 4096, 16), query_heads=16
)


def layout(shape, **settings):
    return lay_out(shape, EngineSettings(engine="vllm", **settings))


def test_a_window_keeps_the_tokens_of_two_batches_in_flight():
    made = layout(ALTERNATING, max_len=32_768, max_batched_tokens=8192)
    assert made.block_bytes == 21 * 16 * 8 * 512 * 2 == 2_752_512
    window = -(-(4095 + 2 * 8192) // 16) + 1
    assert (window, made.request_blocks(32_768)) == (1281, 2048 + 1281)
    pool = made.pool(40 * GIB)
    assert pool.num_blocks == 15_603
    assert pool.kv_tokens == int(15_603 / 3329 * 32_768)


@pytest.mark.parametrize(
    ("version", "pp", "batches"), [("0.25.0", 1, 1), ("0.26.0", 1, 2), ("0.26.0", 3, 3), ("0.33.0", 3, 4)]
)
def test_batches_in_flight_by_version(version, pp, batches):
    made = layout(ALTERNATING, version=version, pp=pp, max_batched_tokens=1024)
    assert made.request_blocks(32_768) == 2048 + -(-(4095 + batches * 1024) // 16) + 1


def test_a_short_request_holds_no_more_than_its_tokens_in_a_window_and_a_block():
    assert layout(ALTERNATING).request_blocks(160) == 10 + 10 + 1
    assert layout(ALTERNATING).request_blocks(np.array([160, 32])).tolist() == [21, 5]


def test_without_the_hybrid_manager_windows_are_kept_in_full():
    made = layout(ALTERNATING, hybrid_manager=False)
    assert len(made.groups) == 1
    assert made.block_bytes == 42 * 131_072
    assert made.request_blocks(32_768) == 2048
    assert made.serialized(32_768) == 21 * 8 * 512 * 2 * (32_768 + 4096)  # what is kept is not what is held


def test_windows_alone_are_windows_without_the_hybrid_manager_too():
    alone = model(window(range(4), 8, 128, 1000))
    made = layout(alone, hybrid_manager=False, max_batched_tokens=1024)
    assert made.request_blocks(32_768) == -(-(999 + 2048) // 16) + 1


def test_the_smaller_page_gets_more_tokens():
    # 9 full layers of 4 heads beside 39 window layers of 8: 40,960 B and 81,920 B per 16 tokens.
    def part(kind, layers, heads, growth):
        entry = (Tensor("key", heads, 192), Tensor("value", heads, 128))
        return Component(kind, tuple(layers), entry, growth)

    mixed = model(
        part("full_attention", range(9), 4, Growth("linear")),
        part("sliding_window", range(9, 48), 8, Growth("window", 128)),
        query_heads=64,
    )
    made = layout(mixed)
    assert sorted(group.cache.block for group in made.groups) == [16] * 5 + [32]
    assert sorted(len(group.layers) for group in made.groups) == [7, 8, 8, 8, 8, 9]
    assert made.block_bytes == 9 * 81_920


def test_a_page_that_divides_nothing_is_padded():
    mixed = model(full([0], 3, 128, 12), window([1], 2, 128, 512, 12), query_heads=12)
    made = layout(mixed)
    assert {group.cache.page for group in made.groups} == {16 * 3 * 512}
    assert {group.cache.block for group in made.groups} == {16}


@pytest.mark.parametrize(
    ("version", "groups", "layers"), [("0.11.2", 3, 12), ("0.12.0", 2, 13), ("0.33.0", 2, 13)]
)
def test_nearly_equal_counts_make_two_groups(version, groups, layers):
    # 12 window layers beside 12 full ones and a draft's: 13 of each kind rather than 12, 12 and 1.
    drafted = model(
        full(range(1, 24, 2), 8, 64, 64),
        window(range(0, 24, 2), 8, 64, 128, 64),
        query_heads=64,
        draft=(full([24], 8, 64, 64),),
    )
    made = layout(drafted, version=version, spec_tokens=1)
    assert len(made.groups) == groups
    assert made.block_bytes == layers * 16 * 8 * 128 * 2


def test_chunks_free_their_blocks_since_0_14():
    def chunked(layers):
        entry = (Tensor("key", 8, 128), Tensor("value", 8, 128))
        return Component("chunked_attention", layers, entry, Growth("chunk", 8192))

    scout = model(full(range(12), 8, 128, 40), chunked(tuple(range(12, 48))), query_heads=40)
    new = layout(scout, max_batched_tokens=8192)
    assert new.request_blocks(32_768) == 2048 + 3 * (8192 + 2 * 8192) // 16
    old = layout(scout, version="0.8.5", tp=8)
    assert old.reserved(10_485_760) == 240 * GIB


def test_the_block_grows_until_its_page_covers_a_state():
    state = 3 * (2 * 16 * 128 + 32 * 128) * 2 + 32 * 128 * 128 * 2
    assert state == 1_097_728
    per_token = 2 * 512 * 2
    made = layout(qwen3_next(), max_len=32_768)
    assert made.block_tokens == 64 * -(-state // (64 * per_token)) == 576
    assert made.block_bytes == 12 * 576 * per_token == 14_155_776
    # 36 state layers make three groups; each keeps two states and a checkpoint
    assert made.request_blocks(32_768) == -(-32_768 // 576) + 3 * 3
    older = layout(qwen3_next(), version="0.28.0")
    assert older.block_tokens == 16 * -(-state // (16 * per_token)) == 544
    assert older.request_blocks(32_768) == -(-32_768 // 544) + 3 * 2


def test_gpus_before_hopper_have_no_kernel_that_exports_a_delta_state():
    made = layout(qwen3_next(), compute_capability=8.0)
    assert made.block_tokens == 544
    assert made.request_blocks(32_768) == -(-32_768 // 544) + 3 * 2


@pytest.mark.parametrize(
    ("settings", "block"),
    [
        ({}, 784),
        ({"kv_dtype": "fp8"}, 1568),
        ({"kv_dtype": "turboquant_4bit_nc"}, 3072),
        ({"spec_tokens": 1}, 800),
        ({"spec_tokens": 4}, 816),
        ({"kernel_block": 64}, 832),
        ({"kernel_block": 64, "ssm_dtype": "bf16"}, 448),
    ],
)
def test_blocks_of_27_billion_before_checkpoints(settings, block):
    # state 61,440 + 3,145,728 B, and 20,480 B for each speculative token; 4,096 B per token
    made = layout(qwen3_5_27b(), version="0.28.0", **settings)
    assert made.block_tokens == block
    assert made.notes == (
        f"vLLM's attention blocks hold {block} tokens, so that a block's page covers a recurrent state",
    )


def test_states_are_replicated_under_dcp_and_set_no_limit_to_it():
    made = layout(qwen3_next(), tp=8, dcp=4)
    assert made.request_blocks(32_768) == -(-32_768 // (4 * made.block_tokens)) + 3 * 3


def test_a_draft_layer_changes_the_size_of_groups():
    made = layout(qwen3_5_27b(), version="0.28.0", spec_tokens=2, kv_dtype="fp8")
    assert sorted(len(group.layers) for group in made.groups) == [16, 16, 16, 17]
    assert made.block_tokens == 16 * -(-(5 * 20_480 + 3_145_728) // (16 * 2048)) == 1600
    assert made.block_bytes == 17 * 1600 * 2048
    assert made.request_blocks(262_144) == -(-262_144 // 1600) + 3 * (2 + 2)


def test_without_prefix_caching_a_request_has_one_state():
    made = layout(qwen3_5_27b(), prefix_caching=False)
    assert made.block_tokens == 784  # nothing to align with checkpoints
    assert made.request_blocks(32_768) == -(-32_768 // 784) + 3


@pytest.mark.parametrize(("version", "blocks"), [("0.24.0", 4 + 4), ("0.28.0", 4 + 2), ("0.32.0", 4 + 3)])
def test_states_per_request_of_mamba_2(version, blocks):
    entry = (
        Tensor("conv", 5120, 1, rows=3, split="channels", storage="conv"),
        Tensor("state", 32, 128 * 128, storage="state"),
    )
    mixed = model(full([0], 2, 128), Component("mamba2", (1,), entry, Growth("constant", 1)), query_heads=32)
    made = layout(mixed, version=version)
    assert made.request_blocks(4 * made.block_tokens) == blocks


def test_attention_free_models_hold_one_state_per_request():
    entry = (
        Tensor("conv", 8192, 1, rows=3, split="channels", storage="conv"),
        Tensor("state", 8192, 16, split="channels", storage="state"),
    )
    mamba = model(Component("mamba1", tuple(range(64)), entry, Growth("constant", 1)), query_heads=0)
    pool = layout(mamba, tp=2, max_len=32_768, prefix_caching=False).pool(40 * GIB)
    assert pool.page_bytes == (3 + 16) * 4096 * 2 == 155_648
    assert pool.num_blocks == pool.max_concurrency == 40 * GIB // (64 * 155_648)


def test_latent_hybrids_have_blocks_of_128():
    entry = (
        Tensor("conv", 32, 3 * 128, rows=3, storage="conv"),
        Tensor("state", 32, 128 * 128, storage="state"),
    )
    kda = Component("kda", tuple(range(20)), entry, Growth("constant", 1))
    linear = model(kda, latent(range(20, 27)))
    state = 32 * 3 * 128 * 3 * 2 + 32 * 128 * 128 * 4  # fp32 by default
    made = layout(linear)
    assert made.block_tokens == 128 * -(-state // (128 * 1152)) == 1920
    assert layout(linear, version="0.26.0").block_tokens == 16 * -(-state // (16 * 1152)) == 1888


def test_printed_tokens_were_blocks_over_groups_until_0_20():
    # 0.19: 1,487 blocks // 4 groups x 784 tokens; 33.04 requests of 42 + 3 blocks fit
    pool = layout(
        qwen3_5_27b(), version="0.19.0", max_len=32_768, num_blocks=1487, prefix_caching=False
    ).pool(0)
    assert pool.kv_tokens == 1487 // 4 * 784 == 290_864
    assert pool.max_concurrency == 1487 / 45
    newer = layout(
        qwen3_5_27b(), version="0.21.0", max_len=32_768, num_blocks=1487, prefix_caching=False
    ).pool(0)
    assert newer.kv_tokens == int(1487 / 45 * 32_768)


def test_deepseek_v4_in_tuples_of_pages():
    made = layout(deepseek_v4(), version="0.22.0", max_batched_tokens=16_384, max_len=30_000)
    assert 64 * 584 + 64 == 37_440  # to a multiple of 576
    assert made.block_bytes == 22 * (37_440 + 8_640 + 1_728) == 1_051_776
    blocks = 118 + 2 * (258 + 1) + (4098 + 1) + (2064 + 1)
    assert made.request_blocks(30_000) == blocks == 6800
    assert round(made.reserved(30_000) / GIB, 2) == 6.66
    assert made.longest(5554 * 1_051_776) == 13_528  # 53 + 2 * 213 + 3383 + 1692 blocks


@pytest.mark.parametrize(
    ("version", "block"),
    [
        ("0.24.0", 22 * 37_440 + 21 * 8_640 + 20 * 1_728),
        ("0.33.0", 21 * 37_440 + 21 * 8_640 + 20 * 1_728),
    ],
)
def test_deepseek_v4_in_slots_and_by_the_widest_group(version, block):
    made = layout(deepseek_v4(), version=version, tp=8)
    assert made.block_bytes == block
    assert sorted(len(group.layers) for group in made.groups) == [20, 21, 22, 42, 62]


def test_the_size_that_pads_least():
    assert least_padding([21, 43, 21, 20], 21) == 22  # pads 1 + 1 + 1 + 2; 21 would pad 20 + 1
    assert least_padding([10, 20], 1) == 10
