"""Lightning attention: linear attention with a fixed decay per head, with full attention between.

Kind ``lightning``: a square matrix per query head and no convolution.  Tensor parallelism deals out
heads.  The state is in the engine's choice of precision (transformers keeps the model's dtype here,
unlike for other recurrent states).
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import state_component
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("minimax", "minimax_text_01", "minimax_m1")

ATTENTION_TYPES = {0: "linear_attention", 1: "full_attention"}
"""What the numbers of `attn_type_list` mean."""


def lightning_component(layers: Sequence[int], heads: int, head_dim: int) -> Component:
    """Return a component of lightning attention layers."""
    return state_component("lightning", layers, Tensor("state", heads, head_dim * head_dim, storage="state"))


def _words(config: Config, layers: int) -> list[str]:
    """Return each layer's word, from `layer_types` or from the numbers of `attn_type_list`."""
    words = config.words("layer_types", layers)
    numbers = config.integers("attn_type_list", layers)
    if words is not None:
        return words
    if numbers is None:
        raise config.refuse("attn_type_list", "missing, and no layer_types either")
    strangers = set(numbers) - set(ATTENTION_TYPES)
    if strangers:
        raise config.refuse("attn_type_list", f"{min(strangers)} is not understood, known are 0 and 1")
    return [ATTENTION_TYPES[number] for number in numbers]


def build(config: Config) -> ModelShape:
    """Build the shape of a hybrid of lightning and full attention."""
    dimensions = read_dimensions(config)
    if config.own("sliding_window") is not None:
        raise config.refuse("sliding_window", "a window is not understood between lightning layers")
    components = assemble(
        config,
        _words(config, dimensions.layers),
        {
            "linear_attention": lambda layers: [
                lightning_component(layers, dimensions.query_heads, dimensions.key_dim)
            ],
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
        },
    )
    return shape_of(config, dimensions, components)
