"""Kimi Delta Attention: a delta rule with a decay per channel, with MLA every few layers.

Kind ``kda``: query, key and value of every head pass a convolution, and the state is a square matrix
per head.  Serving engines keep that state in fp32 by default, whatever the model's dtype.  Tensor parallelism
deals out heads; the MLA latents between are replicated.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import draft_layers, read_dimensions, shape_of
from kvcalc.shapes.families.mla import read_mla
from kvcalc.shapes.families.recurrent import conv_rows, state_component

MODEL_TYPES = ("kimi_linear",)


def kda_component(layers: Sequence[int], heads: int, head_dim: int, rows: int) -> Component:
    """Return a component of Kimi Delta Attention layers."""
    return state_component(
        "kda",
        layers,
        Tensor("conv", heads, 3 * head_dim, rows=rows, storage="conv"),  # query, key and value
        Tensor("state", heads, head_dim * head_dim, storage="state"),
    )


def read_kda(linear: Config, layers: Sequence[int]) -> Component:
    """Read the widths of KDA layers from their section of a config."""
    return kda_component(
        layers,
        heads=linear.size("num_heads"),
        head_dim=linear.size("head_dim"),
        rows=conv_rows(linear, "short_conv_kernel_size"),
    )


def _split_layers(linear: Config, layers: int) -> tuple[list[int], list[int]]:
    """Return the KDA and the attention layers, counted from 0; the config counts from 1."""
    kda = linear.integers("kda_layers") or []
    attention = linear.integers("full_attn_layers") or []
    if sorted(kda + attention) != list(range(1, layers + 1)):
        raise linear.refuse(
            "kda_layers", f"with full_attn_layers they do not name each of {layers} layers once"
        )
    return [layer - 1 for layer in kda], [layer - 1 for layer in attention]


def build(config: Config) -> ModelShape:
    """Build the shape of a Kimi Linear model."""
    dimensions = read_dimensions(config)
    linear = config.section("linear_attn_config")
    if linear is None:
        raise config.refuse("linear_attn_config", "missing, so that the linear layers are unknown")
    kda, attention = _split_layers(linear, dimensions.layers)
    draft = draft_layers(config, dimensions.layers)
    return shape_of(
        config,
        dimensions,
        [read_kda(linear, kda), read_mla(config, attention)],
        model_type=config.outer_model_type,  # Kimi K3 calls its language model kimi_linear as well
        draft=(read_mla(config, draft),) if draft else (),
    )
