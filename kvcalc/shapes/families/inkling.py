"""Inkling: sliding and full attention, with four short convolutions in every layer.

Keys, values, and the outputs of attention and feed-forward each pass a convolution (kind
``short_conv``).  The first two are divided with the KV heads; the outputs are whole on every rank.
"""

from dataclasses import replace

from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import conv_rows, state_component

MODEL_TYPES = ("inkling_mm_model", "inkling_model", "inkling_text")

SLIDING = {
    "hybrid_sliding": True,
    "sliding_attention": True,
    "hybrid": False,
    "full_attention": False,
}
"""Whether a layer with this word slides."""


def _sliding_layers(config: Config, layers: int) -> list[int]:
    words = config.words("layer_types", layers)
    local = config.integers("local_layer_ids")
    if words is None and local is None:
        raise config.refuse("layer_types", "missing, and no local_layer_ids either")
    if words is None:
        return [layer for layer in range(layers) if layer in (local or ())]
    unknown = set(words) - set(SLIDING)
    if unknown:
        raise config.refuse("layer_types", f"{min(unknown)!r} is not understood")
    return [layer for layer, word in enumerate(words) if SLIDING[word]]


def _convolutions(config: Config, dimensions: Dimensions, layers: list[int]) -> list[Component]:
    if not config.flag("use_sconv", default=True):
        return []
    rows = conv_rows(config, "sconv_kernel_size", "conv_kernel_size")
    own = (
        Tensor("conv_key", dimensions.kv_heads, dimensions.key_dim, rows=rows, storage="conv"),
        Tensor("conv_value", dimensions.kv_heads, dimensions.value_dim, rows=rows, storage="conv"),
        Tensor("conv_outputs", 2, dimensions.hidden, rows=rows, split="replicated", storage="conv"),
    )
    return [state_component("short_conv", layers, *own)]


def build(config: Config) -> ModelShape:
    """Build the shape of an Inkling model."""
    full = read_dimensions(config)
    width = config.size("swa_head_dim", default=full.key_dim)
    sliding = replace(
        full,
        query_heads=config.size("swa_num_attention_heads", default=full.query_heads),
        kv_heads=config.size("swa_num_key_value_heads", default=full.kv_heads),
        key_dim=width,
        value_dim=config.size("swa_v_head_dim", default=width),
    )
    full = replace(full, value_dim=config.size("v_head_dim", default=full.value_dim))
    slides = _sliding_layers(config, full.layers)
    others = [layer for layer in range(full.layers) if layer not in slides]
    window = Growth("window", config.size("sliding_window_size", "sliding_window"))
    return shape_of(
        config,
        full,
        [
            sliding.component("sliding_window", slides, window),
            full.component("full_attention", others),
            *_convolutions(config, sliding, slides),
            *_convolutions(config, full, others),
        ],
        notes=("vLLM keeps the convolutions' inputs in pages of a window cache, which takes more",),
    )
