"""Jet-Nemotron: JetBlocks whose convolution covers values alone, beside full and sliding layers."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.jet_nemotron import build

JET = {
    "model_type": "jet_nemotron",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "layer_types": ["jet", "attn", "swa", "jet"],
    "efficient_attention_config": {
        "jet": {"conv_size": 4, "expand_v": 2.6666666667, "head_dim": 12, "num_heads": 4},
        "swa": {"window_size": 100},
    },
}


def test_a_jet_block_convolves_values_alone():
    jet, full, sliding = build(Config(JET)).components
    # Values are 12 x 8/3 = 32 wide: conv 3 x 4 x 32 = 384, state 4 x 12 x 32 = 1536.
    assert [tensor.elements for tensor in jet.entry] == [384, 1536]
    assert (jet.layers, full.layers, sliding.layers) == ((0, 3), (1,), (2,))
    assert sliding.growth.saturated == 100


def test_an_expansion_to_a_fraction_of_a_channel_is_refused():
    jet = {**JET["efficient_attention_config"]["jet"], "expand_v": 2.7}
    with pytest.raises(UnsupportedModelError, match=r"expand_v: 2\.7 x 12 is not a whole width"):
        build(Config({**JET, "efficient_attention_config": {"jet": jet, "swa": {"window_size": 100}}}))


def test_a_missing_section_is_named():
    with pytest.raises(UnsupportedModelError, match="efficient_attention_config: 'jet' is missing"):
        build(Config({**JET, "efficient_attention_config": {}}))
