"""From one word per layer (`layer_types`) to components, refusing words nobody knows."""

from collections.abc import Callable, Mapping, Sequence

from kvcalc.shapes.components import Component
from kvcalc.shapes.config import Config

LayerBuilder = Callable[[tuple[int, ...]], Sequence[Component]]
"""What makes components of the layers (by index) that carry one word."""


def layer_words(config: Config, layers: int, otherwise: Callable[[int], str]) -> list[str]:
    """Return `layer_types`, or the word that `otherwise` gives each layer index when absent."""
    return config.words("layer_types", layers) or [otherwise(layer) for layer in range(layers)]


def assemble(
    config: Config,
    words: Sequence[str],
    builders: Mapping[str, LayerBuilder],
    key: str = "layer_types",
) -> list[Component]:
    """Return the components of the layers of each word, in the order in which words first appear."""
    components: list[Component] = []
    for word in dict.fromkeys(words):
        if word not in builders:
            raise config.refuse(key, f"{word!r} is not understood, known are {', '.join(sorted(builders))}")
        components += builders[word](tuple(layer for layer, own in enumerate(words) if own == word))
    return components
