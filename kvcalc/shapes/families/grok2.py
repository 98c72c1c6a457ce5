"""Grok-2, whose config.json says `model_type` git, the name of an unrelated image captioner."""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import full_attention_shape, read_dimensions

MODEL_TYPES = ("git",)

ARCHITECTURE = "Grok1ForCausalLM"


def build(config: Config) -> ModelShape:
    """Build the shape of Grok-2; engines too recognise it by its architecture alone."""
    architectures = config.get("architectures", default=[])
    if architectures != [ARCHITECTURE]:
        raise config.refuse("architectures", f"{architectures!r:.60} is not understood, only {ARCHITECTURE}")
    return full_attention_shape(config, read_dimensions(config))
