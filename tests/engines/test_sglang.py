import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.families.attention import kv_component

GIB = 2**30


def sglang(shape, **settings):
    return lay_out(shape, EngineSettings(engine="sglang", **settings))


def model(*parts, layers, query_heads=64, **more):
    return ModelShape("made up", "made_up", parts, layers, 4096, query_heads, 131072, **more)


def latent(layers, rank=512, rope=64):
    entry = (
        Tensor("latent", 1, rank, split="replicated"),
        Tensor("rope_key", 1, rope, split="replicated"),
    )
    return Component("mla", tuple(range(layers)), entry)


def indexer(layers):
    key = Tensor("index_key", 1, 128, split="replicated", storage="index")
    return Component("indexer", tuple(range(layers)), (key,))


def windowed(full=9, window=39):
    """Return MiMo-V2-Flash: keys of 192, values of 128, twice the KV heads in window layers."""
    layers = full + window
    growth = Growth("window", 128)
    return model(
        kv_component("full_attention", range(full), 4, 192, 128, 64),
        kv_component("sliding_window", range(full, layers), 8, 192, 128, 64, growth),
        layers=layers,
    )


def delta(full=8, linear=24):
    """Return Qwen3.5-9B: 4 KV heads of 256; 16 key and 32 value heads of 128, kernel 4."""
    entry = (
        Tensor("conv_key", 16, 256, rows=3, storage="conv"),
        Tensor("conv_value", 32, 128, rows=3, storage="conv"),
        Tensor("state", 32, 128 * 128, storage="state"),
    )
    layers = tuple(range(full, full + linear))
    return model(
        kv_component("full_attention", range(full), 4, 256, 256, 16),
        Component("gated_deltanet", layers, entry, Growth("constant", 1)),
        layers=full + linear,
        query_heads=16,
    )


def test_buffers_hold_one_page_more():
    dense = model(kv_component("full_attention", range(28), 8, 128, 128, 16), layers=28, query_heads=16)
    made = sglang(dense).buffers(104_273)
    assert made.key == made.value == (104_273 + 1) * 28 * 8 * 128 * 2
    assert sglang(dense, page_size=64).buffers(6400).key == (6400 + 64) * 28 * 8 * 128 * 2


def test_pool_is_whole_pages():
    dense = model(kv_component("full_attention", range(28), 8, 128, 128, 16), layers=28, query_heads=16)
    cell = 28 * 8 * 256 * 2
    pool = sglang(dense, page_size=64, max_len=1000).pool(10 * GIB)
    assert pool.kv_tokens == 10 * GIB // cell // 64 * 64
    assert pool.block_bytes == cell * 64
    assert pool.max_concurrency == pool.kv_tokens / 1024


def test_latent_rows_are_not_divided_but_by_dp_attention():
    shape = model(latent(61), layers=61, query_heads=128)
    assert sglang(shape, tp=8).bytes_per_token_per_gpu == 61 * 576 * 2
    dense = model(kv_component("full_attention", range(2), 8, 128, 128, 64), layers=2)
    assert sglang(dense, tp=8).bytes_per_token_per_gpu == 2 * 1 * 256 * 2
    assert sglang(dense, tp=8, dp=4, dp_attention=True).bytes_per_token_per_gpu == 2 * 4 * 256 * 2


@pytest.mark.parametrize(
    ("kv_dtype", "row"),
    [("bf16", 1152 + 132), ("fp8", 656 + 132)],
)
def test_sparse_latent_rows_carry_fp8_indexer_keys(kv_dtype, row):
    shape = model(latent(78), indexer(78), layers=78)
    layout = sglang(shape, kv_dtype=kv_dtype, page_size=64)
    assert layout.bytes_per_token == 78 * row
    assert layout.buffers(131_072).latent == (131_072 + 64) * 78 * row


def test_dense_latent_rows_in_fp8_are_raw():
    shape = model(latent(61), layers=61)
    assert sglang(shape, kv_dtype="fp8").bytes_per_token == 61 * 576


def test_windows_have_a_pool_of_their_own():
    layout = sglang(windowed(), tp=4, page_size=64)
    assert layout.window_tokens(375_360) == 300_288
    made = layout.buffers(375_360)
    assert made.window_key == (300_288 + 64) * 39 * 2 * 192 * 2
    assert made.window_value == (300_288 + 64) * 39 * 2 * 128 * 2
    full, window = 9 * 1 * 320 * 2, 39 * 2 * 320 * 2
    assert layout.bytes_per_full_token == full + 0.8 * window
    assert layout.pool(10 * GIB).kv_tokens == int(10 * GIB / (full + 0.8 * window)) // 64 * 64


def test_a_sequence_holds_a_page_beyond_its_window():
    layout = sglang(windowed(), page_size=64)
    full, window = 9 * 4 * 320 * 2, 39 * 8 * 320 * 2
    assert layout.reserved(100) == 128 * (full + window)
    assert layout.reserved(10_000) == 10_048 * full + (128 + 64) * window


def test_without_the_hybrid_manager_windows_are_kept_in_full():
    layout = sglang(windowed(), hybrid_manager=False)
    assert layout.bytes_per_token == (9 * 4 + 39 * 8) * 320 * 2


def test_states_take_slots_and_a_share():
    layout = sglang(delta(), tp=2)
    conv, state = 24 * 3 * (16 * 256 + 32 * 128) * 2, 24 * 32 * 128 * 128 * 4
    made = layout.buffers(327_310, slots=186)
    assert made.conv == 187 * conv / 2
    assert made.state == 187 * state / 2
    slot = (conv + state) / 2
    pool = layout.pool(9 * GIB)
    assert pool.notes == (f"{int(9 * GIB * 0.9 / 1.9 // slot)} state slots",)
    assert pool.kv_tokens == int(9 * GIB / 1.9 // (8 * 2 * 512 * 2))


def test_states_limit_the_sequences():
    shape = delta()
    layout = sglang(shape, max_len=16)
    slots = int(9 * GIB * 0.9 / 1.9 // layout.state_bytes)
    assert layout.pool(9 * GIB).max_concurrency == slots


def test_state_dtype_may_be_asked_for():
    # 43 slots and one more of 48 layers with 48 value heads, as a log of Qwen3.x-27B prints: 3.09 GB
    entry = (Tensor("state", 48, 128 * 128, storage="state"),)
    shape = model(
        kv_component("full_attention", range(16), 4, 256, 256, 24),
        Component("gated_deltanet", tuple(range(16, 64)), entry, Growth("constant", 1)),
        layers=64,
        query_heads=24,
    )
    layout = sglang(shape, ssm_dtype="bf16", draft_layers=1)
    made = layout.buffers(171_008, slots=43)
    assert made.state == 44 * 48 * 48 * 128 * 128 * 2
    assert made.draft_key == 171_009 * 4 * 256 * 2
    assert layout.bytes_per_token == 17 * 4 * 512 * 2


def compressed():
    """Return DeepSeek V4 Flash: 43 layers, of which 21 keep a row per 4 tokens and 20 one per 128."""
    four, many = tuple(range(2, 43, 2)), tuple(range(3, 43, 2))
    row = (Tensor("latent", 1, 448, split="replicated"), Tensor("rope_key", 1, 64, split="replicated"))
    key = (Tensor("index_key", 1, 128, split="replicated", storage="index"),)

    def state(layers, width, size):
        half = {"split": "replicated", "storage": "float32"}
        entry = (Tensor("state_row", 1, width, **half), Tensor("state_gate", 1, width, **half))
        return Component("compressor_state", layers, entry, Growth("window", size))

    return model(
        Component("sliding_latent", tuple(range(43)), row, Growth("window", 128)),
        Component("compressed_latent", four, row, Growth("strided", 4)),
        Component("compressed_index", four, key, Growth("strided", 4)),
        Component("compressed_latent", many, row, Growth("strided", 128)),
        state(four, 1024, 8),
        state(four, 256, 8),
        state(many, 512, 128),
        layers=43,
    )


def test_deepseek_v4_bytes_per_full_token():
    layout = sglang(compressed(), max_len=32_768)
    window = 0.1 * (584 * 43 + 16 / 256 * (8192 + 2048) * 21)
    grown = 21 * (584 + 132) / 4 + 20 * 584 / 128
    assert layout.bytes_per_full_token == pytest.approx(window + grown, rel=1e-12)
    assert round(layout.bytes_per_full_token, 2) == 7705.45
    assert layout.pool(40 * GIB).kv_tokens == int(40 * GIB / (window + grown)) // 256 * 256


def test_dp_must_divide_the_ranks():
    with pytest.raises(SettingsError, match=r"--dp: 3 does not divide --tp 8"):
        sglang(windowed(), tp=8, dp=3, dp_attention=True)


@pytest.mark.parametrize("tokens", [100, 5_000, 40_000])
@pytest.mark.parametrize("page_size", [1, 64])
def test_as_many_sequences_fit_as_the_scarcest_pool_serves(tokens, page_size):
    """A window pool has 0.8 tokens for each of the full pool, however few a sequence would keep there."""
    layout = sglang(windowed(), tp=4, page_size=page_size, max_len=tokens)
    size = 10 * GIB
    full = layout.pool(size).kv_tokens
    pages = -(-tokens // page_size) * page_size
    in_windows = -(-min(tokens, 128 + page_size) // page_size) * page_size
    served = min(full // pages, int(0.8 * full) // page_size * page_size // in_windows)
    assert abs(layout.sessions(size, tokens) - served) <= 1  # whole pages of either pool
    assert int(layout.pool(size).max_concurrency) == served


def test_states_and_tokens_divide_the_memory_whatever_a_sequence_needs():
    """Nine bytes for states and ten for KV: many short sequences run out of slots, long ones of tokens."""
    layout = sglang(delta(), prefix_caching=False)
    size, slot, token = 19 * 1e9, layout.state_bytes, layout.bytes_per_full_token
    assert layout.sessions(size, 10) == pytest.approx(9e9 // slot, abs=1)
    assert layout.sessions(size, 200_000) == pytest.approx(10e9 / token // 200_000, abs=1)


def test_ranks_that_deal_out_positions_hold_their_share_once():
    """Of 8 ranks each holds one token in eight, so a pool of them holds eight times the tokens of one."""
    shape = model(latent(61), layers=61)
    one, eight = sglang(shape, tp=8), sglang(shape, tp=8, dcp=8)
    assert eight.pool(10 * GIB).kv_tokens == pytest.approx(8 * one.pool(10 * GIB).kv_tokens, abs=8)


def test_a_model_in_fp32_is_served_in_fp16():
    layout = sglang(model(kv_component("full_attention", range(2), 4, 64, 64, 4), layers=2, dtype="fp32"))
    assert (layout.kv_dtype, layout.bytes_per_token) == ("fp16", 2 * 4 * 128 * 2)


def test_a_version_is_said_to_change_nothing_where_one_set_of_rules_is_known():
    shape = model(kv_component("full_attention", range(2), 4, 64, 64, 4), layers=2)
    assert sglang(shape).notes == ()
    (note,) = sglang(shape, version="9").notes
    assert "one set of rules for sglang" in note
    assert "--engine-version 9" in note
    assert lay_out(shape, EngineSettings(engine="vllm", version="0.30.0")).notes == ()
