"""Sliding-window attention, alone or between full layers: a layer keeps its last W tokens."""

from collections.abc import Callable, Sequence

from kvcalc.shapes.components import Component, Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = ("mistral",)


def window_growth(config: Config, *names: str) -> Growth:
    """Return the growth of window layers; the size is as the config says."""
    return Growth("window", config.size(*(names or ("sliding_window",))))


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


def build(config: Config) -> ModelShape:
    """Build the shape of a model that slides in every layer if it has a window at all."""
    dimensions = read_dimensions(config)
    word = "sliding_attention" if config.integer("sliding_window", default=0) else "full_attention"
    components: Sequence[Component] = windowed_components(config, dimensions, lambda layer: word)
    return shape_of(config, dimensions, components)
