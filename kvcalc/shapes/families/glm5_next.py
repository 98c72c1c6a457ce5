"""GLM-5.3-Flash: KDA layers, and sparse MLA without rotary part whose index keys are pooled.

Pooling weighs the keys of `index_kpool` tokens by a learned gate per channel.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import draft_layers, read_dimensions, shape_of
from kvcalc.shapes.families.kda import read_kda
from kvcalc.shapes.families.mla import read_mla
from kvcalc.shapes.families.pooled_index import pooled_index_components
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("glm5_next", "glm5_next_text", "glm53_flash", "glm53_flash_text")


def _sparse(config: Config, layers: Sequence[int]) -> list[Component]:
    index = pooled_index_components(
        layers,
        query_heads=config.size("index_n_heads"),
        width=config.size("index_head_dim"),
        ratio=config.size("index_kpool"),
        gated=True,
    )
    return [read_mla(config, layers, top_k=config.size("index_topk")), *index]


def build(config: Config) -> ModelShape:
    """Build the shape of a GLM-5.3-Flash model; its MTP layers are sparse MLA."""
    dimensions = read_dimensions(config)
    linear = config.section("linear_attn_config")
    words = config.words("layer_types", dimensions.layers)
    if linear is None or words is None:
        raise config.refuse("layer_types", "they and linear_attn_config are needed to tell the layers")
    linear.own("kda_layers", "full_attn_layers")  # layer_types says the same
    config.flag("index_kpool_compress")
    config.flag("index_kpool_always_select_tail")
    components = assemble(
        config,
        words,
        {
            "linear_attention": lambda layers: [read_kda(linear, layers)],
            "deepseek_sparse_attention": lambda layers: _sparse(config, layers),
            "full_attention": lambda layers: _sparse(config, layers),
        },
    )
    draft = draft_layers(config, dimensions.layers)
    return shape_of(
        config,
        dimensions,
        components,
        draft=tuple(_sparse(config, draft)) if draft else (),
        notes=("the ring of index keys not yet pooled is from source alone, no server's log confirms it",),
    )
