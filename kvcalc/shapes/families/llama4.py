"""Llama 4: local attention within chunks, with a full layer in between every so often."""

from kvcalc.shapes.components import Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions, shape_of
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = ("llama4", "llama4_text")


def build(config: Config) -> ModelShape:
    """Build chunked and full layers; the layers without rotary positions are the full ones."""
    dimensions = read_dimensions(config)
    chunk = config.integer("attention_chunk_size", default=0)
    every = config.size("no_rope_layer_interval", default=4)
    rope = config.integers("no_rope_layers") or [(layer + 1) % every for layer in range(dimensions.layers)]
    if len(rope) != dimensions.layers:
        raise config.refuse("no_rope_layers", f"{len(rope)} entries for {dimensions.layers} layers")
    components = assemble(
        config,
        layer_words(
            config,
            dimensions.layers,
            lambda layer: "chunked_attention" if chunk and rope[layer] else "full_attention",
        ),
        {
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
            "chunked_attention": lambda layers: [
                dimensions.component("chunked_attention", layers, Growth("chunk", chunk))
            ],
        },
    )
    return shape_of(config, dimensions, components)
