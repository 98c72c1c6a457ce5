"""No engine at all: what the model must remember, in whole blocks when a block size is given."""

from collections.abc import Sequence

import numpy as np

from kvcalc.engines.checks import check_ranks
from kvcalc.engines.layout import ComponentBytes, Layout, Pool
from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import cached_components, model_precision, sizes, unslid
from kvcalc.quantity import Bytes, Tokens
from kvcalc.shapes.components import ModelShape


def round_up(count: Tokens, multiple: int) -> Tokens:
    """Return the smallest whole multiple that is at least `count`.

    >>> print(round_up(17, 16))
    32
    """
    return -(-count // multiple) * multiple


class GenericLayout(Layout):
    """A window keeps at most its w entries, states and indexers keep the model's dtype."""

    @property
    def kv_dtype(self) -> str:
        """The format that was asked for, else the checkpoint's."""
        return model_precision(self.shape, self.settings).kv

    def reserved(self, tokens: Tokens) -> Bytes:
        """Bytes of one sequence on one GPU; equal to the serialized ones without a block size."""
        block = self.settings.block_size
        if block is None:
            return self.serialized(tokens, per_gpu=True)
        return in_whole_blocks(self.per_gpu, tokens, block)

    def pool(self, size: float) -> Pool:
        """Blocks where every layer grows alike; else the sequences of max_len that fit."""
        block = self.settings.block_size or 1
        uniform = bool(self.per_gpu) and all(part.growth.kind == "linear" for part in self.per_gpu)
        return uniform_pool(self, size, block) if uniform else mixed_pool(self, size, block)


def in_whole_blocks(parts: Sequence[ComponentBytes], tokens: Tokens, block: int) -> Bytes:
    """Return the bytes of one sequence whose token entries fill whole blocks of `block` tokens."""
    total = tokens * 0.0
    for part in parts:
        entries = part.growth.entries(round_up(tokens, block))
        if part.growth.kind in ("linear", "window", "chunk"):
            entries = round_up(entries, block)
        total = total + part.stored * entries
    return total


def uniform_pool(layout: Layout, size: float, block: int) -> Pool:
    """Return the pool of a layout in which every component grows with every token."""
    max_len = layout.settings.max_len
    block_bytes = layout.bytes_per_token_per_gpu * block
    blocks = layout.settings.num_blocks or int(size // block_bytes)
    layers = sum(part.layers for part in layout.per_gpu)
    return Pool(
        block_tokens=block,
        page_bytes=block_bytes / layers,
        block_bytes=block_bytes,
        num_blocks=blocks,
        kv_tokens=blocks * block * layout.settings.dcp,
        max_concurrency=blocks / int(np.ceil(max_len / (block * layout.settings.dcp))) if max_len else None,
    )


def mixed_pool(layout: Layout, size: float, block: int) -> Pool:
    """Return the pool of a layout with capped or constant parts: no block costs the same."""
    max_len = layout.settings.max_len
    concurrency = size / float(layout.reserved(max_len)) if max_len else None
    return Pool(
        block_tokens=block,
        page_bytes=None,
        block_bytes=None,
        num_blocks=None,
        kv_tokens=int(concurrency * max_len) if max_len and concurrency is not None else None,
        max_concurrency=concurrency,
        notes=("components grow differently, so a block has no single size",),
    )


def lay_out(shape: ModelShape, settings: EngineSettings) -> GenericLayout:
    """Return the engine-free layout of `shape`."""
    check_ranks(shape, settings, settings.tp)
    components = unslid(cached_components(shape, settings), shape)
    sized = sizes(shape, settings, model_precision(shape, settings), components)
    return GenericLayout(shape, settings, sized.logical, sized.per_gpu, shape.notes)
