"""RWKV: no attention; the last token's input (token shift) and a decayed memory per layer.

Kind ``rwkv``: two past inputs of the hidden width (time mixing and channel mixing), and the memory:
three vectors in RWKV-4 (numerator, denominator, maximum), a square matrix per head in RWKV-7.  The
memory is fp32 in transformers, flash-linear-attention and llama.cpp alike.
"""

from kvcalc.shapes.components import ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import LAYERS, shape_of
from kvcalc.shapes.families.recurrent import attention_free, state_component

MODEL_TYPES = ("rwkv", "rwkv7")

MIXERS = 2
"""Time mixing and channel mixing each look at the previous token's input."""

RWKV4_VECTORS = 3
"""Numerator, denominator and running maximum of RWKV-4's weighted average."""


def _memory_rwkv4(config: Config, hidden: int) -> Tensor:
    width = config.size("attention_hidden_size", default=hidden)
    return Tensor("state", width, 1, rows=RWKV4_VECTORS, split="channels", storage="float32")


def _memory_rwkv7(config: Config, hidden: int) -> Tensor:
    head_dim = config.size("head_dim")
    heads = config.size("num_heads", default=hidden // head_dim)
    if heads * head_dim != hidden:
        raise config.refuse("num_heads", f"{heads} heads of {head_dim} do not make up {hidden}")
    if config.own("attn") is not None:
        raise config.refuse("attn", "attention layers between are not understood")
    widths = config.own("value_dim")
    if widths is not None and widths != [hidden] * config.layer_count(*LAYERS):
        raise config.refuse("value_dim", f"only null or {hidden} for each layer is understood")
    return Tensor("state", heads, head_dim * head_dim, storage="float32")


def build(config: Config) -> ModelShape:
    """Build the shape of an RWKV model."""
    dimensions = attention_free(config)
    config.own("attn_mode")  # which kernel computes the same recurrence
    memory = _memory_rwkv7 if config.model_type == "rwkv7" else _memory_rwkv4
    component = state_component(
        "rwkv",
        range(dimensions.layers),
        Tensor("token_shift", dimensions.hidden, 1, rows=MIXERS, split="channels", storage="conv"),
        memory(config, dimensions.hidden),
    )
    max_tokens = config.size("max_position_embeddings", "context_length", default=None)
    return shape_of(config, dimensions, [component], max_tokens=max_tokens)
