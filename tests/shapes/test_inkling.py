"""Inkling: two head shapes, a window, and four convolutions in every layer."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.inkling import build

INKLING = {
    "model_type": "inkling_text",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 4,
    "swa_head_dim": 16,
    "sliding_window_size": 32,
    "local_layer_ids": [0, 1],
    "sconv_kernel_size": 4,
}


def test_window_layers_have_heads_of_their_own():
    sliding, full, *_ = build(Config(INKLING)).components
    assert (sliding.layers, sliding.kv_heads, sliding.growth.saturated) == ((0, 1), 4, 32)
    assert (full.layers, full.kv_heads) == ((2,), 2)


def test_four_streams_keep_three_inputs():
    *_, local, full = build(Config(INKLING)).components
    # 3 inputs of keys and values (4 or 2 heads x 16 each) and of two outputs of 64.
    assert sum(tensor.elements for tensor in local.entry) == 3 * (64 + 64 + 128)
    assert sum(tensor.elements for tensor in full.entry) == 3 * (32 + 32 + 128)
    # Two ranks divide keys and values alone: 3 x (32 + 32 + 128).
    assert sum(tensor.heads_per_rank(2) * tensor.width * tensor.rows for tensor in local.entry) == 576


def test_words_say_the_same_as_numbers():
    words = ["hybrid_sliding", "hybrid_sliding", "hybrid"]
    config = {**INKLING, "local_layer_ids": None, "layer_types": words}
    assert build(Config(config)).components == build(Config(INKLING)).components


def test_without_convolutions_there_is_attention_alone():
    assert len(build(Config({**INKLING, "use_sconv": False})).components) == 2


def test_layers_that_nobody_describes_are_refused():
    with pytest.raises(UnsupportedModelError, match="layer_types"):
        build(Config({**INKLING, "local_layer_ids": None}))
