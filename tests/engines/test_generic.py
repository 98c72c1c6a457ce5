import time

import numpy as np
import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.engines.sizing import stage_bounds
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.families.attention import kv_component
from kvcalc.shapes.families.mla import indexer_component, mla_component

GIB = 2**30


def dense(layers, heads, width, query_heads, **more):
    part = kv_component("full_attention", range(layers), heads, width, width, query_heads)
    return ModelShape("dense", "llama", (part,), layers, 4096, query_heads, 131072, **more)


QWEN_7B = dense(28, 4, 128, 28)
A_72B = dense(80, 8, 128, 64)


def hybrid(window=100):
    return ModelShape(
        "hybrid",
        "made_up",
        (
            kv_component("full_attention", range(2), 2, 16, 16, 8),
            kv_component("sliding_window", range(2, 8), 2, 16, 16, 8, Growth("window", window)),
            Component(
                "gated_deltanet",
                (8, 9),
                (
                    Tensor("conv", 64, 1, rows=3, split="channels", storage="conv"),
                    Tensor("state", 4, 256, storage="state"),
                ),
                Growth("constant", 1),
            ),
        ),
        layers=10,
        hidden=128,
        query_heads=8,
        max_tokens=4096,
    )


def test_seven_billion_with_four_kv_heads():
    layout = lay_out(QWEN_7B, EngineSettings())
    assert layout.bytes_per_token == 28 * 4 * (128 + 128) * 2 == 57_344
    batch = 32 * layout.reserved(32_768)
    assert batch == 56.0 * GIB
    assert batch == pytest.approx(60.13e9, rel=1e-4)


def test_seventy_two_billion():
    layout = lay_out(A_72B, EngineSettings())
    assert layout.bytes_per_token == 80 * 8 * (128 + 128) * 2 == 327_680
    assert 4 * layout.reserved(32_768) == 40 * GIB
    assert 4 * layout.reserved(32_768) == pytest.approx(42.9e9, rel=2e-3)
    assert layout.sessions(160e9, 32_768) == 14
    assert layout.sessions(160 * GIB, 32_768) == 16


def test_capped_and_constant_parts():
    layout = lay_out(hybrid(), EngineSettings())
    row = 2 * (16 + 16) * 2  # two heads, K and V of 16, bf16
    state = 2 * (64 * 3 + 4 * 256) * 2
    assert layout.bytes_per_token == 2 * row
    assert layout.constant_bytes == 6 * 100 * row + state
    assert layout.serialized(50) == 8 * 50 * row + state
    assert layout.serialized(1000) == 2 * 1000 * row + 6 * 100 * row + state


def test_state_dtype_is_the_configs_then_the_options():
    shape = hybrid()
    plain = lay_out(shape, EngineSettings()).per_gpu[2].stored
    asked = lay_out(shape, EngineSettings(ssm_dtype="fp32")).per_gpu[2].stored
    assert plain == 2 * (192 + 1024) * 2
    assert asked == 2 * (192 * 2 + 1024 * 4)


def test_blocks_round_up_what_grows_and_leave_states():
    layout = lay_out(hybrid(window=100), EngineSettings(block_size=16))
    row, state = 2 * (16 + 16) * 2, 2 * (64 * 3 + 4 * 256) * 2
    assert layout.reserved(17) == 8 * 32 * row + state
    assert layout.reserved(1000) == 2 * 1008 * row + 6 * 112 * row + state


def test_latent_is_replicated_and_heads_are_split():
    latent = mla_component(range(61), 512, 64, 128, 128, 128)
    shape = ModelShape("mla", "deepseek_v3", (latent,), 61, 7168, 128, 163840)
    layout = lay_out(shape, EngineSettings(tp=8))
    assert layout.bytes_per_token == layout.bytes_per_token_per_gpu == 61 * 576 * 2
    split = lay_out(A_72B, EngineSettings(tp=4))
    assert split.bytes_per_token_per_gpu == 327_680 / 4
    replicated = lay_out(A_72B, EngineSettings(tp=16))
    assert replicated.bytes_per_token_per_gpu == 327_680 / 8


def test_context_parallelism_deals_out_positions():
    latent = mla_component(range(61), 512, 64, 128, 128, 128)
    shape = ModelShape("mla", "deepseek_v3", (latent,), 61, 7168, 128, 163840)
    layout = lay_out(shape, EngineSettings(tp=8, dcp=8))
    assert layout.bytes_per_token_per_gpu == 61 * 576 * 2 / 8


def test_indexer_keeps_the_models_dtype():
    parts = (mla_component(range(3), 512, 64, 8, 128, 128), indexer_component(range(3), 8, 128))
    shape = ModelShape("sparse", "deepseek_v32", parts, 3, 1024, 8, 4096)
    layout = lay_out(shape, EngineSettings(kv_dtype="fp8"))
    assert layout.bytes_per_token == 3 * 576 + 3 * 128 * 2


def test_checkpoint_chooses_auto():
    layout = lay_out(dense(28, 4, 128, 28, kv_dtype="fp8"), EngineSettings())
    assert layout.bytes_per_token == 57_344 / 2
    assert lay_out(dense(28, 4, 128, 28, dtype="fp32"), EngineSettings()).bytes_per_token == 57_344 * 2


def test_speculation_adds_the_drafts_layer():
    own = kv_component("full_attention", [28], 4, 128, 128, 28)
    shape = dense(28, 4, 128, 28, draft=(own,))
    assert lay_out(shape, EngineSettings()).bytes_per_token == 57_344
    assert lay_out(shape, EngineSettings(spec_tokens=3)).bytes_per_token == 57_344 * 29 / 28
    assert lay_out(QWEN_7B, EngineSettings(draft_layers=1)).bytes_per_token == 57_344 * 29 / 28


@pytest.mark.parametrize(
    ("layers", "pp", "bounds"),
    [(80, 4, (0, 20, 40, 60, 80)), (61, 4, (0, 15, 30, 46, 61)), (3, 2, (0, 2, 3))],
)
def test_stages(layers, pp, bounds):
    assert stage_bounds(layers, pp) == bounds


def test_pipeline_counts_the_fullest_stage():
    layout = lay_out(dense(61, 8, 128, 64), EngineSettings(pp=4))
    assert layout.bytes_per_token_per_gpu == 16 * 8 * 256 * 2


def test_pool_of_whole_blocks():
    pool = lay_out(QWEN_7B, EngineSettings(block_size=16, max_len=1000)).pool(10 * GIB)
    assert pool.block_bytes == 57_344 * 16
    assert pool.page_bytes == 57_344 * 16 / 28
    assert pool.num_blocks == 10 * GIB // (57_344 * 16) == 11702
    assert pool.kv_tokens == 11702 * 16
    assert pool.max_concurrency == 11702 / 63  # 63 blocks hold 1000 tokens


def test_pool_of_mixed_parts_needs_a_length():
    shape = hybrid()
    assert lay_out(shape, EngineSettings()).pool(GIB).kv_tokens is None
    layout = lay_out(shape, EngineSettings(max_len=4096))
    pool = layout.pool(GIB)
    assert pool.max_concurrency == GIB / layout.reserved(4096)
    assert pool.kv_tokens == int(pool.max_concurrency * 4096)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"tp": 3}, r"--tp: 3 does not divide 8 KV heads.*valid are 1, 2, 4, 8, 16, 32, 64"),
        pytest.param({"tp": 5}, r"--tp: 5"),
        pytest.param({"tp": 0}, r"--tp: 0 is not a whole number of at least 1"),
        pytest.param({"pp": 100}, r"--pp: 100 stages for 80 layers"),
        pytest.param({"tp": 8, "dcp": 3}, r"--dcp: 3 does not divide --tp 8"),
        pytest.param({"block_size": 0}, r"--block-size: 0"),
        pytest.param({"max_len": 1.5}, r"--max-len: 1.5"),
        pytest.param({"spec_tokens": -1}, r"--spec-tokens: -1"),
        pytest.param({"kv_dtype": "fp9"}, r"--kv-dtype: unknown format 'fp9', did you mean 'fp8'"),
        pytest.param({"engine": "vlm"}, r"--engine: unknown engine 'vlm', did you mean 'vllm'"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(SettingsError, match=words):
        lay_out(A_72B, EngineSettings(**settings))


def test_valid_ranks_divide_the_query_heads_too():
    # divisors of 48 that divide 8 or are multiples of it
    with pytest.raises(SettingsError, match=r"--tp: 6 .*valid are 1, 2, 4, 8, 16, 24, 48$"):
        lay_out(dense(4, 8, 64, 48), EngineSettings(tp=6))


@pytest.mark.parametrize("engine", ["generic", "sglang", "llama.cpp", "transformers"])
def test_arrays_in_arrays_out(engine):
    layout = lay_out(hybrid(), EngineSettings(engine=engine))
    lengths = np.array([1, 99, 100, 101, 255, 256, 257, 4096])
    for view in (layout.reserved, layout.serialized, layout.payload):
        assert view(lengths).tolist() == [float(view(int(length))) for length in lengths]


@pytest.mark.alone
@pytest.mark.parametrize("engine", ["generic", "sglang", "llama.cpp", "transformers"])
def test_a_million_lengths_take_less_than_a_tenth_of_a_second(engine):
    layout = lay_out(hybrid(), EngineSettings(engine=engine))
    lengths = np.arange(1, 1_000_001)

    def timed():
        start = time.perf_counter()
        layout.reserved(lengths)
        return time.perf_counter() - start

    assert min(timed() for _ in range(5)) < 0.1
