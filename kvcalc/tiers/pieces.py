"""How large the pieces are in which a mechanism moves the KV of one rank."""

import math

from kvcalc.engines.layout import ComponentBytes, Layout
from kvcalc.errors import SettingsError
from kvcalc.tiers.mechanisms import Mechanism

BLOCK_TOKENS = 16
"""Tokens of a block where the engine has none [token]: the default of vLLM on NVIDIA GPUs, and with it of
the tools that copy its blocks."""


def piece_bytes(mechanism: Mechanism, layout: Layout) -> float:
    """Return the bytes of one piece by the mechanism's rule; infinite where everything is one piece.

    Raises
    ------
    SettingsError
        If the mechanism's data lacks what its rule needs.
    """
    if mechanism.piece == "whole":
        return math.inf
    if mechanism.piece == "block":
        blocks = 1.0 if mechanism.chunk_tokens is None else mechanism.chunk_tokens / block_tokens(layout)
        return blocks * block_bytes(layout)
    if mechanism.piece == "layer":
        return layer_bytes(layout)
    if mechanism.piece == "page":
        return layer_bytes(layout) * page_tokens(layout) / block_tokens(layout)
    if mechanism.piece == "chunk" and mechanism.chunk_tokens is not None:
        return mechanism.chunk_tokens * layout.bytes_per_token_per_gpu
    if mechanism.piece == "slice" and mechanism.slice_bytes is not None:
        return float(mechanism.slice_bytes)
    raise SettingsError(f"mechanism {mechanism.name}: no size for pieces of a {mechanism.piece}")


def block_tokens(layout: Layout) -> int:
    """Return the tokens of a block, as the engine has it or as `BLOCK_TOKENS`."""
    found = layout.pool(0.0).block_tokens
    return found if found is not None and found > 1 else layout.settings.block_size or BLOCK_TOKENS


def page_tokens(layout: Layout) -> int:
    """Return the tokens of a page of SGLang: one, where nobody asks for more."""
    settings = layout.settings
    return settings.page_size or settings.block_size or int(layout.pool(0.0).block_tokens or 1)


def block_bytes(layout: Layout) -> float:
    """Return the bytes of one block over all layers of a rank, as its pool counts them."""
    pool = layout.pool(0.0)
    if pool.block_bytes is not None and pool.block_tokens is not None and pool.block_tokens > 1:
        return float(pool.block_bytes)
    return block_tokens(layout) * layout.bytes_per_token_per_gpu


def layer_bytes(layout: Layout) -> float:
    """Return the bytes of one tensor of one layer in a block, of the kind of layer that holds most."""
    grows = [part for part in layout.per_gpu if part.bytes_per_token > 0]
    if not grows:
        return block_bytes(layout)
    most = max(grows, key=lambda part: part.bytes_per_token)
    return block_tokens(layout) * most.bytes_per_token / most.layers / _tensors(layout, most)


def _tensors(layout: Layout, part: ComponentBytes) -> int:
    """Tensors that an engine keeps apart: keys and values of heads are two, a latent is one."""
    components = layout.shape.components_for(layout.settings.engine)
    entry = next((item.entry for item in components if item.kind == part.kind), ())
    return max(1, sum(1 for tensor in entry if tensor.split == "heads"))
