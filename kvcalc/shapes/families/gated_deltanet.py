"""Gated DeltaNet: a delta-rule memory per value head, with full attention every few layers.

Kind ``gated_deltanet``: the convolution covers the queries and keys of `hk` heads and the values of
`hv` heads; the state is a dk x dv matrix per value head.  Tensor parallelism deals out both kinds of
head.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import full_draft, read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import conv_rows, state_component
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = (
    "qwen3_next",
    "qwen3_5",
    "qwen3_5_text",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "olmo_hybrid",
)


def gated_deltanet_component(
    layers: Sequence[int], key_heads: int, key_dim: int, value_heads: int, value_dim: int, rows: int
) -> Component:
    """Return a component of gated DeltaNet layers."""
    return state_component(
        "gated_deltanet",
        layers,
        Tensor("conv_key", key_heads, 2 * key_dim, rows=rows, storage="conv"),  # query and key
        Tensor("conv_value", value_heads, value_dim, rows=rows, storage="conv"),
        Tensor("state", value_heads, key_dim * value_dim, storage="state"),
    )


def read_gated_deltanet(config: Config, layers: Sequence[int]) -> Component:
    """Read gated DeltaNet layers under the names that Qwen3-Next gave their widths."""
    return gated_deltanet_component(
        layers,
        key_heads=config.size("linear_num_key_heads"),
        key_dim=config.size("linear_key_head_dim"),
        value_heads=config.size("linear_num_value_heads"),
        value_dim=config.size("linear_value_head_dim"),
        rows=conv_rows(config, "linear_conv_kernel_dim"),
    )


def read_layer_words(config: Config, layers: int) -> list[str]:
    """Return each layer's word: as listed, else full attention at every n-th layer."""
    interval = config.size("full_attention_interval", default=None)
    if interval is None and config.own("layer_types") is None:
        raise config.refuse("layer_types", "missing, and no full_attention_interval either")

    def word(layer: int) -> str:
        return "linear_attention" if (layer + 1) % interval else "full_attention"

    return layer_words(config, layers, word)


def build(config: Config) -> ModelShape:
    """Build the shape of a hybrid of gated DeltaNet and full attention, as its MTP layers are too."""
    dimensions = read_dimensions(config)
    config.own("linear_use_gate")  # of the output
    if config.flag("use_sliding_window"):
        raise config.refuse("use_sliding_window", "a window is not understood between linear layers")
    components = assemble(
        config,
        read_layer_words(config, dimensions.layers),
        {
            "linear_attention": lambda layers: [read_gated_deltanet(config, layers)],
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
        },
    )
    return shape_of(
        config,
        dimensions,
        components,
        draft=full_draft(config, dimensions),
    )
