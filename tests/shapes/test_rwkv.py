"""RWKV: a token shift in the model's dtype and an fp32 memory, nothing that grows."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.rwkv import build
from kvcalc.shapes.readers.huggingface import read_config

RWKV4 = {"model_type": "rwkv", "num_hidden_layers": 2, "hidden_size": 64, "context_length": 1024}
RWKV7 = {
    "model_type": "rwkv7",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "head_dim": 16,
    "num_heads": 4,
    "max_position_embeddings": 4096,
}


def test_rwkv4_keeps_two_inputs_and_three_vectors():
    shape = build(Config(RWKV4))
    (layer,) = shape.components
    shift, memory = layer.entry
    # 2 x 64 inputs, and numerator, denominator and maximum of 64 channels each.
    assert (shift.elements, memory.elements) == (128, 192)
    assert memory.storage == "float32"
    assert shape.max_tokens == 1024


def test_rwkv7_keeps_a_square_matrix_per_head():
    (layer,) = build(Config(RWKV7)).components
    shift, memory = layer.entry
    assert (shift.elements, memory.elements) == (2 * 64, 4 * 16 * 16)
    assert memory.heads_per_rank(2) * memory.width * memory.rows == 2 * 16 * 16


@pytest.mark.parametrize(("key", "value"), [("num_heads", 3), ("value_dim", 128), ("attn", {"layers": [0]})])
def test_an_odd_rwkv7_is_refused_by_key(key, value):
    with pytest.raises(UnsupportedModelError, match=key):
        build(Config({**RWKV7, key: value}))


def test_further_keys_of_published_checkpoints_change_nothing():
    assert read_config({**RWKV4, "rescale_every": 6}).components == build(Config(RWKV4)).components
    widths = {"value_dim": [64, 64], "attn_mode": "chunk", "decay_low_rank_dim": 64}
    assert read_config({**RWKV7, **widths}).components == build(Config(RWKV7)).components
