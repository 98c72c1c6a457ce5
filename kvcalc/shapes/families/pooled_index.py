"""Index keys that are pooled: one key per group of tokens, and the keys of the group still open.

Kinds ``pooled_index`` (one row per `ratio` tokens) and ``index_ring`` (the last `ratio` tokens' own
keys, with what the pooling weighs them by).  Indexers have one key head, so nothing is divided by
tensor parallelism.  No log of a server is known that confirms the ring.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Attention, Component, Growth, Tensor


def pooled_index_components(
    layers: Sequence[int], query_heads: int, width: int, ratio: int, gated: bool
) -> list[Component]:
    """Return pooled keys and the ring; `gated` pooling also holds a gate per channel and token."""
    ring = [Tensor("index_key", 1, width, split="replicated", storage="index")]
    pooled = Component(
        "pooled_index",
        tuple(layers),
        tuple(ring),
        Growth("strided", ratio),
        Attention(query_heads, width, 0),
    )
    if gated:
        ring.append(Tensor("index_gate", 1, width, split="replicated", storage="index"))
    return [pooled, Component("index_ring", tuple(layers), tuple(ring), Growth("window", ratio))]
