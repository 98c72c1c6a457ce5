"""Nemotron-H: blocks by letter or word, MTP blocks, and fp32 states by default."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.nemotron_h import build

NEMOTRON = {
    "model_type": "nemotron_h",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hybrid_override_pattern": "MEM*-M",
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "ssm_state_size": 32,
    "n_groups": 2,
    "conv_kernel": 4,
}
WORDS = ["mamba", "moe", "mamba", "attention", "mlp", "mamba"]


def test_letters_say_which_blocks_cache_what():
    mamba, attention = build(Config(NEMOTRON)).components
    assert mamba.layers == (0, 2, 5)
    assert attention.layers == (3,)
    # conv 3 x (8 x 16 + 2 x 2 x 32) = 768, state 8 x 16 x 32 = 4096 per Mamba block.
    assert sum(tensor.elements for tensor in mamba.entry) == 768 + 4096


def test_words_say_the_same():
    config = {**NEMOTRON, "hybrid_override_pattern": None, "layers_block_type": WORDS}
    assert build(Config(config)).components == build(Config(NEMOTRON)).components


def test_states_are_fp32_unless_the_checkpoint_says_otherwise():
    assert build(Config(NEMOTRON)).state_dtype == "fp32"


def test_mtp_repeats_its_own_pattern_behind_the_model():
    config = {**NEMOTRON, "num_nextn_predict_layers": 2, "mtp_hybrid_override_pattern": "*E"}
    (draft,) = build(Config(config)).draft
    # Two repeats of attention, experts: two more attention layers; experts keep nothing.
    assert (draft.kind, draft.layers) == ("full_attention", (6, 7))


@pytest.mark.parametrize(
    ("key", "value"),
    [("hybrid_override_pattern", "MX"), ("num_hidden_layers", 5), ("sliding_window", 64)],
)
def test_an_odd_value_is_refused_by_key(key, value):
    with pytest.raises(UnsupportedModelError, match=key):
        build(Config({**NEMOTRON, key: value}))
