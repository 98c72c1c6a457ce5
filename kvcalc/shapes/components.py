"""The vocabulary of shapes: tensors, growth, components, and the shape they make up.

A shape says what a model's attention must remember, in elements.  How many bytes an element takes
and what an allocator adds is the business of `kvcalc.shapes.formats` and `kvcalc.engines`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from kvcalc.quantity import Count, Tokens

Split = Literal["heads", "replicated", "channels", "groups"]
"""How tensor parallelism divides a tensor.

heads: whole heads; with more ranks than heads each rank keeps one (replication).
replicated: every rank keeps all of it (MLA latents, indexer keys).
channels: evenly by element (recurrent states, convolution channels).
groups: Mamba-2 groups; a count that tp does not divide is padded up to tp.
"""

Storage = Literal["kv", "index", "conv", "state", "float32"]
"""Which precision choice applies: the KV dtype, the indexer's, the convolution state's (model dtype
unless an engine says otherwise), the recurrent state's (`mamba_ssm_dtype`), or always fp32."""

MOST_ELEMENTS = 2**48
"""No dimension or count of elements reaches this [1]: known models have 2^41 parameters at most, and the
bytes of so many elements are still exact in a float."""

GrowthKind = Literal["linear", "window", "chunk", "constant", "strided"]


@dataclass(frozen=True)
class Tensor:
    """One array that an entry of a component consists of: `heads` x `width` x `rows` elements."""

    name: str  # key, value, latent, rope_key, index_key, conv, state, ...
    heads: int
    width: int
    rows: int = 1  # a convolution state of kernel k keeps k - 1 rows of its channels
    split: Split = "heads"
    storage: Storage = "kv"

    @property
    def elements(self) -> int:
        """Elements in one logical copy."""
        return self.heads * self.width * self.rows

    def heads_per_rank(self, tp: int) -> float:
        """Heads that one of `tp` ranks keeps; a fraction only where channels are split."""
        if self.split == "replicated":
            return self.heads
        if self.split == "channels":
            return self.heads / tp
        if self.split == "groups":
            return max(1, (self.heads if self.heads % tp == 0 else tp) // tp)
        return max(1, self.heads // tp)


@dataclass(frozen=True)
class Growth:
    """How many entries a component keeps for a sequence of n tokens.

    linear: n.  window: min(n, size).  chunk: min(n, size), forgotten at each chunk boundary.
    constant: `size` entries, whatever n (a recurrent state is one entry, cross-attention one per
    encoder token).  strided: one entry per `size` tokens, floor(n / size).
    """

    kind: GrowthKind
    size: int = 0

    def entries(self, tokens: Tokens) -> Count:
        """Entries kept after `tokens` tokens; scalars and arrays alike."""
        if self.kind == "linear":
            return tokens
        if self.kind in ("window", "chunk"):
            return np.minimum(tokens, self.size)
        if self.kind == "strided":
            return np.floor_divide(tokens, self.size)
        return tokens * 0 + self.size

    @property
    def slope(self) -> float:
        """Entries per further token in the long-context limit."""
        if self.kind == "linear":
            return 1.0
        return 1.0 / self.size if self.kind == "strided" else 0.0

    @property
    def saturated(self) -> int:
        """Entries that stay once a capped or constant component is full, else 0."""
        return self.size if self.kind in ("window", "chunk", "constant") else 0


LINEAR = Growth("linear")


@dataclass(frozen=True)
class Attention:
    """What one layer of a component computes per query token, for the FLOP count of prefill."""

    query_heads: int
    key_dim: int  # width of one query-key product (MLA prefill: nope + rope)
    value_dim: int
    top_k: int | None = None  # sparse attention reads at most this many entries


@dataclass(frozen=True)
class Component:
    """A group of layers that keep the same kind of entry with the same growth."""

    kind: str  # full_attention, sliding_window, mla, indexer, gated_deltanet, ...
    layers: tuple[int, ...]  # indices of the model's layers that own one, in order
    entry: tuple[Tensor, ...]
    growth: Growth = LINEAR
    attention: Attention | None = None

    @property
    def kv_heads(self) -> int | None:
        """KV heads that tensor parallelism must divide or replicate; None without heads."""
        for tensor in self.entry:
            if tensor.split == "heads":
                return tensor.heads
        return None


@dataclass(frozen=True)
class ModelShape:
    """All that sizing a model's cache needs to know about the model."""

    name: str
    model_type: str
    components: tuple[Component, ...]
    layers: int  # decoder layers, with or without a cache of their own
    hidden: int
    query_heads: int
    max_tokens: int | None  # longest context the checkpoint declares
    dtype: str = "bf16"  # the model's own dtype: fp32, fp16, bf16
    kv_dtype: str | None = None  # what the checkpoint's quantization config asks the cache to be
    state_dtype: str | None = None  # what the config asks the recurrent state to be
    draft: tuple[Component, ...] = ()  # MTP / EAGLE layers, kept only when speculating
    engine_components: Mapping[str, tuple[Component, ...]] = field(default_factory=dict)
    """Where an engine's implementation caches something else than the architecture (MiniCPM3 under
    vLLM expands its latent), the components of that engine."""
    notes: tuple[str, ...] = ()  # what a careful reader should be told about this shape

    def components_for(self, engine: str) -> tuple[Component, ...]:
        """Return the components that `engine` caches."""
        return self.engine_components.get(engine, self.components)
