"""LFM2 and Yuan: short convolutions keep two inputs, attention the rest."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.short_conv import build

LFM2 = {
    "model_type": "lfm2",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "conv_L_cache": 3,
    "layer_types": ["conv", "full_attention", "conv", "conv"],
}


def test_a_convolution_of_kernel_three_keeps_two_inputs():
    conv, full = build(Config(LFM2)).components
    # (3 - 1) x 64 channels = 128; 4 ranks keep 2 x 16 = 32.
    assert conv.entry[0].elements == 128
    assert conv.entry[0].heads_per_rank(4) * conv.entry[0].width * conv.entry[0].rows == 32
    assert (conv.layers, full.layers) == ((0, 2, 3), (1,))


def test_attention_layers_may_be_named_by_index():
    config = {**LFM2, "layer_types": None, "full_attn_idxs": [1]}
    assert build(Config(config)).components == build(Config(LFM2)).components


def test_layers_of_no_known_kind_are_refused():
    with pytest.raises(UnsupportedModelError, match="layer_types: 'rnn' is not understood"):
        build(Config({**LFM2, "layer_types": ["rnn"] * 4}))


def test_yuan_filters_its_inputs_over_two_past_tokens():
    yuan = {"model_type": "yuan", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    full, conv = build(Config(yuan)).components
    # Keys and values 2 x 64 a token; once per sequence 2 past inputs of 64, in each of 2 layers.
    assert sum(tensor.elements for tensor in full.entry) == 128
    assert conv.entry[0].elements == 128
    assert full.layers == conv.layers == (0, 1)
