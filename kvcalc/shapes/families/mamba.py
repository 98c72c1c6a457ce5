"""Mamba-1: a diagonal recurrence over channels, alone or between attention layers (Jamba).

Kind ``mamba1``: I = expand x hidden channels, each with k - 1 past inputs and `state_size` values.
Tensor parallelism deals the channels out evenly.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import attention_free, conv_rows, state_component

MODEL_TYPES = ("mamba", "falcon_mamba", "jamba")


def mamba1_component(layers: Sequence[int], channels: int, state_dim: int, rows: int) -> Component:
    """Return a component of Mamba-1 layers."""
    return state_component(
        "mamba1",
        layers,
        Tensor("conv", channels, 1, rows=rows, split="channels", storage="conv"),
        Tensor("state", channels, state_dim, split="channels", storage="state"),
    )


def _build_mamba(config: Config) -> ModelShape:
    dimensions = attention_free(config)
    # FalconMamba gives its width as intermediate_size, beside an `expand` that does not apply.
    expanded = config.integer("expand", default=0) * dimensions.hidden
    component = mamba1_component(
        range(dimensions.layers),
        channels=config.size("intermediate_size", "d_inner", default=expanded),
        state_dim=config.size("state_size"),
        rows=conv_rows(config, "conv_kernel"),
    )
    return shape_of(config, dimensions, [component])


def _build_jamba(config: Config) -> ModelShape:
    """One layer in `attn_layer_period`, from `attn_layer_offset` on, is attention; the others Mamba."""
    dimensions = read_dimensions(config)
    period, offset = config.size("attn_layer_period"), config.integer("attn_layer_offset")
    if config.own("sliding_window") is not None:
        raise config.refuse("sliding_window", "a window is not understood between Mamba layers")
    attention = [layer for layer in range(dimensions.layers) if layer % period == offset]
    mamba = [layer for layer in range(dimensions.layers) if layer % period != offset]
    components = [
        mamba1_component(
            mamba,
            channels=config.size("mamba_expand") * dimensions.hidden,
            state_dim=config.size("mamba_d_state"),
            rows=conv_rows(config, "mamba_d_conv"),
        ),
        dimensions.component("full_attention", attention),
    ]
    return shape_of(config, dimensions, components)


def build(config: Config) -> ModelShape:
    """Build the shape of a Mamba-1 model or hybrid."""
    return _build_jamba(config) if config.model_type == "jamba" else _build_mamba(config)
