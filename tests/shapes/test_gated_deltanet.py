"""Gated DeltaNet hybrids: the delta rule's state, its convolution, and where full attention sits."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.gated_deltanet import build

QWEN = {
    "model_type": "qwen3_next",
    "num_hidden_layers": 8,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "full_attention_interval": 4,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
}


def test_a_layer_keeps_a_matrix_per_value_head():
    linear, _ = build(Config(QWEN)).components
    key, value, state = linear.entry
    # conv: 3 x (2 x 4 x 16 + 8 x 24) = 3 x 320 = 960; state: 8 x 16 x 24 = 3072.
    assert key.elements + value.elements == 960
    assert state.elements == 3072


def test_both_kinds_of_head_are_dealt_out():
    linear, _ = build(Config(QWEN)).components
    # Two ranks: 2 key heads, 4 value heads: 3 x (2 x 2 x 16 + 4 x 24) = 480; 4 x 16 x 24 = 1536.
    assert [tensor.heads_per_rank(2) * tensor.width * tensor.rows for tensor in linear.entry] == [
        192,
        288,
        1536,
    ]


def test_every_fourth_layer_is_full_attention():
    linear, full = build(Config(QWEN)).components
    assert full.layers == (3, 7)
    assert linear.layers == (0, 1, 2, 4, 5, 6)


def test_listed_layers_win_over_the_interval():
    words = ["full_attention"] + ["linear_attention"] * 7
    full, linear = build(Config({**QWEN, "layer_types": words})).components
    assert full.layers == (0,)
    assert linear.layers == (1, 2, 3, 4, 5, 6, 7)


def test_mtp_layers_are_full_attention_behind_the_model():
    shape = build(Config({**QWEN, "model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1}))
    (draft,) = shape.draft
    assert (draft.kind, draft.layers) == ("full_attention", (8,))


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("use_sliding_window", True, "use_sliding_window"),
        ("full_attention_interval", None, "layer_types"),
        ("linear_num_value_heads", -8, "linear_num_value_heads"),
        ("linear_key_head_dim", 1.5, "linear_key_head_dim"),
        ("full_attention_interval", 0, "full_attention_interval"),
    ],
)
def test_an_odd_value_is_refused_by_key(key, value, named):
    with pytest.raises(UnsupportedModelError, match=named):
        build(Config({**QWEN, key: value}))
