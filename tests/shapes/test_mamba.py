"""Mamba-1 and Jamba: what a layer keeps per sequence, and how ranks divide it."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.mamba import build
from kvcalc.shapes.readers.huggingface import read_config

MAMBA = {
    "model_type": "mamba",
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "expand": 2,
    "state_size": 16,
    "conv_kernel": 4,
}
JAMBA = {
    "model_type": "jamba",
    "num_hidden_layers": 8,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "attn_layer_period": 4,
    "attn_layer_offset": 1,
    "mamba_expand": 2,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
}


def test_a_layer_keeps_three_inputs_and_sixteen_values_per_channel():
    (mamba,) = build(Config(MAMBA)).components
    conv, state = mamba.entry
    # I = 2 x 32 = 64 channels: conv (4 - 1) x 64 = 192, state 64 x 16 = 1024.
    assert (conv.elements, state.elements) == (192, 1024)
    assert mamba.layers == (0, 1, 2)
    assert mamba.growth.slope == 0
    assert mamba.growth.saturated == 1


def test_channels_are_dealt_out_over_ranks():
    (mamba,) = build(Config(MAMBA)).components
    assert [tensor.heads_per_rank(4) * tensor.width * tensor.rows for tensor in mamba.entry] == [
        192 / 4,
        1024 / 4,
    ]


def test_a_width_of_its_own_wins_over_the_expansion():
    # FalconMamba's `expand` of 16 does not apply: 8192 channels, not 16 x 4096.
    falcon = {**MAMBA, "model_type": "falcon_mamba", "expand": 16, "intermediate_size": 64}
    (mamba,) = build(Config(falcon)).components
    assert mamba.entry[1].elements == 64 * 16


def test_jamba_attends_once_per_period():
    mamba, attention = build(Config(JAMBA)).components
    assert attention.layers == (1, 5)
    assert mamba.layers == (0, 2, 3, 4, 6, 7)
    # Keys and values: 2 heads x 16 each, over 2 layers in bf16: 2 x 64 x 2 = 256 bytes per token.
    assert sum(tensor.elements for tensor in attention.entry) * len(attention.layers) * 2 == 256


@pytest.mark.parametrize(
    ("key", "value"), [("attn_layer_period", 0), ("sliding_window", 128), ("mamba_d_conv", "four")]
)
def test_an_odd_jamba_is_refused_by_key(key, value):
    with pytest.raises(UnsupportedModelError, match=key):
        build(Config({**JAMBA, key: value}))


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (JAMBA, {"mamba_inner_layernorms": True, "mamba_dt_rank": 4, "expert_layer_period": 2}),
        (
            {**MAMBA, "model_type": "falcon_mamba", "intermediate_size": 64},
            {"mixer_rms_eps": 1e-6, "use_mambapy": False, "time_step_rank": 256},
        ),
    ],
)
def test_further_keys_of_published_checkpoints_change_nothing(model, published):
    assert read_config({**model, **published}).components == build(Config(model)).components
