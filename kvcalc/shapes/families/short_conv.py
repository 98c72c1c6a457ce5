"""Layers that keep a few past inputs: LFM2's short convolutions, and Yuan's localized filtering.

Kind ``short_conv``: the last inputs of a convolution, once per sequence.  Tensor parallelism deals
the channels out evenly.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import conv_rows, state_component
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("lfm2", "lfm2_moe", "yuan")

YUAN_PAST_INPUTS = 2
"""Hidden states that Yuan's attention keeps for its two convolutions of kernel 2 in a row
(`inference_hidden_states_memory` in its modeling file)."""


def short_conv_component(layers: Sequence[int], channels: int, rows: int) -> Component:
    """Return a component of layers that keep the last `rows` inputs of `channels` channels."""
    conv = Tensor("conv", channels, 1, rows=rows, split="channels", storage="conv")
    return state_component("short_conv", layers, conv)


def _build_lfm2(config: Config) -> ModelShape:
    dimensions = read_dimensions(config)
    config.own("conv_dim_out", "conv_use_xavier_init")  # after the convolution, and before training
    words = config.words("layer_types", dimensions.layers)
    attention = config.integers("full_attn_idxs")
    if words is None and attention is None:
        raise config.refuse("layer_types", "missing, and no full_attn_idxs either")
    if words is None:
        chosen = set(attention or ())
        words = ["full_attention" if layer in chosen else "conv" for layer in range(dimensions.layers)]
    components = assemble(
        config,
        words,
        {
            "conv": lambda layers: [
                short_conv_component(
                    layers,
                    channels=config.size("conv_dim", default=dimensions.hidden),
                    rows=conv_rows(config, "conv_L_cache"),
                )
            ],
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
        },
    )
    return shape_of(config, dimensions, components)


def _build_yuan(config: Config) -> ModelShape:
    """Every layer is full attention that first filters its inputs over two past tokens."""
    dimensions = read_dimensions(config)
    layers = range(dimensions.layers)
    components = [
        dimensions.component("full_attention", layers),
        short_conv_component(layers, dimensions.hidden, YUAN_PAST_INPUTS),
    ]
    return shape_of(config, dimensions, components)


def build(config: Config) -> ModelShape:
    """Build the shape of a model with short convolutions beside its attention."""
    return _build_yuan(config) if config.model_type == "yuan" else _build_lfm2(config)
