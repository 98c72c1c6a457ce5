"""Lightning attention: a square state per query head, with full attention where the config says."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.lightning import build
from kvcalc.shapes.readers.huggingface import read_config

MINIMAX = {
    "model_type": "minimax_text_01",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "attn_type_list": [0, 0, 0, 1],
}


def test_the_state_has_as_many_heads_as_there_are_queries():
    lightning, full = build(Config(MINIMAX)).components
    # 8 query heads x 16 x 16 = 2048, and no convolution; 4 ranks hold 2 heads each.
    (state,) = lightning.entry
    assert (state.elements, state.heads_per_rank(4) * state.width * state.rows) == (2048, 512)
    assert (lightning.layers, full.layers) == ((0, 1, 2), (3,))


def test_words_and_numbers_say_the_same():
    words = ["linear_attention"] * 3 + ["full_attention"]
    config = {**MINIMAX, "model_type": "minimax", "attn_type_list": None, "layer_types": words}
    assert build(Config(config)).components == build(Config(MINIMAX)).components


@pytest.mark.parametrize("numbers", [[0, 0, 0, 2], [0, 1], None, "0001"])
def test_odd_numbers_are_refused(numbers):
    with pytest.raises(UnsupportedModelError, match="attn_type_list"):
        build(Config({**MINIMAX, "attn_type_list": numbers}))


def test_further_keys_of_published_checkpoints_change_nothing():
    published = {"shared_moe_mode": "sigmoid", "layernorm_linear_attention_alpha": 3.5, "postnorm": True}
    assert read_config({**MINIMAX, **published}).components == build(Config(MINIMAX)).components
