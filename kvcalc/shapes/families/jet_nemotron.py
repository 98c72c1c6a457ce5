"""Jet-Nemotron: JetBlock linear layers with a few full and sliding-window attention layers.

A JetBlock is a gated delta rule (kind ``gated_deltanet``) whose convolution covers the values alone:
queries and keys have none (NVlabs/Jet-Nemotron, `jetai/modeling/hf/jet_block.py`).
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import conv_rows, state_component
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("jet_nemotron",)


def _section(config: Config, name: str) -> Config:
    """Return the settings of one kind of efficient layer."""
    settings = config.section("efficient_attention_config")
    part = settings.section(name) if settings else None
    if part is None:
        raise config.refuse("efficient_attention_config", f"{name!r} is missing, and a layer needs it")
    return part


def _jet(config: Config, layers: Sequence[int]) -> Component:
    jet = _section(config, "jet")
    jet.own("dconv_generator_reduction", "dconv_implementation")  # how the kernel is made
    heads, key_dim, expand = jet.size("num_heads"), jet.size("head_dim"), jet.own("expand_v")
    if isinstance(expand, bool) or not isinstance(expand, (int, float)) or not 0 < expand < 2**16:
        raise jet.refuse("expand_v", f"{expand!r:.60} is not a positive number")
    value_dim = round(key_dim * expand)
    if abs(value_dim - key_dim * expand) > 1e-5 * value_dim:  # the model's own tolerance
        raise jet.refuse("expand_v", f"{expand} x {key_dim} is not a whole width")
    return state_component(
        "gated_deltanet",
        layers,
        Tensor("conv_value", heads, value_dim, rows=conv_rows(jet, "conv_size"), storage="conv"),
        Tensor("state", heads, key_dim * value_dim, storage="state"),
    )


def _sliding(config: Config, dimensions: Dimensions, layers: Sequence[int]) -> Component:
    window = _section(config, "swa").size("window_size")
    return dimensions.component("sliding_window", layers, Growth("window", window))


def build(config: Config) -> ModelShape:
    """Build the shape of a Jet-Nemotron model."""
    dimensions = read_dimensions(config)
    config.own("max_window_layers")  # of the Qwen2 it was searched from; layer_types says it all
    words = config.words("layer_types", dimensions.layers)
    if words is None:
        raise config.refuse("layer_types", "missing, so that the layers are unknown")
    components = assemble(
        config,
        words,
        {
            "jet": lambda layers: [_jet(config, layers)],
            "attn": lambda layers: [dimensions.component("full_attention", layers)],
            "swa": lambda layers: [_sliding(config, dimensions, layers)],
        },
    )
    return shape_of(config, dimensions, components)
