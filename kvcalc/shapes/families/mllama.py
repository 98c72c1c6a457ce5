"""Llama 3.2 Vision: self-attention layers, and between them layers that attend to an image."""

from collections.abc import Mapping

from kvcalc.shapes.components import Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions, shape_of

MODEL_TYPES = ("mllama", "mllama_text_model")


def build(config: Config) -> ModelShape:
    """Build both kinds; cross layers keep entries for image tokens only, none for text."""
    dimensions = read_dimensions(config)
    cross = config.integers("cross_attention_layers") or []
    if any(layer >= dimensions.layers for layer in cross):
        raise config.refuse("cross_attention_layers", f"names layers beyond {dimensions.layers}")
    own = [layer for layer in range(dimensions.layers) if layer not in set(cross)]
    return shape_of(
        config,
        dimensions,
        [
            dimensions.component("full_attention", own),
            dimensions.component("cross_attention", sorted(set(cross)), Growth("constant", 0)),
        ],
        notes=_note(config) if cross else (),
    )


def _note(config: Config) -> tuple[str, ...]:
    vision = config.top.get("vision_config")
    size = vision.get("image_size") if isinstance(vision, Mapping) else None
    pixels = f" of {size} x {size} pixels" if isinstance(size, int) else ""
    return (
        f"cross-attention layers hold entries for the tokens of an image{pixels}; a text-only "
        "sequence has none, set the encoder tokens to count them",
    )
