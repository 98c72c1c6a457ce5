"""The handful of sizes that nearly every decoder has, read under any of their names."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvcalc.errors import UnsupportedModelError
from kvcalc.parameters.counts import Layers
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import HEAD_DIM, HIDDEN, KV_HEADS, LAYERS, QUERY_HEADS

INNER = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff")
VOCABULARY = ("padded_vocab_size", "vocab_size")
GROUPS = "multi_query_group_num"
"""ChatGLM's word for its KV heads, which stands only where it attends to few."""


@dataclass(frozen=True)
class Dimensions:
    """Sizes of a decoder: hidden width, heads, feed-forward width, vocabulary."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    inner: int
    vocabulary: int

    @property
    def all_layers(self) -> Layers:
        """Indices of all decoder layers."""
        return tuple(range(self.layers))


def read(
    config: Config, defaults: Mapping[str, int] | None = None, *, head_dim: int = 0, layers: int = 0
) -> Dimensions:
    """Read the sizes of a decoder.

    `defaults` are those of the model class: a config nested in another leaves out what equals them.
    `head_dim` is for models whose heads have no single width of their own, `layers` for those that
    state the number of layers in another way.
    """
    known = (defaults or {}) if config.nested else {}

    def size(names: tuple[str, ...], absent: int | None = None) -> int:
        fallback = next((known[name] for name in names if name in known), absent)
        if config.own(*names) is None and fallback is not None:
            return fallback
        return config.size(*names)

    hidden = size(HIDDEN)
    heads = size(QUERY_HEADS, absent=0)
    dim = head_dim or config.integer(*HEAD_DIM, default=0)
    if not dim and heads:
        if hidden % heads:
            raise UnsupportedModelError(
                f"{config.where}: hidden_size: {hidden} is not a multiple of {heads} attention heads"
            )
        dim = hidden // heads
    inner = config.own(*INNER)
    return Dimensions(
        hidden=hidden,
        layers=layers or config.layer_count(*LAYERS),
        heads=heads,
        kv_heads=size((*KV_HEADS, GROUPS), absent=heads),
        head_dim=dim,
        value_dim=dim,
        inner=0 if isinstance(inner, list) else size(INNER, absent=4 * hidden),
        vocabulary=size(VOCABULARY),
    )
