"""Windows, chunks and shared caches: which layer keeps what, worked by hand on small configs."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.readers.huggingface import read_config

SIZES = {
    "num_hidden_layers": 6,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
}
FULL, SLIDING = "full_attention", "sliding_window"


def plan(config, engine="generic"):
    """Return kind, layers, elements per entry and cap of each component."""
    return [
        (part.kind, part.layers, sum(tensor.elements for tensor in part.entry), part.growth.size)
        for part in read_config(config).components_for(engine)
    ]


ENTRY = 2 * (32 + 32)  # two KV heads, keys and values of 256 / 8


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            {"model_type": "mistral", "sliding_window": 4096},
            [(SLIDING, (0, 1, 2, 3, 4, 5), ENTRY, 4096)],
            id="mistral 0.1 slides everywhere",
        ),
        pytest.param(
            {"model_type": "mistral", "sliding_window": None},
            [(FULL, (0, 1, 2, 3, 4, 5), ENTRY, 0)],
            id="mistral 0.2 says null: no window",
        ),
        pytest.param(
            {"model_type": "mistral"},
            [(SLIDING, (0, 1, 2, 3, 4, 5), ENTRY, 4096)],
            id="mistral without the key has its class's 4096",
        ),
        pytest.param(
            {"model_type": "mixtral", "sliding_window": 0},
            [(FULL, (0, 1, 2, 3, 4, 5), ENTRY, 0)],
            id="a window of 0 is none",
        ),
        pytest.param(
            {"model_type": "qwen2", "sliding_window": 512, "max_window_layers": 2},
            [(FULL, (0, 1, 2, 3, 4, 5), ENTRY, 0)],
            id="qwen2: a window without use_sliding_window is off",
        ),
        pytest.param(
            {
                "model_type": "qwen2",
                "sliding_window": 512,
                "max_window_layers": 2,
                "use_sliding_window": True,
            },
            [(FULL, (0, 1), ENTRY, 0), (SLIDING, (2, 3, 4, 5), ENTRY, 512)],
            id="qwen2: layers from max_window_layers on slide",
        ),
        pytest.param(
            {
                "model_type": "qwen2_moe",
                "sliding_window": 512,
                "max_window_layers": 4,
                "use_sliding_window": True,
            },
            [(SLIDING, (0, 2), ENTRY, 512), (FULL, (1, 3, 4, 5), ENTRY, 0)],
            id="qwen2-moe: every other layer before max_window_layers",
        ),
        pytest.param(
            {"model_type": "smollm3", "sliding_window": 512, "use_sliding_window": True},
            [(FULL, (0, 1, 2, 4, 5), ENTRY, 0), (SLIDING, (3,), ENTRY, 512)],
            id="smollm3: the layer without rotary positions slides",
        ),
        pytest.param(
            {"model_type": "gemma2", "sliding_window": 64},
            [(SLIDING, (0, 2, 4), ENTRY, 64), (FULL, (1, 3, 5), ENTRY, 0)],
            id="gemma2 alternates",
        ),
        pytest.param(
            {"model_type": "gemma3_text", "sliding_window": 64, "sliding_window_pattern": 3},
            [(SLIDING, (0, 1, 3, 4), ENTRY, 64), (FULL, (2, 5), ENTRY, 0)],
            id="every third layer full",
        ),
        pytest.param(
            {"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LLG"},
            [(SLIDING, (0, 1, 3, 4), ENTRY, 64), (FULL, (2, 5), ENTRY, 0)],
            id="a pattern in letters",
        ),
        pytest.param(
            {"model_type": "exaone4", "sliding_window": None},
            [(FULL, (0, 1, 2, 3, 4, 5), ENTRY, 0)],
            id="exaone4 small: no window",
        ),
        pytest.param(
            {
                "model_type": "gpt_oss",
                "sliding_window": 64,
                "layer_types": ["full_attention"] * 4 + ["sliding_attention"] * 2,
            },
            [(FULL, (0, 1, 2, 3), ENTRY, 0), (SLIDING, (4, 5), ENTRY, 64)],
            id="layer_types win over the rhythm",
        ),
        pytest.param(
            {"model_type": "llama4_text", "attention_chunk_size": 64, "no_rope_layers": [1, 1, 0, 1, 1, 0]},
            [("chunked_attention", (0, 1, 3, 4), ENTRY, 64), (FULL, (2, 5), ENTRY, 0)],
            id="llama4: layers without rotary positions are full",
        ),
        pytest.param(
            {"model_type": "llama4_text", "attention_chunk_size": None},
            [(FULL, (0, 1, 2, 3, 4, 5), ENTRY, 0)],
            id="llama4 without chunks",
        ),
        pytest.param(
            {
                "model_type": "mimo_v2_flash",
                "head_dim": 48,
                "v_head_dim": 32,
                "sliding_window": 128,
                "swa_num_key_value_heads": 4,
                "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
                "attention_chunk_size": 128,
            },
            [(FULL, (0, 5), 2 * (48 + 32), 0), (SLIDING, (1, 2, 3, 4), 4 * (48 + 32), 128)],
            id="mimo-v2: wider keys, more heads in window layers, a bogus chunk",
        ),
        pytest.param(
            {
                "model_type": "gemma3n_text",
                "sliding_window": 64,
                "num_kv_shared_layers": 2,
                "layer_types": ["sliding_attention", "full_attention"] * 3,
            },
            [(SLIDING, (0, 2), ENTRY, 64), (FULL, (1, 3), ENTRY, 0)],
            id="gemma3n: the last two layers own nothing",
        ),
        pytest.param(
            {
                "model_type": "gemma4_text",
                "sliding_window": 64,
                "head_dim": 32,
                "global_head_dim": 96,
                "num_global_key_value_heads": 1,
                "attention_k_eq_v": True,
            },
            [(SLIDING, (0, 1, 2, 3, 4), ENTRY, 64), (FULL, (5,), 1 * (96 + 96), 0)],
            id="gemma4: tied keys and values are both kept, global heads are wider",
        ),
        pytest.param(
            {
                "model_type": "gemma4_text",
                "sliding_window": 64,
                "head_dim": 32,
                "per_layer_config": {"5": {"head_dim": 96, "num_key_value_heads": 1}},
            },
            [(SLIDING, (0, 1, 2, 3, 4), ENTRY, 64), (FULL, (5,), 1 * (96 + 96), 0)],
            id="gemma4 as newer libraries save it",
        ),
        pytest.param(
            {
                "model_type": "step3p5",
                "sliding_window": 64,
                "num_nextn_predict_layers": 1,
                "layer_types": ["full_attention", *["sliding_attention"] * 5, "sliding_attention"],
                "attention_other_setting": {
                    "num_attention_heads": 12,
                    "num_attention_groups": 4,
                    "head_dim": 32,
                },
            },
            [(FULL, (0,), ENTRY, 0), (SLIDING, (1, 2, 3, 4, 5), 2 * ENTRY, 64)],
            id="step 3.5: the seventh word is the MTP layer's",
        ),
    ],
)
def test_layers(config, expected):
    assert plan({**SIZES, **config}) == expected


def test_the_mtp_layers_of_mimo_v2_slide_with_the_heads_of_window_layers():
    config = {
        **SIZES,
        "model_type": "mimo_v2_flash",
        "sliding_window": 128,
        "sliding_window_size": 128,
        "swa_num_key_value_heads": 4,
        "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
        "num_nextn_predict_layers": 2,
    }
    (draft,) = read_config(config).draft
    assert (draft.layers, draft.kind, draft.growth.size) == ((6, 7), SLIDING, 128)
    assert sum(tensor.elements for tensor in draft.entry) == 4 * (32 + 32)
    # transformers counts the current token on top of sliding_window_size.
    assert [part[3] for part in plan(config, "transformers")] == [0, 129]


def test_engines_that_keep_other_windows():
    mimo = {**SIZES, "model_type": "mimo", "sliding_window": 512, "use_sliding_window": False}
    assert plan(mimo) == [(FULL, (0, 1, 2, 3, 4, 5), ENTRY, 0)]
    assert plan(mimo, "vllm") == [(SLIDING, (0, 1, 2, 3, 4, 5), ENTRY, 512)]
    cohere = {**SIZES, "model_type": "cohere2", "sliding_window": 512, "sliding_window_pattern": 3}
    assert [part[3] for part in plan(cohere)] == [512, 0]
    assert [part[3] for part in plan(cohere, "vllm")] == [513, 0]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"model_type": "llama", "sliding_window": 4096}, "sliding_window"),
        ({"model_type": "llama", "num_kv_shared_layers": 2}, "num_kv_shared_layers"),
        ({"model_type": "qwen2", "layer_types": ["full_attention"] * 5}, "5 entries for 6 layers"),
        (
            {"model_type": "qwen2", "layer_types": ["full_attention"] * 5 + ["ring_attention"]},
            "ring_attention",
        ),
        ({"model_type": "qwen2", "layer_types": "full_attention"}, "expected a list"),
        ({"model_type": "gemma2", "layer_types": ["sliding_attention"] * 6}, "sliding_window: missing"),
        ({"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LXG"}, "LXG"),
        ({"model_type": "phi3", "full_attn_mod": 2}, "full_attn_mod"),
        ({"model_type": "gemma3n_text", "num_kv_shared_layers": 6, "sliding_window": 8}, "leave no owner"),
        ({"model_type": "gemma4_text", "num_kv_shared_layers": 5, "sliding_window": 8}, "no layer owns"),
        (
            {"model_type": "gemma3_text", "use_bidirectional_attention": True, "sliding_window": 8},
            "use_bidirectional_attention",
        ),
        ({"model_type": "mimo_v2_flash", "sliding_window": 8}, "hybrid_layer_pattern"),
        ({"model_type": "mimo_v2_flash", "sliding_window": 8, "layer_types": None}, "hybrid_layer_pattern"),
        ({"model_type": "cohere2_moe", "sliding_window": 8}, "layer_types: missing"),
        (
            {"model_type": "llama4_text", "attention_chunk_size": 8, "no_rope_layers": [1, 0]},
            "2 entries for 6 layers",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_name(config, named):
    with pytest.raises(UnsupportedModelError, match=named):
        read_config({**SIZES, **config})
