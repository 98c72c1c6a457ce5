"""Models whose layers differ in heads: searched blocks, OpenELM, and Laguna's query heads."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.nas import build


def block(**attention):
    """Return one block with this attention section."""
    return {"attention": {"no_op": False, "replace_with_linear": False, **attention}}


NAS = {
    "model_type": "nemotron-nas",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": None,
    "block_configs": [
        block(n_heads_in_group=4),
        block(n_heads_in_group=None, no_op=True),
        block(n_heads_in_group=8),
        block(n_heads_in_group=4),
    ],
}
OPENELM = {
    "model_type": "openelm",
    "model_dim": 64,
    "num_transformer_layers": 3,
    "head_dim": 16,
    "num_query_heads": [4, 4, 8],
    "num_kv_heads": [1, 1, 2],
    "max_context_length": 2048,
}
LAGUNA = {
    "model_type": "laguna",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "sliding_window": 32,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
    "num_attention_heads_per_layer": [4, 6, 6],
}


def test_a_searched_model_sums_over_its_layers():
    shape = build(Config(NAS))
    # KV heads 8/4, none, 8/8 and 8/4 of width 64/8: (2 + 1 + 2) heads x 2 x 8 = 80 per token.
    assert [(part.kv_heads, part.layers) for part in shape.components] == [(2, (0, 3)), (1, (2,))]
    per_token = sum(tensor.elements * len(part.layers) for part in shape.components for tensor in part.entry)
    assert per_token == 80
    assert shape.layers == 4


def test_layers_keep_one_head_each_when_ranks_outnumber_their_heads():
    two, one = build(Config(NAS)).components
    assert [
        sum(tensor.heads_per_rank(4) * tensor.width * tensor.rows for tensor in part.entry)
        for part in (two, one)
    ] == [16, 16]


@pytest.mark.parametrize(
    ("attention", "named"),
    [
        ({"n_heads_in_group": 3}, "n_heads_in_group: 3 does not divide 8 query heads"),
        ({"n_heads_in_group": 0}, "n_heads_in_group"),
        ({"n_heads_in_group": 4, "window_length": 8192}, "window_length"),
        ({"n_heads_in_group": 4, "num_sink_tokens": 4}, "num_sink_tokens"),
    ],
)
def test_an_odd_block_is_refused_by_key(attention, named):
    blocks = [*NAS["block_configs"][:3], block(**attention)]
    with pytest.raises(UnsupportedModelError, match=named):
        build(Config({**NAS, "block_configs": blocks}))


def test_blocks_must_be_as_many_as_layers():
    with pytest.raises(UnsupportedModelError, match="block_configs"):
        build(Config({**NAS, "block_configs": NAS["block_configs"][:2]}))


def test_openelm_scales_heads_with_depth():
    shape = build(Config(OPENELM))
    assert [(part.kv_heads, part.layers) for part in shape.components] == [(1, (0, 1)), (2, (2,))]
    assert shape.max_tokens == 2048


def test_laguna_caches_the_same_heads_everywhere():
    full, sliding = build(Config(LAGUNA)).components
    assert full.kv_heads == sliding.kv_heads == 2
    assert (full.attention.query_heads, sliding.attention.query_heads) == (4, 6)
    assert sliding.growth.saturated == 32
