"""MiMo-V2: keys wider than values, and window layers with a head shape of their own."""

from dataclasses import replace

from kvcalc.shapes.components import Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import draft_layers, kv_component, read_dimensions, shape_of
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = ("mimo_v2_flash", "mimo_v2")


def build(config: Config) -> ModelShape:
    """Build window and full layers; `hybrid_layer_pattern` marks window layers by 1."""
    full = read_dimensions(config)
    v_head_dim = config.size("v_head_dim", default=full.value_dim)
    heads = config.size("swa_num_key_value_heads", default=full.kv_heads)
    key_dim = config.size("swa_head_dim", default=full.key_dim)
    value_dim = config.size("swa_v_head_dim", default=v_head_dim)
    query_heads = config.size("swa_num_attention_heads", default=full.query_heads)
    # The checkpoint also carries an attention_chunk_size, which no implementation looks at.
    config.own("attention_chunk_size", "sliding_window_size")
    window = Growth("window", config.size("sliding_window", "sliding_window_size"))
    pattern = config.integers("hybrid_layer_pattern", full.layers)
    if pattern is None and config.own("layer_types") is None:
        raise config.refuse("hybrid_layer_pattern", "missing, and no layer_types either")

    components = assemble(
        config,
        layer_words(
            config,
            full.layers,
            lambda layer: "sliding_attention" if pattern and pattern[layer] else "full_attention",
        ),
        {
            "full_attention": lambda layers: [
                kv_component(
                    "full_attention", layers, full.kv_heads, full.key_dim, v_head_dim, full.query_heads
                )
            ],
            "sliding_attention": lambda layers: [
                kv_component("sliding_window", layers, heads, key_dim, value_dim, query_heads, window)
            ],
        },
    )
    drafts = draft_layers(config, full.layers)  # MTP layers slide too
    draft = kv_component("sliding_window", drafts, heads, key_dim, value_dim, query_heads, window)
    shape = shape_of(config, full, components, draft=(draft,) if drafts else ())
    if not config.own("sliding_window_size"):
        return shape
    # transformers reads sliding_window_size as tokens before the current one, and adds that one.
    wider = Growth("window", config.size("sliding_window_size") + 1)
    widened = tuple(
        replace(part, growth=wider) if part.growth.kind == "window" else part for part in shape.components
    )
    return replace(shape, engine_components={"transformers": widened})
