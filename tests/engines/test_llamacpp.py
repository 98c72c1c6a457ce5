import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.families.attention import kv_component

MIB = 2**20


def llama(shape, **settings):
    return lay_out(shape, EngineSettings(engine="llama.cpp", **settings))


def model(*parts, layers, query_heads=64, **more):
    return ModelShape("made up", "made_up", parts, layers, 4096, query_heads, 131072, **more)


def dense(layers=36, heads=8, width=128):
    return model(kv_component("full_attention", range(layers), heads, width, width, 32), layers=layers)


def windowed(full=13, window=13, heads=4, width=256, size=4096):
    """Return Gemma 2 2B by default."""
    growth = Growth("window", size)
    layers = full + window
    return model(
        kv_component("full_attention", range(full), heads, width, width, 8),
        kv_component("sliding_window", range(full, layers), heads, width, width, 8, growth),
        layers=layers,
    )


def delta(full=8, linear=24):
    """Return Qwen3.5-9B: 16 key and 32 value heads of 128, kernel 4."""
    entry = (
        Tensor("conv", 2 * 16 * 128 + 32 * 128, 1, rows=3, split="channels", storage="conv"),
        Tensor("state", 32, 128 * 128, storage="state"),
    )
    layers = tuple(range(full, full + linear))
    return model(
        kv_component("full_attention", range(full), 4, 256, 256, 16),
        Component("gated_deltanet", layers, entry, Growth("constant", 1)),
        layers=full + linear,
    )


def test_cells_are_padded_to_256():
    layout = llama(dense())
    row = 36 * 8 * 256 * 2
    assert layout.reserved(1) == layout.reserved(256) == 256 * row
    assert layout.reserved(257) == 512 * row
    assert layout.buffers(8192).kv == 1152 * MIB


def test_the_default_is_f16_whatever_the_model():
    shape = model(kv_component("full_attention", range(2), 1, 64, 64, 1), layers=2, dtype="fp32")
    assert llama(shape).bytes_per_token == 2 * 128 * 2


def test_keys_and_values_have_types_of_their_own():
    both = llama(dense(), kv_dtype="q8_0")
    assert both.buffers(8192).kv == 612 * MIB
    apart = llama(dense(), k_type="q8_0", v_type="q4_0")
    assert apart.bytes_per_token == 36 * (1024 // 32) * (34 + 18)


def test_slots_of_their_own_divide_the_context():
    layout = llama(dense(), parallel=8, unified=False)
    made = layout.buffers(8 * 2048)
    assert made.cells == 2048
    assert made.kv == 8 * 2048 * 36 * 8 * 256 * 2
    assert layout.buffers(1000).cells == 256  # 1024 cells over 8 slots, each padded


@pytest.mark.parametrize(
    ("window", "sequences", "ubatch", "context", "cells"),
    [
        pytest.param(4096, 4, 512, 8192, 8192, id="no more than the context"),
        pytest.param(512, 1, 512, 32_768, 1024, id="a window and a batch"),
        pytest.param(2048, 1, 512, 32_768, 2560, id="2048 + 512"),
        pytest.param(128, 1, 128, 8192, 256, id="128 + 128"),
        pytest.param(512, 3, 512, 32_768, 2048, id="each slot brings a window"),
        pytest.param(100, 1, 512, 32_768, 768, id="612 padded"),
    ],
)
def test_window_cells(window, sequences, ubatch, context, cells):
    layout = llama(windowed(size=window), parallel=sequences, ubatch=ubatch)
    made = layout.buffers(context)
    assert made.swa_cells == cells
    assert made.swa == cells * 13 * 4 * 512 * 2


def test_swa_full_keeps_every_token():
    layout = llama(windowed(), swa_full=True)
    assert layout.bytes_per_token == 26 * 4 * 512 * 2
    assert layout.buffers(32_768).swa == 0


def test_a_latent_row_has_no_value():
    entry = (
        Tensor("latent", 1, 512, split="replicated"),
        Tensor("rope_key", 1, 64, split="replicated"),
    )
    layout = llama(model(Component("mla", tuple(range(61)), entry), layers=61))
    assert layout.buffers(32_768).kv == 32_768 * 61 * 576 * 2 == 2196 * MIB


def test_states_are_fp32_and_one_row_per_slot():
    made = llama(delta(), parallel=4, ssm_dtype="bf16").buffers(135_168)
    assert made.kv == 4224 * MIB
    assert made.state == 4 * 24 * 32 * 128 * 128 * 4 == 192 * MIB
    assert made.conv == 4 * 24 * 3 * 8192 * 4 == 9 * MIB
    assert llama(delta(), spec_tokens=2).buffers(256).state == 3 * 48 * MIB


def test_an_indexer_has_a_cache_of_one_head():
    key = Tensor("index_key", 1, 128, split="replicated", storage="index")
    shape = model(
        kv_component("full_attention", range(12), 2, 256, 256, 16),
        Component("indexer", tuple(range(12)), (key,)),
        layers=12,
    )
    made = llama(shape).buffers(262_144)
    assert (made.kv, made.index) == (6144 * MIB, 768 * MIB)


def test_pool_is_the_largest_context_that_fits():
    layout = llama(windowed(size=512), max_len=4096)
    pool = layout.pool(1024 * MIB)
    assert layout.total(pool.kv_tokens) <= 1024 * MIB < layout.total(pool.kv_tokens + 256)
    assert pool.kv_tokens % 256 == 0


def test_as_many_sequences_of_max_len_fit_as_sessions_count():
    layout = llama(windowed(size=512), max_len=4096)
    # 4096 cells of 13 full layers and 512 + 512 of 13 window layers, rows of 4 x 512 fp16 values
    one = (4096 + 1024) * 13 * 4 * 512 * 2
    assert layout.pool(5.5 * one).max_concurrency == 5.5
    assert layout.sessions(5.5 * one, 4096) == 5
    dense_layout = llama(dense(), max_len=1000)  # 1,024 cells
    assert dense_layout.pool(7 * 1024 * 36 * 8 * 256 * 2).max_concurrency == 7


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"tp": 2}, r"--tp: llama.cpp divides a model by layers.*--pp 2"),
        pytest.param({"k_type": "fp8"}, r"--k-type: llama.cpp has no 'fp8'"),
        pytest.param({"v_type": "q9_0"}, r"--v-type: unknown format 'q9_0', did you mean 'q"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(SettingsError, match=words):
        llama(dense(), **settings)


def test_rows_must_be_whole_groups_of_32():
    with pytest.raises(SettingsError, match="80 values is no multiple of the 32"):
        llama(dense(heads=1, width=80), kv_dtype="q8_0")


def test_layers_are_divided_over_devices():
    assert llama(dense(), pp=4).bytes_per_token_per_gpu == 9 * 8 * 256 * 2


def test_the_cache_type_is_named_as_llama_cpp_does_whatever_the_checkpoint_declares():
    declared = model(kv_component("full_attention", range(2), 1, 64, 64, 1), layers=2, kv_dtype="fp8")
    assert llama(declared).kv_dtype == "f16"
    assert llama(declared, k_type="q8_0").kv_dtype == "K q8_0, V f16"
    with pytest.raises(SettingsError, match=r"llama.cpp has no 'fp8'; it takes f32, f16, bf16, q8_0"):
        llama(declared, kv_dtype="fp8")
