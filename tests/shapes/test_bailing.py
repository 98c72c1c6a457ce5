"""Ling and Ring hybrids: groups of linear layers that end with attention."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.bailing import build
from kvcalc.shapes.readers.huggingface import read_config

RING = {
    "model_type": "bailing_moe_linear",
    "num_hidden_layers": 7,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "layer_group_size": 3,
}
LING = {
    **RING,
    "model_type": "bailing_hybrid",
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
}


def test_attention_ends_each_group_and_fills_a_last_one_that_is_not_whole():
    lightning, full = build(Config(RING)).components
    assert (lightning.kind, full.kind) == ("lightning", "full_attention")
    assert full.layers == (2, 5, 6)
    assert lightning.entry[0].elements == 4 * 16 * 16


def test_the_hybrid_has_latents_instead_of_keys_and_values():
    lightning, mla = build(Config({**LING, "num_nextn_predict_layers": 1})).components
    assert (lightning.kind, mla.kind) == ("lightning", "mla")
    assert sum(tensor.elements for tensor in mla.entry) == 32 + 8


def test_a_convolution_kernel_tells_kda_from_lightning():
    kda, _ = build(Config({**LING, "short_conv_kernel_size": 4})).components
    # conv: 3 x 3 x 4 x 16 = 576; state 4 x 16 x 16 = 1024.
    assert kda.kind == "kda"
    assert [tensor.elements for tensor in kda.entry] == [576, 1024]


def test_a_group_size_of_zero_is_refused():
    with pytest.raises(UnsupportedModelError, match="layer_group_size"):
        build(Config({**RING, "layer_group_size": 0}))


def test_further_keys_of_published_checkpoints_change_nothing():
    published = {"group_norm_size": 4, "linear_silu": True, "use_sliding_window": False, "topk_group": 4}
    assert read_config({**RING, **published}).components == build(Config(RING)).components
    with pytest.raises(UnsupportedModelError, match="use_sliding_window"):
        build(Config({**RING, "use_sliding_window": True}))


def test_linear_layers_with_fewer_key_heads_are_refused():
    with pytest.raises(UnsupportedModelError, match="num_kv_heads_for_linear_attn"):
        build(Config({**LING, "num_kv_heads_for_linear_attn": 2}))
