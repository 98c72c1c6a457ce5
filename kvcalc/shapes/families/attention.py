"""MHA, GQA and MQA: one key and one value per KV head and token, in every layer."""

from collections.abc import Sequence

from kvcalc.shapes.components import LINEAR, Attention, Component, Growth, ModelShape, Tensor
from kvcalc.shapes.config import Config

MODEL_TYPES = ("llama",)


def kv_entry(heads: int, key_dim: int, value_dim: int) -> tuple[Tensor, ...]:
    """Return the entry of ordinary attention: a key and a value per head."""
    return (Tensor("key", heads, key_dim), Tensor("value", heads, value_dim))


def kv_component(
    kind: str,
    layers: Sequence[int],
    heads: int,
    key_dim: int,
    value_dim: int,
    query_heads: int,
    growth: Growth = LINEAR,
) -> Component:
    """Return a component of ordinary attention layers."""
    return Component(
        kind=kind,
        layers=tuple(layers),
        entry=kv_entry(heads, key_dim, value_dim),
        growth=growth,
        attention=Attention(query_heads, key_dim, value_dim),
    )


def build(config: Config) -> ModelShape:
    """Build the shape of a model whose layers are all ordinary full attention."""
    layers = config.integer("num_hidden_layers")
    query_heads = config.integer("num_attention_heads")
    heads = config.integer("num_key_value_heads", default=query_heads)
    hidden = config.integer("hidden_size")
    head_dim = config.integer("head_dim", default=0) or hidden // query_heads
    return ModelShape(
        name=config.where,
        model_type=config.model_type,
        components=(
            kv_component("full_attention", range(layers), heads, head_dim, head_dim, query_heads),
        ),
        layers=layers,
        hidden=hidden,
        query_heads=query_heads,
        max_tokens=config.integer("max_position_embeddings", default=None),
    )
