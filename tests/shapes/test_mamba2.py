"""Mamba-2 models and hybrids: heads, groups, states, and their rules under tensor parallelism."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.mamba2 import build
from kvcalc.shapes.readers.huggingface import read_config

MAMBA2 = {
    "model_type": "mamba2",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "expand": 2,
    "num_heads": 8,
    "head_dim": 8,
    "n_groups": 1,
    "state_size": 16,
    "conv_kernel": 4,
}
HYBRID = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_d_state": 32,
    "mamba_n_groups": 2,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
}
ZAMBA2 = {
    "model_type": "zamba2",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "mamba_expand": 2,
    "n_mamba_heads": 8,
    "mamba_d_state": 32,
    "mamba_ngroups": 1,
    "mamba_d_conv": 4,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
}


def conv_and_state(component, tp=1):
    """Return the elements of one rank's convolution and recurrent state."""
    by_storage = {"conv": 0.0, "state": 0.0}
    for tensor in component.entry:
        by_storage[tensor.storage] += tensor.heads_per_rank(tp) * tensor.width * tensor.rows
    return by_storage["conv"], by_storage["state"]


def test_the_convolution_covers_the_heads_and_both_projections_of_the_group():
    (mamba,) = build(Config(MAMBA2)).components
    # conv: 3 x (8 x 8 + 2 x 1 x 16) = 3 x 96 = 288; state: 8 x 8 x 16 = 1024.
    assert conv_and_state(mamba) == (288, 1024)


def test_a_single_group_is_repeated_on_every_rank():
    (mamba,) = build(Config(MAMBA2)).components
    # Each of 4 ranks: 2 heads and a group of its own: 3 x (2 x 8 + 2 x 16) = 144; state 2 x 8 x 16.
    assert conv_and_state(mamba, tp=4) == (144, 256)


def test_groups_that_ranks_divide_are_dealt_out():
    (mamba,) = build(Config({**MAMBA2, "n_groups": 4})).components
    # Each of 2 ranks: 4 heads and 2 groups: 3 x (4 x 8 + 2 x 2 x 16) = 288.
    assert conv_and_state(mamba, tp=2) == (288, 512)


def test_heads_that_are_not_given_follow_from_the_width():
    without = {key: value for key, value in MAMBA2.items() if key != "num_heads"}
    assert build(Config(without)).components == build(Config(MAMBA2)).components


def test_heads_that_contradict_the_width_are_refused():
    with pytest.raises(UnsupportedModelError, match="num_heads: 4 heads of 8 do not make up"):
        build(Config({**MAMBA2, "num_heads": 4}))


def test_bamba_names_its_attention_layers():
    config = {**HYBRID, "model_type": "bamba", "attn_layer_indices": [2]}
    layers = {part.kind: part.layers for part in build(Config(config)).components}
    assert layers == {"mamba2": (0, 1, 3), "full_attention": (2,)}
    with pytest.raises(UnsupportedModelError, match="attn_layer_indices: 7 is no layer of 4"):
        build(Config({**config, "attn_layer_indices": [7]}))


def test_granite_may_turn_out_to_have_no_mamba_layer():
    config = {**HYBRID, "model_type": "granitemoehybrid", "layer_types": ["attention"] * 4}
    (attention,) = build(Config(config)).components
    assert attention.kind == "full_attention"


def test_granite_mixes_layers_by_word():
    config = {
        **HYBRID,
        "model_type": "granitemoehybrid",
        "mamba_d_head": "auto",
        "layer_types": ["mamba", "attention", "mamba", "mamba"],
    }
    mamba, attention = build(Config(config)).components
    # I = 2 x 64 = 128 = 8 heads of 16: conv 3 x (128 + 2 x 2 x 32) = 768; state 8 x 16 x 32 = 4096.
    assert conv_and_state(mamba) == (768, 4096)
    assert attention.layers == (1,)
    with pytest.raises(UnsupportedModelError, match="layer_types: 'rwkv' is not understood"):
        build(Config({**config, "layer_types": ["rwkv"] * 4}))


def test_falcon_h1_keeps_both_in_every_layer():
    config = {**HYBRID, "model_type": "falcon_h1", "mamba_d_ssm": 128, "head_dim": 32}
    attention, mamba = build(Config(config)).components
    assert attention.layers == mamba.layers == (0, 1, 2, 3)
    # 2 KV heads x 2 x 32 = 128 elements a token and layer, beside the state.
    assert sum(tensor.elements for tensor in attention.entry) == 128
    assert conv_and_state(mamba) == (768, 4096)


def test_zamba2_adds_attention_of_double_width_to_hybrid_layers():
    attention, mamba = build(Config(ZAMBA2)).components
    assert attention.layers == (1, 3)
    assert mamba.layers == (0, 1, 2, 3)
    # Attention is 2 x 64 wide: 4 heads of 32, keys and values: 256 elements a token and layer.
    assert sum(tensor.elements for tensor in attention.entry) == 256
    # Heads of 2 x 64 / 8 = 16; two ranks hold 4 heads and the one group: 3 x (64 + 64) = 384.
    assert conv_and_state(mamba, tp=2) == (384, 4 * 16 * 32)


def test_zamba2_reads_ids_where_words_are_missing():
    config = {**ZAMBA2, "layers_block_type": None, "hybrid_layer_ids": [1, 3]}
    assert build(Config(config)).components == build(Config(ZAMBA2)).components


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (
            {**HYBRID, "model_type": "falcon_h1", "mamba_d_ssm": 128, "head_dim": 32},
            {"mamba_norm_before_gate": True, "mamba_use_mlp": True, "attn_layer_indices": None}
            | {"attention_in_multiplier": 1.1, "ssm_multipliers": [1.0, 2.0], "mamba_chunk_size": 256},
        ),
        (
            {**HYBRID, "model_type": "bamba", "attn_layer_indices": [2]},
            {"attn_rotary_emb": 64, "mamba_conv_bias": True, "num_logits_to_keep": 1},
        ),
        (
            ZAMBA2,
            {"kv_channels": 8, "num_query_groups": 4, "lora_rank": 128, "gated_linear_unit": True}
            | {"use_shared_block_lora": True, "use_mem_eff_path": True, "chunk_size": 256},
        ),
    ],
)
def test_further_keys_of_published_checkpoints_change_nothing(model, published):
    assert read_config({**model, **published}).components == build(Config(model)).components


def test_query_groups_that_contradict_the_kv_heads_are_refused():
    with pytest.raises(UnsupportedModelError, match="num_query_groups: 2 contradicts 4 KV heads"):
        build(Config({**ZAMBA2, "num_query_groups": 2}))
