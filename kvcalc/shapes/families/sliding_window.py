"""Sliding-window attention: a layer keeps its last W tokens; here all layers do, or none."""

from collections.abc import Callable

from kvcalc.shapes.components import Component, Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, full_draft, read_dimensions, shape_of
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = (
    *("ministral3", "mistral", "mixtral", "phi3", "phi3_v", "phi4_multimodal", "phi4mm", "phimoe"),
    *("starcoder2",),
)

WHEN_ABSENT = {"mistral": 4096}
"""Windows that transformers' config classes assume when the file has no `sliding_window` at all."""


def window_growth(config: Config, *names: str) -> Growth:
    """Return the growth of window layers; the size is as the config says."""
    return Growth("window", config.size(*(names or ("sliding_window", "sliding_window_size"))))


def windowed_components(
    config: Config, dimensions: Dimensions, otherwise: Callable[[int], str]
) -> list[Component]:
    """Return full and sliding layers that share one head shape.

    `otherwise` gives the word of a layer index when the config has no `layer_types`.
    """
    return assemble(
        config,
        layer_words(config, dimensions.layers, otherwise),
        {
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
            "sliding_attention": lambda layers: [
                dimensions.component("sliding_window", layers, window_growth(config))
            ],
        },
    )


def windowed_shape(config: Config, dimensions: Dimensions, otherwise: Callable[[int], str]) -> ModelShape:
    """Return the shape of a model of full and sliding layers that share one head shape."""
    components = windowed_components(config, dimensions, otherwise)
    return shape_of(config, dimensions, components, draft=full_draft(config, dimensions))


def build(config: Config) -> ModelShape:
    """Build the shape of a model that slides in every layer if it has a window at all."""
    if config.integer("full_attn_mod", default=1) != 1:
        raise config.refuse("full_attn_mod", "only 1 is understood")
    absent = WHEN_ABSENT.get(config.model_type)
    if absent is not None and not config.has("sliding_window"):
        config = config.with_defaults({"sliding_window": absent})
    word = "sliding_attention" if config.integer("sliding_window", default=0) else "full_attention"
    return windowed_shape(config, read_dimensions(config), lambda layer: word)
