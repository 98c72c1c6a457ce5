"""Gated linear attention of flash-linear-attention: a dk x dv matrix per head in every layer.

Kind ``gla``: key and value widths are the hidden size times `expand_k` and `expand_v`.  The library
keeps the state in fp32.
"""

from kvcalc.shapes.components import ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import shape_of
from kvcalc.shapes.families.recurrent import attention_free, state_component

MODEL_TYPES = ("gla",)


def _head_width(config: Config, name: str, hidden: int, heads: int) -> int:
    """Return the width per head of a projection that is `name` times the hidden size."""
    factor = config.own(name)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 2**16:
        raise config.refuse(name, f"{factor!r:.60} is not a positive number")
    width = hidden * factor / heads
    if width % 1 or width < 1:
        raise config.refuse(name, f"{factor} x {hidden} over {heads} heads is not a whole width")
    return int(width)


def build(config: Config) -> ModelShape:
    """Build the shape of a GLA model without short convolutions or attention layers between."""
    dimensions = attention_free(config)
    config.own("attn_mode", "conv_size")  # the kernel's name, and the width of convolutions that are off
    if config.flag("use_short_conv"):
        raise config.refuse("use_short_conv", "only false is understood")
    for name in ("attn", "num_kv_heads"):
        if config.own(name) is not None:
            raise config.refuse(name, "only null is understood")
    heads = config.size("num_heads")
    key_dim = _head_width(config, "expand_k", dimensions.hidden, heads)
    value_dim = _head_width(config, "expand_v", dimensions.hidden, heads)
    state = Tensor("state", heads, key_dim * value_dim, storage="float32")
    return shape_of(config, dimensions, [state_component("gla", range(dimensions.layers), state)])
