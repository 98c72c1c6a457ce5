"""MiniMax M3: grouped-query attention whose sparse layers pick blocks by one index key per token.

The index keys are one vector per token shared by all index heads, so tensor parallelism does not
divide them; they stay in the model's dtype whatever the KV dtype (vLLM 0.33).
"""

from dataclasses import replace

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import full_draft, read_dimensions, shape_of
from kvcalc.shapes.families.mla import indexer_component

MODEL_TYPES = ("minimax_m3_vl", "minimax_m3")


def build(config: Config) -> ModelShape:
    """Build the shape of a MiniMax M3 model."""
    dimensions = read_dimensions(config)
    layers = range(dimensions.layers)
    sparse = config.section("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention", default=True):
        return shape_of(config, dimensions, [dimensions.component("full_attention", layers)])
    frequency = sparse.integers("sparse_attention_freq", dimensions.layers)
    if frequency is None or not set(frequency) <= {0, 1}:
        raise sparse.refuse("sparse_attention_freq", "expected 0 or 1 for each layer")
    indexed = [layer for layer in layers if frequency[layer]]
    plain = sparse.integers("sparse_disable_index_value", dimensions.layers) or frequency
    if any(not plain[layer] for layer in indexed):
        raise sparse.refuse("sparse_disable_index_value", "index values in a sparse layer are not understood")
    sparse.own("sparse_init_block", "sparse_local_block", "sparse_score_type")  # which blocks are read
    indexer = indexer_component(
        indexed, heads=sparse.size("sparse_num_index_heads"), width=sparse.size("sparse_index_dim")
    )
    top_k = sparse.size("sparse_topk_blocks") * sparse.size("sparse_block_size")
    dense = dimensions.component("full_attention", [layer for layer in layers if not frequency[layer]])
    picked = dimensions.component("full_attention", indexed)
    if picked.attention:
        picked = replace(picked, attention=replace(picked.attention, top_k=top_k))
    return shape_of(config, dimensions, [dense, picked, indexer], draft=full_draft(config, dimensions))
