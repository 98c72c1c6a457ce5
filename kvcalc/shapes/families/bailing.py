"""Ling and Ring hybrids: linear layers in groups that end with an attention layer.

Ling/Ring linear 2.0 (`bailing_moe_linear`) has lightning layers and GQA.  `bailing_hybrid` has MLA,
and lightning (2.5) or, where a `short_conv_kernel_size` is given, KDA layers (3.0).
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, draft_layers, read_dimensions, shape_of
from kvcalc.shapes.families.kda import kda_component
from kvcalc.shapes.families.lightning import lightning_component
from kvcalc.shapes.families.mla import read_mla
from kvcalc.shapes.families.recurrent import conv_rows

MODEL_TYPES = ("bailing_moe_linear", "bailing_hybrid")

ARITHMETIC = (
    *("group_norm_size", "linear_mode", "linear_rope", "linear_silu", "use_linear_silu"),
    *("gated_attention_proj_granularity_type", "kda_lower_bound", "kda_safe_gate", "no_kda_lora"),
)
"""Keys about how linear layers compute, not about what they keep."""


def _is_attention(layer: int, layers: int, group: int) -> bool:
    """Whether a layer ends its group, or belongs to a last group that is not whole."""
    return (layer + 1) % group == 0 or layer >= layers // group * group


def _attention(config: Config, dimensions: Dimensions, layers: Sequence[int]) -> Component:
    if config.model_type == "bailing_hybrid" and config.flag("use_mla", default=True):
        return read_mla(config, layers)
    return dimensions.component("full_attention", layers)


def _linear(config: Config, dimensions: Dimensions, layers: Sequence[int]) -> Component:
    if config.own("short_conv_kernel_size") is None:
        return lightning_component(layers, dimensions.query_heads, dimensions.key_dim)
    rows = conv_rows(config, "short_conv_kernel_size")
    return kda_component(layers, dimensions.query_heads, dimensions.key_dim, rows)


def build(config: Config) -> ModelShape:
    """Build the shape of a Ling or Ring hybrid."""
    dimensions = read_dimensions(config)
    group = config.size("layer_group_size")
    if config.flag("use_sliding_window"):
        raise config.refuse("use_sliding_window", "a window is not understood between linear layers")
    heads = config.size("num_kv_heads_for_linear_attn", default=dimensions.query_heads)
    if heads != dimensions.query_heads:
        raise config.refuse(
            "num_kv_heads_for_linear_attn", f"{heads} are not the {dimensions.query_heads} heads"
        )
    config.own(*ARITHMETIC)
    attention = [
        layer for layer in range(dimensions.layers) if _is_attention(layer, dimensions.layers, group)
    ]
    linear = [layer for layer in range(dimensions.layers) if layer not in attention]
    draft = draft_layers(config, dimensions.layers)
    return shape_of(
        config,
        dimensions,
        [_linear(config, dimensions, linear), _attention(config, dimensions, attention)],
        draft=(_attention(config, dimensions, draft),) if draft else (),
    )
