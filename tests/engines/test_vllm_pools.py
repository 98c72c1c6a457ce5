"""Models whose layers all grow alike: pages, blocks, parallelism, formats."""

import numpy as np
import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import Component, Growth, Tensor
from kvcalc.shapes.families.mla import indexer_component
from tests.engines.conftest import full, latent, model, window

GIB = 2**30


def index(layers):
    return indexer_component(layers, 64, 128)


DENSE = model(full(range(32), 8, 128))
LATENT = model(latent(range(61)), query_heads=128)
SPARSE = model(latent(range(78)), index(range(21)), query_heads=64)


def layout(shape, **settings):
    return lay_out(shape, EngineSettings(engine="vllm", **settings))


def test_a_dense_model():
    pool = layout(DENSE, max_len=32_768).pool(40 * GIB)
    assert pool.block_tokens == 16
    assert pool.page_bytes == 16 * 8 * (128 + 128) * 2 == 65_536
    assert pool.block_bytes == 32 * 65_536 == 2_097_152
    assert pool.num_blocks == 40 * GIB // 2_097_152 == 20_480
    assert pool.kv_tokens == 20_480 * 16
    assert pool.max_concurrency == 20_480 / (32_768 / 16) == 10
    assert pool.cpu_blocks is None


def test_without_max_len_tokens_are_known_and_concurrency_is_not():
    pool = layout(DENSE).pool(40 * GIB)
    assert (pool.kv_tokens, pool.max_concurrency) == (20_480 * 16, None)


def test_heads_are_split_then_replicated():
    assert layout(DENSE, tp=4).block_bytes == 2_097_152 / 4
    assert layout(DENSE, tp=8).block_bytes == layout(DENSE, tp=16).block_bytes == 2_097_152 / 8


def test_a_tp_that_cuts_a_head_names_the_valid_ones():
    with pytest.raises(SettingsError, match=r"--tp: 3 .*valid are 1, 2, 4, 8, 16, 32"):
        layout(DENSE, tp=3)


def test_reserved_bytes_come_in_whole_blocks_for_scalars_and_arrays():
    made = layout(DENSE)
    assert made.reserved(16) == 2_097_152
    assert made.reserved(17) == 2 * 2_097_152
    assert made.reserved(np.array([1.0, 16.0, 33.0])).tolist() == [2_097_152, 2_097_152, 3 * 2_097_152]


def test_sessions_are_whole_requests_of_whole_blocks():
    assert layout(DENSE).sessions(40 * GIB, 4_608) == 20_480 // 288
    assert layout(DENSE, num_blocks=577).sessions(40 * GIB, 4_608) == 2


def test_num_blocks_replaces_what_the_pool_gives():
    pool = layout(DENSE, num_blocks=100, max_len=1600).pool(GIB)
    assert (pool.num_blocks, pool.kv_tokens, pool.max_concurrency) == (100, 1600, 1.0)


def test_the_fullest_stage_decides():
    ten = model(full(range(10), 8, 128))  # stages of 2, 3, 3 and 2 layers
    assert layout(ten, pp=4).block_bytes == 3 * 65_536


@pytest.mark.parametrize(("kv_dtype", "row"), [("fp8", 128), ("fp8_per_token_head", 132), ("nvfp4", 64 + 8)])
def test_formats(kv_dtype, row):
    assert layout(DENSE, kv_dtype=kv_dtype).block_bytes == 32 * 16 * 8 * 2 * row


def test_auto_is_what_the_checkpoint_asks_for():
    declared = model(full(range(32), 8, 128), kv_dtype="fp8_e4m3")
    assert layout(declared).block_bytes == 32 * 16 * 8 * 2 * 128
    assert layout(declared, kv_dtype="bf16").block_bytes == 2_097_152


def test_fp32_models_cache_16_bits():
    assert layout(model(full(range(32), 8, 128), dtype="fp32")).block_bytes == 2_097_152


def test_falcon_is_built_without_the_kv_dtype():
    falcon = model(full(range(32), 8, 128), model_type="falcon")
    assert layout(falcon, kv_dtype="fp8").block_bytes == 2_097_152


def test_layers_of_unequal_heads_share_one_group():
    uneven = model(full([0], 8, 128), full([1], 2, 128))
    made = layout(uneven, max_len=1600)
    assert made.block_bytes == 16 * (8 + 2) * 256 * 2
    assert made.pool(100 * made.block_bytes).max_concurrency == 1.0


def test_turboquant_leaves_two_layers_at_either_end():
    # 134 B per head at width 128 (64 + 2, 64 + 4), 512 B unquantized; a block of 64 tokens is the
    # first whose packed page, 64 x 134, covers 16 unquantized tokens, 16 x 512.
    made = layout(DENSE, kv_dtype="turboquant_4bit_nc")
    assert made.block_tokens == 64
    assert made.block_bytes == 64 * 8 * (28 * 134 + 4 * 512)


def test_latents_are_replicated():
    for tp in (1, 8):
        pool = layout(LATENT, tp=tp).pool(40 * GIB)
        assert pool.page_bytes == 16 * (512 + 64) * 2 == 18_432
        assert pool.block_bytes == 61 * 18_432


@pytest.mark.parametrize(
    ("kv_dtype", "capability", "block"),
    [("auto", 9.0, 16), ("fp8", 9.0, 64), ("auto", 10.0, 128), ("fp8", 10.0, 128), ("auto", 8.0, 16)],
)
def test_the_kernel_sets_the_block_of_latents(kv_dtype, capability, block):
    pool = layout(LATENT, kv_dtype=kv_dtype, compute_capability=capability).pool(40 * GIB)
    assert pool.block_tokens == block
    assert pool.page_bytes == block * 576 * (1 if kv_dtype == "fp8" else 2)


@pytest.mark.parametrize(
    ("kv_dtype", "capability", "row"), [("auto", 9.0, 1152), ("fp8", 9.0, 656), ("fp8", 10.0, 576)]
)
def test_sparse_latents_and_their_index(kv_dtype, capability, row):
    made = layout(SPARSE, kv_dtype=kv_dtype, compute_capability=capability)
    assert made.block_tokens == 64
    assert made.block_bytes == 64 * (78 * row + 21 * 132)


def test_index_keys_beside_heads_keep_the_models_dtype():
    made = layout(model(full(range(4), 4, 128), index(range(1, 4))), kv_dtype="fp8")
    assert made.block_bytes == 128 * (4 * 4 * 256 * 1 + 3 * 128 * 2)


def test_positions_are_dealt_out_under_dcp():
    pool = layout(LATENT, tp=8, dcp=8, max_len=131_072).pool(46.8 * GIB)
    blocks = int(46.8 * GIB) // (61 * 18_432)
    assert pool.kv_tokens == blocks * 16 * 8
    assert pool.max_concurrency == blocks / 1024


def test_dcp_is_refused_where_ranks_hold_different_heads_and_for_windows():
    with pytest.raises(SettingsError, match="--dcp: 2 exceeds"):
        layout(DENSE, tp=8, dcp=2)
    sliding = model(full([0], 1, 128), window([1], 1, 128, 512))
    with pytest.raises(SettingsError, match="--dcp: vLLM deals out no sliding windows"):
        layout(sliding, tp=4, dcp=2)


def test_encoder_decoder_requests_hold_the_encoders_budget():
    cross = Component(
        "cross_attention",
        tuple(range(32)),
        (Tensor("key", 20, 64), Tensor("value", 20, 64)),
        Growth("constant", 1500),
    )
    whisper = model(full(range(32), 20, 64, 20), cross, query_heads=20, max_tokens=448)
    made = layout(whisper, max_len=448)
    assert made.block_bytes == 32 * 16 * 20 * 128 * 2
    assert made.request_blocks(448) == 448 // 16 + 2048 // 16 == 156
    assert layout(whisper, max_len=448, encoder_tokens=1500).request_blocks(448) == 28 + 94


def test_the_longest_request_leaves_the_null_block():
    hundred = 100 * 2_097_152
    assert layout(DENSE, version="0.28.0", max_len=32_768).longest(hundred) == 1600
    assert layout(DENSE, version="0.29.0", max_len=32_768).longest(hundred) == 1584
    assert layout(DENSE, version="0.33.0", max_len=32_768).longest(2_097_152) == 0


def test_tokens_in_flight_beside_windows_are_named():
    made = layout(model(full(range(1), 8, 128), window(range(1, 4), 8, 128, 1024)), max_batched_tokens=2048)
    (note,) = made.notes
    assert "4,096 tokens in flight (2 x 2,048 of --max-batched-tokens)" in note
    assert "3 groups of windows" in note
    assert layout(DENSE).notes == ()


@pytest.mark.parametrize(
    ("block", "near"), [pytest.param(24, "16 or 32", id="between"), pytest.param(7, "16", id="below")]
)
def test_blocks_that_no_kernel_takes_are_refused(block, near):
    with pytest.raises(SettingsError, match=rf"--block-size: .* not {block}; nearest is {near}$"):
        layout(DENSE, block_size=block)
    assert layout(DENSE, block_size=8).block_tokens == 8
