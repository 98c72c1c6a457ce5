"""Ordinary attention under the many names that configs give its sizes; bytes worked by hand."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.readers.huggingface import read_config

PLAIN = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 8}


def values_per_token(shape):
    """Return the elements that a further token adds over all layers of the growing components."""
    return sum(
        len(part.layers) * sum(tensor.elements for tensor in part.entry) * part.growth.slope
        for part in shape.components
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            {"model_type": "llama", **PLAIN}, 4 * 8 * (32 + 32), id="no KV heads: as many as query heads"
        ),
        pytest.param(
            {"model_type": "llama", **PLAIN, "num_key_value_heads": 2}, 4 * 2 * 64, id="grouped: two KV heads"
        ),
        pytest.param(
            {"model_type": "qwen3", **PLAIN, "num_key_value_heads": 2, "head_dim": 128},
            4 * 2 * (128 + 128),
            id="head_dim wins over hidden / heads",
        ),
        pytest.param(
            {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 6}, 3 * 6 * 32, id="gpt2 names"
        ),
        pytest.param(
            {"model_type": "bloom", "n_layer": 3, "hidden_size": 96, "n_head": 6},
            3 * 6 * 32,
            id="bloom names",
        ),
        pytest.param(
            {"model_type": "phi-msft", "n_layer": 3, "n_embd": 96, "n_head": 6, "n_head_kv": None},
            3 * 6 * 32,
            id="a null n_head_kv is none",
        ),
        pytest.param(
            {"model_type": "qwen", **PLAIN, "kv_channels": 64}, 4 * 8 * 128, id="kv_channels is a head dim"
        ),
        pytest.param(
            {"model_type": "falcon", **PLAIN, "multi_query": True}, 4 * 1 * 64, id="falcon-7b: one head"
        ),
        pytest.param(
            {
                "model_type": "falcon",
                **PLAIN,
                "multi_query": True,
                "new_decoder_architecture": True,
                "num_kv_heads": 4,
            },
            4 * 4 * 64,
            id="falcon-40b: grouped although multi_query",
        ),
        pytest.param(
            {"model_type": "falcon", **PLAIN, "multi_query": False, "num_kv_heads": 4},
            4 * 8 * 64,
            id="falcon-rw: all heads",
        ),
        pytest.param(
            {"model_type": "gpt_bigcode", **PLAIN}, 4 * 1 * 64, id="gpt_bigcode: one head unless said"
        ),
        pytest.param(
            {
                "model_type": "chatglm",
                "num_layers": 4,
                "hidden_size": 256,
                "num_attention_heads": 8,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
            },
            4 * 2 * 64,
            id="chatglm counts groups",
        ),
        pytest.param(
            {
                "model_type": "dbrx",
                "n_layers": 4,
                "d_model": 256,
                "n_heads": 8,
                "attn_config": {"kv_n_heads": 2},
            },
            4 * 2 * 64,
            id="dbrx: in a section",
        ),
        pytest.param(
            {
                "model_type": "mpt",
                "n_layers": 4,
                "d_model": 256,
                "n_heads": 8,
                "attn_config": {"attn_type": "multiquery_attention"},
            },
            4 * 1 * 64,
            id="mpt: multi-query by name",
        ),
        pytest.param(
            {
                "model_type": "hunyuan",
                **PLAIN,
                "num_key_value_heads": 2,
                "use_cla": True,
                "cla_share_factor": 2,
            },
            2 * 2 * 64,
            id="CLA: layers 1 and 3 read the cache of 0 and 2",
        ),
        pytest.param(
            {"model_type": "git", **PLAIN, "architectures": ["Grok1ForCausalLM"]},
            4 * 8 * 64,
            id="grok-2 by its architecture",
        ),
        pytest.param(
            {
                "model_type": "phi3small",
                **PLAIN,
                "num_key_value_heads": 2,
                "blocksparse_block_size": 64,
                "dense_attention_every_n_layers": 2,
            },
            4 * 2 * 64,
            id="block-sparse layers keep every token",
        ),
    ],
)
def test_values_per_token(config, expected):
    assert values_per_token(read_config(config)) == expected


def test_multimodal_checkpoints_are_read_where_their_language_model_is():
    shape = read_config(
        {
            "model_type": "some_vlm",
            "hidden_size": 7,
            "text_config": {"model_type": "llama", **PLAIN},
            "vision_config": {"num_attention_heads": 3, "window_size": 8},
        }
    )
    assert shape.model_type == "llama"
    assert values_per_token(shape) == 4 * 8 * 64


def test_sizes_that_a_nested_config_leaves_out_are_its_class_defaults():
    # transformers' LlamaConfig(): 32 layers of 32 heads on a hidden size of 4096.
    shape = read_config({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 9}})
    assert values_per_token(shape) == 32 * 32 * (128 + 128)


def test_a_nested_config_without_a_type_is_of_its_wrappers_default_type():
    # transformers' MistralConfig(): 32 layers of 8 KV heads of 128, each with a window of 4096.
    shape = read_config({"model_type": "mistral3", "text_config": {"vocab_size": 9}})
    assert shape.model_type == "mistral"
    assert [part.growth.size for part in shape.components] == [4096]
    assert sum(tensor.elements for tensor in shape.components[0].entry) == 8 * (128 + 128)


def test_sizes_that_a_whole_config_leaves_out_are_missed():
    with pytest.raises(UnsupportedModelError, match="num_attention_heads: missing"):
        read_config({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2})


def test_mtp_layers_are_drafts_behind_the_models_own():
    shape = read_config(
        {"model_type": "glm4_moe", **PLAIN, "num_key_value_heads": 2, "num_nextn_predict_layers": 1}
    )
    assert [part.layers for part in shape.components] == [(0, 1, 2, 3)]
    assert [part.layers for part in shape.draft] == [(4,)]
    assert sum(tensor.elements for tensor in shape.draft[0].entry) == 2 * 64


def test_minimax_counts_mtp_modules_times_their_layers():
    config = {"model_type": "minimax_m2", **PLAIN, "attn_type_list": [1, 1, 1, 1], "num_mtp_modules": 3}
    assert read_config({**config, "use_mtp": True, "mtp_transformer_layers": 2}).draft[0].layers == tuple(
        range(4, 10)
    )
    assert read_config({**config, "use_mtp": False}).draft == ()
    with pytest.raises(UnsupportedModelError, match="linear_attention"):
        read_config({**config, "attn_type_list": [1, 0, 1, 1]})


def test_cross_attention_layers_of_mllama_hold_nothing_for_text():
    shape = read_config(
        {
            "model_type": "mllama",
            "text_config": {
                "model_type": "mllama_text_model",
                **PLAIN,
                "num_key_value_heads": 2,
                "cross_attention_layers": [1, 3],
            },
        }
    )
    own, cross = shape.components
    assert (own.kind, own.layers) == ("full_attention", (0, 2))
    assert (cross.kind, cross.layers, cross.growth.saturated) == ("cross_attention", (1, 3), 0)
    assert "image" in shape.notes[0]


def test_flops_are_told_query_heads_and_widths():
    attention = (
        read_config({"model_type": "llama", **PLAIN, "num_key_value_heads": 2}).components[0].attention
    )
    assert (attention.query_heads, attention.key_dim, attention.value_dim) == (8, 32, 32)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, None),
        ({"max_position_embeddings": 4096}, 4096),
        ({"n_positions": 1024, "max_position_embeddings": 2048}, 1024),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2}}, 8192),
        (
            {
                "max_position_embeddings": 40960,
                "rope_scaling": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 32768,
                },
            },
            131072,
        ),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8}}, 131072),
        # Gemma 3's 128 Ki are what its factor of 8 makes of 16 Ki
        (
            {
                "model_type": "gemma3_text",
                "sliding_window": 1024,
                "query_pre_attn_scalar": 128,
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            },
            131072,
        ),
    ],
)
def test_longest_context(more, expected):
    assert read_config({"model_type": "llama", **PLAIN, **more}).max_tokens == expected
