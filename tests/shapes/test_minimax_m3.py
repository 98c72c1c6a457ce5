"""MiniMax M3: grouped-query attention in every layer, index keys in the sparse ones."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.minimax_m3 import build

SPARSE = {
    "use_sparse_attention": True,
    "sparse_attention_freq": [0, 1, 1],
    "sparse_index_dim": 32,
    "sparse_num_index_heads": 4,
    "sparse_topk_blocks": 16,
    "sparse_block_size": 128,
}
M3 = {
    "model_type": "minimax_m3_vl",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "sparse_attention_config": SPARSE,
}


def test_bytes_per_token_add_an_index_key_in_sparse_layers():
    shape = build(Config(M3))
    per_token = sum(tensor.elements * len(part.layers) for part in shape.components for tensor in part.entry)
    # Keys and values: 3 layers x 2 heads x 2 x 16 = 192; index keys: 2 layers x 32 = 64.
    assert per_token == 192 + 64


def test_index_keys_are_on_every_rank():
    *_, indexer = build(Config(M3)).components
    assert indexer.layers == (1, 2)
    assert indexer.entry[0].heads_per_rank(8) * indexer.entry[0].width * indexer.entry[0].rows == 32


def test_sparse_layers_read_the_chosen_blocks_alone():
    dense, sparse, _ = build(Config(M3)).components
    assert (dense.attention.top_k, sparse.attention.top_k) == (None, 16 * 128)


def test_without_sparsity_there_is_no_index():
    config = {**M3, "sparse_attention_config": {**SPARSE, "use_sparse_attention": False}}
    assert [part.kind for part in build(Config(config)).components] == ["full_attention"]


def test_a_list_of_another_length_is_refused():
    with pytest.raises(UnsupportedModelError, match="sparse_attention_freq: 1 entries for 3 layers"):
        build(Config({**M3, "sparse_attention_config": {**SPARSE, "sparse_attention_freq": [1]}}))


def test_index_values_are_refused():
    sparse = {**SPARSE, "sparse_disable_index_value": [0, 1, 0]}
    with pytest.raises(UnsupportedModelError, match="sparse_disable_index_value"):
        build(Config({**M3, "sparse_attention_config": sparse}))
