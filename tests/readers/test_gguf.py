"""GGUF files written here with the `gguf` package, against bytes worked out by hand.

The reader does not use that package, so each test is also one program reading another's files.
"""

import pytest

from kvcalc.shapes.readers.gguf import read_gguf
from kvcalc.shapes.readers.gguf.attention import WINDOWED
from tests.readers.conftest import DEEPSEEK_V3, LLAMA_8B, SSM, layout, written


def test_llama(tmp_path):
    made = layout(written(tmp_path, "llama", LLAMA_8B))
    assert made.bytes_per_token == 32 * 8 * (128 + 128) * 2 == 131_072
    assert made.buffers(8192).kv == 2**30
    assert made.shape.max_tokens == 131_072


def test_the_cache_is_f16_until_its_types_are_given(tmp_path):
    file = written(tmp_path, "llama", LLAMA_8B)
    assert read_gguf(file).dtype == "fp16"
    apart = layout(file, k_type="q8_0", v_type="q4_0")
    assert apart.bytes_per_token == 32 * 8 * 4 * (34 + 18)  # 128 values are 4 blocks of 32


def test_a_head_width_of_its_own(tmp_path):
    widths = {"attention.key_length": 192, "attention.value_length": 128}
    assert layout(written(tmp_path, "qwen3", LLAMA_8B | widths)).bytes_per_token == 32 * 8 * 320 * 2


def test_kv_heads_for_each_layer(tmp_path):
    heads = {"block_count": 3, "attention.head_count_kv": [8, 0, 4]}
    shape = read_gguf(written(tmp_path, "deci", LLAMA_8B | heads))
    assert [(part.layers, part.kv_heads) for part in shape.components] == [((0,), 8), ((2,), 4)]


def test_without_kv_heads_there_are_as_many_as_query_heads(tmp_path):
    heads = {"attention.head_count": 32, "attention.head_count_kv": None}
    assert layout(written(tmp_path, "gpt2", LLAMA_8B | heads)).bytes_per_token == 4 * 131_072


GEMMA_2_2B = {
    "block_count": 26,
    "embedding_length": 2304,
    "attention.head_count": 8,
    "attention.head_count_kv": 4,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "attention.sliding_window": 4096,
}


def test_gemma_2_slides_in_every_other_layer(tmp_path):
    made = layout(written(tmp_path, "gemma2", GEMMA_2_2B), parallel=4).buffers(8192)
    assert made.swa_cells == 8192  # 4 slots of 4096 and a batch exceed the context
    assert made.kv == made.swa == 8192 * 13 * 4 * 512 * 2 == 416 * 2**20  # as llama.cpp prints
    shape = read_gguf(tmp_path / "m.gguf")
    assert shape.components[1].layers[:3] == (0, 2, 4)


def test_gemma_2_without_a_window_has_that_of_llamacpp(tmp_path):
    file = written(tmp_path, "gemma2", GEMMA_2_2B | {"attention.sliding_window": None})
    assert read_gguf(file).components[1].growth.size == 4096


GPT_OSS_20B = {
    "block_count": 24,
    "embedding_length": 2880,
    "attention.head_count": 64,
    "attention.head_count_kv": 8,
    "attention.key_length": 64,
    "attention.value_length": 64,
    "attention.sliding_window": 128,
}


def test_gpt_oss(tmp_path):
    made = layout(written(tmp_path, "gpt-oss", GPT_OSS_20B), kv_dtype="q8_0", ubatch=128).buffers(8192)
    assert made.swa_cells == 256
    assert made.kv == 102 * 2**20  # 12 layers x 8192 cells x 2 sides x 16 blocks of 34 bytes
    assert round(made.swa / 2**20, 2) == 3.19


def test_gemma_4_lists_its_windows_and_shares_layers(tmp_path):
    file = written(
        tmp_path,
        "gemma4",
        {
            "block_count": 6,
            "embedding_length": 2560,
            "attention.head_count": 8,
            "attention.head_count_kv": 2,
            "attention.key_length": 512,
            "attention.value_length": 512,
            "attention.key_length_swa": 256,
            "attention.value_length_swa": 256,
            "attention.sliding_window": 512,
            "attention.sliding_window_pattern": [True, True, False, True, True, False],
            "attention.shared_kv_layers": 2,
        },
    )
    made = layout(file).buffers(32_768)
    assert made.kv == 32_768 * 1 * 2 * (512 + 512) * 2
    assert made.swa == 1024 * 3 * 2 * (256 + 256) * 2  # layers 4 and 5 reuse earlier ones


@pytest.mark.parametrize(
    ("architecture", "values", "full"),
    [
        pytest.param("gemma3", {}, [0, 1, 2, 3, 4, 5], id="optional, and not given"),
        pytest.param("gemma3", {"attention.sliding_window": 0}, [0, 1, 2, 3, 4, 5], id="switched off"),
        pytest.param("gemma3", {"attention.sliding_window": 512}, [5], id="the last of 6"),
        pytest.param("cohere2moe", {"attention.sliding_window": 512}, [0, 4], id="the first of 4"),
        pytest.param("llama4", {}, [3], id="chunks, the last of 4 in full"),
        pytest.param("llama4", {"attention.sliding_window": 0}, [0, 1, 2, 3, 4, 5], id="no chunks"),
        pytest.param("exaone4", {"attention.sliding_window": 512}, [0, 1, 2, 3, 4, 5], id="not the 32B"),
        pytest.param("phi3", {"attention.sliding_window": 512}, [0, 1, 2, 3, 4, 5], id="no window there"),
        pytest.param(
            "gpt-oss",
            {"attention.sliding_window": 512, "attention.sliding_window_pattern": 3},
            [2, 5],
            id="a period of its own",
        ),
    ],
)
def test_which_layers_are_full(tmp_path, architecture, values, full):
    heads = {"block_count": 6, "attention.head_count": 4, "attention.head_count_kv": 2}
    shape = read_gguf(written(tmp_path, architecture, heads | values))
    assert list(shape.components[0].layers) == full
    assert {part.kind for part in shape.components[1:]} <= {"sliding_window", "chunked_attention"}
    owned = sorted(layer for part in shape.components for layer in part.layers)
    assert owned == [0, 1, 2, 3, 4, 5]


def test_deepseek_caches_a_latent(tmp_path):
    made = layout(written(tmp_path, "deepseek2", DEEPSEEK_V3))
    assert made.buffers(32_768).kv == 32_768 * 61 * 576 * 2 == 2196 * 2**20  # as llama.cpp prints
    assert made.shape.components[0].attention.key_dim == 192


def test_an_older_deepseek_file_caches_expanded_heads(tmp_path):
    older = {
        "block_count": 27,
        "attention.head_count": 16,
        "attention.head_count_kv": 16,
        "attention.key_length": 192,
        "attention.value_length": 128,
        "attention.key_length_mla": None,
        "attention.value_length_mla": None,
    }
    made = layout(written(tmp_path, "deepseek2", DEEPSEEK_V3 | older), parallel=8, unified=False)
    assert made.buffers(8 * 2048).kv == 4320 * 2**20  # as llama.cpp prints
    assert "expanded" in made.shape.notes[0]


def test_a_sparse_indexer_has_a_cache_of_keys_alone(tmp_path):
    indexer = {"attention.indexer.head_count": 64, "attention.indexer.key_length": 128}
    made = layout(written(tmp_path, "deepseek32", DEEPSEEK_V3 | indexer)).buffers(256)
    assert made.index == 256 * 61 * 128 * 2
    owners = {"attention.indexer.types": [1, 1, *[0] * 59]}
    made = layout(written(tmp_path, "glm-dsa", DEEPSEEK_V3 | indexer | owners)).buffers(256)
    assert made.index == 256 * 2 * 128 * 2


QWEN_35_9B = {
    "block_count": 33,
    "nextn_predict_layers": 1,
    "embedding_length": 4096,
    "attention.head_count": 16,
    "attention.head_count_kv": 4,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "full_attention_interval": 4,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 4096,
    "ssm.state_size": 128,
    "ssm.group_count": 16,
    "ssm.time_step_rank": 32,
}


def test_a_deltanet_hybrid(tmp_path):
    made = layout(written(tmp_path, "qwen35", QWEN_35_9B), parallel=4)
    sizes = made.buffers(135_168)
    assert sizes.kv == 135_168 * 8 * 4 * 512 * 2 == 4224 * 2**20  # as llama.cpp prints, like the next two
    assert sizes.state == 4 * 24 * (128 * 4096) * 4 == 192 * 2**20
    assert sizes.conv == 4 * 24 * 3 * (4096 + 2 * 16 * 128) * 4 == 9 * 2**20
    assert made.shape.layers == 32
    assert [part.layers for part in made.shape.draft] == [(32,)]


def test_recurrent_layers_as_listed(tmp_path):
    listed = {"attention.recurrent_layers": [*[True] * 30, False, False, False]}
    shape = read_gguf(written(tmp_path, "qwen35", QWEN_35_9B | listed))
    assert [part.layers for part in shape.components if part.kind == "full_attention"] == [(30, 31)]


@pytest.mark.parametrize(
    ("architecture", "values", "per_token", "conv", "state"),
    [
        pytest.param("mamba", SSM, 0, 2 * 3 * 128, 2 * 128 * 16),
        pytest.param("mamba2", SSM, 0, 2 * 3 * (128 + 2 * 2 * 16), 2 * 128 * 16),
        pytest.param(
            "jamba",
            {**SSM, "attention.head_count": 4, "attention.head_count_kv": [0, 2]},
            2 * (16 + 16) * 2,
            3 * 128,
            128 * 16,
        ),
        pytest.param(
            "falcon-h1",
            {**SSM, "attention.head_count": 4, "attention.head_count_kv": 2},
            2 * 2 * (16 + 16) * 2,
            2 * 3 * (128 + 2 * 2 * 16),
            2 * 128 * 16,
        ),
        pytest.param(
            "nemotron_h",
            {
                **SSM,
                "block_count": 3,
                "attention.head_count": 4,
                "attention.head_count_kv": [0, 2, 0],
                "feed_forward_length": [0, 0, 256],
            },
            2 * (16 + 16) * 2,
            3 * (128 + 2 * 2 * 16),
            128 * 16,
        ),
        pytest.param(
            "lfm2",
            {"shortconv.l_cache": 3, "attention.head_count": 4, "attention.head_count_kv": [0, 2]},
            2 * (16 + 16) * 2,
            2 * 64,
            0,
        ),
        pytest.param(
            "kimi-linear",
            {
                "ssm.conv_kernel": 4,
                "kda.head_dim": 16,
                "attention.head_count": 4,
                "attention.head_count_kv": [0, 1],
                "attention.key_length": 40,
                "attention.value_length": 32,
                "attention.kv_lora_rank": 32,
                "attention.key_length_mla": 24,
                "attention.value_length_mla": 16,
            },
            40 * 2,
            3 * 3 * 4 * 16,
            4 * 16 * 16,
        ),
        pytest.param("rwkv7", {"wkv.head_size": 16}, 0, 2 * 2 * 64, 2 * 64 * 16),
        pytest.param(
            "minimax-01",
            {"attention.head_count": 4, "attention.head_count_kv": 2, "full_attention_interval": 2},
            2 * (16 + 16) * 2,
            0,
            4 * 16 * 16,
        ),
    ],
)
def test_recurrent_architectures(tmp_path, architecture, values, per_token, conv, state):
    made = layout(written(tmp_path, architecture, values))
    assert made.bytes_per_token == per_token
    sizes = made.buffers(256)
    assert (sizes.conv, sizes.state) == (4 * conv, 4 * state)  # fp32


def test_every_windowed_architecture_says_which_layers_slide():
    assert all(rule.period is None or rule.period > 1 for rule in WINDOWED.values())
