"""Models with pooled index keys: GLM-5.3-Flash and Qwen4."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families import glm5_next, qwen4

GLM = {
    "model_type": "glm5_next_text",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 0,
    "v_head_dim": 16,
    "linear_attn_config": {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4},
    "layer_types": ["linear_attention", "deepseek_sparse_attention"],
    "index_n_heads": 2,
    "index_head_dim": 24,
    "index_topk": 8,
    "index_kpool": 4,
    "num_nextn_predict_layers": 1,
}
QWEN4 = {
    "model_type": "qwen4_exp_text",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "layer_types": ["linear_attention", "qwen_sparse_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 24,
    "indexer_compress_ratio": 4,
    "indexer_budget": 8,
    "ple_layer_ids": [1],
    "ple_conv_kernel_size": 4,
    "ngram_size": 3,
    "hc_count": 4,
    "mtp_num_hidden_layers": 1,
}


def per_token(parts):
    """Return the elements that each further token costs in the long run."""
    return sum(
        tensor.elements * len(part.layers) * part.growth.slope for part in parts for tensor in part.entry
    )


def test_glm_keeps_a_latent_per_token_and_a_key_per_pool():
    shape = glm5_next.build(Config(GLM))
    # One sparse layer: a latent of 32 without rotary part, and 24 / 4 of a pooled key.
    assert per_token(shape.components) == 32 + 6
    assert [part.kind for part in shape.components] == ["kda", "mla", "pooled_index", "index_ring"]
    assert [part.layers for part in shape.draft] == [(2,)] * 3


def test_the_open_pool_keeps_keys_and_gates():
    *_, ring = glm5_next.build(Config(GLM)).components
    # 4 tokens of a key and a gate of 24 each, on every rank.
    assert ring.growth.saturated == 4
    assert sum(tensor.heads_per_rank(8) * tensor.width * tensor.rows for tensor in ring.entry) == 48


def test_qwen4_indexes_its_sparse_layers_alone():
    shape = qwen4.build(Config(QWEN4))
    # Two attention layers x 2 heads x 2 x 16 = 128, and one index of 24 / 4.
    assert per_token(shape.components) == 128 + 6
    assert [part.layers for part in shape.components if part.kind == "pooled_index"] == [(1,)]
    assert [(part.kind, part.layers) for part in shape.draft] == [("full_attention", (3,))]


def test_qwen4_keeps_a_dilated_convolution_where_it_embeds_ngrams():
    (conv,) = (part for part in qwen4.build(Config(QWEN4)).components if part.kind == "short_conv")
    # (4 - 1) x 3 past inputs of 4 streams x 64, whole on every rank; layer 1 counts from 1.
    assert conv.layers == (0,)
    assert conv.entry[0].heads_per_rank(4) * conv.entry[0].width * conv.entry[0].rows == 9 * 256


@pytest.mark.parametrize(
    ("family", "config", "key", "value"),
    [
        (glm5_next, GLM, "layer_types", None),
        (glm5_next, GLM, "index_kpool", 0),
        (qwen4, QWEN4, "layer_types", None),
        (qwen4, QWEN4, "indexer_kv_heads", 2),
        (qwen4, QWEN4, "ple_layer_ids", [4]),
    ],
)
def test_an_odd_value_is_refused_by_key(family, config, key, value):
    with pytest.raises(UnsupportedModelError, match=key):
        family.build(Config({**config, key: value}))
