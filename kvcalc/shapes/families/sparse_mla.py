"""Sparse MLA (DeepSeek V3.2, GLM-5): an indexer picks the tokens that each query attends to.

The indexer keeps a key of its own per token.  Some layers reuse the choice of an earlier layer and
then own no indexer.
"""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import draft_layers, read_dimensions, shape_of
from kvcalc.shapes.families.mla import indexer_component, read_mla

MODEL_TYPES = ("deepseek_v32", "glm_moe_dsa")

OWNER = {"full": True, "F": True, "shared": False, "S": False}
"""What a layer's word in `indexer_types`, or letter in `index_topk_pattern`, says about owning one."""


def indexer_layers(config: Config, layers: int) -> list[int]:
    """Return the layers that own an indexer: by list, else by pattern, else by frequency."""
    frequency = max(1, config.integer("index_topk_freq", default=1))
    offset = config.integer("index_skip_topk_offset", default=2)
    pattern = config.own("index_topk_pattern")
    words = config.words("indexer_types", layers) or (list(map(str, pattern)) if pattern else None)
    if words is None:
        return [layer for layer in range(layers) if max(layer - offset + 1, 0) % frequency == 0]
    if len(words) < layers:
        raise config.refuse("index_topk_pattern", f"{len(words)} entries for {layers} layers")
    if unknown := set(words) - set(OWNER):
        raise config.refuse("indexer_types", f"{min(unknown)!r:.60} is not understood")
    return [layer for layer in range(layers) if OWNER[words[layer]]]


def build(config: Config) -> ModelShape:
    """Build the latent of every layer and the index keys of those that own an indexer."""
    dimensions = read_dimensions(config)
    layers = dimensions.layers
    top_k = config.size("index_topk")
    heads, width = config.size("index_n_heads"), config.size("index_head_dim")
    words = config.words("layer_types", layers) or []
    if unknown := set(words) - {"indexed_attention", "deepseek_sparse_attention"}:
        raise config.refuse("layer_types", f"{min(unknown)!r:.60} is not understood")
    config.own("index_share_for_mtp_iteration")  # which choice a draft step reuses, not what it keeps
    draft = draft_layers(config, layers)
    return shape_of(
        config,
        dimensions,
        [
            read_mla(config, range(layers), top_k),
            indexer_component(indexer_layers(config, layers), heads, width),
        ],
        draft=(read_mla(config, draft, top_k), indexer_component(draft, heads, width)) if draft else (),
    )
